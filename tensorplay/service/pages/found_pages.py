"""What the runtime met: signatures without a winner, and winners that did not run."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from tensorplay.errors import SignatureError
from tensorplay.gemm import parse_signature
from tensorplay.runtime.slices import paced
from tensorplay.service.pages.rejected_rows import rejected_rows
from tensorplay.service.pages.rendering import PageRoute, render
from tensorplay.service.routes.rejections import rejections_of
from tensorplay.service.routes.untuned import model_of
from tensorplay.service.state import Shared
from tensorplay.service.untuned_list import UntunedRow

__all__ = ["Text", "router", "shares_of"]

MOST_SHOWN = 500
Text = Annotated[str, Query(max_length=200)]

router = APIRouter(route_class=PageRoute)


@router.get("/untuned")
async def show_untuned(request: Request, state: Shared, q: Text = "") -> Response:
    """Return the signatures that ran without a winner, the most called first."""
    found = await state.runtime.untuned.get()
    wanted = await state.worker.compute(partial(_with, q.casefold(), found)) if q else found
    return await render(
        request, state, "untuned.html", page="untuned", kinds="untuned results jobs",
        rows=[model_of(state, row) for row in wanted[:MOST_SHOWN]],
        hidden=max(0, len(wanted) - MOST_SHOWN),
        total=len(wanted),
        known=len(found),
        shares=shares_of(wanted[:MOST_SHOWN]),
        q=q,
        is_busy=state.jobs.running() is not None,
    )  # fmt: skip


def shares_of(rows: Sequence[UntunedRow]) -> list[float]:
    """Return the shares of the work of signatures: calls times operations, which is what is known of their time."""
    works = [max(row.calls, 1) * _operations(row) for row in rows]
    total = sum(works) or 1
    return [work / total for work in works]


def _operations(row: UntunedRow) -> int:
    try:
        return parse_signature(*row.signature).flops
    except SignatureError:
        return 0


def _with(text: str, rows: Sequence[UntunedRow]) -> Sequence[UntunedRow]:
    """Return the signatures that hold a text."""
    return [each for each in paced(rows) if text in f"{each.op},{each.params}".casefold()]


@router.get("/rejections")
async def show_rejections(
    request: Request, state: Shared, q: Text = "", healed: Literal["yes", "no"] | None = None
) -> Response:
    """Return the recorded winners that did not run, with the reason of each."""
    found = await rejections_of(state)
    wanted = rejected_rows([
        each
        for each in found
        if q.casefold() in f"{each.op},{each.params},{each.kernel},{each.file},{each.reason}".casefold()
        and (healed is None or (each.healed is not None) == (healed == "yes"))
    ])  # fmt: skip
    index = await state.runtime.winners.get()
    return await render(
        request, state, "rejections.html", page="rejections", kinds="rejections results jobs",
        rows=wanted[:MOST_SHOWN],
        hidden=max(0, len(wanted) - MOST_SHOWN),
        total=len(wanted),
        known=len(rejected_rows(found)),
        q=q,
        healed=healed,
        with_winner={each.model.result_id for each in wanted if index.get(each.model.result_id or "")},
    )  # fmt: skip
