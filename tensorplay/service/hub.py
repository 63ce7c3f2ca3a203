"""The event streams: who listens, and what each has still to be told.

The thread that multiplies only appends to a ring, and wakes the loop of the listeners when they are not about to look
anyway: they look a few times a second at most, however much happens. What several of them are told is made once. A
client that missed too much is told so by `resync`, and asks for everything anew.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from tensorplay.locks import ForkSafeLock
from tensorplay.service.live_runtime import Happening, LiveRuntime
from tensorplay.service.problems import Problem

__all__ = ["Hub"]

MOST_STREAMS = 64
_RING = 1024
_MOST_AT_ONCE = 64
_LEAST_PAUSE_S = 0.25
_PING_S = 15.0
_PING = b": nothing new\n\n"
_RETRY_MS = 2000


class _News(NamedTuple):
    """One thing that happened: what changed, or with the kind `log` what the log says."""

    number: int
    kind: str
    happening: Happening | None


@dataclass(eq=False)
class _Client:
    kinds: frozenset[str] | None
    seen: int
    wake: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(eq=False)
class _Group:
    """The clients of one loop; `is_due` while they are about to look."""

    loop: asyncio.AbstractEventLoop
    clients: set[_Client] = field(default_factory=set)
    is_due: bool = False
    last: float = float("-inf")
    told: dict[tuple[int, int, frozenset[str] | None], bytes] = field(default_factory=dict)


class Hub:
    """All streams of one application; safe to tell from any thread.

    Parameters
    ----------
    runtime : LiveRuntime
        Whose events are told.
    instance : str
        Names the process, so that a client of another one begins anew.

    Attributes
    ----------
    least_pause_s : float
        Between two times that a client is told what happened; what happens after a longer pause is told at once.
    dropped : int
        How many events were not told to a client that was too slow for them.
    """

    def __init__(self, runtime: LiveRuntime, instance: str) -> None:
        self._runtime = runtime
        self._instance = instance
        self.least_pause_s = _LEAST_PAUSE_S
        self._lock = ForkSafeLock()
        self._groups: dict[asyncio.AbstractEventLoop, _Group] = {}
        self._ring: deque[_News] = deque(maxlen=_RING)
        self._number = 0
        self._is_closed = False
        self._places = 0
        self.dropped = 0
        self._remove = runtime.subscribe(self._hear)

    @property
    def clients(self) -> int:
        """Return how many streams are open."""
        with self._lock:
            return sum(len(group.clients) for group in self._groups.values())

    @contextmanager
    def place(self) -> Iterator[None]:
        """Keep a place for a stream, from before it begins to answer until it has ended.

        Raises
        ------
        Problem
            429 for one too many, 503 once they are closed.
        """
        if self.is_closed():
            raise Problem(503, "stopping", "the service is about to stop", headers={"Retry-After": "10"})
        with self._lock:
            if self._places >= MOST_STREAMS:
                raise Problem(
                    429,
                    "too-many-streams",
                    f"{MOST_STREAMS} streams are open, the most; close one, or poll with If-None-Match",
                    headers={"Retry-After": "10"},
                )
            self._places += 1
        try:
            yield
        finally:
            with self._lock:
                self._places -= 1

    async def stream(self, last_id: str | None, kinds: frozenset[str] | None) -> AsyncIterator[bytes]:
        """Yield events for one client as a stream has them, a comment where nothing happened; until it is closed.

        `last_id` is the last that the client has seen: what it missed comes first, or `resync` when that is not known.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._is_closed:
                return
            seen = self._seen(last_id)
            client = _Client(kinds, self._number if seen is None else seen)
            group = self._groups.setdefault(loop, _Group(loop))
            group.clients.add(client)
            begin = self._message("hello", json.dumps({"instance": self._instance}), client.seen, _RETRY_MS)
        if seen is None and last_id:
            begin += self._message("resync", "{}", client.seen)
        try:
            yield begin + self._news(client, group)
            while True:
                try:
                    async with asyncio.timeout(_PING_S):
                        await client.wake.wait()
                except TimeoutError:
                    yield _PING
                    continue
                client.wake.clear()
                if news := self._news(client, group):
                    yield news
                if self.is_closed():
                    yield self._message("bye", "{}", client.seen)
                    return
        finally:
            with self._lock:
                group.clients.discard(client)
                if not group.clients:
                    self._groups.pop(loop, None)

    def is_closed(self) -> bool:
        """Return whether all streams have ended, or are about to."""
        return self._is_closed

    def close(self) -> None:
        """End all streams, from any thread."""
        self._remove()
        with self._lock:
            self._is_closed = True
            groups = list(self._groups.values())
        for group in groups:
            _call(group.loop, self._look, group)

    def _hear(self, happening: Happening, kinds: tuple[str, ...]) -> None:
        with self._lock:
            for kind in kinds:
                self._ring.append(_News(self._next(), kind, None))
            self._ring.append(_News(self._next(), "log", happening))
            groups = [group for group in self._groups.values() if not group.is_due]
            for group in groups:
                group.is_due = True
        for group in groups:
            _call(group.loop, self._look_soon, group)

    def _next(self) -> int:
        # In one step, since a signal handler may tell of something in the middle of this.
        number = self._number = self._number + 1
        return number

    def _look_soon(self, group: _Group) -> None:
        """Let the clients of a loop look, on that loop, when the pause since the last time is over."""
        wait = group.last + self.least_pause_s - group.loop.time()
        if wait > 0:
            group.loop.call_later(wait, self._look, group)
        else:
            self._look(group)

    def _look(self, group: _Group) -> None:
        group.last = group.loop.time()
        with self._lock:
            group.is_due = False
            clients = list(group.clients)
        for client in clients:
            client.wake.set()

    def _news(self, client: _Client, group: _Group) -> bytes:
        """Return what a client has not seen yet."""
        with self._lock:
            seen, number = client.seen, self._number
            client.seen = number
            found = list(islice(reversed(self._ring), number - seen))[::-1]
        if number == seen:
            return b""
        key = (seen, number, client.kinds)
        told = group.told.get(key)
        if told is None:
            if any(each[1] != number for each in group.told):
                group.told.clear()
            told = group.told[key] = self._told(found, number - seen, client.kinds)
        return told

    def _told(self, found: Sequence[_News], missed: int, kinds: frozenset[str] | None) -> bytes:
        wanted = [each for each in _newest(found) if kinds is None or each.kind in kinds]
        if len(found) < missed or len(wanted) > _MOST_AT_ONCE:
            self.dropped += missed
            return self._message("resync", "{}", found[-1].number)
        return b"".join(self._message(each.kind, self._data(each), each.number) for each in wanted)

    def _data(self, news: _News) -> str:
        if news.happening is not None:
            return json.dumps(news.happening._asdict())
        return json.dumps({"revision": self._runtime.revision(news.kind)})

    def _seen(self, last_id: str | None) -> int | None:
        """Return the number that an id stands for; None when what came after it is not known."""
        instance, _, number = (last_id or "").rpartition("-")
        if instance == self._instance and number.isascii() and number.isdigit() and len(number) < 19:
            seen = int(number)
            if self._number - len(self._ring) <= seen <= self._number:
                return seen
        return None

    def _message(self, event: str, data: str, number: int, retry: int | None = None) -> bytes:
        again = f"retry: {retry}\n" if retry is not None else ""
        return f"id: {self._instance}-{number}\nevent: {event}\n{again}data: {data}\n\n".encode()


def _newest(found: Sequence[_News]) -> Sequence[_News]:
    """Return all of the log, and of each other kind the newest: an older one says nothing that it does not."""
    last = {each.kind: each.number for each in found}
    return [each for each in found if each.happening is not None or last[each.kind] == each.number]


def _call(loop: asyncio.AbstractEventLoop, callback: Callable[[_Group], None], group: _Group) -> None:
    try:
        loop.call_soon_threadsafe(callback, group)
    except RuntimeError:
        # The loop is closed: its clients are gone.
        return
