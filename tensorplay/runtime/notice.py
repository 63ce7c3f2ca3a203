"""Warnings that never become errors: a GEMM must not raise because a file was refused."""

import logging
import sys
import warnings

__all__ = ["logger", "warn"]

logger = logging.getLogger("tensorplay")


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the caller's own line; where warnings are errors it is logged instead.

    The caller is inside a GEMM, and no warning filter of a program may turn that into a failure.
    """
    try:
        warnings.warn(message, category, stacklevel=_frames_of_ours() + 1)
    except category:
        logger.warning("%s", message)


def _frames_of_ours() -> int:
    """Return how many frames, from `warn` outwards, belong to this package."""
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_back.f_globals.get("__name__", "").partition(".")[0] == "tensorplay":
        frame, count = frame.f_back, count + 1
    return count
