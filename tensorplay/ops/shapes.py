"""What shapes can be multiplied, said in one place and in words that name them."""

from typing import Any

import numpy as np

from tensorplay.errors import OperandError, ShapeError

__all__ = ["check_batch", "check_broadcast", "check_matrices", "check_out", "explain_mismatch"]

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
    if out.shape != result:
        raise ShapeError(f"{name}: out is {out.shape}, but the result is {result}")


def explain_mismatch(left: Any, right: Any, error: ValueError) -> ValueError:
    """Return what to raise for NumPy's `error`: ours, naming both shapes, when shapes are what is wrong."""
    a, b = np.shape(left), np.shape(right)
    if not a or not b:
        return ShapeError(f"matmul: operands are {a} and {b}; a scalar is not multiplied as a matrix, use *")
    inner = b[0] if len(b) == 1 else b[-2]
    if a[-1] != inner:
        return ShapeError(f"matmul: {a} and {b} do not fit: {a[-1]} columns against {inner} rows")
    try:
        np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        return ShapeError(f"matmul: the stacks of {a} and {b} do not broadcast")
    return error
