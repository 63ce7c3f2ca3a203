"""A measured value with how sure it is: median, quartiles, and an interval that assumes nothing of the noise."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tensorplay.measure.statistics import median, median_bounds, quartiles

__all__ = [
    "Spread",
    "differences",
    "geometric_mean",
    "geometric_mean_spread",
    "ratio_of_medians",
    "ratios",
    "spread_of",
]

# Two one-sided bounds of 97.5 % make an interval of 95 %.
_CONFIDENCE = 0.975
_RESAMPLES = 2000


class Spread(NamedTuple):
    """The middle of repeated values, and their spread.

    Attributes
    ----------
    median : float
        What is reported.
    low, high : float or None
        The 95 % interval of the median; None with too few values.
    lower_quartile, upper_quartile : float
        Half of the values lie between them.
    repeats : int
        How many values there were.
    """

    median: float
    low: float | None
    high: float | None
    lower_quartile: float
    upper_quartile: float
    repeats: int

    def scaled(self, factor: float) -> "Spread":
        """Return the same in another unit; the factor must be positive."""
        low, high = (None if bound is None else bound * factor for bound in (self.low, self.high))
        return Spread(
            self.median * factor, low, high, self.lower_quartile * factor, self.upper_quartile * factor, self.repeats
        )


def spread_of(values: Sequence[float]) -> Spread:
    """Return the spread of repeated values."""
    bounds = median_bounds(values, _CONFIDENCE)
    low, high = (bound if math.isfinite(bound) else None for bound in (bounds.low, bounds.high))
    return Spread(bounds.median, low, high, *quartiles(values), len(values))


def differences(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return by how much ours exceeds theirs, pair by pair."""
    return [our - their for our, their in zip(ours, theirs, strict=True)]


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Return the quotients, pair by pair."""
    return [above / below for above, below in zip(numerators, denominators, strict=True)]


def ratio_of_medians(numerators: Sequence[float], denominators: Sequence[float]) -> Spread:
    """Return the median of the first over that of the second; its interval is the bootstrap's, over pairs.

    The quartiles are those of the paired ratios.
    """
    above, below = np.asarray(numerators), np.asarray(denominators)
    drawn = np.random.default_rng(0).integers(len(above), size=(_RESAMPLES, len(above)))
    resampled = np.median(above[drawn], axis=1) / np.median(below[drawn], axis=1)
    low, high = np.quantile(resampled, [1 - _CONFIDENCE, _CONFIDENCE])
    middle = median(numerators) / median(denominators)
    return Spread(middle, float(low), float(high), *quartiles(ratios(numerators, denominators)), len(above))


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive values."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def geometric_mean_spread(groups: Mapping[str, Sequence[float]]) -> Spread:
    """Return the geometric mean of the groups' medians; its interval is the bootstrap's, within each group.

    The quartiles are those of the medians: how different the groups are.
    """
    medians = [median(values) for values in groups.values()]
    rng = np.random.default_rng(0)
    logs = np.zeros(_RESAMPLES)
    for values in groups.values():
        drawn = rng.choice(np.asarray(values), size=(_RESAMPLES, len(values)))
        logs += np.log(np.median(drawn, axis=1))
    low, high = np.exp(np.quantile(logs / len(groups), [1 - _CONFIDENCE, _CONFIDENCE]))
    return Spread(geometric_mean(medians), float(low), float(high), *quartiles(medians), len(medians))
