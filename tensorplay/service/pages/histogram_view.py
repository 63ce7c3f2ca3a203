"""The samples of a confirmation as they are drawn: the first choice's bars above, the other's below, one scale."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tensorplay.service.pages.axis import Axis, time_axis

__all__ = ["LEAST", "TALLEST", "BinView", "HistogramView", "histogram_view"]

TALLEST = 46.0
"""Height of the tallest bar, in pixels; the whole is 100 wide."""

LEAST = 2.0
"""Height of a bar of one sample among many: it is to be seen."""

_GAP = 0.5
# What is left at an end for the samples that are further off.
_FAR = 9.0
_FAR_WIDTH = 5.0


class BinView(NamedTuple):
    """One bin: its bounds in milliseconds, how many samples it has, and its two bars.

    A bound is None of what lies beyond the last bin of a side, however far.
    """

    from_ms: float | None
    to_ms: float | None
    first_choice: int
    winner: int
    x: float
    width: float
    first_choice_height: float
    winner_height: float

    @property
    def is_far(self) -> bool:
        """Return whether it is of what is not drawn to scale."""
        return self.from_ms is None or self.to_ms is None


class HistogramView(NamedTuple):
    """All bins, and what lies beyond them, where anything does; and the axis of time."""

    bins: Sequence[BinView]
    beyond: Sequence[BinView]
    axis: Axis


def histogram_view(histogram: Mapping[str, Any] | None) -> HistogramView | None:
    """Return how a histogram is drawn, as an explanation has it; None for none."""
    if histogram is None:
        return None
    low, high = histogram["low_ms"], histogram["high_ms"]
    first, winner = histogram["first_choice"], histogram["winner"]
    pairs = list(zip(first["counts"], winner["counts"], strict=True))
    faster, slower = (first["below"], winner["below"]), (first["above"], winner["above"])
    tallest = max(map(max, [*pairs, faster, slower])) or 1
    left, right = _FAR * any(faster), 100.0 - _FAR * any(slower)
    step, wide = (high - low) / len(pairs), (right - left) / len(pairs)

    def made(from_ms: float | None, to_ms: float | None, counts: tuple[int, int], x: float, width: float) -> BinView:
        heights = (max(round(TALLEST * count / tallest, 2), LEAST) if count else 0.0 for count in counts)
        return BinView(from_ms, to_ms, *counts, round(x, 2), round(width, 2), *heights)

    bins = [
        made(low + number * step, low + (number + 1) * step, counts, left + number * wide, wide - _GAP)
        for number, counts in enumerate(pairs)
    ]
    beyond = [made(None, low, faster, 0.0, _FAR_WIDTH)] if any(faster) else []
    beyond += [made(high, None, slower, 100.0 - _FAR_WIDTH, _FAR_WIDTH)] if any(slower) else []
    return HistogramView(bins, beyond, time_axis(low, high, left=left, right=right))
