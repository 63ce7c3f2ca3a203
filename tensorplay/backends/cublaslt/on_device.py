"""Calls that need a device's context current, made safe for threads that work on another device."""

from typing import Any

from tensorplay.backends.base import Run
from tensorplay.backends.cublaslt.device import current, device
from tensorplay.backends.cublaslt.library import driver

__all__ = ["on_device"]


def on_device(ordinal: int, launch: Run) -> Run:
    """Return `launch` with the device's context made current for it where it is not, and restored afterwards."""
    context = int(device(ordinal).context)
    current_context = driver().cuCtxGetCurrent

    def run(*operands: Any, **named: Any) -> Any:
        if int(current_context()[1]) == context:
            return launch(*operands, **named)
        with current(ordinal):
            return launch(*operands, **named)

    return run
