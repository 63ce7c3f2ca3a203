"""Arrays of CuPy."""

from typing import Any

from tensorplay.ops.device.byte_strides import element_strides
from tensorplay.ops.device.kind import Kind, library
from tensorplay.ops.device.view import DeviceView

__all__ = ["CupyKind"]


class CupyKind(Kind):
    """Arrays of CuPy, on its current stream of the array's device."""

    name = "cupy"

    def is_on_device(self, array: Any) -> bool:
        """Return True: CuPy has no other."""
        del array
        return True

    def view(self, array: Any) -> DeviceView:
        """Read an array by its attributes."""
        device = array.device.id
        stream = library("cupy").cuda.get_current_stream(device).ptr
        dtype, strides = array.dtype, array.strides
        return DeviceView(
            array.data.ptr, array.shape, element_strides(strides, dtype.itemsize), dtype.name, device, stream
        )

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """Return an array of CuPy's pool."""
        with like.device:
            return library("cupy").empty(shape, _dtype(like, dtype))

    def zeros(self, like: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """Return an array of zeros."""
        with like.device:
            return library("cupy").zeros(shape, _dtype(like, dtype))

    def dense(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return a copy."""
        cupy = library("cupy")
        with array.device:
            return cupy.array(cupy.broadcast_to(array, shape), order="C", copy=True)

    def assign(self, out: Any, value: Any) -> None:
        """Copy by CuPy."""
        with out.device:
            out[...] = value


def _dtype(like: Any, name: str) -> Any:
    # The name of a type that NumPy has not is not known to it either, unless the array brought it along.
    return like.dtype if like.dtype.name == name else library("numpy").dtype(name)
