"""What samples say: medians, spreads, and bounds that hold whatever the distribution of the noise.

Timings have long upper tails, steps and drift, so nothing here assumes a shape: a bound of the median is an
order statistic, and its confidence is a binomial sum computed exactly. With too few samples for the confidence
asked, the bound is infinite rather than a guess.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

__all__ = [
    "MedianBounds",
    "bound_rank",
    "fewest_samples",
    "gain_spread",
    "mean_without_worst",
    "median",
    "median_absolute_deviation",
    "median_bounds",
    "paired_gain",
    "quartiles",
    "relative_spread",
]

# exp() of more than this overflows.
_LARGEST_LOG = 709.0


class MedianBounds(NamedTuple):
    """A median, and one-sided bounds of the true one, each of which holds with the confidence asked.

    A bound is infinite where there are too few samples.
    """

    median: float
    low: float
    high: float


def median(values: Sequence[float]) -> float:
    """Return the middle value, or the mean of the middle two."""
    return _quantile(_ordered(values), 0.5)


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """Return the lower and the upper quartile, interpolated linearly between neighbours."""
    ordered = _ordered(values)
    return _quantile(ordered, 0.25), _quantile(ordered, 0.75)


def median_absolute_deviation(values: Sequence[float]) -> float:
    """Return the median distance from the median: a spread that half of the samples cannot spoil."""
    middle = median(values)
    return median([abs(value - middle) for value in values])


def relative_spread(values: Sequence[float]) -> float:
    """Return the distance between the quartiles over the median; 0 for a single sample, which shows no spread."""
    low, high = quartiles(values)
    middle = median(values)
    return (high - low) / middle if high > low else 0.0


def mean_without_worst(values: Sequence[float], worst: int) -> float:
    """Return the mean of what is left when the `worst` largest values are taken away; one is always kept."""
    ordered = _ordered(values)
    kept = max(1, len(ordered) - worst)
    return math.fsum(ordered[:kept]) / kept


@lru_cache(maxsize=1024)
def bound_rank(count: int, confidence: float) -> int:
    """Return r such that the r-th smallest of `count` samples is a lower bound of the median; 0 when none is.

    The true median lies below the r-th smallest only when fewer than r samples fall below it, whose chance is
    that of fewer than r heads in `count` throws. r is the largest for which that chance is at most
    `1 - confidence`. The r-th largest is the upper bound, by symmetry.
    """
    allowed = Fraction(1.0 - confidence) * 2**count
    heads = 0
    for rank in range(count + 1):
        heads += math.comb(count, rank)
        if heads > allowed:
            return rank
    return count


def fewest_samples(confidence: float) -> int:
    """Return the smallest number of samples that gives a bound of the median with this confidence."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence is {confidence!r}; allowed: more than 0, less than 1")
    count = 1
    while bound_rank(count, confidence) == 0:
        count += 1
    return count


def median_bounds(values: Sequence[float], confidence: float) -> MedianBounds:
    """Return the median and its distribution-free bounds, each one-sided with at least `confidence`.

    The samples are taken to be independent; nothing else is assumed.
    """
    ordered = _ordered(values)
    rank = bound_rank(len(ordered), confidence)
    if rank == 0:
        return MedianBounds(_quantile(ordered, 0.5), -math.inf, math.inf)
    return MedianBounds(_quantile(ordered, 0.5), ordered[rank - 1], ordered[-rank])


def paired_gain(pairs: Sequence[tuple[float, float]], confidence: float, *, block: int = 1) -> MedianBounds:
    """Return by what share the first of each pair takes longer than the second, as a median with its bounds.

    0.05 means that the first takes 5 % longer; times must be positive. The statistics are those of the
    logarithm of the ratio, so that a gain and the loss of the swapped pair mirror each other.

    Parameters
    ----------
    pairs : sequence of (float, float)
        Two times taken one right after the other, so that what drifts is common to both.
    confidence : float
        Of each bound, one-sided.
    block : int
        How many neighbouring pairs are averaged into one observation. In blocks of two whose order alternates
        (A B, B A) an advantage of the first or second place cancels, at the cost of half the observations.
    """
    return MedianBounds(*map(_gain, median_bounds(_log_ratios(pairs, block), confidence)))


def gain_spread(pairs: Sequence[tuple[float, float]], *, block: int = 1) -> float:
    """Return how far the quartiles of what `paired_gain` is the median of lie apart."""
    low, high = quartiles(_log_ratios(pairs, block))
    return _gain(high) - _gain(low) if high > low else 0.0


def _log_ratios(pairs: Sequence[tuple[float, float]], block: int) -> list[float]:
    logs = [math.log(first / second) for first, second in pairs]
    whole = len(logs) - len(logs) % block
    return [math.fsum(logs[start : start + block]) / block for start in range(0, whole, block)]


def _gain(log_ratio: float) -> float:
    return math.expm1(log_ratio) if log_ratio < _LARGEST_LOG else math.inf


def _ordered(values: Sequence[float]) -> list[float]:
    if len(values) == 0:
        raise ValueError("no samples were given; at least one is needed")
    return sorted(values)


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    part = place - below
    return ordered[below] * (1.0 - part) + ordered[above] * part
