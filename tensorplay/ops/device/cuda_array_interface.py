"""The attribute `__cuda_array_interface__`, versions 2 and 3, as a view. Pure."""

from collections.abc import Mapping
from typing import Any

from tensorplay.errors import OperandError
from tensorplay.ops.device.byte_strides import dense_strides, element_strides
from tensorplay.ops.device.view import DeviceView

__all__ = ["LEGACY_STREAM", "typestr_of", "view_of_interface"]

LEGACY_STREAM = 1
"""The legacy default stream, as the interface numbers it and the driver does."""

# Of little-endian machines, the only ones with CUDA.
_NAMES = {"<f2": "float16", "<f4": "float32", "<f8": "float64", "<c8": "complex64", "<c16": "complex128"}
_TYPESTRS = {name: typestr for typestr, name in _NAMES.items()}


def typestr_of(dtype: str) -> str | None:
    """Return how the interface calls a type, None for bfloat16 and FP8, which it cannot name."""
    return _TYPESTRS.get(dtype)


def view_of_interface(interface: Mapping[str, Any], device: int, dtype: str | None = None) -> DeviceView:
    """Return what the interface says; `dtype` is what the array itself says of its type, if anything.

    Raises
    ------
    OperandError
        When the version is not 2 or 3, some elements are masked out, or the type has no name there.
    """
    version, typestr = interface["version"], interface["typestr"]
    if version not in {2, 3}:
        raise OperandError(f"an operand has __cuda_array_interface__ version {version}; allowed: 2 and 3")
    if interface.get("mask") is not None:
        raise OperandError("an operand has a mask, which no product knows; fill the masked elements first")
    name = _NAMES.get(typestr) or dtype
    if name is None:
        raise OperandError(
            f"an operand's __cuda_array_interface__ gives the type {typestr!r}, which does not tell what its numbers "
            f"are; allowed there: {', '.join(_NAMES)}; bfloat16 and FP8 come by __dlpack__"
        )
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    pointer, is_readonly = interface["data"]
    itemsize = int(typestr[2:])
    stream = interface.get("stream")
    if stream == 0:
        raise OperandError("an operand's __cuda_array_interface__ gives stream 0, which that interface forbids")
    return DeviceView(
        pointer=pointer or 0,
        shape=shape,
        strides=dense_strides(shape) if strides is None else element_strides(tuple(strides), itemsize),
        dtype=name,
        device=device,
        stream=LEGACY_STREAM if stream is None else int(stream),
        is_readonly=bool(is_readonly),
    )
