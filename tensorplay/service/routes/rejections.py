"""Recorded winners that did not run, and what results files were refused for."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from fastapi import APIRouter, Response

from tensorplay.gemm import Signature
from tensorplay.runtime.merge_report import FileFault
from tensorplay.runtime.rejections import Rejection
from tensorplay.service.export import CSV, attachment, csv_of, streamed
from tensorplay.service.identity import result_id
from tensorplay.service.problems import Problem
from tensorplay.service.routes.jobs import accepted
from tensorplay.service.routes.results import Identity
from tensorplay.service.schemas import JobModel, Listed, RejectionCode, RejectionModel
from tensorplay.service.shown_text import encodable
from tensorplay.service.state import NOT_CHANGED, WRITES, IfNoneMatch, Shared, State, content_etag, listed

__all__ = ["rejections_of", "router"]

_MOST_BAD_LINES = 100
_COLUMNS = tuple(name for name in RejectionModel.model_fields if name != "result_id")

router = APIRouter(tags=["rejections"])


async def rejections_of(state: State) -> list[RejectionModel]:
    """Return the rejections, oldest first, and then what is wrong with files."""
    runtime = state.runtime
    found = [_of_winner(state, each) for each in runtime.rejections()]
    for fault in await runtime.met.faults():
        found += _of_file(fault)
    return found


def _of_winner(state: State, rejection: Rejection) -> RejectionModel:
    op, params, kernel, reason, healed = rejection
    code: RejectionCode = "not_rebuildable"
    if reason.startswith("failed when it ran"):
        code = "check_failed"
    elif "deterministic" in reason.casefold():
        code = "not_allowed"
    met = state.runtime.context.rejection_meetings(op, params, kernel)
    return RejectionModel(
        id=result_id(f"{op},{params}", kernel),
        result_id=result_id(op, params),
        code=code,
        reason=reason,
        op=op,
        params=params,
        kernel=kernel,
        count=met.times if met else 1,
        first_seen=_time(met.first) if met else None,
        last_seen=_time(met.last) if met else None,
        healed=healed,
    )


def _of_file(fault: FileFault) -> Iterator[RejectionModel]:
    name = encodable(PurePath(fault.path).name)
    for mismatch in fault.mismatches:
        yield RejectionModel(
            id=result_id(encodable(fault.path), mismatch.name),
            result_id=None,
            code="validator_mismatch",
            reason=f"the file was written by another build or device: {mismatch}",
            expected=mismatch.expected,
            found=list(mismatch.found),
            file=name,
        )
    for line in fault.bad_lines[:_MOST_BAD_LINES]:
        # A load may have looked at two files.
        path = line.path or fault.path
        yield RejectionModel(
            id=result_id(encodable(path), str(line.number)),
            result_id=None,
            code="unparsable",
            reason=encodable(line.reason),
            file=encodable(PurePath(path).name),
            line=line.number,
        )


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _cell(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, list) else value


async def _one_or_404(state: State, identity: str) -> RejectionModel:
    for each in await rejections_of(state):
        if each.id == identity:
            return each
    raise Problem(404, "not-found", "there is no such rejection; the list may have been cleared")


@router.get("/rejections", operation_id="rejections_list", responses=NOT_CHANGED, response_model=Listed[RejectionModel])
async def list_rejections(state: Shared, response: Response, if_none_match: IfNoneMatch = None) -> Any:
    """Return the recorded winners that did not run, and what files were refused for, each with its reason."""
    revision, items = state.runtime.revision("rejections"), await rejections_of(state)
    # How often one was met is counted without a new revision.
    tag = content_etag(state, "rejections", items, len(items), revision)
    if if_none_match == tag:
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return listed(items, revision)


@router.get("/rejections.csv", operation_id="rejections_csv", response_class=Response, responses=CSV)
async def export_rejections(state: Shared) -> Response:
    """Return the rejections as CSV that is safe for spreadsheets."""
    found = await rejections_of(state)
    rows = ([_cell(getattr(each, name)) for name in _COLUMNS] for each in found)
    return streamed(csv_of(_COLUMNS, rows), "text/csv", attachment("rejections.csv"))


@router.delete("/rejections", operation_id="rejections_clear", status_code=204, dependencies=WRITES)
async def clear_rejections(state: Shared) -> None:
    """Empty the list; what is met again is listed again, and what is wrong with files stays."""
    state.runtime.context.clear_rejections()


@router.get("/rejections/{identity}", operation_id="rejections_read", response_model=RejectionModel)
async def read_rejection(state: Shared, identity: Identity) -> Any:
    """Return one rejection."""
    return await _one_or_404(state, identity)


@router.post(
    "/rejections/{identity}/retune",
    operation_id="rejections_retune",
    status_code=202,
    response_model=JobModel,
    dependencies=WRITES,
)
async def retune(state: Shared, identity: Identity, response: Response) -> Any:
    """Start a job that measures the signature anew, and puts what wins in the place of what did not run."""
    rejection = await _one_or_404(state, identity)
    if rejection.op is None or rejection.params is None or rejection.result_id is None:
        raise Problem(409, "not-a-winner", "this is wrong with a whole file; remove the file, or tune what is untuned")
    row = (await state.runtime.winners.get()).get(rejection.result_id)
    if row is not None and row.pinned:
        raise Problem(409, "pinned", "the winner of this signature is pinned; unpin it first")
    job = state.jobs.start([Signature(rejection.op, rejection.params)], kind="retune")
    return accepted(job, response, "../../")
