"""Device memory by plain allocations: no pools, nothing managed, freed only where the code says so."""

from collections.abc import Iterator
from contextlib import contextmanager

from tensorplay.backends.cublaslt.device import current, relaxed_capture
from tensorplay.backends.cublaslt.library import driver
from tensorplay.backends.cublaslt.status import check

__all__ = ["DeviceBuffer", "device_buffer", "live_bytes"]

_live: dict[int, int] = {}
# The driver takes an unsigned number of 64 bits; NumPy's sizes are signed.
_LARGEST = 2**63 - 1


class DeviceBuffer:
    """Memory of one device, aligned to 256 bytes; give it back with `free`.

    Never freed by the garbage collector: that could happen during a capture, and frees synchronise.
    """

    __slots__ = ("address", "nbytes", "ordinal")

    def __init__(self, ordinal: int, nbytes: int) -> None:
        self.ordinal = ordinal
        self.nbytes = nbytes
        if nbytes > _LARGEST:
            raise MemoryError(f"allocating {nbytes} bytes on device {ordinal}: no memory is as large as that")
        with current(ordinal), relaxed_capture():
            address = check(driver().cuMemAlloc(max(nbytes, 1)), f"allocating {nbytes} bytes on device {ordinal}")
        self.address = int(address)
        _live[self.address] = nbytes

    def free(self) -> None:
        """Give the memory back; does nothing the second time."""
        if _live.pop(self.address, None) is not None:
            with current(self.ordinal), relaxed_capture():
                check(driver().cuMemFree(self.address), f"freeing memory of device {self.ordinal}")


def live_bytes() -> int:
    """Return the bytes that are allocated here and not given back."""
    return sum(list(_live.values()))


@contextmanager
def device_buffer(ordinal: int, nbytes: int) -> Iterator[DeviceBuffer]:
    """Allocate memory and give it back at the end; `MemoryError` when the device has not enough."""
    buffer = DeviceBuffer(ordinal, nbytes)
    try:
        yield buffer
    finally:
        buffer.free()
