"""One product of `tensorplay bench`: its operands, how TensorPlay and NumPy compute it, and whether it is right."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorplay.cli.bench_shape import BenchShape
from tensorplay.gemm import Signature, dtype_of_name, signature_of
from tensorplay.ops import addmm, linear, mm
from tensorplay.ops.layout import matrix_problem

__all__ = ["BenchProduct", "UnsupportedShapeError", "make_product"]

Array = NDArray[Any]

_SEED = 20
# The error of a sum of k rounded products grows with the root of k when the signs are random, as here; twice that
# has not been seen. The constant pays for rounding the result and adding the bias.
_ROOTS = 2.0
_ROUNDINGS = 4.0


class UnsupportedShapeError(Exception):
    """No operands of that kind can be made here; the message says why."""


@dataclass(frozen=True, slots=True, eq=False)
class BenchProduct:
    """A product ready to run on operands of random data, into an array of its own.

    Attributes
    ----------
    ours, plain : callable
        Compute it into `out`: by TensorPlay, and as a NumPy user would.
    signature : Signature or None
        What TensorPlay calls it; None when it has none.
    """

    left: Array
    right: Array
    bias: Array | None
    out: Array
    ours: Callable[[], object]
    plain: Callable[[], object]
    signature: Signature | None

    def erase(self) -> None:
        """Make every element of `out` NaN, so that one that is never written shows."""
        self.out[...] = np.nan

    def fault(self) -> str:
        """Return what is wrong with `out` compared with a double-precision product; empty when nothing is."""
        wide = np.complex128 if self.out.dtype.kind == "c" else np.float64
        left, right = self.left.astype(wide), self.right.astype(wide)
        expected, allowed = left @ right, np.abs(left) @ np.abs(right)
        if self.bias is not None:
            expected += self.bias
            allowed += np.abs(self.bias.astype(wide))
        allowed *= (_ROOTS * self.left.shape[1] ** 0.5 + _ROUNDINGS) * _unit_roundoff(self.out)
        difference = np.abs(self.out.astype(wide) - expected)
        # Not `>`: a comparison with NaN is false.
        wrong = ~(difference <= allowed)
        if not wrong.any():
            return ""
        row, column = (int(place) for place in np.argwhere(wrong)[0])
        return (
            f"{int(wrong.sum())} of {wrong.size} elements are wrong; the first is [{row}, {column}]: "
            f"{self.out[row, column]!r}, where {expected[row, column]!r} is right, "
            f"give or take {allowed[row, column]:.2g}"
        )


def make_product(shape: BenchShape) -> BenchProduct:
    """Return the product of a shape, its operands filled with the same random data in every process.

    Raises
    ------
    UnsupportedShapeError
        When NumPy has no such data type here, or the operands cannot be allocated.
    """
    dtype = _numpy_dtype(shape.dtype)
    random = np.random.default_rng(_SEED)
    try:
        left = _fill(random, (shape.m, shape.k), dtype)
        stored = _fill(random, (shape.n, shape.k) if shape.transposed else (shape.k, shape.n), dtype)
        bias = _fill(random, (shape.n,), dtype) if shape.bias else None
        out = np.zeros((shape.m, shape.n), dtype)
    except (MemoryError, ValueError) as error:
        raise UnsupportedShapeError(f"its operands cannot be made: {error}") from None
    right = stored.T if shape.transposed else stored
    problem = matrix_problem(left, right, out, bias=shape.bias)
    return BenchProduct(
        left=left,
        right=right,
        bias=bias,
        out=out,
        ours=_ours(shape, left, stored, bias, out),
        plain=_plain(left, right, bias, out),
        signature=None if problem is None else signature_of(problem),
    )


def _ours(shape: BenchShape, left: Array, stored: Array, bias: Array | None, out: Array) -> Callable[[], object]:
    if bias is None:
        right = stored.T if shape.transposed else stored
        return lambda: mm(left, right, out=out)
    if shape.transposed:
        return lambda: linear(left, stored, bias, out=out)
    return lambda: addmm(bias, left, stored, out=out)


def _plain(left: Array, right: Array, bias: Array | None, out: Array) -> Callable[[], object]:
    if bias is None:
        return lambda: np.matmul(left, right, out=out)

    def with_bias() -> None:
        np.matmul(left, right, out=out)
        np.add(out, bias, out=out)

    return with_bias


def _numpy_dtype(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        known: np.dtype[Any] = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    except (ImportError, AttributeError):
        hint = "" if name == "tf32" else "; ml_dtypes brings them"
        raise UnsupportedShapeError(f"NumPy has no {name} arrays here{hint}") from None
    return known


def _fill(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    values: Array = random.standard_normal(shape, np.float32)
    if dtype.kind == "c":
        values = values + 1j * random.standard_normal(shape, np.float32)
    return values.astype(dtype)


def _unit_roundoff(array: Array) -> float:
    known = dtype_of_name(array.dtype.name)
    return known.unit_roundoff if known is not None else float(np.finfo(array.dtype).eps) / 2
