"""What the runtime met: signatures without a winner, and winners that did not run."""

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from tensorplay.service.jobs import OVER
from tensorplay.service.pages.rendering import PageRoute, render
from tensorplay.service.routes.rejections import rejections_of
from tensorplay.service.state import Shared, State
from tensorplay.service.untuned_list import UntunedRow

__all__ = ["Text", "router", "without_winner"]

MOST_SHOWN = 500
Text = Annotated[str, Query(max_length=200)]

router = APIRouter(route_class=PageRoute)


def without_winner(state: State) -> Sequence[UntunedRow]:
    """Return the untuned signatures that have no winner since, the most called first."""
    return state.runtime.untuned()


@router.get("/untuned")
async def show_untuned(request: Request, state: Shared, q: Text = "") -> Response:
    """Return the signatures that ran without a winner, the most called first."""
    found = without_winner(state)
    wanted = [each for each in found if q.casefold() in f"{each.op},{each.params}".casefold()]
    return render(
        request, state, "untuned.html", page="untuned", kinds="untuned results jobs",
        rows=wanted[:MOST_SHOWN],
        hidden=max(0, len(wanted) - MOST_SHOWN),
        total=len(wanted),
        known=len(found),
        most_calls=max((each.calls for each in wanted), default=0) or 1,
        q=q,
        is_busy=any(job.state not in OVER for job in state.jobs.listed()),
    )  # fmt: skip


@router.get("/rejections")
async def show_rejections(
    request: Request, state: Shared, q: Text = "", healed: Literal["yes", "no"] | None = None
) -> Response:
    """Return the recorded winners that did not run, with the reason of each."""
    found = rejections_of(state)
    wanted = [
        each
        for each in found
        if q.casefold() in f"{each.op},{each.params},{each.kernel},{each.file},{each.reason}".casefold()
        and (healed is None or (each.healed is not None) == (healed == "yes"))
    ]
    return render(
        request, state, "rejections.html", page="rejections", kinds="rejections results jobs",
        rows=wanted[:MOST_SHOWN],
        hidden=max(0, len(wanted) - MOST_SHOWN),
        total=len(wanted),
        known=len(found),
        q=q,
        healed=healed,
        with_winner={each.result_id for each in wanted if state.runtime.index().get(each.result_id or "")},
    )  # fmt: skip
