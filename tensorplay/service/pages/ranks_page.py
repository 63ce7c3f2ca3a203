"""The ranks of this host side by side, where they disagree, and the winners of each."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import ValidationError

from tensorplay.service.pages.found_pages import Text
from tensorplay.service.pages.links import query
from tensorplay.service.pages.rendering import PageRoute, hit_rate, render
from tensorplay.service.problems import Problem
from tensorplay.service.schemas import Listed, ResultModel
from tensorplay.service.state import Shared

__all__ = ["router"]

MOST_SHOWN = 50
_ROWS = 100

router = APIRouter(route_class=PageRoute)


@router.get("/ranks")
async def show_ranks(request: Request, state: Shared) -> Response:
    """Return the ranks, and the shapes for which their winners differ."""
    ranks = await state.ranks.listed(request.app)
    found = await state.ranks.disagreements(request.app, ranks)
    return await render(
        request, state, "ranks.html", page="ranks", kinds="results rejections untuned jobs",
        ranks=ranks,
        rates={each.local_rank: hit_rate(each.summary.stats) for each in ranks if each.summary},
        placement=state.ranks.line.placement,
        reachable=sum(each.state == "reachable" for each in ranks),
        disagreements=found[:MOST_SHOWN],
        hidden=max(0, len(found) - MOST_SHOWN),
        differing=sorted({name for each in ranks for name in each.differs}),
    )  # fmt: skip


@router.get("/ranks/{local_rank}/results")
async def show_results(
    request: Request,
    state: Shared,
    local_rank: Annotated[int, Path(ge=0, le=999_999_999)],
    q: Text = "",
    cursor: Annotated[str | None, Query(max_length=1024)] = None,
) -> Response:
    """Return one page of the winners of a rank, as that rank tells them."""
    state.ranks.line.check(local_rank)
    wanted = query([("q", q), ("cursor", cursor or "")], {"limit": _ROWS})[1:]
    answer = await state.ranks.line.ask(request.app, local_rank, "/api/v1/results", query=wanted)
    if answer.status == 400:
        raise Problem(400, "bad-cursor", "the address of this page is of another run of the rank; begin anew")
    try:
        page = Listed[ResultModel].model_validate_json(answer.content)
    except ValidationError:
        raise Problem(502, "rank-failed", "what the rank answers is not understood; its log says why") from None
    return await render(
        request, state, "rank_results.html", page="ranks", kinds="results",
        local_rank=local_rank,
        rows=page.items,
        total=page.total,
        next=page.next,
        cursor=cursor,
        q=q,
    )  # fmt: skip
