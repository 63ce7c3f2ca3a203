"""HTTP on one connection: uvicorn's, with an end to every wait for a client, and with little to say about it.

What uvicorn logs of connections would reach the standard error of the process through Python's last resort, as often
as a stranger likes. Here it goes to `tensorplay.http`, once a minute at most of each kind, and only failures as errors.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

__all__ = ["MOST_CONNECTIONS", "MOST_WAIT_S", "Connection", "OncePerMinute", "http_log"]

MOST_CONNECTIONS = 256
"""Of one listener. One more ends the one that has waited longest for a request, if any waits."""

MOST_WAIT_S = 30.0
"""In which a head must come, and a body, and in which a client must take some of what it asked for."""

_MINUTE_S = 60.0

http_log = logging.getLogger("tensorplay.http")
"""What connections have to say."""


class OncePerMinute(logging.Filter):
    """Lets one message of a kind pass in a minute, warnings as information, and no cancellation.

    Parameters
    ----------
    clock : callable
        Returns seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._next: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a message is written."""
        if record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError):
            # Who stops the service knows it.
            return False
        if record.levelno == logging.WARNING:
            record.levelno, record.levelname = logging.INFO, "INFO"
        if not http_log.isEnabledFor(record.levelno):
            return False
        now, kind = self._clock(), str(record.msg)
        if now < self._next.get(kind, now):
            return False
        self._next[kind] = now + _MINUTE_S
        return True


http_log.addFilter(OncePerMinute(time.monotonic))


class Connection(H11Protocol):
    """One connection of a client; everything happens on the thread of its loop."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = http_log
        self.access_log = False
        self._since = self.loop.time()
        self._stalled: float | None = None
        self._known: Any = None

    @property
    def is_waiting(self) -> bool:
        """Return whether it has no request that is not answered."""
        # It is None before the first, whatever its type says there.
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.response_complete

    @property
    def since(self) -> float:
        """Return when it began to wait for a request, or for the body of the one that it has; in the loop's time."""
        return self._since

    def is_late(self, now: float) -> bool:
        """Return whether the client has not done its part in time."""
        if self._stalled is not None and now - self._stalled >= MOST_WAIT_S:
            return True
        return now - self._since >= MOST_WAIT_S and (self.is_waiting or self.cycle.more_body)

    def drop(self) -> None:
        """End it at once; what answers a request of it is told that the client went away."""
        self._leave_request()
        self.connections.discard(self)
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as it is there
        """Begin, in the place of one that only waits when there are too many."""
        super().connection_made(transport)
        if len(self.connections) < MOST_CONNECTIONS:
            return
        others = [each for each in self.connections if isinstance(each, Connection) and each is not self]
        waiting = [each for each in others if each.is_waiting]
        if waiting:
            http_log.info("%d connections are open, the most: one that sent no request is closed", MOST_CONNECTIONS)
            min(waiting, key=lambda each: each.since).drop()

    def data_received(self, data: bytes) -> None:
        """Read on; a new request has its own time."""
        super().data_received(data)
        if self.cycle is not self._known:
            self._known, self._since = self.cycle, self.loop.time()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Note since when the client takes nothing."""
        self._stalled = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that it takes something."""
        self._stalled = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; in the middle of an answer there is no way to say so."""
        # Else the answer of the request that is under way would come after this one, which is an error.
        self._leave_request()
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:
            self.transport.abort()

    def _leave_request(self) -> None:
        if not self.is_waiting:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
