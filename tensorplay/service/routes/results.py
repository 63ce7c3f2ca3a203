"""Winners: lists, one with its candidates and its history, and exports."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import PurePath
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from tensorplay.database.record import Validator
from tensorplay.gemm.dtype import dtype_called
from tensorplay.runtime.winner_history import PastWinner
from tensorplay.service.export import CSV, JSON_LINES, as_csv, as_json_lines, as_results_file, attachment, streamed
from tensorplay.service.identity import ID_PATTERN, shape_id
from tensorplay.service.listing import Filter
from tensorplay.service.measured_schemas import Provenance
from tensorplay.service.met_devices import validators_of
from tensorplay.service.problems import Problem
from tensorplay.service.row import Row, gain_of, saved_of
from tensorplay.service.schemas import Listed, ResultDetail, ResultModel
from tensorplay.service.shown_text import encodable
from tensorplay.service.state import NOT_CHANGED, IfNoneMatch, Shared, State, etag
from tensorplay.service.watched import WatchedContext
from tensorplay.service.worker import BUSY

__all__ = [
    "MOST_ROWS",
    "Format",
    "Limit",
    "Place",
    "Sort",
    "Sorting",
    "Told",
    "filter_of",
    "model_of",
    "models_of",
    "no_winner",
    "router",
    "row_or_404",
    "told_of",
]

MOST_ROWS = 500
Sort = Literal[
    "op", "-op", "params", "-params", "dtype", "-dtype", "m", "-m", "n", "-n", "k", "-k", "kernel", "-kernel",
    "device", "-device", "origin", "-origin", "time_ms", "-time_ms", "gain", "-gain", "saved_ms", "-saved_ms",
]  # fmt: skip
_TOLD = ("verdict", "confirmation", "candidates", "not_measured", "calls", "histogram", "numerical_check")
_ROW_FIELDS = tuple(name for name in ResultModel.model_fields if name in Row._fields)
_values_of = itemgetter(*map(Row._fields.index, _ROW_FIELDS))
_Least = Annotated[int | None, Query(ge=0, le=2**63 - 1, description="The least size that is wanted.")]
_Most = Annotated[int | None, Query(ge=0, le=2**63 - 1, description="The greatest size that is wanted.")]


def _word(description: str, longest: int = 200) -> Any:
    return Query(max_length=longest, description=description)


Sorting = Annotated[
    Sort,
    Query(
        description="What to sort by; `-` turns it round. By `gain` and `saved_ms`, winners whose first choice's time "
        "is not known are the last, whichever way."
    ),
]
"""The order of winners, as a query parameter."""

Limit = Annotated[int, Query(ge=1, le=MOST_ROWS, description="How many to return at most.")]
"""The length of a page of a list, as a query parameter."""

Place = Annotated[str | None, Query(max_length=1024, description="The `next` of a list: what follows is returned.")]
"""Where a list goes on, as a query parameter."""

router = APIRouter(tags=["results"])


async def filter_of(
    op: Annotated[str | None, _word("The whole op.")] = None,
    dtype: Annotated[str | None, _word("Of the operands: `Float64`, `float64` or `double`.")] = None,
    transposed: Annotated[bool | None, Query(description="Whether the right operand is.")] = None,
    bias: Annotated[bool | None, Query(description="Whether a bias is added.")] = None,
    device: Annotated[str | None, _word("The device of the signature, such as `0` or `cpu`.")] = None,
    kernel: Annotated[str | None, _word("The whole kernel id.", 400)] = None,
    origin: Annotated[str | None, _word("`file`, `measured here` or `override`.")] = None,
    m_min: _Least = None,
    m_max: _Most = None,
    n_min: _Least = None,
    n_max: _Most = None,
    k_min: _Least = None,
    k_max: _Most = None,
    pinned: Annotated[bool | None, Query(description="Whether nothing changes it until it is unpinned.")] = None,
    q: Annotated[str | None, _word("Part of the op, params or kernel, in any case of letters.")] = None,
) -> Filter:
    """Return the filter that a query asks for; a dtype may be `Float64`, `float64` or `double`."""
    known = dtype_called(dtype) if dtype else None
    return Filter(
        op=op, dtype=known.word if known else dtype, transposed=transposed, bias=bias, device=device, kernel=kernel,
        origin=origin, m_min=m_min, m_max=m_max, n_min=n_min, n_max=n_max, k_min=k_min, k_max=k_max, pinned=pinned, q=q,
    )  # fmt: skip


Format = Annotated[
    Literal["spreadsheet", "tunableop"],
    Query(description="`spreadsheet` is safe for those; `tunableop` is exactly as a file of the library has it."),
]
"""The kind of an export, as a query parameter."""

Wanted = Annotated[Filter, Depends(filter_of)]
Identity = Annotated[str, Path(pattern=ID_PATTERN, examples=["0123456789abcdef"])]


def _fields(row: Row, first_choice_ms: float | None, verdict: str | None = None) -> dict[str, Any]:
    fields: dict[str, Any] = dict(zip(_ROW_FIELDS, _values_of(row), strict=True))
    fields["shape_id"] = shape_id(row.op, row.params)
    fields["tflops"] = row.tflops
    fields["first_choice_ms"] = first_choice_ms
    fields["gain"] = gain_of(row.time_ms, first_choice_ms)
    fields["saved_ms"] = saved_of(row.time_ms, first_choice_ms)
    fields["verdict"] = verdict
    return fields


async def _fields_of(state: State, rows: Sequence[Row]) -> list[dict[str, Any]]:
    found = await state.runtime.met.first_choices([row.signature for row in rows])
    verdicts = await state.worker.ask(partial(state.runtime.verdicts.of, rows, found))
    return [_fields(row, found.get(row.signature), verdicts.get(row.signature)) for row in rows]


async def models_of(state: State, rows: Sequence[Row]) -> list[ResultModel]:
    """Return winners as lists show them."""
    return [ResultModel(**fields) for fields in await _fields_of(state, rows)]


async def model_of(state: State, row: Row) -> ResultModel:
    """Return a winner as lists show it."""
    (model,) = await models_of(state, [row])
    return model


class Told(NamedTuple):
    """What is known of one winner besides: how it was chosen, what was before it, oldest first, and where it is from.

    The files of results and of explanations say most of it.
    """

    explanation: Mapping[str, Any]
    history: Sequence[PastWinner]
    provenance: Provenance


async def told_of(state: State, row: Row) -> Told:
    """Return what is known of a winner besides; a 503 `Problem` when too many wait for the disk."""
    return await state.worker.read(partial(_told, state.runtime.context, row))


def _told(context: WatchedContext, row: Row) -> Told:
    explanation = context.explain(row.op, row.params)
    return Told(explanation, context.past_winners(row.op, row.params), _provenance(context, row))


def _provenance(context: WatchedContext, row: Row) -> Provenance:
    """Return where a winner is from, and the line that it stands in now; folders are nobody's business."""
    found = context.written_at(row.op, row.params)
    if found is None:
        return Provenance(origin=row.origin, file=None, line=None)
    return Provenance(origin=row.origin, file=encodable(PurePath(found.path).name), line=found.line)


