"""Warnings and log records that never become errors: a GEMM must not raise because a file was refused."""

import logging
import sys
import warnings
from typing import Any

from tensorplay.interrupts import is_of_a_handler

__all__ = ["logger", "warn"]


class _Guarded(logging.LoggerAdapter[logging.Logger]):
    """A logger whose handlers may fail: the record is lost then, and nothing else."""

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        # Of the line that asked for it, not of this one.
        facts: dict[str, Any] = {"stacklevel": 2} | kwargs
        try:
            super().log(level, msg, *args, **facts)
        except Exception as error:
            if is_of_a_handler(error):
                raise


logger = _Guarded(logging.getLogger("tensorplay"))


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the caller's own line; where that raises, as where warnings are errors, it is logged instead.

    The caller is inside a GEMM, and no warning filter of a program, nor what shows warnings there, may turn that into a
    failure.
    """
    try:
        warnings.warn(message, category, stacklevel=_frames_of_ours() + 1)
    except Exception as error:
        if is_of_a_handler(error):
            raise
        logger.warning("%s", message)


def _frames_of_ours() -> int:
    """Return how many frames, from `warn` outwards, belong to this package."""
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_back.f_globals.get("__name__", "").partition(".")[0] == "tensorplay":
        frame, count = frame.f_back, count + 1
    return count
