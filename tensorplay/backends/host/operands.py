"""Operands of a problem for measuring: random numbers, lying in memory as the problem says."""

from typing import Any, NamedTuple

import numpy as np
import numpy.random  # NumPy itself imports it late, which a fork could cut in two
from numpy.typing import NDArray

from tensorplay.backends.host.dtypes import numpy_dtype
from tensorplay.backends.host.layout import CACHE_LINE, Layout, left_layout, out_layout, right_layout
from tensorplay.gemm import GemmProblem
from tensorplay.measure.check_operands import Sizes, check_numbers

__all__ = ["CheckedResult", "Operands", "new_result", "operand_bytes", "random_operands"]

# No number in any type, and another one than operands have beside them: arithmetic hands those on.
_UNWRITTEN = 0xFF


class Operands(NamedTuple):
    """What a plan is run on."""

    left: NDArray[Any]
    right: NDArray[Any]
    out: NDArray[Any]

    def copy_for(self, problem: GemmProblem) -> "Operands":
        """Return the same numbers in other memory that lies the same way."""
        left, right = _empty(problem, left_layout(problem)), _empty(problem, right_layout(problem))
        left[...], right[...] = self.left, self.right
        return Operands(left, right, new_result(problem))


class CheckedResult:
    """Memory for a result, with guards on both sides, in which each bit is set: not a number, and no other one.

    Attributes
    ----------
    array : ndarray
        The result, lying as the problem says.
    """

    __slots__ = ("_memory", "array")

    def __init__(self, problem: GemmProblem) -> None:
        memory, self.array = _guarded(problem, out_layout(problem))
        self._memory = memory.view(np.uint8)
        self._memory[...] = _UNWRITTEN

    def is_written_beside(self) -> bool:
        """Return whether something but the result was written to; overwrites the result."""
        unwritten = np.full(self.array.itemsize, _UNWRITTEN, np.uint8).view(self.array.dtype)[0]
        self.array[...] = unwritten
        return not bool((self._memory == _UNWRITTEN).all())


def operand_bytes(problem: GemmProblem) -> int:
    """Return the memory of one set of operands, without making it."""
    layouts = (left_layout(problem), right_layout(problem), out_layout(problem))
    return problem.dtype.itemsize * sum(layout.elements for layout in layouts)


def random_operands(problem: GemmProblem, seed: int) -> Operands:
    """Return operands with the numbers of `check_operands`; the same seed gives the same numbers.

    What lies between rows and beside operands is NaN, and so is the result: a kernel that reads the one or leaves out
    some of the other shows.
    """
    generator = np.random.default_rng(seed)
    left, right = _empty(problem, left_layout(problem)), _empty(problem, right_layout(problem))
    _fill(left, generator)
    _fill(right, generator)
    numbers = check_numbers(problem.k)
    _resize(left[..., -1], numbers.last)
    _resize(right[..., -1, :], numbers.last)
    if numbers.first:
        _resize(left[..., 0], numbers.last, like=left[..., -1])
        _resize(right[..., 0, :], numbers.first, like=right[..., -1, :])
    return Operands(left, right, new_result(problem))


def new_result(problem: GemmProblem) -> NDArray[Any]:
    """Return memory for the result, filled with NaN."""
    return _empty(problem, out_layout(problem))


def _empty(problem: GemmProblem, layout: Layout) -> NDArray[Any]:
    return _guarded(problem, layout)[1]


def _guarded(problem: GemmProblem, layout: Layout) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return memory filled with NaN, and the array in the middle of it that lies so."""
    dtype = numpy_dtype(problem.dtype)
    guard = CACHE_LINE // dtype.itemsize
    length = layout.elements + 2 * guard
    memory = Layout(1, 1, length, length, length).filled(dtype, float("nan"), problem.alignment)[0]
    shape: tuple[int, ...] = (layout.rows, layout.columns)
    steps: tuple[int, ...] = (layout.ld, 1)
    if layout.batch > 1:
        shape, steps = (layout.batch, *shape), (layout.stride, *steps)
    strides = [step * dtype.itemsize for step in steps]
    array = np.lib.stride_tricks.as_strided(memory[guard:-guard], shape, strides)
    return memory, array.swapaxes(-1, -2) if layout.transposed else array


def _fill(operand: NDArray[Any], generator: "np.random.Generator") -> None:
    if operand.dtype.kind == "c":
        _fill(operand.real, generator)
        _fill(operand.imag, generator)
    else:
        operand[...] = _uniform(operand.shape, operand.dtype, generator)


def _resize(numbers: NDArray[Any], sizes: Sizes, like: NDArray[Any] | None = None) -> None:
    """Give numbers that are uniform in [-1, 1] other sizes, with the signs of `like`, else their own."""
    signs = numbers if like is None else like
    if numbers.dtype.kind == "c":
        _resize(numbers.real, sizes, signs.real)
        _resize(numbers.imag, sizes, signs.imag)
    else:
        size = sizes.low + (sizes.high - sizes.low) * np.abs(numbers.astype(np.float64))
        numbers[...] = np.where(signs < 0, -size, size)


def _uniform(shape: tuple[int, ...], dtype: np.dtype[Any], generator: "np.random.Generator") -> NDArray[Any]:
    numbers: NDArray[Any] = generator.random(shape, np.float64 if dtype.itemsize == 8 else np.float32)
    numbers *= 2
    numbers -= 1
    return numbers
