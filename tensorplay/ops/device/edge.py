"""The few calls of the CUDA driver that operands need, each on a thread that may have no context yet."""

from typing import Any

from tensorplay.backends.cublaslt.device import current, current_ordinal, device_count, relaxed_capture
from tensorplay.backends.cublaslt.library import available, driver
from tensorplay.backends.cublaslt.memory import DeviceBuffer
from tensorplay.backends.cublaslt.status import check
from tensorplay.errors import OperandError

__all__ = ["DeviceBuffer", "chosen_device", "copy_from", "copy_to", "fill_zero", "order", "owner_of", "synchronize"]

_DISABLE_TIMING = 2
_LEGACY_STREAM = 1


def chosen_device(device: int | None) -> int:
    """Return the ordinal that was asked for, the thread's current device for None.

    Raises
    ------
    OperandError
        When there is no such device, or nothing here can use one; the message is the reason.
    """
    reason = available()
    if reason is not None:
        raise OperandError(f"no array can be put on a GPU here: {reason}")
    if device is None:
        return current_ordinal()
    if not 0 <= device < device_count():
        raise OperandError(f"there is no CUDA device {device}; visible: {device_count()}")
    return device


def owner_of(pointer: int) -> int:
    """Return the ordinal of the device that an address belongs to; `OperandError` for memory that is no device's."""
    device_count()
    which = driver().CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    result = driver().cuPointerGetAttribute(which, pointer)
    if int(result[0]) != 0:
        raise OperandError(f"the address {pointer:#x} is not of CUDA memory")
    return int(result[1])


def order(ordinal: int, later: int, earlier: int) -> None:
    """Let what will be enqueued on stream `later` wait for what is enqueued on stream `earlier`."""
    cuda = driver()
    with current(ordinal):
        event = check(cuda.cuEventCreate(_DISABLE_TIMING), "creating an event")
        try:
            check(cuda.cuEventRecord(event, earlier), "recording an event")
            check(cuda.cuStreamWaitEvent(later, event, 0), "waiting for another stream")
        finally:
            # The driver keeps what the wait needs.
            cuda.cuEventDestroy(event)


def synchronize(ordinal: int, stream: int) -> None:
    """Wait for all that is enqueued on a stream; `LaunchError` when any of it failed."""
    with current(ordinal):
        check(driver().cuStreamSynchronize(stream), "waiting for the device")


def copy_to(pointer: int, array: Any, ordinal: int) -> None:
    """Copy a contiguous NumPy array to device memory; it may be changed as soon as this returns."""
    with current(ordinal), relaxed_capture():
        check(driver().cuMemcpyHtoD(pointer, array.ctypes.data, array.nbytes), "copying to the device")


def copy_from(array: Any, pointer: int, ordinal: int) -> None:
    """Copy device memory into a contiguous NumPy array, after all that is enqueued on the default stream."""
    with current(ordinal), relaxed_capture():
        check(driver().cuMemcpyDtoH(array.ctypes.data, pointer, array.nbytes), "copying from the device")


def fill_zero(pointer: int, nbytes: int, ordinal: int) -> None:
    """Set device memory to zero, in the order of the default stream."""
    with current(ordinal), relaxed_capture():
        check(driver().cuMemsetD8Async(pointer, 0, nbytes, _LEGACY_STREAM), "clearing device memory")
