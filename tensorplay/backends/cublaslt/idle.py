"""Whether a device has done what its callers enqueued, asked so that none of their streams or captures is disturbed.

A caller's stream is never asked itself: the handle may be of a stream that is gone by now, and a stream on which
somebody begins a capture between two questions would have that capture invalidated. So an event of ours follows the
caller's work, recorded on the caller's thread while the stream is surely there, and the events are asked, in relaxed
mode: a thread in the default mode that asks an event while another captures in global mode invalidates that capture.
"""

from contextlib import suppress
from threading import get_ident

from tensorplay.backends.cublaslt.capture import PER_THREAD, is_any_capture_seen
from tensorplay.backends.cublaslt.device import current, relaxed_capture
from tensorplay.backends.cublaslt.stream import Event
from tensorplay.errors import LaunchError
from tensorplay.locks import ForkSafeLock

__all__ = ["is_idle", "note_call"]

_MOST_STREAMS = 64

_Key = int | tuple[int, int]

_marks: dict[int, dict[_Key, Event]] = {}
_lock = ForkSafeLock()


def note_call(ordinal: int, stream: int | None) -> None:
    """Remember that the calling thread has just enqueued work on the stream; raises nothing.

    What is remembered is the last call of each stream, of the streams that were used last.
    """
    stream = stream or 0
    key = (stream, get_ident()) if stream == PER_THREAD else stream
    # A device that runs nothing any more cannot be measured either, and its caller hears of it soon enough.
    with suppress(LaunchError, MemoryError), _lock, current(ordinal):
        marks = _marks.setdefault(ordinal, {})
        event = marks.pop(key, None) or _new_event()
        # Back to the end, so that the first is the one that was used longest ago.
        marks[key] = event
        event.record(stream)
        if len(marks) > _MOST_STREAMS:
            marks.pop(next(iter(marks))).close()


def is_idle(ordinal: int) -> bool:
    """Return whether all noted work is done, and no capture is seen."""
    with _lock, current(ordinal), relaxed_capture():
        if is_any_capture_seen(None):
            return False
        return all(event.has_passed() for event in list(_marks.get(ordinal, {}).values()))


def _new_event() -> Event:
    with relaxed_capture():
        return Event()
