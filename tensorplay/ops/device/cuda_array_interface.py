"""The attribute `__cuda_array_interface__`, versions 2 and 3, as a view. Pure."""

from collections.abc import Mapping
from numbers import Integral
from operator import index
from typing import Any

from tensorplay.errors import OperandError
from tensorplay.ops.device.byte_strides import dense_strides, element_strides
from tensorplay.ops.device.view import DeviceView

__all__ = [
    "LEGACY_STREAM",
    "address_of",
    "is_readonly",
    "shape_of_interface",
    "shown",
    "typestr_of",
    "view_of_interface",
]

LEGACY_STREAM = 1
"""The legacy default stream, as the interface numbers it and the driver does."""

# Of little-endian machines, the only ones with CUDA.
_NAMES = {"<f2": "float16", "<f4": "float32", "<f8": "float64", "<c8": "complex64", "<c16": "complex128"}
_TYPESTRS = {name: typestr for typestr, name in _NAMES.items()}

_NAME = "__cuda_array_interface__"
# Sizes and steps are signed, addresses and streams are not.
_LARGEST_SIGNED, _LARGEST = 2**63 - 1, 2**64 - 1
_LONGEST_SHOWN = 80


def typestr_of(dtype: str) -> str | None:
    """Return how the interface calls a type, None for bfloat16 and FP8, which it cannot name."""
    return _TYPESTRS.get(dtype)


def shown(value: object) -> str:
    """Return what an array says as text that is short."""
    try:
        text = repr(value)
    except ValueError:
        # Python writes no integer of thousands of digits.
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def address_of(interface: object) -> int:
    """Return the address that an interface gives, 0 for none; `OperandError` when it gives no address."""
    return _data(interface)[0]


def is_readonly(interface: object) -> bool:
    """Return whether an interface forbids to write; `OperandError` when it does not say so as it must."""
    return _data(interface)[1]


def shape_of_interface(interface: object) -> tuple[int, ...]:
    """Return the sizes that an interface gives; `OperandError` when they are none."""
    return _integers("shape", _said(interface, "shape"), 0)


def view_of_interface(interface: object, device: int, dtype: str | None = None) -> DeviceView:
    """Return what the interface says; `dtype` is what the array itself says of its type, if anything.

    Raises
    ------
    OperandError
        When anything that it must say is missing or is no such thing, the version is not 2 or 3, some elements are
        masked out, or the type has no name there.
    """
    version = _said(interface, "version")
    if not isinstance(version, Integral) or version not in {2, 3}:
        raise OperandError(f"an operand has {_NAME} version {shown(version)}; allowed: 2 and 3")
    if _said(interface, "mask", None) is not None:
        raise OperandError("an operand has a mask, which no product knows; fill the masked elements first")
    name, itemsize = _type(_said(interface, "typestr"), dtype)
    shape, strides = shape_of_interface(interface), _said(interface, "strides", None)
    steps = dense_strides(shape) if strides is None else _integers("strides", strides, -_LARGEST_SIGNED)
    if len(steps) != len(shape):
        raise OperandError(f"an operand's {_NAME} gives the strides {steps} for the shape {shape}; allowed: one each")
    return DeviceView(
        pointer=address_of(interface),
        shape=shape,
        strides=steps if strides is None else element_strides(steps, itemsize),
        dtype=name,
        device=device,
        stream=_stream(_said(interface, "stream", None)),
        is_readonly=is_readonly(interface),
    )


_MISSING = object()


def _said(interface: object, key: str, default: object = _MISSING) -> Any:
    if not isinstance(interface, Mapping):
        raise OperandError(f"an operand's {_NAME} is of type {type(interface).__name__}; allowed: a dictionary")
    value = interface.get(key, default)
    if value is _MISSING:
        raise OperandError(f"an operand's {_NAME} has no {key!r}, which it must have")
    return value


def _data(interface: object) -> tuple[int, bool]:
    given = _said(interface, "data")
    try:
        pointer, forbids_writing = given
        address = 0 if pointer is None else index(pointer)
    except (TypeError, ValueError):
        address, forbids_writing = -1, False
    if not 0 <= address <= _LARGEST:
        raise OperandError(
            f"an operand's {_NAME} gives the data {shown(given)}; allowed: an address of 64 bits, and whether it is "
            "read-only"
        )
    return address, bool(forbids_writing)


def _integers(key: str, given: Any, least: int) -> tuple[int, ...]:
    try:
        numbers = tuple(map(index, given))
    except TypeError:
        numbers = (least - 1,)
    if not all(least <= number <= _LARGEST_SIGNED for number in numbers):
        signed = "integers of 64 bits" if least else "integers from 0 up, of 64 bits"
        raise OperandError(f"an operand's {_NAME} gives the {key} {shown(given)}; allowed: {signed}")
    return numbers


def _type(typestr: object, dtype: str | None) -> tuple[str, int]:
    """Return the name of a type and its bytes."""
    name = (_NAMES.get(typestr) or dtype) if isinstance(typestr, str) else None
    if name is None or not isinstance(typestr, str) or not typestr[2:].isdecimal():
        raise OperandError(
            f"an operand's {_NAME} gives the type {shown(typestr)}, which does not tell what its numbers "
            f"are; allowed there: {', '.join(_NAMES)}; bfloat16 and FP8 come by __dlpack__"
        )
    return name, int(typestr[2:])


def _stream(given: Any) -> int:
    if given is None:
        return LEGACY_STREAM
    try:
        stream = index(given)
    except TypeError:
        stream = -1
    if stream == 0:
        raise OperandError(f"an operand's {_NAME} gives stream 0, which that interface forbids")
    if not 0 < stream <= _LARGEST:
        raise OperandError(f"an operand's {_NAME} gives the stream {shown(given)}; allowed: a handle, 1, 2, or None")
    return stream
