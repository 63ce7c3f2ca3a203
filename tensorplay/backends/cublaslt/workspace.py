"""Scratch memory for kernels: one buffer for each device and stream, since two kernels at once must not share one.

A buffer is made at the first product of a stream that needs one, has the size of the ceiling, and is kept: graphs
that were captured on the stream go on using it. For that reason one that turns out too small is replaced, but not
freed. Graphs captured on one stream share its buffer, so they must not be replayed at the same time.

Nothing is allocated under a capture. Streams that are captured are often new (torch captures on one of its own), so a
spare buffer is made ready while nothing is captured, and handed out to a stream first met under capture.
"""

from contextlib import suppress
from threading import get_ident

from tensorplay.backends.cublaslt.capture import PER_THREAD, is_any_capture_seen
from tensorplay.backends.cublaslt.device import current
from tensorplay.backends.cublaslt.memory import DeviceBuffer
from tensorplay.errors import KernelUnavailableError
from tensorplay.locks import ForkSafeLock

__all__ = ["DEFAULT_BYTES", "Workspaces", "workspaces"]

DEFAULT_BYTES = 32 << 20
"""What one buffer holds; the library's makers ask for this much on Hopper."""

_Key = int | tuple[int, int]


class Workspaces:
    """The buffers of one device; safe in any number of threads, and in a signal handler that multiplies."""

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal
        self._buffers: dict[_Key, DeviceBuffer] = {}
        self._spares: list[DeviceBuffer] = []
        # Every buffer of a stream, those that were too small among them.
        self._kept: dict[_Key, list[DeviceBuffer]] = {}
        self._borrowers: dict[_Key, int] = {}
        self._lock = ForkSafeLock()

    def address(self, stream: int, nbytes: int) -> int:
        """Return the address of the stream's buffer, which holds `nbytes` at least; no lock is taken for an old one.

        Raises
        ------
        KernelUnavailableError
            When the stream has none, a capture is live, and the spare one is used up or too small.
        MemoryError
            When the device's memory is full.
        """
        buffer = self._buffers.get(stream if stream != PER_THREAD else (stream, get_ident()))
        if buffer is not None and buffer.nbytes >= nbytes:
            return buffer.address
        return self._provided(stream, nbytes).address

    def prepare(self) -> None:
        """Make the spare buffer if there is none and nothing is captured; does nothing where memory is full."""
        if self._spares:
            return
        with current(self._ordinal), self._lock:
            if not self._spares and not is_any_capture_seen(None):
                try:
                    self._spares.append(DeviceBuffer(self._ordinal, DEFAULT_BYTES))
                except MemoryError:
                    return

    def lend(self, stream: int) -> None:
        """Begin a use of a private stream, whose buffers shall go when the last one has ended."""
        with self._lock:
            self._borrowers[stream] = self._borrowers.get(stream, 0) + 1

    def take_back(self, stream: int) -> None:
        """End a use of a private stream: nothing runs on it any more, and no graph of it is replayed again."""
        with self._lock:
            remaining = self._borrowers.get(stream, 1) - 1
            if remaining > 0:
                self._borrowers[stream] = remaining
                return
            self._borrowers.pop(stream, None)
            self._buffers.pop(stream, None)
            for buffer in self._kept.pop(stream, ()):
                buffer.free()

    def _provided(self, stream: int, nbytes: int) -> DeviceBuffer:
        key = stream if stream != PER_THREAD else (stream, get_ident())
        with current(self._ordinal), self._lock:
            held = self._buffers.get(key)
            if held is not None and held.nbytes >= nbytes:
                return held
            fresh = self._fresh(stream, nbytes)
            # Kept, too, is one that a signal handler which multiplied on the stream has put here meanwhile.
            self._kept.setdefault(key, []).append(fresh)
            self._buffers[key] = fresh
        return fresh

    def _fresh(self, stream: int, nbytes: int) -> DeviceBuffer:
        """Return a buffer that no stream has: a new one, or the spare one under a capture."""
        if not is_any_capture_seen(stream):
            return DeviceBuffer(self._ordinal, max(nbytes, DEFAULT_BYTES))
        if nbytes <= DEFAULT_BYTES:
            with suppress(IndexError):
                return self._spares.pop()
        raise KernelUnavailableError(
            f"stream {stream:#x} has no workspace of {nbytes} bytes and a graph capture is live; run one "
            "product on it before capturing"
        )


_workspaces: dict[int, Workspaces] = {}


def workspaces(ordinal: int) -> Workspaces:
    """Return the buffers of a device."""
    return _workspaces.setdefault(ordinal, _workspaces.get(ordinal) or Workspaces(ordinal))
