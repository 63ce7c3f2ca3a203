"""Exceptions of the program's own signal handlers: they are for the program, whatever they interrupted.

Python calls a handler between two instructions of whatever runs, so a time limit that raises `TimeoutError` may raise
it in the middle of a measurement, where it looks like a kernel that failed.
"""

import signal
from collections.abc import Iterator
from functools import partial
from types import CodeType

__all__ = ["is_of_a_handler"]


def is_of_a_handler(error: BaseException) -> bool:
    """Return whether a signal handler that is installed now raised an exception, or let it pass."""
    codes = set(_codes())
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            return True
        traceback = traceback.tb_next
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
