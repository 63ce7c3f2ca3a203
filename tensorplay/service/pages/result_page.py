"""One winner: how it compares with the first choice, every candidate, and how the choice was confirmed."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fastapi import APIRouter, Request, Response

from tensorplay.service.pages.axis import Axis, percent_axis
from tensorplay.service.pages.histogram_view import histogram_view
from tensorplay.service.pages.rendering import PageRoute, render
from tensorplay.service.routes.results import Identity, model_of, row_or_404, told_of
from tensorplay.service.state import Shared

__all__ = ["Bar", "IntervalView", "bars_of", "interval_of", "router"]

MOST_BARS = 60
_WIDTH = 100.0
# A candidate that takes longer than so many times the winner is cut off, or nothing else could be told apart.
_LONGEST = 3.0

router = APIRouter(route_class=PageRoute)


class Bar(NamedTuple):
    """A candidate as it is drawn; places are of 0 to 100.

    A candidate without a median is drawn by its last short reading, among such readings alone: those are of other
    conditions than the samples that a median is made of.
    """

    kernel: str
    samples: int
    median_ms: float | None
    screened_ms: float | None
    low_ms: float | None
    high_ms: float | None
    dropped: str | None
    is_winner: bool
    is_first_choice: bool
    is_cut: bool
    width: float
    low: float | None
    high: float | None


def bars_of(candidates: Sequence[Mapping[str, Any]], winner: str) -> list[Bar]:
    """Return the candidates, the fastest first and those that were never timed last."""
    median = _Scale([each["median_ms"] for each in candidates])
    reading = _Scale([each["screened_ms"] for each in candidates])
    bars = [
        _bar(each, median if each["median_ms"] else reading, winner, is_first_choice=number == 0)
        for number, each in enumerate(candidates)
    ]
    return sorted(bars, key=_order)


def _order(bar: Bar) -> tuple[bool, bool, float, bool, float]:
    return not bar.is_winner, not bar.median_ms, bar.median_ms or 0.0, not bar.screened_ms, bar.screened_ms or 0.0


class _Scale:
    """Where times of one kind are drawn."""

    def __init__(self, times: Sequence[float | None]) -> None:
        timed = [time for time in times if time]
        self._longest = min(max(timed, default=0.0) * 1.02, min(timed, default=0.0) * _LONGEST) or 1.0

    def place(self, time: float | None) -> float | None:
        return None if time is None else round(min(time / self._longest, 1.0) * _WIDTH, 2)

    def cuts(self, time: float | None) -> bool:
        return bool(time and time > self._longest)


def _bar(each: Mapping[str, Any], scale: _Scale, winner: str, *, is_first_choice: bool) -> Bar:
    time = each["median_ms"] or each["screened_ms"]
    return Bar(
        kernel=each["kernel"],
        samples=each["samples"],
        median_ms=each["median_ms"],
        screened_ms=each["screened_ms"],
        low_ms=each["quartile_low_ms"],
        high_ms=each["quartile_high_ms"],
        dropped=each["dropped"],
        is_winner=each["kernel"] == winner,
        is_first_choice=is_first_choice,
        is_cut=scale.cuts(time),
        width=scale.place(time) or 0.0,
        low=scale.place(each["quartile_low_ms"]),
        high=scale.place(each["quartile_high_ms"]),
    )


class IntervalView(NamedTuple):
    """Where the parts of the confirmation's interval are drawn, from 0 to 100."""

    zero: float
    low: float
    high: float
    margin: float
    gain: float
    axis: Axis


def interval_of(confirmation: Mapping[str, Any]) -> IntervalView:
    """Return how the interval of a confirmation is drawn."""
    low, high = confirmation["gain_low"], confirmation["gain_high"]
    margin, gain = confirmation["margin"], confirmation["gain"]
    least: float
    most: float
    least, most = min(0.0, low, gain), max(0.0, high, margin, gain)
    span = (most - least) or 1.0
    # Room at both ends, so that what is written there is seen.
    least, most = least - 0.06 * span, most + 0.06 * span

    def place(value: float) -> float:
        return round(100 * (value - least) / (most - least), 2)

    return IntervalView(place(0.0), place(low), place(high), place(margin), place(gain), percent_axis(least, most))


@router.get("/results/{identity}")
async def show_result(request: Request, state: Shared, identity: Identity, every: bool = False) -> Response:
    """Return the page of one winner; with `every`, however many candidates there are."""
    row = await row_or_404(state, identity)
    found = await told_of(state, row)
    told = found.explanation
    bars = bars_of(told["candidates"] or (), row.kernel)
    shown = bars if every else bars[:MOST_BARS]
    confirmation = told["confirmation"]
    return await render(
        request, state, "result.html", page="results", kinds="results rejections",
        row=await model_of(state, row),
        history=found.history[::-1],
        told=told,
        kernels=[bar.kernel for bar in shown],
        raced=[bar for bar in shown if bar.median_ms or bar.is_winner],
        others=[bar for bar in shown if not (bar.median_ms or bar.is_winner)],
        hidden=0 if every else max(0, len(bars) - MOST_BARS),
        provenance=found.provenance,
        confirmation=confirmation,
        histogram=histogram_view(told["histogram"]),
        interval=interval_of(confirmation) if confirmation else None,
    )  # fmt: skip
