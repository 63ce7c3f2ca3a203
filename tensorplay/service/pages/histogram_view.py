"""The samples of a confirmation as they are drawn: the first choice's bars above, the other's below, one scale."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["TALLEST", "BinView", "HistogramView", "histogram_view"]

TALLEST = 28.0
"""Height of the tallest bar; the whole is 100 wide."""

_GAP = 0.6


class BinView(NamedTuple):
    """One bin: its bounds in milliseconds, how many samples it has, and its two bars."""

    from_ms: float
    to_ms: float
    first_choice: int
    winner: int
    x: float
    width: float
    first_choice_height: float
    winner_height: float


class HistogramView(NamedTuple):
    """All bins, and what lies beyond them as (words, first choice, winner), where anything does."""

    bins: Sequence[BinView]
    beyond: Sequence[tuple[str, int, int]]


def histogram_view(histogram: Mapping[str, Any] | None) -> HistogramView | None:
    """Return how a histogram is drawn, as an explanation has it; None for none."""
    if histogram is None:
        return None
    low, high = histogram["low_ms"], histogram["high_ms"]
    first, winner = histogram["first_choice"], histogram["winner"]
    pairs = list(zip(first["counts"], winner["counts"], strict=True))
    tallest = max((max(pair) for pair in pairs), default=0) or 1
    step, wide = (high - low) / len(pairs), 100.0 / len(pairs)
    bins = [
        BinView(
            from_ms=low + number * step,
            to_ms=low + (number + 1) * step,
            first_choice=counts[0],
            winner=counts[1],
            x=round(number * wide, 2),
            width=round(wide - _GAP, 2),
            first_choice_height=round(TALLEST * counts[0] / tallest, 2),
            winner_height=round(TALLEST * counts[1] / tallest, 2),
        )
        for number, counts in enumerate(pairs)
    ]
    beyond = [("faster", first["below"], winner["below"]), ("slower", first["above"], winner["above"])]
    return HistogramView(bins, [each for each in beyond if each[1] or each[2]])
