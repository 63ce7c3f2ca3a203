"""The library's handle of each device, made at its first use and kept: any number of threads may use one at once."""

from tensorplay.backends.cublaslt.attributes import verify_sizes
from tensorplay.backends.cublaslt.device import current, relaxed_capture
from tensorplay.backends.cublaslt.library import cublaslt
from tensorplay.backends.cublaslt.status import library_error, reason_of
from tensorplay.errors import KernelUnavailableError
from tensorplay.locks import ForkSafeLock

__all__ = ["handle_of"]

_handles: dict[int, int] = {}
_making = ForkSafeLock()


def handle_of(ordinal: int) -> int:
    """Return the handle of a device.

    Where the first product of all is met under a graph capture, the handle is made there, in relaxed mode: without
    one there would be no product.

    Raises
    ------
    KernelUnavailableError
        When the library cannot be used on the device; the message is its reason.
    """
    handle = _handles.get(ordinal)
    if handle is not None:
        return handle
    with _making:
        handle = _handles.get(ordinal)
        if handle is None:
            # A signal handler that multiplied meanwhile has made one too; all then use that.
            handle = _handles.setdefault(ordinal, _made(ordinal))
        return handle


def _made(ordinal: int) -> int:
    verify_sizes()
    try:
        with current(ordinal), relaxed_capture():
            handle: int = cublaslt().create()
    except library_error() as error:
        raise KernelUnavailableError(f"cuBLASLt does not start on device {ordinal}: {reason_of(error)}") from error
    return handle
