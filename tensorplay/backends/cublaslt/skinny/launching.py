"""Launching a kernel whose grid never changes: plainly, or before the one ahead of it on the stream has ended.

The latter is programmatic dependent launch: blocks begin as those of the kernel ahead leave, and wait, before they
touch memory, until all of it is done. What the kernel ahead wrote is seen as ever, and the gap between two kernels
is shorter.
"""

from collections.abc import Callable
from typing import Any

from tensorplay.backends.cublaslt.library import driver

__all__ = ["Launch", "overlapping_launch", "plain_launch"]

Launch = Callable[[int, int], tuple[Any, ...]]
"""`launch(stream, parameters)`, the latter being the address of an array of addresses; returns the driver's result."""

# Streams come and go; a handle that is used anew stands for the same settings.
_MOST_STREAMS = 64


def plain_launch(function: Any, *, blocks: int, threads: int, shared_bytes: int) -> Launch:
    """Return what enqueues the function."""
    enqueue = driver().cuLaunchKernel

    def launch(stream: int, parameters: int) -> tuple[Any, ...]:
        result: tuple[Any, ...] = enqueue(function, blocks, 1, 1, threads, 1, 1, shared_bytes, stream, parameters, 0)
        return result

    return launch


def overlapping_launch(function: Any, *, blocks: int, threads: int, shared_bytes: int) -> Launch:
    """Return what enqueues the function so that it begins early; it must wait for the kernel ahead by itself."""
    cuda, settings = driver(), dict[int, Any]()
    enqueue = cuda.cuLaunchKernelEx
    early = cuda.CUlaunchAttribute()
    early.id = cuda.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    early.value.programmaticStreamSerializationAllowed = 1

    def setting(stream: int) -> Any:
        made = cuda.CUlaunchConfig()
        made.gridDimX, made.gridDimY, made.gridDimZ = blocks, 1, 1
        made.blockDimX, made.blockDimY, made.blockDimZ = threads, 1, 1
        made.sharedMemBytes, made.hStream = shared_bytes, stream
        made.attrs, made.numAttrs = [early], 1
        if len(settings) >= _MOST_STREAMS:
            settings.clear()
        settings[stream] = made
        return made

    def launch(stream: int, parameters: int) -> tuple[Any, ...]:
        result: tuple[Any, ...] = enqueue(settings.get(stream) or setting(stream), function, parameters, 0)
        return result

    return launch
