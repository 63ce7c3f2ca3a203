"""Tuning jobs."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response

from tensorplay.errors import SignatureError
from tensorplay.gemm import Signature, parse_signature
from tensorplay.service.jobs import OVER, Job
from tensorplay.service.problems import Problem
from tensorplay.service.schemas import Failure, JobModel, JobRequest, Listed
from tensorplay.service.state import Shared, State, listed

__all__ = ["model_of", "router"]

_POLL_S = 0.2

router = APIRouter(tags=["jobs"])


def model_of(job: Job) -> JobModel:
    """Return a job as clients see it."""
    return JobModel(
        id=job.id,
        state=job.state,  # type: ignore[arg-type] # one of them by construction
        done=job.done,
        total=len(job.signatures),
        current=job.current.params if job.current else None,
        elapsed_s=round(job.elapsed_s, 3),
        eta_s=job.eta_s,
        failures=[Failure(op=op, params=params, reason=reason) for (op, params), reason in job.failures],
        created_at=job.created_at,
    )


def _signatures(state: State, request: JobRequest) -> list[Signature]:
    source = request.source
    if (source.untuned is True) == (source.signatures is not None):
        raise Problem(422, "bad-source", "give either `untuned: true` or `signatures`")
    if source.signatures is None:
        return [signature for _, signature, _ in state.runtime.untuned()]
    found = []
    for given in source.signatures:
        try:
            parse_signature(given.op, given.params)
        except SignatureError:
            raise Problem(
                422, "bad-signature", "one of the signatures is none; see the page on the file format"
            ) from None
        found.append(Signature(given.op, given.params))
    return found


@router.post("/jobs", operation_id="jobs_start", status_code=202, response_model=JobModel)
async def start_job(
    state: Shared,
    request: JobRequest,
    response: Response,
    key: Annotated[str | None, Header(alias="Idempotency-Key", max_length=200)] = None,
) -> Any:
    """Start measuring signatures; the same Idempotency-Key never starts a second job."""
    state.check_writable()
    job = state.jobs.start(_signatures(state, request), key)
    response.headers["Location"] = f"jobs/{job.id}"
    response.headers["Retry-After"] = "1"
    return model_of(job)


@router.get("/jobs", operation_id="jobs_list", response_model=Listed[JobModel])
async def list_jobs(state: Shared) -> Any:
    """Return the jobs of this process, the newest first."""
    items = [model_of(job) for job in state.jobs.listed()]
    return listed(items, state.runtime.revision("jobs"))


@router.get("/jobs/{identity}", operation_id="jobs_read", response_model=JobModel)
async def read_job(state: Shared, identity: str, wait: Annotated[float, Query(ge=0, le=30)] = 0.0) -> Any:
    """Return a job; with `wait`, once it is over, or after so many seconds."""
    job = state.jobs.get(identity)
    left = wait
    while job.state not in OVER and left > 0:
        await asyncio.sleep(min(_POLL_S, left))
        left -= _POLL_S
    return model_of(job)


@router.post("/jobs/{identity}/cancel", operation_id="jobs_cancel", response_model=JobModel)
async def cancel_job(state: Shared, identity: str, response: Response) -> Any:
    """Let a job end after the signature that it measures; repeated, it changes nothing."""
    state.check_writable()
    job = state.jobs.cancel(identity)
    response.status_code = 200 if job.state in OVER else 202
    return model_of(job)


@router.delete("/jobs/{identity}", operation_id="jobs_forget", status_code=204)
async def forget_job(state: Shared, identity: str) -> None:
    """Forget a job that is over."""
    state.check_writable()
    state.jobs.forget(identity)
