"""The event streams: who listens, and what each has still to be told.

The thread that multiplies only appends to a ring. It wakes the loop of the listeners when nothing happened for a while;
else they look by themselves a moment later, a few times a second at most, however much happens: every time that they
run is taken from the thread that multiplies. What several of them are told is made once. A client that missed too much
is told so by `resync`, and asks for everything anew.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from tensorplay.locks import ForkSafeLock
from tensorplay.service.audience import Audience, Client
from tensorplay.service.live_runtime import Happening, LiveRuntime
from tensorplay.service.problems import Problem

__all__ = ["Hub"]

MOST_STREAMS = 64
_RING = 1024
_MOST_AT_ONCE = 64
_LEAST_PAUSE_S = 0.4
_PING = b": nothing new\n\n"
_RETRY_MS = 2000


@dataclass(eq=False, slots=True)
class _News:
    """One thing that happened: what changed, or with the kind `log` what the log says, once it is told `text`."""

    number: int
    kind: str
    happening: Happening | None
    text: bytes | None = None


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
        self._audiences: dict[asyncio.AbstractEventLoop, Audience] = {}
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
            return sum(len(each.clients) for each in self._audiences.values())

    @contextmanager
    def place(self) -> Iterator[None]:
        """Keep a place for a stream, from before it begins to answer until it has ended.

        Raises
        ------
        Problem
            429 for one too many, 503 once they are closed.
        """
        self.check_open()
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

    async def stream(self, last_id: str | None, kinds: frozenset[str] | None) -> AsyncGenerator[bytes, None]:
        """Yield events for one client as a stream has them, a comment where nothing happened; until it is closed.

        `last_id` is the last that the client has seen: what it missed comes first, or `resync` when that is not known.
        """
        with self._lock:
            if self._is_closed:
                return
            seen, number = self._seen(last_id), self._number
            client = Client(kinds, number if seen is None else seen)
            audience = self._joined(client)
        try:
            yield self._begin(client, number, is_unknown=seen is None and bool(last_id))
            while not self.is_closed():
                if news := self._news(client, audience):
                    yield news
                else:
                    await client.woken()
            yield self._message("bye", "{}", client.seen)
        finally:
            self._leave(client, audience)

    def is_closed(self) -> bool:
        """Return whether all streams have ended, or are about to."""
        return self._is_closed

    def check_open(self) -> None:
        """Raise a 503 `Problem` once all streams have ended, or are about to."""
        if self.is_closed():
            raise Problem(503, "stopping", "the service is about to stop", headers={"Retry-After": "10"})

    def close(self) -> None:
        """End all streams, from any thread."""
        self._remove()
        with self._lock:
            self._is_closed = True
            audiences = list(self._audiences.values())
        for audience in audiences:
            _call(audience, Audience.wake)

    def _hear(self, happening: Happening, kinds: tuple[str, ...]) -> None:
        with self._lock:
            for kind in kinds:
                self._ring.append(_News(self._next(), kind, None))
            self._ring.append(_News(self._next(), "log", happening))
            for audience in self._audiences.values():
                if not audience.is_due:
                    # In this order: an interrupt between the two makes them look once more, and not never again.
                    _call(audience, self._look)
                    audience.is_due = True

    def _next(self) -> int:
        # In one step, since a signal handler may tell of something in the middle of this.
        number = self._number = self._number + 1
        return number

    def _joined(self, client: Client) -> Audience:
        """Add a client to those of this loop, and return them."""
        loop = asyncio.get_running_loop()
        audience = self._audiences.setdefault(loop, Audience(loop, self._number))
        audience.join(client)
        return audience

    def _leave(self, client: Client, audience: Audience) -> None:
        with self._lock:
            audience.leave(client)
            if not audience.clients:
                self._audiences.pop(audience.loop, None)

    def _look(self, audience: Audience) -> None:
        """Tell clients, on their loop, what is new, and look again after a pause; when nothing is, wait to be woken."""
        with self._lock:
            audience.is_due = audience.number < self._number
            audience.number = self._number
        if audience.is_due and audience.clients:
            audience.told.clear()
            audience.look_after(self.least_pause_s, self._look)
            audience.wake()

    def _begin(self, client: Client, number: int, *, is_unknown: bool) -> bytes:
        """Return what a client is told first, with what it missed up to a number."""
        hello = self._message("hello", json.dumps({"instance": self._instance}), client.seen, _RETRY_MS)
        if is_unknown:
            return hello + self._message("resync", "{}", client.seen)
        missed = self._told(client, number) if client.seen < number else b""
        client.seen = number
        return hello + missed

    def _news(self, client: Client, audience: Audience) -> bytes:
        """Return what a client has not seen of what is told now, a comment when it was told nothing for a while."""
        news = b""
        if client.seen < audience.number:
            key = client.seen, client.kinds
            known = audience.told.get(key)
            if known is None:
                known = audience.told[key] = self._told(client, audience.number)
            client.seen, news = audience.number, known
        if client.is_silent:
            news = news or _PING
        if news:
            client.told()
        return news

    def _told(self, client: Client, number: int) -> bytes:
        """Return what happened between what a client has seen and a number."""
        missed = number - client.seen
        with self._lock:
            later = self._number - number
            found = list(islice(reversed(self._ring), later, later + missed))[::-1]
        wanted = [each for each in _newest(found) if client.kinds is None or each.kind in client.kinds]
        if len(found) < missed or len(wanted) > _MOST_AT_ONCE:
            self.dropped += missed
            return self._message("resync", "{}", number)
        return b"".join(map(self._text, wanted))

    def _text(self, news: _News) -> bytes:
        """Return a thing that happened as a stream has it; made once, but for what may have changed again since."""
        if news.text is not None:
            return news.text
        text = self._message(news.kind, self._data(news), news.number)
        if news.happening is not None:
            news.text = text
        return text

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


def _call(audience: Audience, callback: Callable[[Audience], None]) -> None:
    try:
        audience.loop.call_soon_threadsafe(callback, audience)
    except RuntimeError:
        # The loop is closed: its clients are gone.
        return
