"""Which kind an operand is of, by its type."""

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from tensorplay.errors import OperandError
from tensorplay.ops.device.kind import Kind

__all__ = ["device_kind", "kind_of", "shortcuts"]

_MODULES = {
    "tensorplay": ("own_kind", "OwnKind"),
    "torch": ("torch_kind", "TorchKind"),
    "cupy": ("cupy_kind", "CupyKind"),
    "numba": ("numba_kind", "NumbaKind"),
    "jax": ("exchange_kind", "JaxKind"),
    "jaxlib": ("exchange_kind", "JaxKind"),
}
_OTHER = ("exchange_kind", "ExchangeKind")
# The class that makes an array of each library, so that a subclass made by somebody else is one too.
_ARRAYS: dict[str, Callable[[], tuple[type, ...]]] = {
    "torch": lambda: (sys.modules["torch"].Tensor,),
    "cupy": lambda: (sys.modules["cupy"].ndarray,),
    "jax": lambda: (sys.modules["jax"].Array,),
}

_by_type: dict[type, Kind | None] = {}

shortcuts: dict[type, Any] = {}
"""The hot path of each type that has one, from the second operand of that type on."""


def kind_of(array: object) -> Kind | None:
    """Return the kind of an operand, None for one that only a host knows: NumPy's, a list, a number."""
    type_ = type(array)
    try:
        return _by_type[type_]
    except KeyError:
        kind = _by_type[type_] = _found(array, type_)
        if kind is not None and kind.name == "torch":
            shortcuts[type_] = import_module("tensorplay.ops.device.torch_shortcut").torch_shortcut()
        return kind


def device_kind(*operands: object) -> Kind | None:
    """Return the kind of the operands on a device, None when none is there; None among them stands for no operand.

    Raises
    ------
    OperandError
        When some are on a device and others are not, or they belong to different libraries.
    """
    found: list[tuple[Kind | None, object]] = []
    for operand in operands:
        if operand is not None:
            kind = kind_of(operand)
            found.append((kind if kind is not None and kind.is_on_device(operand) else None, operand))
    kinds = {kind for kind, _ in found}
    if kinds <= {None}:
        return None
    if len(kinds) > 1:
        places = ", ".join(
            f"{_full_name(operand)} on {'the host' if kind is None else 'a GPU'}" for kind, operand in found
        )
        raise OperandError(f"operands are {places}; allowed: all on one device, and of one library")
    return kinds.pop()


def _found(array: object, type_: type) -> Kind | None:
    if isinstance(array, list | tuple | int | float | complex):
        return None
    for base in type_.__mro__:
        name = base.__module__.partition(".")[0]
        if name in _MODULES and _is_array(name, array):
            return _made(*_MODULES[name])
        if name == "numpy":
            return None
    if hasattr(type_, "__dlpack__") or hasattr(type_, "__cuda_array_interface__"):
        return _made(*_OTHER)
    return None


def _full_name(operand: object) -> str:
    return f"{type(operand).__module__}.{type(operand).__qualname__}"


def _is_array(name: str, array: object) -> bool:
    if name == "tensorplay":
        return type(array).__name__ == "DeviceArray"
    made_by = _ARRAYS.get(name)
    return made_by is None or isinstance(array, made_by())


@cache
def _made(module: str, maker: str) -> Kind:
    kind: Kind = getattr(import_module(f"tensorplay.ops.device.{module}"), maker)()
    return kind
