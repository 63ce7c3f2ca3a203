"""Arrays that are known only by what they offer to all: DLPack, or `__cuda_array_interface__`.

Nothing tells when such a library uses its memory next, so we wait for the device after each product. Results are
arrays of ours, which every such library takes by DLPack.
"""

from operator import index
from typing import Any

from tensorplay.errors import OperandError
from tensorplay.ops.device import dlpack
from tensorplay.ops.device.array import DeviceArray, new_array
from tensorplay.ops.device.byte_strides import dense_strides
from tensorplay.ops.device.cuda_array_interface import LEGACY_STREAM, address_of, is_readonly, shown, view_of_interface
from tensorplay.ops.device.edge import owner_of
from tensorplay.ops.device.kind import Kind, library, no_copy
from tensorplay.ops.device.own_kind import own_view
from tensorplay.ops.device.view import DeviceView

__all__ = ["ExchangeKind", "JaxKind"]

_MANAGED = 13
# What libraries say no with; anything else is a fault of theirs, and is told as it is.
_REFUSALS = (BufferError, RuntimeError, TypeError, ValueError)


class ExchangeKind(Kind):
    """Arrays of any library, on the legacy default stream, which is made to wait for theirs."""

    name = "other"
    is_ordered = False

    def is_on_device(self, array: Any) -> bool:
        """Return whether it says that it is in CUDA memory."""
        told = _device_told(array)
        if told is not None:
            return told[0] in {dlpack.CUDA, _MANAGED}
        return getattr(array, "__cuda_array_interface__", None) is not None

    def view(self, array: Any) -> DeviceView:
        """Read an array by DLPack, which knows every type, or else by the interface."""
        if isinstance(array, DeviceArray):
            return own_view(array)
        if not hasattr(array, "__dlpack__"):
            interface = array.__cuda_array_interface__
            pointer = address_of(interface)
            return _as_told(array, view_of_interface(interface, owner_of(pointer) if pointer else 0))
        try:
            capsule = array.__dlpack__(stream=LEGACY_STREAM)
        except _REFUSALS as error:
            raise OperandError(
                f"an operand of type {type(array).__name__} does not show its memory: {error}"
            ) from error
        seen = dlpack.tensor_of(capsule)
        if seen.device_type != dlpack.CUDA:
            raise OperandError(
                f"an operand of type {type(array).__name__} says that it is on a GPU, and shows memory of another "
                f"device (DLPack's type {seen.device_type})"
            )
        told = _device_told(array)
        if told is not None and told[1] != seen.device:
            raise OperandError(
                f"an operand of type {type(array).__name__} says that it is on device {told[1]}, and shows memory of "
                f"device {seen.device}"
            )
        strides = dense_strides(seen.shape) if seen.strides is None else seen.strides
        readonly = self.is_readonly(array)
        view = DeviceView(seen.pointer, seen.shape, strides, seen.dtype, seen.device, LEGACY_STREAM, readonly, capsule)
        return _as_told(array, view)

    def is_readonly(self, array: Any) -> bool:
        """Return whether the array must not be written to: a capsule of DLPack's first version cannot say so."""
        interface = getattr(array, "__cuda_array_interface__", None)
        return interface is not None and is_readonly(interface)

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """Return an array of ours."""
        return new_array(shape, dtype, self._device(like))

    def zeros(self, like: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """Return an array of ours, all zero."""
        return new_array(shape, dtype, self._device(like), zero=True)

    def dense(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Raise `OperandError`: nobody knows how such a library copies."""
        raise no_copy(array, f"is not stored as {shape}")

    def assign(self, out: Any, value: Any) -> None:
        """Raise `OperandError`, as `dense` does."""
        del value
        raise no_copy(out, "is an output that is not stored by rows without overlap")

    def _device(self, array: Any) -> int:
        # Not by its capsule: some arrays can be shown once only, and this one was.
        told = None if isinstance(array, DeviceArray) else _device_told(array)
        return self.view(array).device if told is None else told[1]


def _device_told(array: Any) -> tuple[int, int] | None:
    """Return DLPack's type and ordinal of the device that an array says it is on, None where it says nothing.

    Raises
    ------
    OperandError
        When that is no device.
    """
    ask = getattr(array, "__dlpack_device__", None)
    if ask is None:
        return None
    try:
        told = ask()
    except _REFUSALS as error:
        raise OperandError(
            f"an operand of type {type(array).__name__} does not say which device it is on: {error}"
        ) from error
    try:
        type_, ordinal = map(index, told)
    except (TypeError, ValueError):
        raise OperandError(
            f"the __dlpack_device__ of an operand of type {type(array).__name__} says {shown(told)}; allowed: the type "
            "of a device, and its ordinal"
        ) from None
    return type_, ordinal


def _as_told(array: Any, view: DeviceView) -> DeviceView:
    """Return the view; `OperandError` when the array itself says another shape, which sizes were checked by."""
    told = getattr(array, "shape", None)
    if told is not None and tuple(told) != view.shape:
        raise OperandError(
            f"an operand of type {type(array).__name__} says that its shape is {shown(told)}, and shows memory of "
            f"{view.shape}"
        )
    return view


class JaxKind(ExchangeKind):
    """Arrays of JAX, which are never written to."""

    name = "jax"

    def is_on_device(self, array: Any) -> bool:
        """Return whether it is one array on one GPU; `OperandError` for one that is spread over several."""
        devices = array.devices()
        if len(devices) > 1:
            raise OperandError(f"a JAX array is spread over {len(devices)} devices; allowed: one")
        return next(iter(devices)).platform in {"gpu", "cuda"}

    def is_readonly(self, array: Any) -> bool:
        """Return True."""
        del array
        return True

    def dense(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return the array broadcast by JAX, whose arrays are always dense."""
        return library("jax").numpy.broadcast_to(array, shape)

    def finished(self, array: Any) -> Any:
        """Return our array as one of JAX, without copying."""
        return library("jax").dlpack.from_dlpack(array)
