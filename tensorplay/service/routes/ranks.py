"""The ranks of this host: how each stands, where they differ, and what each answers itself.

Of a rank only the parts that are named here can be asked for: no client says where a request goes.
"""

import re
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request, Response

from tensorplay.service.identity import ID_PATTERN
from tensorplay.service.problem_schemas import ProblemModel
from tensorplay.service.problems import PROBLEM_TYPE, Problem
from tensorplay.service.rank_line import Answer
from tensorplay.service.rank_schemas import Disagreement, RankModel, RankSummary
from tensorplay.service.request_id import REQUEST_ID, request_id_of
from tensorplay.service.routes.results import Limit
from tensorplay.service.routes.settings import shown_value
from tensorplay.service.schemas import Listed
from tensorplay.service.state import NOT_CHANGED, IfNoneMatch, Shared, State

__all__ = ["API", "FAILED", "Identity", "LocalRank", "parts", "proxied", "router", "sent_headers", "summary_of"]

API = "/api/v1"
_MEDIA_TYPES = ("application/json", PROBLEM_TYPE, "text/csv", "application/jsonl")
_HEADERS = ("ETag", "Retry-After", "Content-Disposition")
# Of what was made, relative to the list that it is in.
_LOCATION = re.compile(r"[a-z]+/[0-9a-f]{16}")
LocalRank = Annotated[int, Path(ge=0, le=999_999_999)]
Identity = Annotated[str, Path(pattern=ID_PATTERN, examples=["0123456789abcdef"])]
FAILED: dict[int | str, dict[str, Any]] = {
    502: {"model": ProblemModel, "description": "The rank does not listen, or failed."},
    503: {"model": ProblemModel, "description": "The rank says that too many wait for its disk, or that it stops."},
    504: {"model": ProblemModel, "description": "The rank does not answer in time."},
    507: {"model": ProblemModel, "description": "The rank says that its disk is full."},
}
# What a rank cannot do just now; any other failure of it is ours to tell.
_TOLD_ON = frozenset({503, 507})
_READ = NOT_CHANGED | FAILED
_Part = Literal[
    "stats",
    "results",
    "explain",
    "results.csv",
    "results.jsonl",
    "rejections",
    "untuned",
    "files",
    "validators",
    "log",
    "devices",
    "runtime",
]
# Their paths take changes too.
_CHANGING_PARTS = ("settings", "switches", "budgets", "jobs")

router = APIRouter(tags=["ranks"])
parts = APIRouter(tags=["ranks"])
"""Routes that pass their query on as it is."""


async def summary_of(state: State) -> RankSummary:
    """Return how this process stands."""
    instance, runtime = state.instance, state.runtime
    untuned, index = await runtime.untuned.get(), await runtime.winners.get()
    return RankSummary(
        **{name: getattr(instance, name) for name in RankSummary.model_fields if name in instance._fields},
        read_only=runtime.read_only,
        devices=[each.device for each in await runtime.met.listed()],
        stats=runtime.context.stats(),
        results=len(index),
        results_revision=index.revision,
        rejections=sum(each.healed is None for each in runtime.rejections()),
        untuned=len(untuned),
        settings={setting.name: shown_value(setting.value) for setting in runtime.settings()},
    )


def proxied(answer: Answer) -> Response:
    """Return the answer of a rank as ours: its status and its document, and of its headers only those that are known.

    Raises
    ------
    Problem
        502 for what no rank answers.
    """
    kind = answer.headers.get("content-type", "")
    is_known = not answer.content or kind.partition(";")[0] in _MEDIA_TYPES
    is_moved = 300 <= answer.status < 400 and answer.status != 304
    is_failed = answer.status >= 500 and (answer.status not in _TOLD_ON or kind != PROBLEM_TYPE)
    if is_moved or is_failed or not is_known:
        raise Problem(502, "rank-failed", f"the rank answered {answer.status}; the log of its process says why")
    headers = {name: answer.headers[name] for name in _HEADERS if name in answer.headers}
    if _LOCATION.fullmatch(answer.headers.get("location", "")):
        headers["Location"] = answer.headers["location"]
    return Response(answer.content, answer.status, headers, kind or None)


