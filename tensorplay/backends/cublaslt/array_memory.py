"""Memory of arrays of ours, as buffers of cuda.core where that is installed.

cuda.core's own resources are pools, which hold back what is freed from everybody else on the device. So the buffers
come from a resource of ours, which is cuda.core's way to extend it, and which allocates plainly.
"""

import sys
import weakref
from functools import cache
from typing import Any

from tensorplay.backends.cublaslt.device import current
from tensorplay.backends.cublaslt.memory import DeviceBuffer
from tensorplay.locks import imported

__all__ = ["ArrayMemory"]


class ArrayMemory:
    """Memory of one device, aligned to 256 bytes, given back when nobody refers to it or a buffer of it any more.

    Giving it back waits for the device. At exit the driver does that, and may be gone before us.

    Attributes
    ----------
    address : int
        Of the first byte.
    nbytes : int
        Its size.
    """

    __slots__ = ("__weakref__", "_buffer", "address", "nbytes")

    def __init__(self, ordinal: int, nbytes: int) -> None:
        self.nbytes = nbytes
        resource = _resource(ordinal)
        if resource is not None:
            self._buffer = resource.allocate(nbytes)
            self.address = int(self._buffer.handle)
            return
        self._buffer = None
        plain = DeviceBuffer(ordinal, nbytes)
        self.address = plain.address
        weakref.finalize(self, plain.free).atexit = False

    @property
    def buffer(self) -> Any:
        """Return a `cuda.core.Buffer` that keeps the memory, None without cuda.core; closing it frees nothing."""
        if self._buffer is None:
            return None
        return type(self._buffer).from_handle(self.address, self.nbytes, owner=self)


@cache
def _resource(ordinal: int) -> Any:
    """Return the resource of a device, None without cuda.core."""
    made = _resource_class()
    return None if made is None else made(ordinal)


@cache
def _resource_class() -> Any:
    try:
        core: Any = imported("cuda.core")
        buffer_of = core.Buffer.from_handle
    except (ImportError, AttributeError, OSError, RuntimeError):
        return None

    class PlainMemoryResource(core.MemoryResource):  # type: ignore[misc]  # not imported before it is needed
        """Memory of one device by plain allocations: no pool, nothing managed, nothing ordered on a stream."""

        def __init__(self, ordinal: int) -> None:
            self._ordinal = ordinal
            self._live: dict[int, DeviceBuffer] = {}
            # Names of this module may be gone when the last buffer goes.
            self._is_exiting = sys.is_finalizing

        def allocate(self, size: int, stream: object = None) -> Any:
            del stream
            plain = DeviceBuffer(self._ordinal, size)
            self._live[plain.address] = plain
            try:
                # The buffer notes the default stream of the context that is current.
                with current(self._ordinal):
                    return buffer_of(plain.address, size, mr=self)
            except BaseException:
                plain.free()
                raise

        def deallocate(self, ptr: Any, size: int, stream: object = None) -> None:
            del size, stream
            if not self._is_exiting():
                self._live.pop(int(ptr)).free()

        @property
        def device_id(self) -> int:
            return self._ordinal

        @property
        def is_device_accessible(self) -> bool:
            return True

        @property
        def is_host_accessible(self) -> bool:
            return False

    return PlainMemoryResource
