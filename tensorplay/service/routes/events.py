"""The event stream."""

from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from tensorplay.service.hub import Hub
from tensorplay.service.live_runtime import KINDS
from tensorplay.service.problem_schemas import STOPPING
from tensorplay.service.problems import Problem
from tensorplay.service.state import Shared

__all__ = ["router"]

# Proxies must pass each message on at once.
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}

_TOLD = (*KINDS, "log")

router = APIRouter(tags=["events"])


class EventStream(StreamingResponse):
    """A stream of events; FastAPI's own takes each message apart, which costs what shares the process with it."""

    media_type = "text/event-stream"


class _PlacedStream(EventStream):
    """A stream that keeps a place among all streams as long as it answers."""

    def __init__(self, hub: Hub, last_id: str | None, kinds: frozenset[str] | None) -> None:
        self._stream = hub.stream(last_id, kinds)
        super().__init__(self._stream, headers=_HEADERS)
        self._hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream, if there is a place."""
        with self._hub.place():
            # Who wants no more than the head leaves it in the middle.
            async with aclosing(self._stream):
                await super().__call__(scope, receive, send)


@router.get("/events", operation_id="events_stream", status_code=200, response_class=EventStream, responses=STOPPING)
async def stream_events(
    state: Shared,
    kinds: Annotated[
        str | None,
        Query(max_length=200, description=f"Those of {', '.join(_TOLD)}, with commas between; all unless given."),
    ] = None,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", max_length=200)] = None,
) -> EventStream:
    """Stream what changes: small news that say which list has a new revision, and the log."""
    wanted = frozenset(kinds.split(",")) if kinds else None
    if wanted is not None and not wanted.issubset(_TOLD):
        place = {"loc": ["query", "kinds"], "msg": f"allowed: {', '.join(_TOLD)}", "type": "unknown_kind"}
        raise Problem(
            422,
            "unknown-kind",
            f"`kinds` names what is never told; allowed, with commas between: {', '.join(_TOLD)}",
            errors=[place],
            allowed=list(_TOLD),
        )
    return _PlacedStream(state.hub, last_event_id, wanted)
