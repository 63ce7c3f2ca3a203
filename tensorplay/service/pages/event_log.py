"""The last events of the runtime, the newest first."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from tensorplay.service.pages.found_pages import Text
from tensorplay.service.pages.rendering import PageRoute, render
from tensorplay.service.state import Shared

__all__ = ["router"]

router = APIRouter(route_class=PageRoute)


@router.get("/events")
async def show_events(
    request: Request,
    state: Shared,
    kind: Text = "",
    q: Text = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> Response:
    """Return the events of a kind, that hold a text."""
    happenings = state.runtime.log()
    wanted = [
        each
        for each in reversed(happenings)
        if (not kind or each.kind == kind)
        and (not q or q.casefold() in " ".join((each.kind, *each.detail.values())).casefold())
    ]
    return await render(
        request, state, "events.html", page="events", kinds="log",
        rows=wanted[:limit],
        total=len(wanted),
        known=len(happenings),
        all_kinds=sorted({each.kind for each in happenings}),
        kind=kind,
        q=q,
        limit=limit,
    )  # fmt: skip
