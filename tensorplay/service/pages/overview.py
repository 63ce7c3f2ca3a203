"""The first page: what the process does now, what tuning gained it, and the switches."""

import time
from collections.abc import Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from fastapi import APIRouter, Request, Response

from tensorplay.service.listing import Filter
from tensorplay.service.pages.rejected_rows import rejected_rows
from tensorplay.service.pages.rendering import PageRoute, render
from tensorplay.service.routes.jobs import model_of
from tensorplay.service.routes.rejections import rejections_of
from tensorplay.service.routes.results import models_of
from tensorplay.service.routes.settings import BUDGETS, SWITCHES
from tensorplay.service.state import Shared, State

__all__ = ["Bin", "Gains", "gains_of", "histogram", "kept_gains", "router"]

MOST_EXPLAINED = 200
_EDGES = (1.01, 1.1, 1.25, 1.5, 2.0, 3.0)
_KEPT_S = 5.0
_NOTHING = 1.005

router = APIRouter(route_class=PageRoute)


class Bin(NamedTuple):
    """How many winners gained from `low` up to `high` times; `high` is None for all above."""

    low: float
    high: float | None
    winners: int
    share: float


class Gains(NamedTuple):
    """What the winners that were measured last gained, by what is known of how they were chosen.

    `saved_ms` is what the replayed calls took less, by the measured times. `undecided` counts the winners, among all,
    that are the first choice since nothing was really compared, by their verdicts.
    """

    known: int
    total: int
    median: float | None
    bins: Sequence[Bin]
    best: Sequence[Any]
    saved_ms: float
    undecided: Mapping[str, int]


def histogram(gains: Sequence[float]) -> list[Bin]:
    """Return the gains counted by their size."""
    edges = (0.0, *_EDGES)
    counted = [
        (low, high, sum(low <= gain and (high is None or gain < high) for gain in gains))
        for low, high in zip_longest(edges, edges[1:])
    ]
    most = max(winners for *_, winners in counted) or 1
    return [Bin(low or 0.0, high, winners, winners / most) for low, high, winners in counted]


async def gains_of(state: State) -> Gains:
    """Return the gains of up to `MOST_EXPLAINED` winners, the ones that were measured here before others."""
    winners = state.runtime.winners
    rows = list(islice(await winners.rows(Filter(origin="measured here"), "-time_ms"), MOST_EXPLAINED))
    others = (row for row in await winners.rows(Filter(), "-time_ms") if row.origin != "measured here")
    rows += islice(others, MOST_EXPLAINED - len(rows))
    calls = [state.runtime.context.calls_of(row.op, row.params) for row in rows]
    models = list(zip(await models_of(state, rows), calls, strict=True))
    known = [(model, calls) for model, calls in models if model.gain]
    ratios = sorted(model.gain or 1.0 for model, _ in known)
    saved = sum(((model.first_choice_ms or 0.0) - model.time_ms) * calls.get("replayed", 0) for model, calls in known)
    best = sorted((model for model, _ in known), key=lambda model: -(model.gain or 0.0))[:5]
    median = ratios[len(ratios) // 2] if ratios else None
    total, gained = len(await winners.get()), [each for each in best if (each.gain or 0.0) > _NOTHING]
    undecided = await state.worker.ask(state.runtime.verdicts.undecided)
    return Gains(len(known), total, median, histogram(ratios), gained, saved, undecided)


@router.get("/")
async def show_overview(request: Request, state: Shared) -> Response:
    """Return the page."""
    settings = {setting.name: setting for setting in state.runtime.settings()}
    running = state.jobs.running()
    return await render(
        request, state, "overview.html", page="", kinds="results rejections untuned jobs",
        gains=await kept_gains(request, state),
        switches=[settings[name] for name in SWITCHES],
        budgets=[settings[name] for name in BUDGETS],
        untuned=await state.runtime.untuned.get(),
        rejections=[each.model for each in rejected_rows(await rejections_of(state))],
        running=model_of(running) if running else None,
    )  # fmt: skip


async def kept_gains(request: Request, state: State) -> Gains:
    """Return the gains; those of a moment ago while no winner changed, since a page asks every few seconds."""
    now, revision = time.monotonic(), state.runtime.revision("results")
    kept = getattr(request.app.state, "tensorplay_gains", None)
    if kept is not None and kept[0] == revision and now - kept[1] < _KEPT_S:
        gains: Gains = kept[2]
        return gains
    gains = await gains_of(state)
    request.app.state.tensorplay_gains = (revision, now, gains)
    return gains
