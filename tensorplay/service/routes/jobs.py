"""Tuning jobs."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Response

from tensorplay.database.csv_text import each_line, each_untuned_line
from tensorplay.database.record import Entry
from tensorplay.errors import SignatureError
from tensorplay.gemm import Signature, parse_signature
from tensorplay.service.jobs import OVER, Job
from tensorplay.service.problems import Problem, no_signature
from tensorplay.service.result_files import ResultFiles
from tensorplay.service.schemas import Failure, JobBudget, JobModel, JobRequest, Listed
from tensorplay.service.state import NOT_CHANGED, WRITES, IfNoneMatch, Shared, State, etag, listed
from tensorplay.service.worker import BUSY

__all__ = ["JobIdentity", "accepted", "model_of", "router", "started"]

_POLL_S = 0.1
JobIdentity = Annotated[str, Path(max_length=64, examples=["0123456789abcdef"])]
"""The id of a job."""

_CANCELLED: dict[int | str, dict[str, Any]] = {
    202: {"model": JobModel, "description": "It ends soon; 200: it is over."}
}

router = APIRouter(tags=["jobs"])


def model_of(job: Job) -> JobModel:
    """Return a job as clients see it."""
    return JobModel(
        id=job.id,
        state=job.state,  # type: ignore[arg-type] # one of them by construction
        done=job.done,
        skipped=job.skipped,
        failed=job.failed,
        total=len(job.signatures),
        current=job.current.params if job.current else None,
        elapsed_s=round(job.elapsed_s, 3),
        eta_s=job.eta_s,
        failures=[Failure(op=op, params=params, reason=reason) for (op, params), reason in job.failures],
        created_at=job.created_at,
        kind=job.kind,  # type: ignore[arg-type] # one of them by construction
        budget=JobBudget(**job.budget),  # type: ignore[arg-type] # numbers that were checked when they were given
        reason=job.reason,
    )


def accepted(job: Job, response: Response, up: str = "") -> JobModel:
    """Return a job that was started, and say in the response where it is; `up` leads to the root of the API."""
    response.headers["Location"] = f"{up}jobs/{job.id}"
    response.headers["Retry-After"] = "1"
    return model_of(job)


def _tag(state: State, job: Job) -> str:
    return f'"j{state.instance.id[:6]}-{job.id}-{job.revision}"'


async def _signatures(state: State, request: JobRequest) -> Sequence[tuple[str, str]]:
    source = request.source
    if [source.untuned is True, source.signatures is not None, source.file is not None].count(True) != 1:
        raise Problem(422, "bad-source", "give one of `untuned: true`, `signatures` and `file`")
    if source.file is not None:
        return await state.worker.read(partial(_of_file, state.files, source.file))
    if source.signatures is None:
        return [(row.op, row.params) for row in await state.runtime.untuned.get()]
    found = []
    for place, given in enumerate(source.signatures):
        try:
            parse_signature(given.op, given.params)
        except SignatureError as error:
            raise no_signature(f"signature {place + 1} of {len(source.signatures)} is", error) from None
        found.append(Signature(given.op, given.params))
    return found


async def started(state: State, request: JobRequest) -> Job:
    """Start what is asked for; a `Problem` when that is nothing, or another job runs."""
    budget = request.budget.model_dump(exclude_none=True)
    return state.jobs.start(await _signatures(state, request), kind=request.kind, budget=budget)


@router.post(
    "/jobs",
    operation_id="jobs_start",
    status_code=202,
    response_model=JobModel,
    responses=BUSY,
    dependencies=WRITES,
)
async def start_job(
    state: Shared,
    request: JobRequest,
    response: Response,
    key: Annotated[str | None, Header(alias="Idempotency-Key", max_length=200)] = None,
) -> Any:
    """Start measuring signatures; the same Idempotency-Key never starts a second job."""
    own_key = f"jobs {key}" if key else None
    job: Job | None = state.keys.begin(own_key, request)
    if job is None:
        try:
            job = await started(state, request)
        finally:
            state.keys.end(own_key, job)
    return accepted(job, response)


@router.get("/jobs", operation_id="jobs_list", responses=NOT_CHANGED, response_model=Listed[JobModel])
async def list_jobs(state: Shared, response: Response, if_none_match: IfNoneMatch = None) -> Any:
    """Return the jobs of this process, the newest first."""
    tag = etag(state, "jobs")
    if if_none_match == tag:
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    items = [model_of(job) for job in state.jobs.listed()]
    return listed(items, state.runtime.revision("jobs"))


@router.get("/jobs/{identity}", operation_id="jobs_read", responses=NOT_CHANGED, response_model=JobModel)
async def read_job(
    state: Shared,
    identity: JobIdentity,
    response: Response,
    wait: Annotated[float, Query(ge=0, le=30, description="Seconds to wait for its end.")] = 0.0,
    if_none_match: IfNoneMatch = None,
) -> Any:
    """Return a job; with `wait`, once it is over, or after so many seconds."""
    job = state.jobs.get(identity)
    left = wait
    while job.state not in OVER and left > 0 and not state.hub.is_closed():
        await asyncio.sleep(min(_POLL_S, left))
        left -= _POLL_S
    tag = _tag(state, job)
    if if_none_match == tag:
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return model_of(job)


def _of_file(files: ResultFiles, name: str) -> Sequence[tuple[str, str]]:
    """Return the signatures of an untuned file, or those that a results file has winners of."""
    found, data = files.read(name)
    if found.kind == "results":
        return [each[:2] for each in each_line(data) if isinstance(each, Entry)]
    # Plain tuples, as in `Entries`.
    return [each[:] for each in each_untuned_line(data) if isinstance(each, Signature)]


@router.post(
    "/jobs/{identity}/cancel",
    operation_id="jobs_cancel",
    responses=_CANCELLED,
    response_model=JobModel,
    dependencies=WRITES,
)
async def cancel_job(state: Shared, identity: JobIdentity, response: Response) -> Any:
    """Let a job end after the signature that it measures; repeated, it changes nothing."""
    job = state.jobs.cancel(identity)
    response.status_code = 200 if job.state in OVER else 202
    return model_of(job)


@router.delete("/jobs/{identity}", operation_id="jobs_forget", status_code=204, dependencies=WRITES)
async def forget_job(state: Shared, identity: JobIdentity) -> None:
    """Forget a job that is over."""
    state.jobs.forget(identity)
