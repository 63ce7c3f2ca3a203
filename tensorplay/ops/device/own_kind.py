"""Our own arrays, on the legacy default stream."""

from typing import Any

from tensorplay.ops.device.array import DeviceArray, asarray, new_array
from tensorplay.ops.device.byte_strides import dense_strides
from tensorplay.ops.device.cuda_array_interface import LEGACY_STREAM
from tensorplay.ops.device.edge import copy_to
from tensorplay.ops.device.kind import Kind
from tensorplay.ops.device.view import DeviceView

__all__ = ["OwnKind", "own_view"]


def own_view(array: DeviceArray) -> DeviceView:
    """Return the view of an array of ours."""
    strides = dense_strides(array.shape)
    return DeviceView(array.pointer, array.shape, strides, array.dtype.name, array.device, LEGACY_STREAM)


class OwnKind(Kind):
    """Arrays made by `tensorplay.cuda.asarray`."""

    name = "tensorplay"

    def is_on_device(self, array: Any) -> bool:
        """Return True."""
        del array
        return True

    def view(self, array: Any) -> DeviceView:
        """Read an array of ours."""
        return own_view(array)

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """Return a new array of ours."""
        return new_array(shape, dtype, self.view(like).device)

    def zeros(self, like: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """Return a new array of ours, all zero."""
        return new_array(shape, dtype, self.view(like).device, zero=True)

    def dense(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return a copy; by way of the host, where NumPy broadcasts."""
        import numpy as np  # noqa: PLC0415 - imported by whoever made the array

        return asarray(np.broadcast_to(array.numpy(), shape), array.device)

    def assign(self, out: Any, value: Any) -> None:
        """Copy by way of the host."""
        copy_to(out.pointer, value.numpy(), out.device)
