"""Winners: lists, one with its candidates and its history, and exports."""

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from tensorplay.database.record import Validator
from tensorplay.gemm.dtype import dtype_called
from tensorplay.service.export import CSV, JSON_LINES, as_csv, as_json_lines, as_results_file, attachment, streamed
from tensorplay.service.identity import ID_PATTERN, shape_id
from tensorplay.service.listing import Filter
from tensorplay.service.problems import Problem
from tensorplay.service.row import Row
from tensorplay.service.schemas import Listed, ResultDetail, ResultModel
from tensorplay.service.state import NOT_CHANGED, IfNoneMatch, Shared, State, etag

__all__ = ["MOST_ROWS", "Sort", "filter_of", "model_of", "models_of", "router", "row_or_404"]

MOST_ROWS = 500
Sort = Literal[
    "op", "-op", "params", "-params", "dtype", "-dtype", "m", "-m", "n", "-n", "k", "-k", "kernel", "-kernel",
    "device", "-device", "origin", "-origin", "time_ms", "-time_ms",
]  # fmt: skip
_ROW_FIELDS = tuple(name for name in ResultModel.model_fields if name in Row._fields)
# As in `Row.tflops`.
_SHORTEST_MS = 1e-9
_Size = Annotated[int | None, Query(ge=0, le=2**63 - 1)]
_Word = Annotated[str | None, Query(max_length=200)]

router = APIRouter(tags=["results"])


async def filter_of(
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
    pinned: bool | None = None,
    q: _Word = None,
) -> Filter:
    """Return the filter that a query asks for; a dtype may be `Float64`, `float64` or `double`."""
    known = dtype_called(dtype) if dtype else None
    return Filter(
        op=op, dtype=known.word if known else dtype, transposed=transposed, bias=bias, device=device, kernel=kernel,
        origin=origin, m_min=m_min, m_max=m_max, n_min=n_min, n_max=n_max, k_min=k_min, k_max=k_max, pinned=pinned, q=q,
    )  # fmt: skip


Wanted = Annotated[Filter, Depends(filter_of)]
Identity = Annotated[str, Path(pattern=ID_PATTERN, examples=["0123456789abcdef"])]


def _fields(row: Row, first_choice_ms: float | None) -> dict[str, Any]:
    is_known = first_choice_ms is not None and row.time_ms > _SHORTEST_MS
    return {
        **{name: getattr(row, name) for name in _ROW_FIELDS},
        "shape_id": shape_id(row.op, row.params),
        "tflops": row.tflops,
        "first_choice_ms": first_choice_ms,
        "gain": first_choice_ms / row.time_ms if is_known and first_choice_ms is not None else None,
    }


def _fields_of(state: State, rows: Sequence[Row]) -> list[dict[str, Any]]:
    found = state.runtime.context.first_choices([row.signature for row in rows])
    return [_fields(row, found.get(row.signature)) for row in rows]


def models_of(state: State, rows: Sequence[Row]) -> list[ResultModel]:
    """Return winners as lists show them."""
    return [ResultModel(**fields) for fields in _fields_of(state, rows)]


def model_of(state: State, row: Row) -> ResultModel:
    """Return a winner as lists show it."""
    return models_of(state, [row])[0]


async def row_or_404(state: State, identity: str) -> Row:
    """Return the winner of an id; a 404 `Problem` when there is none."""
    row = (await state.runtime.winners.get()).get(identity)
    if row is None:
        raise Problem(404, "not-found", "there is no such winner; it may have been forgotten")
    return row


@router.get("/results", operation_id="results_list", responses=NOT_CHANGED, response_model=Listed[ResultModel])
async def list_results(
    request: Request,
    state: Shared,
    wanted: Wanted,
    sort: Sort = "op",
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 100,
    cursor: Annotated[str | None, Query(max_length=1024)] = None,
    if_none_match: IfNoneMatch = None,
) -> Any:
    """Return winners, page by page; a page goes on where the last one ended, whatever was added meanwhile."""
    if if_none_match == (tag := etag(state, "results")):
        return Response(status_code=304, headers={"ETag": tag})
    after = state.cursors.decode(sort, cursor) if cursor else None
    page = await state.runtime.winners.page(wanted, sort, limit, after)
    document = {
        "items": _fields_of(state, page.rows),
        "next": state.cursors.encode(sort, page.next) if page.next else None,
        "total": page.total,
        "revision": page.revision,
    }
    # Written as it is: to check five hundred rows of our own again takes longer than to find them.
    headers = {"ETag": etag(state, "results", page.revision), **_link(request, document["next"])}
    return JSONResponse(document, headers=headers)


@router.get("/results.csv", operation_id="results_csv", response_class=Response, responses=CSV)
async def export_csv(
    state: Shared,
    wanted: Wanted,
    format: Literal["spreadsheet", "tunableop"] = "spreadsheet",  # noqa: A002 - the API's word
) -> Response:
    """Return winners as CSV: safe for spreadsheets, or exactly as a results file has them."""
    rows = await state.runtime.winners.rows(wanted)
    if format == "tunableop":
        validators = {pair for pairs in state.runtime.validators().values() for pair in pairs}
        parts = as_results_file([Validator(*pair) for pair in sorted(validators)], rows)
        # Before the first line all are sorted.
        first = await state.worker.compute(partial(next, parts))
        return streamed(chain((first,), parts), "text/csv", attachment("tunableop_results.csv"))
    return streamed(as_csv(rows), "text/csv", attachment("results.csv"))


@router.get("/results.jsonl", operation_id="results_jsonl", response_class=Response, responses=JSON_LINES)
async def export_json_lines(state: Shared, wanted: Wanted) -> Response:
    """Return winners as JSON, one object a line."""
    rows = await state.runtime.winners.rows(wanted)
    return streamed(as_json_lines(rows), "application/jsonl", attachment("results.jsonl"))


@router.get("/results/{identity}", operation_id="results_read", responses=NOT_CHANGED, response_model=ResultDetail)
async def read_result(state: Shared, identity: Identity, response: Response, if_none_match: IfNoneMatch = None) -> Any:
    """Return one winner with its candidates, how it was chosen, and what it was before."""
    # Before the row, which is waited for: a change meanwhile must not pass for seen.
    tag = etag(state, "results")
    row = await row_or_404(state, identity)
    if if_none_match == tag:
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    told = state.runtime.explain(row)
    further = {name: told[name] for name in ("verdict", "confirmation", "candidates", "not_measured", "calls")}
    return {
        **_fields(row, told.get("first_choice_ms")),
        **further,
        "captured": told["pinned"],
        "history": [past._asdict() for past in state.runtime.context.past_winners(row.op, row.params)],
    }


def _link(request: Request, cursor: object) -> dict[str, str]:
    """Return the header that says where a list goes on."""
    if not cursor:
        return {}
    pairs = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
    return {"Link": f'<?{urlencode([*pairs, ("cursor", str(cursor))])}>; rel="next"'}
