"""One winner: how it compares with the first choice, every candidate, and how the choice was confirmed."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fastapi import APIRouter, Request, Response

from tensorplay.service.pages.histogram_view import histogram_view
from tensorplay.service.pages.rendering import PageRoute, render
from tensorplay.service.routes.results import Identity, model_of, provenance_of, row_or_404
from tensorplay.service.state import Shared, etag

__all__ = ["Bar", "bars_of", "interval_of", "router"]

MOST_BARS = 60
_WIDTH = 100.0
# A candidate that takes longer than so many times the winner is cut off, or nothing else could be told apart.
_LONGEST = 3.0

router = APIRouter(route_class=PageRoute)


class Bar(NamedTuple):
    """A candidate as it is drawn; places are of 0 to 100."""

    kernel: str
    samples: int
    median_ms: float | None
    low_ms: float | None
    high_ms: float | None
    dropped: str | None
    is_winner: bool
    is_first_choice: bool
    is_screened: bool
    is_cut: bool
    width: float
    low: float | None
    high: float | None


def bars_of(candidates: Sequence[Mapping[str, Any]], winner: str) -> list[Bar]:
    """Return the candidates, the fastest first and those that were never timed last."""
    timed = [each["median_ms"] or each["screened_ms"] for each in candidates]
    fastest = min((time for time in timed if time), default=0.0)
    slowest = max((time for time in timed if time), default=0.0)
    longest = min(slowest * 1.02, fastest * _LONGEST) or 1.0

    def place(time: float | None) -> float | None:
        return None if time is None else round(min(time / longest, 1.0) * _WIDTH, 2)

    bars = [
        Bar(
            kernel=each["kernel"],
            samples=each["samples"],
            median_ms=time,
            low_ms=each["quartile_low_ms"],
            high_ms=each["quartile_high_ms"],
            dropped=each["dropped"],
            is_winner=each["kernel"] == winner,
            is_first_choice=number == 0,
            is_screened=each["median_ms"] is None and time is not None,
            is_cut=bool(time and time > longest),
            width=place(time) or 0.0,
            low=place(each["quartile_low_ms"]),
            high=place(each["quartile_high_ms"]),
        )
        for number, (each, time) in enumerate(zip(candidates, timed, strict=True))
    ]
    return sorted(bars, key=lambda bar: (not bar.is_winner, bar.median_ms is None, bar.is_screened, bar.median_ms or 0))


def interval_of(confirmation: Mapping[str, Any]) -> dict[str, float]:
    """Return where the parts of the confirmation's interval are drawn, from 0 to 100."""
    low, high = confirmation["gain_low"], confirmation["gain_high"]
    margin, gain = confirmation["margin"], confirmation["gain"]
    least: float
    most: float
    least, most = min(0.0, low, gain), max(0.0, high, margin, gain)
    span = (most - least) or 1.0

    def place(value: float) -> float:
        return round(4 + 92 * (value - least) / span, 2)

    return {name: place(value) for name, value in
            {"zero": 0.0, "low": low, "high": high, "margin": margin, "gain": gain}.items()}  # fmt: skip


@router.get("/results/{identity}")
async def show_result(request: Request, state: Shared, identity: Identity, every: bool = False) -> Response:
    """Return the page of one winner; with `every`, however many candidates there are."""
    tag = etag(state, "results")
    row = await row_or_404(state, identity)
    told = state.runtime.explain(row)
    bars = bars_of(told["candidates"] or (), row.kernel)
    confirmation = told["confirmation"]
    return render(
        request, state, "result.html", page="results", kinds="results rejections",
        row=model_of(state, row),
        history=state.runtime.context.past_winners(row.op, row.params)[::-1],
        told=told,
        bars=bars if every else bars[:MOST_BARS],
        hidden=0 if every else max(0, len(bars) - MOST_BARS),
        provenance=await provenance_of(state, row),
        confirmation=confirmation,
        histogram=histogram_view(told["histogram"]),
        interval=interval_of(confirmation) if confirmation else None,
        tag=tag,
    )  # fmt: skip
