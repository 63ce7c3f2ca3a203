"""The event stream."""

from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from tensorplay.service.state import Shared

__all__ = ["router"]

# Proxies must pass each message on at once.
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}

router = APIRouter(tags=["events"])


class EventStream(StreamingResponse):
    """A stream of events; FastAPI's own takes each message apart, which costs what shares the process with it."""

    media_type = "text/event-stream"


@router.get("/events", operation_id="events_stream", response_class=EventStream)
async def stream_events(
    state: Shared,
    kinds: Annotated[str | None, Query(max_length=200, description="Comma-separated; all unless given.")] = None,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", max_length=200)] = None,
) -> EventStream:
    """Stream what changes: small news that say which list has a new revision, and the log."""
    state.hub.check_room()
    wanted = frozenset(kinds.split(",")) if kinds else None
    return EventStream(state.hub.stream(last_event_id, wanted), headers=_HEADERS)
