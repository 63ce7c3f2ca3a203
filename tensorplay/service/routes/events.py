"""The event stream."""

from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from tensorplay.service.hub import Hub
from tensorplay.service.problem_schemas import STOPPING
from tensorplay.service.state import Shared

__all__ = ["router"]

# Proxies must pass each message on at once.
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}

router = APIRouter(tags=["events"])


class EventStream(StreamingResponse):
    """A stream of events; FastAPI's own takes each message apart, which costs what shares the process with it."""

    media_type = "text/event-stream"


class _PlacedStream(EventStream):
    """A stream that keeps a place among all streams as long as it answers."""

    def __init__(self, hub: Hub, last_id: str | None, kinds: frozenset[str] | None) -> None:
        super().__init__(hub.stream(last_id, kinds), headers=_HEADERS)
        self._hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream, if there is a place."""
        with self._hub.place():
            await super().__call__(scope, receive, send)


@router.get("/events", operation_id="events_stream", status_code=200, response_class=EventStream, responses=STOPPING)
async def stream_events(
    state: Shared,
    kinds: Annotated[str | None, Query(max_length=200, description="Comma-separated; all unless given.")] = None,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", max_length=200)] = None,
) -> EventStream:
    """Stream what changes: small news that say which list has a new revision, and the log."""
    wanted = frozenset(kinds.split(",")) if kinds else None
    return _PlacedStream(state.hub, last_event_id, wanted)