@router.get("/ranks", operation_id="ranks_list", response_model=Listed[RankModel])
async def list_ranks(request: Request, state: Shared) -> Any:
    """Return the processes that were started together on this host; none when this one was started alone."""
    found = await state.ranks.listed(request.app)
    return {"items": found, "next": None, "total": len(found), "revision": state.ranks.revision(found)}


@router.get("/ranks/disagreements", operation_id="ranks_disagreements", response_model=Listed[Disagreement])
async def list_disagreements(request: Request, state: Shared, limit: Limit = 100) -> Any:
    """Return the shapes for which ranks recorded different kernels, the greatest difference in time first."""
    ranks = await state.ranks.listed(request.app)
    found = await state.ranks.disagreements(request.app, ranks)
    revision = sum(each.summary.results_revision for each in ranks if each.summary)
    return {"items": found[:limit], "next": None, "total": len(found), "revision": revision}


@router.get("/ranks/own", operation_id="ranks_own")
async def read_own(state: Shared) -> RankSummary:
    """Return how this process stands: what it tells the rank that answers for all."""
    return await summary_of(state)


@router.get("/ranks/{rank}", operation_id="ranks_read", response_model=RankModel)
async def read_rank(request: Request, state: Shared, rank: LocalRank) -> Any:
    """Return one rank, by its number on this host."""
    state.ranks.line.check(rank)
    return next(each for each in await state.ranks.listed(request.app) if each.local_rank == rank)


def _add(part: str) -> None:
    async def read(request: Request, state: Shared, rank: LocalRank, if_none_match: IfNoneMatch = None) -> Response:
        return await _read(request, state, rank, f"{API}/{part}", if_none_match)

    description = f"Return what a rank answers to `GET /{part}`, with the same query."
    parts.add_api_route(
        f"/ranks/{{rank}}/{part}",
        read,
        operation_id=f"ranks_read_{part}",
        response_model=None,
        responses=_READ,
        description=description,
    )


for _part in _CHANGING_PARTS:
    _add(_part)


@parts.get("/ranks/{rank}/{part}", operation_id="ranks_part", response_model=None, responses=_READ)
async def read_part(
    request: Request, state: Shared, rank: LocalRank, part: _Part, if_none_match: IfNoneMatch = None
) -> Response:
    """Return what a rank answers to `GET /{part}`, with the same query."""
    return await _read(request, state, rank, f"{API}/{part}", if_none_match)


@router.get("/ranks/{rank}/results/{identity}", operation_id="ranks_result", response_model=None, responses=FAILED)
async def read_result(request: Request, state: Shared, rank: LocalRank, identity: Identity) -> Response:
    """Return one winner of a rank, as `GET /results/{identity}` does."""
    return await _read(request, state, rank, f"{API}/results/{identity}", None)


@router.get("/ranks/{rank}/jobs/{identity}", operation_id="ranks_job", response_model=None, responses=FAILED)
async def read_job(request: Request, state: Shared, rank: LocalRank, identity: Identity) -> Response:
    """Return one job of a rank as it stands, without waiting for its end."""
    state.ranks.line.check(rank)
    headers = sent_headers(request)
    return proxied(await state.ranks.line.ask(request.app, rank, f"{API}/jobs/{identity}", headers=headers))


def sent_headers(request: Request) -> dict[str, str]:
    """Return what every request to a rank says of the one that it is sent for: its name."""
    return {REQUEST_ID: request_id_of(request.scope)}


async def _read(request: Request, state: State, rank: int, path: str, if_none_match: str | None) -> Response:
    state.ranks.line.check(rank)
    headers = sent_headers(request) | ({"If-None-Match": if_none_match} if if_none_match else {})
    # Not of the whole address, which some servers give in bytes that are no text.
    query = request.scope["query_string"].decode("latin-1")
    answer = await state.ranks.line.ask(request.app, rank, path, query=query, headers=headers)
    return proxied(answer)
