"""Signatures that ran without a winner."""

from typing import Any

from fastapi import APIRouter, Response

from tensorplay.database.csv_text import format_untuned_line
from tensorplay.runtime.slices import in_slices
from tensorplay.service.export import CSV, attachment, csv_of, streamed
from tensorplay.service.problems import Problem
from tensorplay.service.routes.results import Format, Identity, Limit, Place
from tensorplay.service.schemas import Listed, UntunedModel
from tensorplay.service.state import NOT_CHANGED, WRITES, Confirm, IfNoneMatch, Shared, State, content_etag
from tensorplay.service.untuned_list import UntunedRow, page_of

__all__ = ["model_of", "router"]

_SORT = "-calls"
_COLUMNS = ("op", "params", "calls", "first_seen", "last_seen")

router = APIRouter(tags=["untuned"])


def model_of(state: State, row: UntunedRow) -> UntunedModel:
    """Return an untuned signature as clients see it."""
    untuned = state.runtime.untuned
    first, last = (seen(row.op, row.params) for seen in (untuned.first_seen, untuned.last_seen))
    return UntunedModel(id=row.id, op=row.op, params=row.params, calls=row.calls, first_seen=first, last_seen=last)


@router.get("/untuned", operation_id="untuned_list", responses=NOT_CHANGED, response_model=Listed[UntunedModel])
async def list_untuned(
    state: Shared,
    response: Response,
    limit: Limit = 100,
    cursor: Place = None,
    if_none_match: IfNoneMatch = None,
) -> Any:
    """Return the signatures that ran without a winner, the most called first, page by page."""
    after = state.cursors.decode(_SORT, cursor) if cursor else None
    revision = state.runtime.revision("untuned")
    rows = await state.runtime.untuned.get()
    page, following = page_of(rows, limit, after)
    items = [model_of(state, row) for row in page]
    # Calls are counted without a new revision.
    tag = content_etag(state, "untuned", items, len(rows), revision)
    if if_none_match == tag:
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return {
        "items": items,
        "next": state.cursors.encode(_SORT, following) if following else None,
        "total": len(rows),
        "revision": revision,
    }


@router.get("/untuned.csv", operation_id="untuned_csv", response_class=Response, responses=CSV)
async def export_untuned(
    state: Shared,
    format: Format = "spreadsheet",  # noqa: A002 - the API's word
) -> Response:
    """Return them as CSV: safe for spreadsheets, or exactly as an untuned file has them."""
    rows = await state.runtime.untuned.get()
    if format == "tunableop":
        text = ("".join(format_untuned_line(row.signature) for row in part) for part in in_slices(rows))
        return streamed(text, "text/csv", attachment("tunableop_untuned.csv"))
    cells = ([getattr(each, name) for name in _COLUMNS] for each in (model_of(state, row) for row in rows))
    return streamed(csv_of(_COLUMNS, cells), "text/csv", attachment("untuned.csv"))


@router.delete("/untuned/{identity}", operation_id="untuned_forget", status_code=204, dependencies=WRITES)
async def forget_untuned(state: Shared, identity: Identity) -> None:
    """Take a signature off the list, until it runs without a winner anew."""
    rows = await state.runtime.untuned.get()
    row = await state.worker.compute(lambda: next((row for row in rows if row.id == identity), None))
    if row is None or not state.runtime.context.forget_untuned(row.op, row.params):
        raise Problem(404, "not-found", "there is no such untuned signature")


@router.delete("/untuned", operation_id="untuned_forget_all", status_code=204, dependencies=WRITES)
async def forget_all_untuned(state: Shared, confirm: Confirm) -> None:
    """Empty the list; what runs without a winner anew is listed again."""
    del confirm
    state.runtime.context.forget_all_untuned()
