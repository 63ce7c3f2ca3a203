"""Operands of a problem for measuring: random numbers, lying in memory as the problem says."""

from typing import Any, NamedTuple

import numpy as np
import numpy.random  # NumPy itself imports it late, which a fork could cut in two
from numpy.typing import NDArray

from tensorplay.backends.host.dtypes import numpy_dtype
from tensorplay.backends.host.layout import Layout, left_layout, out_layout, right_layout
from tensorplay.gemm import GemmProblem
from tensorplay.measure.numerics import LAST_FACTOR

__all__ = ["Operands", "new_result", "operand_bytes", "random_operands"]


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


def operand_bytes(problem: GemmProblem) -> int:
    """Return the memory of one set of operands, without making it."""
    layouts = (left_layout(problem), right_layout(problem), out_layout(problem))
    return problem.dtype.itemsize * sum(layout.elements for layout in layouts)


def random_operands(problem: GemmProblem, seed: int) -> Operands:
    """Return operands uniform in [-1, 1], complex numbers in both parts; the same seed gives the same numbers.

    The last factors of each sum are of one size, `LAST_FACTOR`, so that a dropped end of a sum shows.
    What lies between rows is NaN, and so is the result: a kernel that reads the one or leaves out some of the
    other shows.
    """
    generator = np.random.default_rng(seed)
    left, right = _empty(problem, left_layout(problem)), _empty(problem, right_layout(problem))
    _fill(left, generator)
    _fill(right, generator)
    _enlarge(left[..., -1])
    _enlarge(right[..., -1, :])
    return Operands(left, right, new_result(problem))


def new_result(problem: GemmProblem) -> NDArray[Any]:
    """Return memory for the result, filled with NaN."""
    return _empty(problem, out_layout(problem))


def _empty(problem: GemmProblem, layout: Layout) -> NDArray[Any]:
    return layout.filled(numpy_dtype(problem.dtype), float("nan"), problem.alignment)


def _fill(operand: NDArray[Any], generator: "np.random.Generator") -> None:
    if operand.dtype.kind == "c":
        _fill(operand.real, generator)
        _fill(operand.imag, generator)
    else:
        operand[...] = _uniform(operand.shape, operand.dtype, generator)


def _enlarge(numbers: NDArray[Any]) -> None:
    """Give all numbers one size, and leave their signs."""
    if numbers.dtype.kind == "c":
        _enlarge(numbers.real)
        _enlarge(numbers.imag)
    else:
        numbers[...] = np.where(numbers < 0, -LAST_FACTOR, LAST_FACTOR)


def _uniform(shape: tuple[int, ...], dtype: np.dtype[Any], generator: "np.random.Generator") -> NDArray[Any]:
    numbers: NDArray[Any] = generator.random(shape, np.float64 if dtype.itemsize == 8 else np.float32)
    numbers *= 2
    numbers -= 1
    return numbers
