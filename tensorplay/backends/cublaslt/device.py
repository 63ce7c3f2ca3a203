"""Devices by ordinal: their primary context, made current where it is needed, and what is known about them.

Every array library works in the primary context, so that is where we work; a context that somebody made himself is
left on the thread's stack below ours.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from tensorplay.backends.cublaslt.library import driver
from tensorplay.backends.cublaslt.status import check
from tensorplay.errors import OperandError

__all__ = ["Device", "current", "current_ordinal", "device", "device_count", "relaxed_capture"]

_INVALID_CONTEXT = 201
_MIB = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """One device, its primary context kept for the life of the process.

    Attributes
    ----------
    ordinal : int
        As CUDA numbers the visible devices.
    context : CUcontext
        The primary context.
    name : str
        Of the model.
    capability : tuple of int
        Major and minor compute capability.
    l2_bytes : int
        Size of the second-level cache.
    multiprocessors : int
        How many there are.
    """

    ordinal: int
    context: Any
    name: str
    capability: tuple[int, int]
    l2_bytes: int
    multiprocessors: int

    @property
    def free_bytes(self) -> int:
        """Return the free memory of the device, now."""
        with current(self.ordinal):
            free, _total = check(driver().cuMemGetInfo(), "asking for free memory")
        return int(free)


@cache
def device_count() -> int:
    """Return how many devices are visible; starts the driver."""
    cuda = driver()
    check(cuda.cuInit(0), "starting the CUDA driver")
    return int(check(cuda.cuDeviceGetCount(), "counting CUDA devices"))


@cache
def device(ordinal: int) -> Device:
    """Return the device; `OperandError` when there is none of that number."""
    if not 0 <= ordinal < device_count():
        raise OperandError(f"there is no CUDA device {ordinal}; visible: {device_count()}")
    cuda = driver()
    handle = check(cuda.cuDeviceGet(ordinal), f"opening device {ordinal}")
    name = check(cuda.cuDeviceGetName(256, handle), f"asking for the name of device {ordinal}")
    known = cuda.CUdevice_attribute

    def attribute(which: Any) -> int:
        return int(check(cuda.cuDeviceGetAttribute(which, handle), f"asking device {ordinal} for {which}"))

    return Device(
        ordinal=ordinal,
        context=check(cuda.cuDevicePrimaryCtxRetain(handle), f"opening the context of device {ordinal}"),
        name=name.split(b"\0")[0].decode(errors="replace").strip(),
        capability=(
            attribute(known.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            attribute(known.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        ),
        l2_bytes=attribute(known.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
        multiprocessors=attribute(known.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
    )


def current_ordinal() -> int:
    """Return the ordinal of the thread's current device; 0 for a thread that has not chosen one."""
    device_count()
    result = driver().cuCtxGetDevice()
    if int(result[0]) == _INVALID_CONTEXT:
        return 0
    return int(check(result, "asking for the current device"))


@contextmanager
def current(ordinal: int) -> Iterator[Device]:
    """Make the device's primary context the thread's current one, and restore what was."""
    here, cuda = device(ordinal), driver()
    check(cuda.cuCtxPushCurrent(here.context), f"making device {ordinal} current")
    try:
        yield here
    finally:
        check(cuda.cuCtxPopCurrent(), "restoring the current device")


@contextmanager
def relaxed_capture() -> Iterator[None]:
    """Let this thread allocate and synchronise although another thread may be capturing a graph.

    In the thread's default mode such a call would fail and *invalidate* a capture that anybody began in global mode.
    """
    cuda = driver()
    relaxed = cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = check(cuda.cuThreadExchangeStreamCaptureMode(relaxed), "relaxing the thread's capture mode")
    try:
        yield
    finally:
        check(cuda.cuThreadExchangeStreamCaptureMode(before), "restoring the thread's capture mode")
