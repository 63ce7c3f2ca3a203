"""The event streams: who listens, and what each has still to be told.

The thread that multiplies appends to bounded queues and wakes the loop only when somebody listens. A client that does
not read loses events, is told so by `resync`, and asks for everything anew.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from threading import Lock

from tensorplay.service.live_runtime import Happening, LiveRuntime
from tensorplay.service.problems import Problem

__all__ = ["Hub", "Message"]

MOST_STREAMS = 64
_RING = 1024
_QUEUE = 64
_PING_S = 15.0


@dataclass(frozen=True, slots=True)
class Message:
    """One event of a stream."""

    id: str
    event: str
    data: str


@dataclass(eq=False)
class _Client:
    loop: asyncio.AbstractEventLoop
    kinds: frozenset[str] | None
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    queue: deque[Message] = field(default_factory=deque)
    is_behind: bool = False


class Hub:
    """All streams of one application; safe to tell from any thread."""

    def __init__(self, runtime: LiveRuntime, instance: str) -> None:
        self._runtime = runtime
        self._instance = instance
        self._lock = Lock()
        self._clients: set[_Client] = set()
        self._ring: deque[Message] = deque(maxlen=_RING)
        self._number = 0
        self._is_closed = False
        self.dropped = 0
        self._remove = runtime.subscribe(self._hear)

    @property
    def clients(self) -> int:
        """Return how many streams are open."""
        return len(self._clients)

    def check_room(self) -> None:
        """Raise a 429 `Problem` when there are too many streams, before one has begun to answer."""
        if len(self._clients) >= MOST_STREAMS:
            raise Problem(
                429,
                "too-many-streams",
                f"{MOST_STREAMS} streams are open, the most; close one, or poll with If-None-Match",
                headers={"Retry-After": "10"},
            )

    async def stream(self, last_id: str | None, kinds: frozenset[str] | None) -> AsyncIterator[Message | None]:
        """Yield events for one client, None where nothing happened for a while; ends when the hub is closed.

        `last_id` is the last that the client has seen: what it missed comes first, or `resync` when that is not known.
        """
        client = _Client(asyncio.get_running_loop(), kinds)
        with self._lock:
            if self._is_closed:
                return
            missed = self._missed(last_id)
            self._clients.add(client)
            hello = Message(self._id(self._number), "hello", json.dumps({"instance": self._instance}))
        try:
            yield hello
            for message in missed:
                if kinds is None or message.event in kinds or message.event == "resync":
                    yield message
            while True:
                try:
                    await asyncio.wait_for(client.wake.wait(), _PING_S)
                except TimeoutError:
                    yield None
                    continue
                client.wake.clear()
                for message in self._taken(client):
                    yield message
                if self.is_closed():
                    yield Message(self._id(self._number), "bye", "{}")
                    return
        finally:
            with self._lock:
                self._clients.discard(client)

    def is_closed(self) -> bool:
        """Return whether all streams have ended, or are about to."""
        return self._is_closed

    def close(self) -> None:
        """End all streams, from any thread."""
        self._remove()
        with self._lock:
            self._is_closed = True
            clients = list(self._clients)
        for client in clients:
            self._wake(client)

    def _hear(self, happening: Happening, kinds: tuple[str, ...]) -> None:
        with self._lock:
            for kind in kinds:
                self._add(kind, {"revision": self._runtime.revision(kind)})
            self._add("log", happening._asdict())
            clients = list(self._clients)
        for client in clients:
            self._wake(client)

    def _add(self, event: str, data: dict[str, object]) -> None:
        self._number += 1
        message = Message(self._id(self._number), event, json.dumps(data))
        self._ring.append(message)
        for client in self._clients:
            if client.kinds is not None and event not in client.kinds:
                continue
            if event != "log":
                # An older news of the same kind says nothing that this one does not.
                client.queue = deque(each for each in client.queue if each.event != event)
            if len(client.queue) >= _QUEUE:
                self.dropped += len(client.queue)
                client.queue.clear()
                client.is_behind = True
            client.queue.append(message)

    def _taken(self, client: _Client) -> list[Message]:
        with self._lock:
            messages = list(client.queue)
            client.queue.clear()
            behind, client.is_behind = client.is_behind, False
        if behind:
            messages.insert(0, Message(self._id(self._number), "resync", "{}"))
        return messages

    def _missed(self, last_id: str | None) -> list[Message]:
        if not last_id:
            return []
        instance, _, number = last_id.rpartition("-")
        if instance == self._instance and number.isascii() and number.isdigit() and len(number) < 19:
            seen = int(number)
            oldest = self._number - len(self._ring)
            if oldest <= seen <= self._number:
                return list(self._ring)[seen - oldest :]
        return [Message(self._id(self._number), "resync", "{}")]

    def _id(self, number: int) -> str:
        return f"{self._instance}-{number}"

    @staticmethod
    def _wake(client: _Client) -> None:
        try:
            client.loop.call_soon_threadsafe(client.wake.set)
        except RuntimeError:
            # Its loop is closed: the client is gone.
            return
