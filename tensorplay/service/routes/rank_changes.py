"""Changes to a rank, or to all of them at the same time: what each takes itself, sent as it was understood here.

The token was asked for before: of this process, which is the one that a client talks to.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from tensorplay.service.problems import Problem, document_of
from tensorplay.service.rank_line import Answer
from tensorplay.service.rank_schemas import RankAnswer, RankAnswers
from tensorplay.service.routes.ranks import API, FAILED, Identity, LocalRank, proxied, sent_headers
from tensorplay.service.schemas import BudgetPatch, JobModel, JobRequest, Override, SettingPatch, SwitchPatch
from tensorplay.service.state import WRITES, IfMatch, Shared, State

__all__ = ["router"]

_Who = Annotated[str, Path(pattern=r"^(all|[0-9]{1,9})$", examples=["all"], description="A rank, or all of them.")]
_CHANGED: dict[int | str, dict[str, Any]] = {
    207: {"model": RankAnswers, "description": "What each rank answered, when all were meant."},
    **FAILED,
}
_ACCEPTED: dict[int | str, dict[str, Any]] = {202: {"model": JobModel, "description": "It ends soon; 200: it is over."}}

router = APIRouter(tags=["ranks"])


@router.patch(
    "/ranks/{rank}/switches",
    operation_id="ranks_switches",
    response_model=None,
    responses=_CHANGED,
    dependencies=WRITES,
)
async def change_switches(
    request: Request, state: Shared, rank: _Who, patch: SwitchPatch, if_match: IfMatch = None
) -> Response:
    """Change switches of one rank, or of all."""
    return await _change(request, state, rank, "PATCH", "switches", patch, _condition(if_match))


@router.patch(
    "/ranks/{rank}/budgets",
    operation_id="ranks_budgets",
    response_model=None,
    responses=_CHANGED,
    dependencies=WRITES,
)
async def change_budgets(
    request: Request, state: Shared, rank: _Who, patch: BudgetPatch, if_match: IfMatch = None
) -> Response:
    """Change budgets of one rank, or of all."""
    return await _change(request, state, rank, "PATCH", "budgets", patch, _condition(if_match))


@router.patch(
    "/ranks/{rank}/settings",
    operation_id="ranks_settings",
    response_model=None,
    responses=_CHANGED,
    dependencies=WRITES,
)
async def change_settings(
    request: Request, state: Shared, rank: _Who, patch: SettingPatch, if_match: IfMatch = None
) -> Response:
    """Change settings of one rank, or of all."""
    return await _change(request, state, rank, "PATCH", "settings", patch, _condition(if_match))


@router.post(
    "/ranks/{rank}/jobs",
    operation_id="ranks_tune",
    response_model=None,
    status_code=202,
    responses=_CHANGED,
    dependencies=WRITES,
)
async def start_job(
    request: Request,
    state: Shared,
    rank: _Who,
    job: JobRequest,
    key: Annotated[str | None, Header(alias="Idempotency-Key", max_length=200)] = None,
) -> Response:
    """Start a tuning job on one rank, or on each; the same Idempotency-Key starts no second one on any."""
    headers = {"Idempotency-Key": key} if key else {}
    return await _change(request, state, rank, "POST", "jobs", job, headers)


@router.post(
    "/ranks/{rank}/files/save", operation_id="ranks_save", response_model=None, responses=_CHANGED, dependencies=WRITES
)
async def save_files(request: Request, state: Shared, rank: _Who) -> Response:
    """Let one rank, or each, rewrite its results files."""
    return await _change(request, state, rank, "POST", "files/save")


@router.post(
    "/ranks/{rank}/actions/reresolve",
    operation_id="ranks_reresolve",
    response_model=None,
    status_code=202,
    responses=_CHANGED,
    dependencies=WRITES,
)
async def reresolve(request: Request, state: Shared, rank: _Who) -> Response:
    """Let every product of one rank, or of each, be decided anew at its next call."""
    return await _change(request, state, rank, "POST", "actions/reresolve")


@router.post(
    "/ranks/{rank}/jobs/{identity}/cancel",
    operation_id="ranks_cancel",
    response_model=None,
    responses=_ACCEPTED | FAILED,
    dependencies=WRITES,
)
async def cancel_job(request: Request, state: Shared, rank: LocalRank, identity: Identity) -> Response:
    """Let a job of a rank end after the signature that it measures."""
    return await _change(request, state, str(rank), "POST", f"jobs/{identity}/cancel")


@router.put(
    "/ranks/{rank}/results/{identity}/override",
    operation_id="ranks_override",
    response_model=None,
    responses=FAILED,
    dependencies=WRITES,
)
async def override_result(
    request: Request,
    state: Shared,
    rank: LocalRank,
    identity: Identity,
    given: Override,
    if_match: IfMatch = None,
) -> Response:
    """Record a kernel of the client's choice for a signature of one rank."""
    return await _change(request, state, str(rank), "PUT", f"results/{identity}/override", given, _condition(if_match))


@router.delete(
    "/ranks/{rank}/results/{identity}",
    operation_id="ranks_forget",
    response_model=None,
    status_code=204,
    responses=FAILED,
    dependencies=WRITES,
)
async def forget_result(
    request: Request, state: Shared, rank: LocalRank, identity: Identity, if_match: IfMatch = None
) -> Response:
    """Forget a winner of one rank."""
    return await _change(request, state, str(rank), "DELETE", f"results/{identity}", None, _condition(if_match))


def _condition(given: str | None) -> dict[str, str]:
    return {"If-Match": given} if given else {}


async def _change(
    request: Request,
    state: State,
    who: str,
    method: str,
    path: str,
    body: BaseModel | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Send a change, as it was understood here, to one rank or to all of them at the same time."""
    sent: dict[str, Any] = {"method": method, "headers": sent_headers(request) | dict(headers or {})}
    if body is not None:
        sent["body"] = body.model_dump_json(exclude_unset=True).encode()
    numbers = state.ranks.numbers(who)
    answers = await state.ranks.everyone(request.app, numbers, f"{API}/{path}", **sent)
    if who != "all":
        (answer,) = answers
        if isinstance(answer, Problem):
            raise answer
        return proxied(answer)
    items = [_item(request, number, answer) for number, answer in zip(numbers, answers, strict=True)]
    return JSONResponse(RankAnswers(items=items).model_dump(), 207)


def _item(request: Request, number: int, answer: Answer | Problem) -> RankAnswer:
    try:
        if isinstance(answer, Problem):
            raise answer
        response = proxied(answer)
        body = _json(answer.headers, answer.content)
    except Problem as problem:
        return RankAnswer(local_rank=number, status=problem.status, body=document_of(problem, request.scope))
    return RankAnswer(local_rank=number, status=response.status_code, body=body)


def _json(headers: Mapping[str, str], content: bytes) -> Any:
    """Return what a rank answered; a 502 `Problem` for what could not be told on."""
    if not content or "json" not in headers.get("content-type", ""):
        return None
    try:
        body = json.loads(content)
        json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise Problem(502, "rank-failed", "what the rank answers is not understood; its log says why") from None
    return body
