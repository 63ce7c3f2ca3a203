"""Activations: what can follow a product, and how the host applies it.

On a device the product's own kernel does it. Here it is done after the product, the same way for every kernel: in the
result's type, or in float32 where that is narrower.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorplay.errors import OperandError
from tensorplay.gemm.problem import ACTIVATIONS

__all__ = ["NONE", "activate", "check_activation", "check_real"]

Array = NDArray[Any]

NONE = "none"
_SLOPE = math.sqrt(2.0 / math.pi)
_CUBIC = 0.044715


def check_activation(name: str, activation: object) -> None:
    """Raise `OperandError` for an activation that no product has; `name` is the operation's."""
    if activation not in ACTIVATIONS:
        raise OperandError(f"{name}: activation is {activation!r}; allowed: {', '.join(ACTIVATIONS)}")


def check_real(name: str, activation: str, dtype: str) -> None:
    """Raise `OperandError` unless a result of the type called `dtype` has the activation."""
    if activation != NONE and not dtype.startswith(("float", "bfloat")):
        raise OperandError(
            f"{name}: activation {activation} of a result of {dtype}; allowed: results of real floating-point numbers"
        )


def activate(result: Array, activation: str) -> Array:
    """Apply an activation in place and return the result, which is of real floating-point numbers.

    GELU is the tanh approximation, as the kernels of a device have it.
    """
    if activation == NONE or result.size == 0:
        return result
    numbers = result.astype(np.float32) if result.dtype.itemsize < 4 else result
    if activation == "relu":
        np.maximum(numbers, 0, out=numbers)
    else:
        _gelu(numbers)
    if numbers is not result:
        result[...] = numbers.astype(result.dtype)
    return result


def _gelu(numbers: Array) -> None:
    # Far from zero the cube is infinite, and its tangent 1.
    with np.errstate(over="ignore", invalid="ignore"):
        inner = numbers * numbers
        inner *= _CUBIC
        inner += 1.0
        inner *= numbers
        inner *= _SLOPE
        np.tanh(inner, out=inner)
        inner += 1.0
        inner *= 0.5
        numbers *= inner
