"""What all routes of one application share, and how they come by it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Header, Request

from tensorplay.service.cursor import CursorKey
from tensorplay.service.hub import Hub
from tensorplay.service.identity import Instance
from tensorplay.service.jobs import Jobs
from tensorplay.service.live_runtime import LiveRuntime
from tensorplay.service.problems import Problem

__all__ = ["IfMatch", "IfNoneMatch", "Shared", "State", "check_match", "etag", "listed"]


@dataclass(frozen=True, slots=True)
class State:
    """The parts of one application."""

    runtime: LiveRuntime
    hub: Hub
    jobs: Jobs
    cursors: CursorKey
    instance: Instance

    def check_writable(self) -> None:
        """Raise a 403 `Problem` when changes are refused."""
        if self.runtime.read_only:
            raise Problem(403, "read-only", "this service is read-only")


def _state(request: Request) -> State:
    state: State = request.app.state.tensorplay
    return state


Shared = Annotated[State, Depends(_state)]
IfMatch = Annotated[str | None, Header(alias="If-Match", max_length=200)]
IfNoneMatch = Annotated[str | None, Header(alias="If-None-Match", max_length=200)]


def etag(state: State, kind: str) -> str:
    """Return the entity tag of a list as it is now."""
    return f'"{kind[0]}{state.instance.id[:6]}{state.runtime.revision(kind)}"'


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