async def row_or_404(state: State, identity: str) -> Row:
    """Return the winner of an id; a 404 `Problem` when there is none."""
    row = (await state.runtime.winners.get()).get(identity)
    if row is None:
        raise no_winner()
    return row


def no_winner() -> Problem:
    """Return the problem that no winner has an id."""
    return Problem(404, "not-found", "there is no such winner; it may have been forgotten")


@router.get("/results", operation_id="results_list", responses=NOT_CHANGED, response_model=Listed[ResultModel])
async def list_results(
    request: Request,
    state: Shared,
    wanted: Wanted,
    sort: Sorting = "op",
    limit: Limit = 100,
    cursor: Place = None,
    if_none_match: IfNoneMatch = None,
) -> Any:
    """Return winners, page by page; a page goes on where the last one ended, whatever was added meanwhile."""
    if if_none_match == (tag := etag(state, "results")):
        return Response(status_code=304, headers={"ETag": tag})
    after = state.cursors.decode(sort, cursor) if cursor else None
    page = await state.runtime.winners.page(wanted, sort, limit, after)
    document = {
        "items": await _fields_of(state, page.rows),
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
    format: Format = "spreadsheet",  # noqa: A002 - the API's word
) -> Response:
    """Return winners as CSV: safe for spreadsheets, or exactly as a results file has them."""
    rows = await state.runtime.winners.rows(wanted)
    if format == "tunableop":
        found = validators_of(await state.runtime.met.listed())
        validators = {pair for pairs in found.values() for pair in pairs}
        parts = as_results_file([Validator(*pair) for pair in sorted(validators)], rows)
        # Before the first line all are sorted.
        first = await state.worker.compute(partial(next, parts))
        return streamed(chain((first,), parts), "text/csv", attachment("tunableop_results.csv"))
    parts = as_csv(rows, state.runtime.context.first_choices)
    return streamed(parts, "text/csv", attachment("results.csv"), made_by=state.worker.ask)


@router.get("/results.jsonl", operation_id="results_jsonl", response_class=Response, responses=JSON_LINES)
async def export_json_lines(state: Shared, wanted: Wanted) -> Response:
    """Return winners as JSON, one object a line."""
    rows = await state.runtime.winners.rows(wanted)
    parts = as_json_lines(rows, state.runtime.context.first_choices)
    return streamed(parts, "application/jsonl", attachment("results.jsonl"), made_by=state.worker.ask)


@router.get(
    "/results/{identity}", operation_id="results_read", responses=NOT_CHANGED | BUSY, response_model=ResultDetail
)
async def read_result(state: Shared, identity: Identity, response: Response, if_none_match: IfNoneMatch = None) -> Any:
    """Return one winner with its candidates, how it was chosen, and what it was before."""
    # Before the row, which is waited for: a change meanwhile must not pass for seen.
    tag = etag(state, "results")
    row = await row_or_404(state, identity)
    if if_none_match == tag:
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    told = await told_of(state, row)
    further = {name: told.explanation[name] for name in _TOLD}
    return {
        **_fields(row, told.explanation.get("first_choice_ms")),
        **further,
        "captured": told.explanation["pinned"],
        "provenance": told.provenance,
        "history": [past._asdict() for past in told.history],
    }


def _link(request: Request, cursor: object) -> dict[str, str]:
    """Return the header that says where a list goes on."""
    if not cursor:
        return {}
    pairs = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
    return {"Link": f'<?{urlencode([*pairs, ("cursor", str(cursor))])}>; rel="next"'}
