"""The table of winners: filtered, sorted and paged by its address alone, in the parameters of the REST API."""

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from tensorplay.measure.report import UNDECIDED
from tensorplay.service.gain_orders import GAIN_KEYS
from tensorplay.service.listing import SORT_KEYS
from tensorplay.service.pages.rendering import PageRoute, render
from tensorplay.service.routes.results import Limit, Place, Sorting, Wanted, models_of
from tensorplay.service.row import Row
from tensorplay.service.state import Shared, State

__all__ = ["COLUMNS", "NARROW", "Column", "router"]

Column = Literal[
    "dtype", "transposed", "m", "n", "k", "bias", "kernel", "time_ms", "first_choice_ms", "gain", "saved_ms", "tflops",
    "verdict", "device", "origin", "pinned",
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
    "saved_ms": ("saved", True),
    "tflops": ("speed", True),
    "kernel": ("kernel", False),
    "verdict": ("verdict", False),
    "device": ("device", False),
    "origin": ("origin", False),
    "pinned": ("pinned", False),
}
"""The columns besides the signature: what their heads say, and whether they hold numbers."""

_SORTABLE = frozenset({"dtype", "m", "n", "k", "kernel", "device", "origin", "time_ms", *GAIN_KEYS})
NARROW: frozenset[Column] = frozenset({"dtype", "transposed", "m", "n", "k", "bias", "first_choice_ms"})
"""The columns that a narrow window leaves out: what the signature says, and what the gain does."""

_USUAL: tuple[Column, ...] = (
    "dtype", "transposed", "m", "n", "k", "time_ms", "first_choice_ms", "gain", "tflops", "kernel", "origin", "pinned",
)  # fmt: skip

router = APIRouter(route_class=PageRoute)


@router.get("/results")
async def show_results(
    request: Request,
    state: Shared,
    wanted: Wanted,
    sort: Sorting = "m",
    limit: Limit = 100,
    cursor: Place = None,
    columns: Annotated[list[Column] | None, Query(max_length=len(COLUMNS))] = None,
) -> Response:
    """Return one page of the table."""
    after = state.cursors.decode(sort, cursor) if cursor else None
    page = await state.runtime.winners.page(wanted, sort, limit, after)
    return await render(
        request, state, "results.html", page="results", kinds="results rejections",
        rows=await models_of(state, page.rows),
        rejected=_rejected(state, page.rows),
        total=page.total,
        known=page.known,
        next=state.cursors.encode(sort, page.next) if page.next else None,
        cursor=cursor,
        sort=sort,
        limit=limit,
        wanted=wanted,
        is_filtered=wanted.test() is not None,
        columns={name: told for name, told in COLUMNS.items() if name in (columns or _USUAL)},
        all_columns=COLUMNS,
        narrow=NARROW,
        undecided=UNDECIDED,
        sortable=_SORTABLE,
        sort_keys=(*SORT_KEYS, *GAIN_KEYS),
    )  # fmt: skip


def _rejected(state: State, rows: Sequence[Row]) -> dict[str, str]:
    """Return why winners do not run, by their ids, of those that do not."""
    shown = {(row.op, row.params, row.kernel): row.id for row in rows}
    reasons = {}
    for op, params, kernel, reason, healed in state.runtime.rejections():
        identity = shown.get((op, params, kernel))
        if identity is not None and healed is None:
            reasons[identity] = reason
    return reasons
