"""Whether a candidate computes the same product as the default kernel, up to what rounding explains.

The bound
---------
For operands drawn with mean zero, sums of k products grow like sqrt(k), and the rounding errors of adding them up
one after the other, each a random share of the sum so far, again accumulate like sqrt(k): together about
`0.1 u k` for factors uniform in [-1, 1], u being the unit roundoff of the accumulator. This is the probabilistic
analysis of Higham and Mary, "Sharper probabilistic backward error analysis for basic linear algebra kernels with
random data", SIAM J. Sci. Comput. 42 (2020); the bound for any data, `sqrt(k) u |A||B|` (SIAM J. Sci. Comput. 41
(2019)), would let a dropped tail of a long sum pass. In-order summation is the worst that kernels do: blocks,
trees and split sums err less. The largest error is further out than a normal one would be, since sums that
wander far err more: `1.4 u k` among two million elements. `4 u k` is taken. To this comes the rounding of the
result, once, relative to the element itself.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tensorplay.gemm import DType, GemmProblem

__all__ = ["LAST_FACTOR", "Agreement", "Tolerance", "agree", "default_tolerance", "problem_tolerance"]

Array = NDArray[Any]

_FLOAT32_ROUNDOFF = 2.0**-24
# Hopper's FP8 products are summed in float32 registers, but with only about 14 bits kept when aligning addends.
_FLOAT8_SUM_ROUNDOFF = 2.0**-13
# Each part of a complex sum has two real products a place; the margin covers the three-product form as well.
_COMPLEX_FACTOR = 2
# Of the fast hyperbolic tangent that kernels compute GELU with, relative; half of it is GELU's own error.
_FAST_TANH_ERROR = 2.0**-10
# Bias, alpha and beta round a few times more, which matters for the shortest sums only.
_EPILOGUE_SUMMANDS = 8

_WORSE_THAN_DEFAULT = 2.0
"""How much larger the candidate's error may be than the default's, where the default's exceeds the tolerance."""

_LARGEST_EXCESS = 256.0
"""A default off by this many tolerances may be a lower precision, but above it is wrong, and vouches for nobody."""

LAST_FACTOR = 4.0
"""Size of the last factors of each sum on check operands, whose others are in [-1, 1].

Whoever drops or doubles the end of the sums is off by the square of this at least, in each element: more than any
tolerance of sums of up to a quarter of a million products.
"""

_BLOCK = 1 << 20
"""Elements compared at a time, so that the copies in higher precision stay small."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """An element may be off by `atol + rtol * |expected|`; both finite, from 0 up, else `ValueError`."""

    atol: float
    rtol: float

    def __post_init__(self) -> None:
        for name, value in (("atol", self.atol), ("rtol", self.rtol)):
            if not (math.isfinite(value) and value >= 0.0):
                raise ValueError(f"{name} is {value!r}; allowed: a finite number from 0 up")


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a comparison found.

    Attributes
    ----------
    ok : bool
        Whether the candidate may be trusted.
    max_abs_error, max_rel_error : float
        Largest over all elements, against the default or, where `reason` says so, the reference. Infinite
        where an element is not a number and should be.
    reason : str
        Why, in words.
    """

    ok: bool
    max_abs_error: float
    max_rel_error: float
    reason: str


def default_tolerance(
    dtype: DType, k: int, *, out: DType | None = None, accumulation: DType | None = None, scale: float = 1.0
) -> Tolerance:
    """Return what an honest kernel may be off by on random operands of mean zero; see the module for the bound.

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
        The largest product of two factors, times `|alpha|`; 1 for operands in [-1, 1].

    Raises
    ------
    ValueError
        When `k` is below 1 or `scale` is no positive number.
    """
    if k < 1 or not (math.isfinite(scale) and scale > 0.0):
        raise ValueError(f"k is {k} and scale {scale!r}; allowed: k from 1 up, and a positive scale")
    sum_roundoff = accumulation.unit_roundoff if accumulation else _sum_roundoff(dtype)
    summands = (k + _EPILOGUE_SUMMANDS) * (_COMPLEX_FACTOR if dtype.is_complex else 1)
    atol = 4.0 * sum_roundoff * summands
    if dtype.name == "tf32":
        # Factors are rounded, or cut off, to TF32 before they are multiplied; those errors are independent.
        atol += 4.0 * dtype.unit_roundoff * math.sqrt(k)
    result = out or dtype
    rounding = _FLOAT32_ROUNDOFF if result.name == "tf32" else result.unit_roundoff
    return Tolerance(atol * scale, 2.0 * rounding)


def problem_tolerance(problem: GemmProblem) -> Tolerance:
    """Return what an honest kernel may be off by on check operands of a problem.

    To `default_tolerance` this adds what an epilogue costs: kernels may round the sum to the result's type before
    they add to it, which is relative to the sum and not to the result, and GELU is computed with a fast tangent.
    """
    plain = default_tolerance(problem.dtype, problem.k, out=problem.out_dtype, accumulation=problem.accumulation)
    # Six times the deviation of a sum of k products of factors that are uniform in [-1, 1].
    largest = LAST_FACTOR**2 + 2.0 * math.sqrt(problem.k)
    atol = plain.atol
    if problem.bias or problem.accumulate or problem.activation != "none":
        atol += plain.rtol / 2.0 * largest
    if problem.activation == "gelu":
        atol += _FAST_TANH_ERROR / 2.0 * largest
    return Tolerance(atol, plain.rtol)


