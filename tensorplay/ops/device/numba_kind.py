"""Arrays of Numba's CUDA target."""

from typing import Any

from tensorplay.ops.device.cuda_array_interface import address_of, view_of_interface
from tensorplay.ops.device.edge import owner_of
from tensorplay.ops.device.kind import Kind, library, no_copy
from tensorplay.ops.device.view import DeviceView

__all__ = ["NumbaKind"]


class NumbaKind(Kind):
    """Device arrays of Numba, on the stream that each was made on, else the default one."""

    name = "numba"

    def is_on_device(self, array: Any) -> bool:
        """Return whether it is a device array: Numba's mapped and managed ones count."""
        return hasattr(array, "__cuda_array_interface__")

    def view(self, array: Any) -> DeviceView:
        """Read an array by its interface, and its device by its address."""
        interface = array.__cuda_array_interface__
        pointer = address_of(interface)
        device = owner_of(pointer) if pointer else 0
        return view_of_interface(interface, device, array.dtype.name)

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """Return a device array."""
        return self._made(like, shape, dtype)

    def zeros(self, like: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """Return a device array of zeros, copied from the host."""
        made, numpy = self._made(like, shape, dtype), library("numpy")
        made.copy_to_device(numpy.zeros(shape, dtype))
        return made

    def dense(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return a copy; by way of the host, since Numba copies no strides on the device."""
        numpy = library("numpy")
        made = self._made(array, shape, array.dtype.name)
        made.copy_to_device(numpy.ascontiguousarray(numpy.broadcast_to(array.copy_to_host(), shape)))
        return made

    def assign(self, out: Any, value: Any) -> None:
        """Copy on the device; `OperandError` for an output that is not dense, which Numba does not write."""
        if not out.flags["C_CONTIGUOUS"]:
            raise no_copy(out, "is an output that is not stored by rows without overlap")
        out.copy_to_device(value)

    def _made(self, like: Any, shape: tuple[int, ...], dtype: str) -> Any:
        cuda = library("numba.cuda")
        with cuda.gpus[self.view(like).device]:
            return cuda.device_array(shape, library("numpy").dtype(dtype), stream=getattr(like, "stream", 0) or 0)
