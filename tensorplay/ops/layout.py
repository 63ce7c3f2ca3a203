"""From NumPy operands to the problem they pose, read from shapes and strides alone; nothing is copied."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tensorplay.gemm import DType, GemmProblem, dtype_of_name

__all__ = ["batch_problem", "matrix_problem"]

_KNOWN: dict[np.dtype[Any], DType | None] = {}


class _Layout(NamedTuple):
    transposed: bool
    ld: int | None


def matrix_problem(
    left: NDArray[Any],
    right: NDArray[Any],
    out: NDArray[Any] | None,
    *,
    bias: bool = False,
    accumulate: bool = False,
) -> GemmProblem | None:
    """Return the problem of a (m, k) by (k, n) product, or None when it has no signature.

    It has none when it is empty, mixes data types, has a foreign byte order, or when an operand's strides are
    those of no matrix in memory (negative, broadcast, or stepping over elements): NumPy runs these as it always
    does. `out` must be stored by rows.
    """
    (m, k), (_, n) = left.shape, right.shape
    dtype = _common_dtype(left, right, out)
    if dtype is None or 0 in (m, n, k):
        return None
    stored = None if out is None else _layout(out)
    left_layout, right_layout = _layout(left), _layout(right)
    if left_layout is None or right_layout is None or (out is not None and (stored is None or stored.transposed)):
        return None
    return GemmProblem(
        dtype=dtype,
        m=m,
        n=n,
        k=k,
        transpose_right=right_layout.transposed,
        transpose_left=left_layout.transposed,
        bias=bias,
        ld_left=left_layout.ld,
        ld_right=right_layout.ld,
        ld_out=stored.ld if stored else None,
        accumulate=accumulate,
    )


def batch_problem(left: NDArray[Any], right: NDArray[Any], out: NDArray[Any] | None) -> GemmProblem | None:
    """Return the problem of a (b, m, k) by (b, k, n) product, or None when it has no signature."""
    batch = left.shape[0]
    if batch < 2 or right.shape[0] != batch or 0 in left.shape or 0 in right.shape:
        return None
    single = matrix_problem(left[0], right[0], None if out is None else out[0])
    if single is None:
        return None
    strides: list[int | None] = []
    for operand, rows, ld in (
        (left, single.k if single.transpose_left else single.m, single.ld_left or single.left_columns),
        (right, single.n if single.transpose_right else single.k, single.ld_right or single.right_columns),
        (out, single.m, single.ld_out or single.n),
    ):
        if operand is None:
            strides.append(None)
            continue
        step, rest = divmod(operand.strides[0], operand.itemsize)
        if rest or step < 0:
            return None
        # Dense means that one stored matrix, padding included, ends where the next begins.
        strides.append(None if step == rows * ld else step)
    return GemmProblem(
        dtype=single.dtype,
        m=single.m,
        n=single.n,
        k=single.k,
        transpose_right=single.transpose_right,
        transpose_left=single.transpose_left,
        ld_left=single.ld_left,
        ld_right=single.ld_right,
        ld_out=single.ld_out,
        batch=batch,
        stride_left=strides[0],
        stride_right=strides[1],
        stride_out=strides[2],
    )


def _common_dtype(left: NDArray[Any], right: NDArray[Any], out: NDArray[Any] | None) -> DType | None:
    dtype = left.dtype
    if right.dtype != dtype or (out is not None and out.dtype != dtype):
        return None
    if dtype not in _KNOWN:
        _KNOWN[dtype] = dtype_of_name(dtype.name) if dtype.isnative else None
    return _KNOWN[dtype]


def _layout(matrix: NDArray[Any]) -> _Layout | None:
    """Return how a matrix lies in memory; the strides of a dimension of size 1 mean nothing and are not read."""
    rows, columns = matrix.shape
    item = matrix.itemsize
    by_rows = _leading_dimension(matrix.strides[0], matrix.strides[1], rows, columns, item)
    by_columns = _leading_dimension(matrix.strides[1], matrix.strides[0], columns, rows, item)
    if by_rows == columns:
        return _Layout(transposed=False, ld=None)
    if by_columns == rows:
        return _Layout(transposed=True, ld=None)
    if by_rows is not None:
        return _Layout(transposed=False, ld=by_rows)
    if by_columns is not None:
        return _Layout(transposed=True, ld=by_columns)
    return None


def _leading_dimension(step: int, within: int, count: int, length: int, item: int) -> int | None:
    """Return the elements from one stored row to the next, None when these strides are not rows of `length`."""
    if length > 1 and within != item:
        return None
    if count == 1:
        return length
    ld, rest = divmod(step, item)
    return ld if rest == 0 and ld >= length else None
