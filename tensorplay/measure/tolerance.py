"""How far the results of honest kernels may be off on the operands that they are checked on.

The bound
---------
Each operation of a sum is off by a roundoff `u` of the sum so far, of either sign. For factors uniform in [-1, 1] the
sum so far is random itself, about `sqrt(k) / 3`, and adding up in order, the worst that kernels do, is off by some
`0.1 u k`; the largest of two million elements by `1.4 u k`, since sums that wander far err more. `4 u k` is taken.
This is the probabilistic analysis of Higham and Mary, "Sharper probabilistic backward error analysis for basic
linear algebra kernels with random data", SIAM J. Sci. Comput. 42 (2020). Their bound for any data, `sqrt(k) u |A||B|`
(SIAM J. Sci. Comput. 41 (2019)), would let a dropped tail of a long sum pass; and on operands of our own `|A||B|` is
about the same in each element, so that one number stands for all of them.

The heavy ends of the sums (`check_operands`) keep the sum so far near 64, from the first product to the last. Each
operation is off by up to `64 u` then, all of them by `2 * 64 u sqrt(k)` in the worst of many elements; twice as much
is taken.

Tensor cores do not round but cut off, always towards zero, so that errors add up: `2 u` of the sum so far for each
of their steps of 8 products or more, half of that on average.

To this comes the rounding of the result, once in each of the two that are compared, relative to the element itself.
Sums whose parts are rounded to a result of 16 bits before they are added up err by several of these, and do not pass.
"""

import math
from dataclasses import dataclass

from tensorplay.gemm import DType, GemmProblem, dtype_of_name
from tensorplay.measure.check_operands import BETA, LONG, check_numbers

__all__ = ["Tolerance", "default_tolerance", "problem_tolerance"]

_FLOAT32_ROUNDOFF = 2.0**-24
# Hopper's FP8 products are summed in registers that keep 13 bits behind the leading one, 32 at a step.
_FLOAT8_CUT, _FLOAT8_STEP = 2.0**-13, 32
# Products that a tensor core adds up at a step, at least: 8 of TF32, more of narrower types.
_STEP = 8
# Each part of a complex sum has two real products a place; the margin covers the three-product form as well.
_COMPLEX_FACTOR = 2
# Bias, alpha and beta round a few times more, which matters for the shortest sums only.
_EPILOGUE_SUMMANDS = 8

# What GELU may be off by, relative to its argument. Kernels of narrow types compute it with the device's fast
# hyperbolic tangent, which is off by 2**-11, so GELU, which has half of that, by 2**-12: twice as much is taken.
# Others were measured on cuBLAS 13.1: no more than roundings in float32, some 2**-35 in float64.
_GELU_ERROR = {"float32": 2.0**-20, "float64": 2.0**-30}
_NARROW_GELU_ERROR = 2.0**-11


@dataclass(frozen=True, slots=True)
class Tolerance:
    """An element may be off by `atol + rtol * |expected|`; both finite, from 0 up, else `ValueError`."""

    atol: float
    rtol: float

    def __post_init__(self) -> None:
        for name, value in (("atol", self.atol), ("rtol", self.rtol)):
            if not (math.isfinite(value) and value >= 0.0):
                raise ValueError(f"{name} is {value!r}; allowed: a finite number from 0 up")


def default_tolerance(
    dtype: DType, k: int, *, out: DType | None = None, accumulation: DType | None = None, scale: float = 1.0
) -> Tolerance:
    """Return what an honest kernel may be off by on check operands, without an epilogue; see the module for the bound.

    Parameters
    ----------
    dtype : DType
        Of the operands.
    k : int
        Length of the sums, at least 1.
    out : DType, optional
        Of the result, where it is not `dtype`.
    accumulation : DType, optional
        What the products are summed in, where it is not the plain choice: float32 for the half types, the
        type itself for others.
    scale : float
        What all products are larger by than those of check operands, such as `|alpha|`.

    Raises
    ------
    ValueError
        When `k` is below 1 or `scale` is no positive number.
    """
    if k < 1 or not (math.isfinite(scale) and scale > 0.0):
        raise ValueError(f"k is {k} and scale {scale!r}; allowed: k from 1 up, and a positive scale")
    atol = _summing_error(dtype, k, accumulation)
    if dtype.name == "tf32":
        # Factors are rounded, or cut off, to TF32 before they are multiplied; those errors are independent.
        atol += 4.0 * dtype.unit_roundoff * math.sqrt(k)
    result = out or dtype
    rounding = _FLOAT32_ROUNDOFF if result.name == "tf32" else result.unit_roundoff
    return Tolerance(atol * scale * (_COMPLEX_FACTOR if dtype.is_complex else 1), 2.0 * rounding)


def problem_tolerance(problem: GemmProblem) -> Tolerance:
    """Return what an honest kernel may be off by on the check operands of a problem.

    To `default_tolerance` this adds what an epilogue costs. Kernels may round the sum to the type of the addends
    before they add to it, or the addends' own sum, which is relative to these and not to the result; and GELU is a
    function of the library's own making.
    """
    plain = default_tolerance(problem.dtype, problem.k, out=problem.out_dtype, accumulation=problem.accumulation)
    addends = check_numbers(problem.k).addend.high * (problem.bias + abs(BETA) * problem.accumulate)
    largest = _largest_sum(problem.k) + addends
    atol = plain.atol
    if problem.bias or problem.accumulate or problem.activation != "none":
        atol += _addend_roundoff(problem.result_type) * largest
    if problem.activation == "gelu":
        atol += _gelu_error(problem) * largest
    return Tolerance(atol, plain.rtol)


def _summing_error(dtype: DType, k: int, accumulation: DType | None) -> float:
    """Return what the largest of many elements is off by before it is rounded, for factors that are real."""
    heaviest = check_numbers(k).last.high ** 2 if k >= LONG else 0.0
    so_far = heaviest + math.sqrt(k)
    if dtype.name.startswith("float8"):
        # Each step cuts off the sum, and each product, whose errors are of either sign.
        return _FLOAT8_CUT * (k / _FLOAT8_STEP + 1.0 + 3.0 * math.sqrt(k)) * so_far
    roundoff = accumulation.unit_roundoff if accumulation else min(dtype.unit_roundoff, _FLOAT32_ROUNDOFF)
    error = 4.0 * roundoff * (k + _EPILOGUE_SUMMANDS + heaviest * math.sqrt(k))
    if dtype.itemsize == 2 or dtype.name == "tf32":
        error += roundoff * (k / _STEP) * so_far
    return error


def _largest_sum(k: int) -> float:
    """Return six times the deviation of a sum of check operands, and what its ends leave."""
    numbers = check_numbers(k)
    rest = numbers.last.high * (numbers.last.high + numbers.first.low) if numbers.first else 0.0
    return rest + 2.0 * math.sqrt(k)


def _addend_roundoff(result: DType) -> float:
    """Return the roundoff of the addends' type: the result's, but bfloat16 where that is FP8."""
    if result.name == "tf32":
        return _FLOAT32_ROUNDOFF
    wider = dtype_of_name("bfloat16") if result.itemsize == 1 else None
    return (wider or result).unit_roundoff


def _gelu_error(problem: GemmProblem) -> float:
    if problem.result_type.itemsize < problem.dtype.itemsize:
        return _NARROW_GELU_ERROR
    return _GELU_ERROR.get(problem.dtype.name, _NARROW_GELU_ERROR)
