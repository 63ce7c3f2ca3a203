"""One listener and its connections: served until it is told to end, and then ended within a second.

uvicorn's own server is not used: its `access_log=False` silences the log of every other uvicorn in the process, it
waits for clients that never read, and it tells of each request that a stop cuts off.
"""

import asyncio
import socket
from contextlib import suppress
from typing import Any, cast

import h11
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from tensorplay.service.connection import MOST_CONNECTIONS, Connection, http_log
from tensorplay.service.problems import Problem, problem_response
from tensorplay.service.request_id import NamedRequests

__all__ = ["BACKLOG", "HttpServer"]

BACKLOG = 128
_SWEEP_S = 1.0
_GRACE_S = 0.3
_CANCEL_S = 0.2
_POLL_S = 0.01


class HttpServer:
    """Serves an application on a listener.

    Everything that it needs is imported once it is made: a process may fork while the thread that serves begins.

    Parameters
    ----------
    app : ASGIApp
        What answers.
    listener : socket.socket
        Bound; closed at the end.
    protocol : type of Connection
        What a connection speaks.
    """

    def __init__(self, app: ASGIApp, listener: socket.socket, protocol: type[Connection] = Connection) -> None:
        self.listener = listener
        self._protocol = protocol
        self._state = ServerState()
        # `access_log` stays as it is by default, and there is no level: whatever else is said there changes loggers.
        self._config = uvicorn.Config(
            _unambiguous(app),
            http=protocol,
            interface="asgi3",
            log_config=None,
            ws="none",
            lifespan="off",
            workers=1,
            timeout_keep_alive=5,
            server_header=False,
            date_header=False,
            limit_concurrency=MOST_CONNECTIONS,
            proxy_headers=False,
        )
        self._config.load()

    @property
    def connections(self) -> list[Connection]:
        """Return those that are open."""
        return cast("list[Connection]", list(self._state.connections))

    async def serve(self, end: asyncio.Event) -> None:
        """Answer until the event is set."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_on_failure)
        # It listens once more: what is stopped must not keep thousands waiting.
        server = await loop.create_server(self._connection, sock=self.listener, backlog=BACKLOG)
        self._sweep(loop)
        try:
            await end.wait()
        finally:
            self._sweeping.cancel()
            server.close()
            await self._end()

    def _connection(self) -> Connection:
        return self._protocol(
            config=self._config, server_state=self._state, app_state={}, _loop=asyncio.get_running_loop()
        )

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close what is late, and so on. A timer wakes the thread once; a task that waits in vain runs three times."""
        self._sweeping = loop.call_later(_SWEEP_S, self._sweep, loop)
        now = loop.time()
        late = [each for each in self.connections if each.is_late(now)]
        for each in late:
            each.drop()
        if late:
            http_log.info("%d connections were closed whose clients sent or took nothing in time", len(late))

    async def _end(self) -> None:
        """Close what is idle, give what is under way a moment, and cut off the rest."""
        for each in self.connections:
            with suppress(h11.LocalProtocolError):
                each.shutdown()
        left = _GRACE_S
        while (self._state.connections or self._state.tasks) and left > 0:
            await asyncio.sleep(_POLL_S)
            left -= _POLL_S
        for each in self.connections:
            each.drop()
        tasks = list(self._state.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CANCEL_S)
        # What was cut off hears of it in the next turn of the loop.
        await asyncio.sleep(0)


def _unambiguous(app: ASGIApp) -> ASGIApp:
    """Refuse a body with two lengths, which a proxy may read differently than we do."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        names = {name for name, _ in scope["headers"]}
        if b"transfer-encoding" in names and b"content-length" in names:
            problem = Problem(
                400,
                "two-lengths",
                "send Content-Length or Transfer-Encoding, not both",
                headers={"Connection": "close"},
            )
            await problem_response(problem, scope)(scope, receive, send)
            return
        await app(scope, receive, send)

    return NamedRequests(checked)


def _on_failure(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    # The loop's own handler writes as often as it happens.
    http_log.error("a connection failed: %s", context.get("message"), exc_info=context.get("exception"))
