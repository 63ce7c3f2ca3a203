"""Whether a candidate computes the same product as the default kernel, up to what rounding explains.

How much that is, `tolerance` says, for the operands that `check_operands` describes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tensorplay.gemm import DType
from tensorplay.measure.tolerance import Tolerance, default_tolerance, problem_tolerance

__all__ = ["Agreement", "Tolerance", "agree", "default_tolerance", "problem_tolerance"]

Array = NDArray[Any]

_WORSE_THAN_DEFAULT = 2.0
"""How much larger the candidate's error may be than the default's, where the default's exceeds the tolerance."""

_LARGEST_EXCESS = 256.0
"""A default off by this many tolerances may be a lower precision, but above it is wrong, and vouches for nobody."""

_BLOCK = 1 << 20
"""Elements compared at a time, so that the copies in higher precision stay small."""


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
