"""The event stream."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from tensorplay.service.state import Shared

__all__ = ["router"]

_RETRY_MS = 2000

router = APIRouter(tags=["events"])


async def _has_room(state: Shared) -> None:
    state.hub.check_room()


@router.get(
    "/events", operation_id="events_stream", response_class=EventSourceResponse, dependencies=[Depends(_has_room)]
)
async def stream_events(
    state: Shared,
    kinds: Annotated[str | None, Query(max_length=200, description="Comma-separated; all unless given.")] = None,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", max_length=200)] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Stream what changes: small news that say which list has a new revision, and the log."""
    wanted = frozenset(kinds.split(",")) if kinds else None
    async for message in state.hub.stream(last_event_id, wanted):
        if message is None:
            yield ServerSentEvent(comment="nothing new")
        else:
            yield ServerSentEvent(raw_data=message.data, event=message.event, id=message.id, retry=_RETRY_MS)
