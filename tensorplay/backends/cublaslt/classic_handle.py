"""Handles of classic cuBLAS, whose state says on which stream, with which scratch memory and how strictly it works."""

from tensorplay.backends.cublaslt.capture import PER_THREAD
from tensorplay.backends.cublaslt.device import current, relaxed_capture
from tensorplay.backends.cublaslt.library import cublas
from tensorplay.backends.cublaslt.status import reason_of
from tensorplay.backends.cublaslt.workspace import workspaces
from tensorplay.errors import KernelUnavailableError
from tensorplay.locks import ForkSafeLock

__all__ = ["ClassicHandle", "ClassicHandles", "classic_handles"]

# The library's plain mode, and the one in which no part of a sum is narrower than the type that is summed in.
_PLAIN_MODE, _STRICT_MODE = 0, 16


class ClassicHandle:
    """One handle of the library's, for one call at a time; the device's context must be current."""

    __slots__ = ("_bound", "_handle", "_mode", "_ordinal")

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal
        self._bound: tuple[int, int, int] | None = None
        self._mode = _PLAIN_MODE
        with current(ordinal), relaxed_capture():
            self._handle: int = cublas().create()

    def bound(self, stream: int, nbytes: int, *, strict: bool) -> int:
        """Return the handle, working on the stream, with so much of the stream's scratch memory.

        A stream that can have none, under a capture or where memory is full, uses the library's own.
        """
        library, mode = cublas(), _STRICT_MODE if strict else _PLAIN_MODE
        if mode != self._mode:
            library.set_math_mode(self._handle, mode)
            self._mode = mode
        try:
            address = workspaces(self._ordinal).address(stream, nbytes)
        except (KernelUnavailableError, MemoryError):
            address = 0
        # The address is compared too: a trial's stream outlives the memory that was lent to it.
        if (stream, address, nbytes) != self._bound or stream == PER_THREAD:
            self._bound = None
            # Setting the stream also takes the workspace away.
            library.set_stream(self._handle, stream)
            if address:
                library.set_workspace(self._handle, address, nbytes)
            self._bound = (stream, address, nbytes)
        return self._handle


class ClassicHandles:
    """The handles of one device: one, held by one thread at a time, and more only for calls within a call.

    A signal handler that multiplies may come in the middle of a call of its own thread: a handle that they shared
    would be left on the handler's stream.

    Attributes
    ----------
    lock : ForkSafeLock
        Held from `take` to `give_back`.

    Raises
    ------
    KernelUnavailableError
        When the library cannot be used on the device; the message is its reason.
    """

    __slots__ = ("_idle", "_ordinal", "lock")

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal
        self.lock = ForkSafeLock()
        self._idle = [self._made()]

    def take(self) -> ClassicHandle:
        """Return a handle that nobody uses."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._made()

    def give_back(self, handle: ClassicHandle) -> None:
        """End the use of a handle."""
        self._idle.append(handle)

    def _made(self) -> ClassicHandle:
        try:
            return ClassicHandle(self._ordinal)
        except cublas().cuBLASError as error:
            raise KernelUnavailableError(
                f"classic cuBLAS does not start on device {self._ordinal}: {reason_of(error)}"
            ) from error


_making = ForkSafeLock()
_handles: dict[int, ClassicHandles] = {}


def classic_handles(ordinal: int) -> ClassicHandles:
    """Return the handles of a device, the first made at the first use and kept."""
    found = _handles.get(ordinal)
    if found is None:
        with _making:
            found = _handles.get(ordinal)
            if found is None:
                found = _handles.setdefault(ordinal, ClassicHandles(ordinal))
    return found
