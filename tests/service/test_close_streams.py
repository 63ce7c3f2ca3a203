"""An application of somebody's own lets its server stop at once, though browsers listen."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from tensorplay.runtime.context import TuningContext
from tensorplay.service import close_streams, create_app


class Server(uvicorn.Server):
    """As docs/embedding.md shows it."""

    watcher: Any

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        close_streams(self.watcher)
        await super().shutdown(sockets)


@pytest.fixture
def hosted(context: TuningContext) -> Iterator[tuple[str, Server, threading.Thread]]:
    """A server of one's own, with the service below a prefix."""
    watcher = create_app(context)
    app = Starlette(routes=[Mount("/tools", watcher)])
    config = uvicorn.Config(app, log_config=None, lifespan="off", access_log=False)
    server = Server(config)
    server.watcher = watcher
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/tools/", server, thread
        server.should_exit = server.force_exit = True
        thread.join(10)


def test_a_server_stops_though_streams_are_open(hosted: tuple[str, Server, threading.Thread]) -> None:
    url, server, thread = hosted
    heard: list[list[str]] = []
    begun = threading.Barrier(4)

    def listen() -> None:
        with httpx.stream("GET", f"{url}api/v1/events", timeout=20) as response:
            lines = response.iter_lines()
            kinds = [next(line for line in lines if line.startswith("event:"))]
            begun.wait(20)
            heard.append([*kinds, *(line for line in lines if line.startswith("event:"))])

    clients = [threading.Thread(target=listen, daemon=True) for _ in range(3)]
    for each in clients:
        each.start()
    begun.wait(20)
    server.should_exit = True
    # Without a limit of its own it would wait for ever.
    assert server.config.timeout_graceful_shutdown is None
    thread.join(20)
    assert not thread.is_alive()
    for each in clients:
        each.join(10)
    assert [kinds[-1] for kinds in heard] == ["event: bye"] * 3


def test_what_is_closed_refuses_further_streams_and_is_not_ready(context: TuningContext) -> None:
    app = create_app(context)

    async def ask(path: str) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            return await client.get(path)

    async def play() -> list[Any]:
        close_streams(app)
        close_streams(app)
        return [await ask(path) for path in ("/api/v1/events", "/readyz", "/api/v1/stats")]

    events, ready, stats = asyncio.run(play())
    assert (events.status_code, events.json()["type"]) == (503, "urn:tensorplay:problem:stopping")
    assert events.headers["retry-after"] == "10"
    assert (ready.status_code, stats.status_code) == (503, 200)
