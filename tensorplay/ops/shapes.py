"""What shapes can be multiplied, said in one place and in words that name them."""

from typing import Any

import numpy as np

from tensorplay.errors import OperandError, ShapeError

__all__ = [
    "check_batch",
    "check_broadcast",
    "check_linear",
    "check_matrices",
    "check_out",
    "check_out_shape",
    "explain_mismatch",
    "matmul_mismatch",
]

Shape = tuple[int, ...]


def check_matrices(name: str, left: Shape, right: Shape) -> Shape:
    """Return the shape of left @ right; `ShapeError` unless both are matrices that fit."""
    if len(left) != 2 or len(right) != 2:
        raise ShapeError(f"{name}: operands are {left} and {right}; allowed: two matrices (m, k) and (k, n)")
    if left[1] != right[0]:
        raise ShapeError(f"{name}: {left} and {right} do not fit: {left[1]} columns against {right[0]} rows")
    return left[0], right[1]


def check_batch(left: Shape, right: Shape) -> Shape:
    """Return the shape of the batched left @ right; `ShapeError` unless both are equal stacks that fit."""
    if len(left) != 3 or len(right) != 3 or left[0] != right[0] or left[2] != right[1]:
        raise ShapeError(f"bmm: operands are {left} and {right}; allowed: (b, m, k) and (b, k, n)")
    return left[0], left[1], right[2]


def check_linear(x: Shape, weight: Shape, bias: Shape | None) -> Shape:
    """Return the shape of x @ weight.T + bias; `ShapeError` unless they fit."""
    if not x or len(weight) != 2 or x[-1] != weight[1]:
        raise ShapeError(f"linear: x is {x} and weight {weight}; allowed: (..., k) and (n, k)")
    if bias is not None and bias != weight[:1]:
        raise ShapeError(f"linear: bias is {bias}; weight {weight} asks for ({weight[0]},)")
    return *x[:-1], weight[0]


def check_broadcast(name: str, what: str, given: Shape, result: Shape) -> None:
    """Raise `ShapeError` unless `given` broadcasts to `result`."""
    trailing = result[len(result) - len(given) :] if len(given) <= len(result) else None
    if trailing is None or any(size not in (1, wanted) for size, wanted in zip(given, trailing, strict=True)):
        raise ShapeError(f"{name}: {what} is {given}, which does not broadcast to the result {result}")


def check_out(name: str, out: object, result: Shape) -> None:
    """Raise unless `out` is None or an array of the result's shape, as NumPy does, but naming both shapes."""
    if out is None:
        return
    if not isinstance(out, np.ndarray):
        raise OperandError(f"{name}: out is of type {type(out).__name__}; allowed: a NumPy array of shape {result}")
    check_out_shape(name, out.shape, result)


def check_out_shape(name: str, out: Shape, result: Shape) -> None:
    """Raise `ShapeError` unless an output has the shape of the result."""
    if out != result:
        raise ShapeError(f"{name}: out is {out}, but the result is {result}")


def explain_mismatch(left: Any, right: Any, error: ValueError) -> ValueError:
    """Return what to raise for NumPy's `error`: ours, naming both shapes, when shapes are what is wrong."""
    return matmul_mismatch(tuple(np.shape(left)), tuple(np.shape(right))) or error


def matmul_mismatch(left: Shape, right: Shape) -> ShapeError | None:
    """Return what is wrong with the shapes of two operands of matmul, None when they fit."""
    if not left or not right:
        return ShapeError(f"matmul: operands are {left} and {right}; a scalar is not multiplied as a matrix, use *")
    inner = right[0] if len(right) == 1 else right[-2]
    if left[-1] != inner:
        return ShapeError(f"matmul: {left} and {right} do not fit: {left[-1]} columns against {inner} rows")
    try:
        np.broadcast_shapes(left[:-2], right[:-2])
    except ValueError:
        return ShapeError(f"matmul: the stacks of {left} and {right} do not broadcast")
    return None
