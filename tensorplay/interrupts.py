"""What interrupts the program's own code: exceptions of signal handlers, and products in the middle of our work.

Python calls a signal handler between two instructions of whatever runs, and a finalizer wherever garbage is collected.
So a time limit that raises `TimeoutError` may raise it in the middle of a measurement, where it looks like a kernel
that failed; and a handler that multiplies may do so while its thread holds any lock of ours.
"""

import signal
import sys
from collections.abc import Iterator
from functools import partial
from types import CodeType, FrameType
from weakref import WeakSet

__all__ = ["is_nested", "is_of_a_handler", "note_handlers"]

_PACKAGE = __name__.partition(".")[0]
# Who calls the program with no lock held, and who is the program: their frames may have a product inside.
_CALLS_BACK = (f"{_PACKAGE}.runtime.listeners", "_call_each")
_PROGRAMS = (f"{_PACKAGE}.cli", f"{_PACKAGE}.testing", f"{_PACKAGE}.distributed")
# Products themselves hold nothing that anybody waits for; what they call may.
_PRODUCTS = f"{_PACKAGE}.ops"

_noted: WeakSet[CodeType] = WeakSet()


def note_handlers() -> None:
    """Remember the handlers that are installed now, for one that removes itself before it raises."""
    _noted.update(_codes())


def is_of_a_handler(error: BaseException) -> bool:
    """Return whether a signal handler that is installed now, or was noted, raised an exception, or let it pass."""
    codes = {*_codes(), *_noted}
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            return True
        traceback = traceback.tb_next
    return False


def is_nested() -> bool:
    """Return whether the caller runs under foreign code that interrupted this package on the same thread.

    Under a signal handler or a finalizer, that is, and beside other threads: whoever waits there for one that waits for
    what was interrupted waits for ever. With no other thread nobody holds what is waited for.
    """
    return len(sys._current_frames()) > 1 and _is_within_ours(sys._getframe(1))


def _is_within_ours(frame: FrameType | None) -> bool:
    is_outside = False
    while frame is not None:
        name = frame.f_globals.get("__name__")
        # What was executed in a dictionary may call itself anything.
        if not (isinstance(name, str) and name.partition(".")[0] == _PACKAGE):
            is_outside = True
        elif is_outside and not name.startswith(_PRODUCTS):
            return (name, frame.f_code.co_name) != _CALLS_BACK and not name.startswith(_PROGRAMS)
        frame = frame.f_back
    return False


def _codes() -> Iterator[CodeType]:
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        if not callable(handler):
            continue
        while isinstance(handler, partial):
            handler = handler.func
        function = handler if hasattr(handler, "__code__") else getattr(handler, "__func__", type(handler).__call__)
        code = getattr(function, "__code__", None)
        if code is not None:
            yield code
