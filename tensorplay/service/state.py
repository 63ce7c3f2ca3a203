"""What all routes of one application share, and how they come by it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends, Header, Query, Request
from pydantic import BaseModel

from tensorplay.service.cursor import CursorKey
from tensorplay.service.hub import Hub
from tensorplay.service.idempotency import IdempotencyKeys
from tensorplay.service.identity import Instance
from tensorplay.service.jobs import Jobs
from tensorplay.service.live_runtime import LiveRuntime
from tensorplay.service.problems import Problem
from tensorplay.service.ranks import Ranks
from tensorplay.service.result_files import ResultFiles
from tensorplay.service.worker import Worker

__all__ = [
    "NOT_CHANGED",
    "WRITES",
    "Confirm",
    "IfMatch",
    "IfNoneMatch",
    "Shared",
    "State",
    "check_match",
    "content_etag",
    "etag",
    "listed",
]


@dataclass(frozen=True, slots=True)
class State:
    """The parts of one application."""

    runtime: LiveRuntime
    hub: Hub
    jobs: Jobs
    cursors: CursorKey
    instance: Instance
    ranks: Ranks
    files: ResultFiles
    keys: IdempotencyKeys
    worker: Worker

    def check_writable(self) -> None:
        """Raise a 403 `Problem` when changes are refused."""
        if self.runtime.read_only:
            raise Problem(403, "read-only", "this service is read-only")


async def _state(request: Request) -> State:
    state: State = request.app.state.tensorplay
    return state


async def _writable(request: Request) -> None:
    (await _state(request)).check_writable()


Shared = Annotated[State, Depends(_state)]
WRITES = [Depends(_writable)]
"""Of a route that changes something: refused before anything else is looked at, where nothing can be changed."""

Confirm = Annotated[Literal["all"], Query(description="Says that all is meant.")]
"""The query parameter that a change of everything needs."""

IfMatch = Annotated[str | None, Header(alias="If-Match", max_length=200)]
IfNoneMatch = Annotated[str | None, Header(alias="If-None-Match", max_length=200)]


NOT_CHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "It has not changed since."}}
"""How the OpenAPI document describes what answers If-None-Match."""


def etag(state: State, kind: str, revision: int | None = None) -> str:
    """Return the entity tag of a list as it is now, or was at a revision."""
    number = state.runtime.revision(kind) if revision is None else revision
    return f'"{kind[0]}{state.instance.id[:6]}{number}"'


def content_etag(state: State, kind: str, items: Sequence[BaseModel], total: int, revision: int) -> str:
    """Return the entity tag of a page of a list that may change without a new revision, as counts do."""
    digest = hashlib.blake2b(f"{total} {revision}".encode(), digest_size=8)
    for item in items:
        digest.update(item.model_dump_json().encode())
    return f'"{kind[0]}{state.instance.id[:6]}-{digest.hexdigest()}"'


def check_match(state: State, kind: str, given: str | None, *, required: bool) -> None:
    """Raise a `Problem` when a change is based on an older state: 412; or on none where one is needed: 428."""
    if given is None:
        if required:
            raise Problem(428, "if-match-needed", "send If-Match with the ETag of what you have seen")
        return
    if given != "*" and etag(state, kind) not in [each.strip() for each in given.split(",")]:
        raise Problem(412, "changed", "it has changed since you have read it; read it again")


def listed(items: Sequence[Any], revision: int) -> dict[str, Any]:
    """Return a list that is answered whole, as `Listed` has it."""
    return {"items": items, "next": None, "total": len(items), "revision": revision}
