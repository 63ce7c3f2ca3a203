"""How a matrix, or a stack of them, lies in memory, and arrays that lie so."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tensorplay.gemm import GemmProblem

__all__ = ["CACHE_LINE", "Layout", "left_layout", "new_output", "out_layout", "right_layout"]

CACHE_LINE = 64
"""Bytes that scratch arrays are aligned to, so that no run is faster or slower by where memory happened to be."""


class Layout(NamedTuple):
    """Stored rows of a stack of matrices, in elements; `transposed` when it is used as the transposed view."""

    batch: int
    rows: int
    columns: int
    ld: int
    stride: int
    transposed: bool = False

    @property
    def elements(self) -> int:
        """Return the length of the memory from the first element to the last."""
        return (self.batch - 1) * self.stride + (self.rows - 1) * self.ld + self.columns

    @property
    def is_injective(self) -> bool:
        """Return whether no two elements share memory, so that it can be written to."""
        one_after_the_other = self.stride >= (self.rows - 1) * self.ld + self.columns
        side_by_side = self.stride >= self.columns and self.ld >= (self.batch - 1) * self.stride + self.columns
        return self.batch == 1 or one_after_the_other or side_by_side

    def filled(self, dtype: np.dtype[Any], value: float, alignment: int = 16) -> NDArray[Any]:
        """Return an array that lies so, all of its memory, gaps too, set to `value`.

        The address is a multiple of `alignment` and, below 16, of no more: an operand of that class.
        """
        item = dtype.itemsize
        memory = np.empty(self.elements * item + 2 * CACHE_LINE, np.uint8)
        start = -memory.ctypes.data % CACHE_LINE + (alignment if alignment < 16 else 0)
        np.ndarray((self.elements,), dtype, memory, start).fill(value)
        shape: tuple[int, ...] = (self.rows, self.columns)
        strides: tuple[int, ...] = (self.ld * item, item)
        if self.batch > 1:
            shape, strides = (self.batch, *shape), (self.stride * item, *strides)
        array: NDArray[Any] = np.ndarray(shape, dtype, memory, start, strides)
        return array.swapaxes(-1, -2) if self.transposed else array


def left_layout(problem: GemmProblem) -> Layout:
    """Return how the left operand lies."""
    rows = problem.k if problem.transpose_left else problem.m
    return _layout(
        problem.batch, rows, problem.left_columns, problem.ld_left, problem.stride_left, problem.transpose_left
    )


def right_layout(problem: GemmProblem) -> Layout:
    """Return how the right operand lies."""
    rows = problem.n if problem.transpose_right else problem.k
    return _layout(
        problem.batch, rows, problem.right_columns, problem.ld_right, problem.stride_right, problem.transpose_right
    )


def out_layout(problem: GemmProblem) -> Layout:
    """Return how the result lies."""
    return _layout(problem.batch, problem.m, problem.n, problem.ld_out, problem.stride_out)


def new_output(problem: GemmProblem, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return new memory for the result of `problem`, lying as it says, its contents not set."""
    layout = out_layout(problem)
    if layout.ld == layout.columns and layout.stride == layout.rows * layout.columns:
        shape = (layout.rows, layout.columns)
        return np.empty(shape if layout.batch == 1 else (layout.batch, *shape), dtype)
    return layout.filled(dtype, 0.0)


def _layout(
    batch: int, rows: int, columns: int, ld: int | None, stride: int | None, transposed: bool = False
) -> Layout:
    step = ld or columns
    return Layout(batch, rows, columns, step, rows * step if stride is None else stride, transposed)