def agree(
    candidate: Array,
    default: Array,
    reference: Callable[[], Array],
    *,
    dtype: DType,
    k: int,
    tolerance: Tolerance | None = None,
) -> Agreement:
    """Compare a candidate's result with the default kernel's on the same operands.

    It passes when it equals the default's, or is within the tolerance of it. Where it is not, the reference is
    asked: the candidate passes within the tolerance of that, or when its largest error is at most twice the
    default's own. A place where both have the same NaN or infinity is no error; a new one is.

    Parameters
    ----------
    candidate, default : ndarray
        The results; bfloat16 and narrower may come as float32.
    reference : callable
        Returns the product in a precision of at least twice the dtype's; called only when it is needed.
    dtype : DType
        Of the operands.
    k : int
        Length of the sums.
    tolerance : Tolerance, optional
        Else `default_tolerance(dtype, k)`.
    """
    if candidate.shape != default.shape:
        return _refused(f"its shape is {candidate.shape}, the default's {default.shape}")
    if np.iscomplexobj(candidate) != np.iscomplexobj(default):
        return _refused("one result is complex, the other is not")
    allowed = tolerance or default_tolerance(dtype, k)
    to_default = _distance(candidate, default, allowed, dtype)
    if to_default.max_abs == 0.0:
        return _accepted(to_default, "equal to the default's")
    if to_default.excess <= 1.0:
        return _accepted(to_default, "within the tolerance of the default's")
    exact = reference()
    if exact.shape != default.shape:
        raise ValueError(f"the reference has shape {exact.shape}, the results {default.shape}")
    own = _distance(candidate, exact, allowed, dtype, settled=default)
    return _judged(own, _distance(default, exact, allowed, dtype).excess, candidate.shape)


class _Distance(NamedTuple):
    """How far a result is from what is expected; `excess` is the largest error over the one allowed."""

    excess: float
    max_abs: float
    max_rel: float
    wrong: int
    worst: int


def _sum_roundoff(dtype: DType) -> float:
    if dtype.name.startswith("float8"):
        return _FLOAT8_SUM_ROUNDOFF
    return min(dtype.unit_roundoff, _FLOAT32_ROUNDOFF)


def _refused(reason: str) -> Agreement:
    return Agreement(ok=False, max_abs_error=math.inf, max_rel_error=math.inf, reason=reason)


def _accepted(distance: _Distance, reason: str) -> Agreement:
    return Agreement(ok=True, max_abs_error=distance.max_abs, max_rel_error=distance.max_rel, reason=reason)


def _judged(own: _Distance, default_excess: float, shape: tuple[int, ...]) -> Agreement:
    if own.excess <= 1.0:
        return _accepted(own, "within the tolerance of the reference")
    if default_excess <= _LARGEST_EXCESS and own.excess <= _WORSE_THAN_DEFAULT * default_excess:
        return _accepted(own, "no worse against the reference than twice the default's error")
    place = tuple(map(int, np.unravel_index(own.worst, shape)))
    return Agreement(
        ok=False,
        max_abs_error=own.max_abs,
        max_rel_error=own.max_rel,
        reason=f"{own.wrong} of {math.prod(shape)} elements are off the reference, worst at {place} "
        f"by {own.excess:.3g} times the tolerance (the default: {default_excess:.3g})",
    )


def _distance(
    result: Array, expected: Array, tolerance: Tolerance, dtype: DType, *, settled: Array | None = None
) -> _Distance:
    """Compare block by block; places where the result equals `settled` count as right."""
    wide = _working_type(dtype)
    flat_result, flat_expected = result.reshape(-1), expected.reshape(-1)
    flat_settled = None if settled is None else settled.reshape(-1)
    total = _Distance(0.0, 0.0, 0.0, 0, 0)
    for start in range(0, flat_result.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        got, wanted = flat_result[block].astype(wide), flat_expected[block].astype(wide)
        same = _same(got, wanted)
        if flat_settled is not None:
            same |= _same(got, flat_settled[block].astype(wide))
        total = _worse(total, _block_distance(got, wanted, same, tolerance), start)
    return total


def _block_distance(got: Array, wanted: Array, same: NDArray[np.bool_], tolerance: Tolerance) -> _Distance:
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        size = np.abs(wanted)
        error = np.where(same, 0.0, np.abs(got - wanted))
        error[np.isnan(error)] = np.inf
        excess = np.where(error > 0.0, error / (tolerance.atol + tolerance.rtol * size), 0.0)
        # A finite result where infinity or NaN is expected: inf / inf.
        excess[np.isnan(excess)] = np.inf
        relative = np.where(error > 0.0, error / size, 0.0)
        relative[np.isnan(relative)] = np.inf
    worst = int(np.argmax(excess))
    return _Distance(
        float(excess[worst]), float(error.max()), float(relative.max()), int(np.count_nonzero(excess > 1.0)), worst
    )


def _worse(total: _Distance, block: _Distance, start: int) -> _Distance:
    return _Distance(
        max(total.excess, block.excess),
        max(total.max_abs, block.max_abs),
        max(total.max_rel, block.max_rel),
        total.wrong + block.wrong,
        start + block.worst if block.excess > total.excess else total.worst,
    )


def _same(left: Array, right: Array) -> NDArray[np.bool_]:
    equal: NDArray[np.bool_] = (left == right) | (np.isnan(left) & np.isnan(right))
    return equal


def _working_type(dtype: DType) -> type[np.inexact[Any]]:
    if dtype.unit_roundoff <= 2.0**-53:
        return np.clongdouble if dtype.is_complex else np.longdouble
    return np.complex128 if dtype.is_complex else np.float64
