"""How the samples of a confirmation are spread: counts in equal bins, the same ones for both sides. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from tensorplay.measure.statistics import quartiles

__all__ = ["BINS", "SampleHistogram", "Spread", "histogram_of"]

BINS = 16
"""Bins between the bounds."""

_FAR = 3.0
"""Distances between its quartiles that a side's samples may lie outside of them; what is further off is counted apart.

One interruption takes as long as a hundred launches: bins that reached it would show one bar, and nothing else.
"""


class Spread(NamedTuple):
    """How many samples of one side are in each bin, and how many below the first bin and above the last one."""

    counts: tuple[int, ...]
    below: int
    above: int


class SampleHistogram(NamedTuple):
    """The samples of both sides of a confirmation.

    Attributes
    ----------
    low_ms, high_ms : float
        Where the first bin begins and the last one ends; equal where all samples between them are.
    first_choice, winner : Spread
        The finalist being called winner whether or not it won.
    """

    low_ms: float
    high_ms: float
    first_choice: Spread
    winner: Spread

    def to_dict(self) -> dict[str, object]:
        """Return the fields as plain JSON values."""
        return {
            "low_ms": self.low_ms,
            "high_ms": self.high_ms,
            **{name: getattr(self, name)._asdict() | {"counts": list(getattr(self, name).counts)} for name in _SIDES},
        }


_SIDES = ("first_choice", "winner")


def histogram_of(first_choice: Sequence[float], winner: Sequence[float], *, bins: int = BINS) -> SampleHistogram:
    """Return the histogram of two lists of times in milliseconds, neither of them empty.

    The bins span what lies near the quartiles of either side, and not more than all samples do.
    """
    fences = [_fences(side) for side in (first_choice, winner)]
    low_ms = max(min(*first_choice, *winner), min(low for low, _ in fences))
    high_ms = min(max(*first_choice, *winner), max(high for _, high in fences))
    return SampleHistogram(
        low_ms=low_ms,
        high_ms=high_ms,
        first_choice=_spread(first_choice, low_ms, high_ms, bins),
        winner=_spread(winner, low_ms, high_ms, bins),
    )


def _fences(times: Sequence[float]) -> tuple[float, float]:
    low, high = quartiles(times)
    far = _FAR * (high - low)
    return low - far, high + far


def _spread(times: Sequence[float], low_ms: float, high_ms: float, bins: int) -> Spread:
    counts, below, above = [0] * bins, 0, 0
    for time in times:
        if time < low_ms:
            below += 1
        elif time > high_ms:
            above += 1
        else:
            # The last bin holds its upper end.
            place = int(bins * ((time - low_ms) / (high_ms - low_ms))) if high_ms > low_ms else 0
            counts[min(place, bins - 1)] += 1
    return Spread(tuple(counts), below, above)
