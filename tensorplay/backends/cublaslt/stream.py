"""Events, and the stream of each device on which we measure."""

from functools import cache
from typing import Any

from tensorplay.backends.cublaslt.device import current, relaxed_capture
from tensorplay.backends.cublaslt.library import driver
from tensorplay.backends.cublaslt.status import check

__all__ = ["Event", "live_events", "private_stream", "synchronize"]

_NON_BLOCKING = 1
_live: set[int] = set()


class Event:
    """A timing event; the device's context must be current when it is used. Give it back with `close`."""

    __slots__ = ("_handle", "_number")

    def __init__(self) -> None:
        self._handle: Any = check(driver().cuEventCreate(0), "creating an event")
        self._number = int(self._handle)
        _live.add(self._number)

    def record(self, stream: int) -> None:
        """Enqueue it."""
        check(driver().cuEventRecord(self._handle, stream), "recording an event")

    def has_passed(self) -> bool:
        """Return whether the device has reached it; an earlier failure counts as reached."""
        return int(driver().cuEventQuery(self._handle)[0]) != _not_ready()

    def milliseconds_since(self, earlier: "Event") -> float:
        """Return the device time from another event to this; both must have passed."""
        return float(check(driver().cuEventElapsedTime(earlier._handle, self._handle), "reading an event"))

    def close(self) -> None:
        """Give it back."""
        if self._number in _live:
            _live.discard(self._number)
            check(driver().cuEventDestroy(self._handle), "destroying an event")


def live_events() -> int:
    """Return how many events exist, for whoever looks for leaks."""
    return len(_live)


def synchronize(stream: int) -> None:
    """Wait for all that was enqueued; `LaunchError` when any of it failed."""
    check(driver().cuStreamSynchronize(stream), "waiting for the device")


@cache
def private_stream(ordinal: int) -> int:
    """Return the stream on which a device is measured: non-blocking, so that nobody's default stream waits for it."""
    with current(ordinal), relaxed_capture():
        return int(check(driver().cuStreamCreate(_NON_BLOCKING), "creating a stream"))


@cache
def _not_ready() -> int:
    return int(driver().CUresult.CUDA_ERROR_NOT_READY)
