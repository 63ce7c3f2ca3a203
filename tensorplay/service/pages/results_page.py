"""The table of winners: filtered, sorted and paged by its address alone, in the parameters of the REST API."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from tensorplay.service.pages.rendering import PageRoute, render
from tensorplay.service.routes.results import MOST_ROWS, Sort, Wanted, models_of
from tensorplay.service.state import Shared, etag

__all__ = ["COLUMNS", "Column", "router"]

Column = Literal[
    "dtype", "transposed", "m", "n", "k", "bias", "kernel", "time_ms", "first_choice_ms", "gain", "tflops", "device",
    "origin", "pinned",
]  # fmt: skip
COLUMNS: dict[Column, tuple[str, bool]] = {
    "dtype": ("dtype", False),
    "transposed": ("layout", False),
    "m": ("m", True),
    "n": ("n", True),
    "k": ("k", True),
    "bias": ("bias", False),
    "time_ms": ("time", True),
    "first_choice_ms": ("first choice", True),
    "gain": ("gain", True),
    "tflops": ("speed", True),
    "kernel": ("kernel", False),
    "device": ("device", False),
    "origin": ("origin", False),
    "pinned": ("pinned", False),
}
"""The columns besides the signature: what their heads say, and whether they hold numbers."""

_SORTABLE = frozenset({"dtype", "m", "n", "k", "kernel", "device", "origin", "time_ms"})
_USUAL: tuple[Column, ...] = (
    "dtype", "transposed", "m", "n", "k", "time_ms", "first_choice_ms", "gain", "tflops", "kernel", "origin", "pinned",
)  # fmt: skip

router = APIRouter(route_class=PageRoute)


@router.get("/results")
async def show_results(
    request: Request,
    state: Shared,
    wanted: Wanted,
    sort: Sort = "op",
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 100,
    cursor: Annotated[str | None, Query(max_length=1024)] = None,
    columns: Annotated[list[Column] | None, Query(max_length=len(COLUMNS))] = None,
) -> Response:
    """Return one page of the table."""
    after = state.cursors.decode(sort, cursor) if cursor else None
    page = await state.runtime.winners.page(wanted, sort, limit, after)
    return render(
        request, state, "results.html", page="results", kinds="results",
        rows=models_of(state, page.rows),
        total=page.total,
        known=page.known,
        next=state.cursors.encode(sort, page.next) if page.next else None,
        cursor=cursor,
        sort=sort,
        tag=etag(state, "results", page.revision),
        limit=limit,
        wanted=wanted,
        is_filtered=wanted.test() is not None,
        columns={name: told for name, told in COLUMNS.items() if name in (columns or _USUAL)},
        all_columns=COLUMNS,
        sortable=_SORTABLE,
    )  # fmt: skip
