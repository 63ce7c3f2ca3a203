"""Warnings that never become errors: a GEMM must not raise because a file was refused."""

import logging
import warnings

__all__ = ["logger", "warn"]

logger = logging.getLogger("tensorplay")


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning; where warnings are errors it is logged instead, since the caller is inside a GEMM."""
    try:
        warnings.warn(message, category, stacklevel=3)
    except category:
        logger.warning("%s", message)
