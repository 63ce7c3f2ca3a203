"""Winners: lists, one with its candidates, exports, overrides, and forgetting."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.responses import StreamingResponse

from tensorplay.database.csv_text import format_results
from tensorplay.database.record import Entry, Validator
from tensorplay.errors import TensorPlayError
from tensorplay.service.export import as_csv, as_json_lines
from tensorplay.service.identity import ID_PATTERN, shape_id
from tensorplay.service.listing import Filter
from tensorplay.service.problems import Problem
from tensorplay.service.row import Row
from tensorplay.service.schemas import Listed, Override, ResultDetail, ResultModel
from tensorplay.service.state import IfMatch, IfNoneMatch, Shared, State, check_match, etag

__all__ = ["MOST_ROWS", "Sort", "filter_of", "model_of", "router", "row_or_404"]

MOST_ROWS = 500
Sort = Literal[
    "op", "-op", "params", "-params", "dtype", "-dtype", "m", "-m", "n", "-n", "k", "-k", "kernel", "-kernel",
    "device", "-device", "origin", "-origin", "time_ms", "-time_ms",
]  # fmt: skip
_Size = Annotated[int | None, Query(ge=0, le=2**63 - 1)]
_Word = Annotated[str | None, Query(max_length=200)]

router = APIRouter(tags=["results"])


def filter_of(
    op: _Word = None,
    dtype: _Word = None,
    transposed: bool | None = None,
    bias: bool | None = None,
    device: _Word = None,
    kernel: Annotated[str | None, Query(max_length=400)] = None,
    origin: _Word = None,
    m_min: _Size = None,
    m_max: _Size = None,
    n_min: _Size = None,
    n_max: _Size = None,
    k_min: _Size = None,
    k_max: _Size = None,
    q: _Word = None,
) -> Filter:
    """Return the filter that a query asks for."""
    return Filter(
        op=op, dtype=dtype, transposed=transposed, bias=bias, device=device, kernel=kernel, origin=origin,
        m_min=m_min, m_max=m_max, n_min=n_min, n_max=n_max, k_min=k_min, k_max=k_max, q=q,
    )  # fmt: skip


Wanted = Annotated[Filter, Depends(filter_of)]
Identity = Annotated[str, Path(pattern=ID_PATTERN, examples=["0123456789abcdef"])]


def _fields(row: Row, told: dict[str, Any]) -> dict[str, Any]:
    first = told.get("first_choice_ms")
    return {
        **{name: getattr(row, name) for name in ResultModel.model_fields if name in Row._fields},
        "shape_id": shape_id(row.op, row.params),
        "tflops": row.tflops,
        "first_choice_ms": first,
        "gain": first / row.time_ms if first and row.time_ms else None,
    }


def model_of(state: State, row: Row) -> ResultModel:
    """Return a winner as lists show it."""
    return ResultModel(**_fields(row, state.runtime.explain(row)))


def row_or_404(state: State, identity: str) -> Row:
    """Return the winner of an id; a 404 `Problem` when there is none."""
    row = state.runtime.index().get(identity)
    if row is None:
        raise Problem(404, "not-found", "there is no such winner; it may have been forgotten")
    return row


@router.get("/results", operation_id="results_list", response_model=Listed[ResultModel])
async def list_results(
    state: Shared,
    wanted: Wanted,
    response: Response,
    sort: Sort = "op",
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 100,
    cursor: Annotated[str | None, Query(max_length=1024)] = None,
    if_none_match: IfNoneMatch = None,
) -> Any:
    """Return winners, page by page; a page goes on where the last one ended, whatever was added meanwhile."""
    tag = etag(state, "results")
    if if_none_match == tag:
        return Response(status_code=304, headers={"ETag": tag})
    after = state.cursors.decode(sort, cursor) if cursor else None
    index = state.runtime.index()
    page = index.page(wanted, sort, limit, after)
    response.headers["ETag"] = tag
    return {
        "items": [model_of(state, row) for row in page.rows],
        "next": state.cursors.encode(sort, page.next) if page.next else None,
        "total": page.total,
        "revision": index.revision,
    }


@router.get("/results.csv", operation_id="results_csv", response_class=StreamingResponse)
async def export_csv(
    state: Shared,
    wanted: Wanted,
    format: Literal["spreadsheet", "tunableop"] = "spreadsheet",  # noqa: A002 - the API's word
) -> StreamingResponse:
    """Return winners as CSV: safe for spreadsheets, or exactly as a results file has them."""
    rows = state.runtime.index().rows(wanted)
    if format == "tunableop":
        validators = {pair for pairs in state.runtime.validators().values() for pair in pairs}
        text = format_results(
            [Validator(*pair) for pair in sorted(validators)],
            [Entry(row.op, row.params, row.kernel, row.time_ms) for row in rows],
        )
        return StreamingResponse(iter([text]), media_type="text/csv", headers=_attachment("tunableop_results.csv"))
    return StreamingResponse(as_csv(rows), media_type="text/csv", headers=_attachment("results.csv"))


@router.get("/results.jsonl", operation_id="results_jsonl", response_class=StreamingResponse)
async def export_json_lines(state: Shared, wanted: Wanted) -> StreamingResponse:
    """Return winners as JSON, one object a line."""
    rows = state.runtime.index().rows(wanted)
    headers = _attachment("results.jsonl")
    return StreamingResponse(as_json_lines(rows), media_type="application/jsonl", headers=headers)


@router.get("/results/{identity}", operation_id="results_read", response_model=ResultDetail)
async def read_result(state: Shared, identity: Identity, response: Response) -> Any:
    """Return one winner with its candidates and how it was chosen."""
    row = row_or_404(state, identity)
    response.headers["ETag"] = etag(state, "results")
    told = state.runtime.explain(row)
    further = {name: told[name] for name in ("verdict", "confirmation", "candidates", "pinned", "calls")}
    return {**_fields(row, told), **further}


@router.put("/results/{identity}/override", operation_id="results_override", response_model=ResultModel)
async def override_result(
    state: Shared, identity: Identity, given: Override, response: Response, if_match: IfMatch = None
) -> Any:
    """Record a kernel of the client's choice for a signature, after it was built for it."""
    state.check_writable()
    row = row_or_404(state, identity)
    check_match(state, "results", if_match, required=True)
    try:
        state.runtime.override(row, given.kernel)
    except TensorPlayError as error:
        raise Problem(409, "kernel-not-runnable", str(error)) from None
    response.headers["ETag"] = etag(state, "results")
    return model_of(state, row_or_404(state, identity))


@router.delete("/results/{identity}", operation_id="results_forget", status_code=204)
async def forget_result(state: Shared, identity: Identity, if_match: IfMatch = None) -> None:
    """Forget a winner, in memory and file: it is measured again when its product is met."""
    state.check_writable()
    row = row_or_404(state, identity)
    check_match(state, "results", if_match, required=True)
    state.runtime.forget(row)


def _attachment(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}
