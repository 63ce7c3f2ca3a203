"""The embedded server: started once, stopped at once, and never in the way of the process that it is in."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, create_app


def test_starting_twice_gives_the_same_handle_and_after_a_stop_another(serve: Callable[..., Service]) -> None:
    first = serve()
    assert serve() is first
    first.stop()
    first.stop()
    assert not first.is_running
    second = serve()
    assert second is not first
    assert httpx.get(second.url + "livez").status_code == 200


def test_a_port_that_is_taken_is_an_error(serve: Callable[..., Service], tmp_path: Path) -> None:
    service = serve()
    other = TuningContext(environ={}, directory=tmp_path)
    from tensorplay.service import start

    with pytest.raises(OSError, match="in use"):
        start(port=urlsplit(service.url).port or 0, context=other)


def test_it_stops_at_once_with_all_streams_open_and_leaves_no_thread(
    serve: Callable[..., Service], caplog: pytest.LogCaptureFixture
) -> None:
    # By name and not by number: one of an earlier test may end meanwhile.
    before = set(threading.enumerate())
    service = serve()
    # Kept, since a stream ends with what reads it.
    lines: list[Iterator[str]] = []
    with ExitStack() as stack:
        for _ in range(64):
            client = stack.enter_context(httpx.Client(timeout=20))
            stream = stack.enter_context(client.stream("GET", service.url + "api/v1/events"))
            assert stream.status_code == 200
            lines.append(stream.iter_lines())
            next(lines[-1])
        refused = httpx.get(service.url + "api/v1/events")
        assert refused.status_code == 429
        begin = time.monotonic()
        service.stop()
        assert time.monotonic() - begin < 3.0
    assert set(threading.enumerate()) <= before
    assert "Traceback" not in caplog.text
    with pytest.raises(httpx.ConnectError):
        httpx.get(service.url + "livez")


def test_a_forked_child_neither_serves_nor_holds_the_port(service: Service) -> None:
    script_side, child_side = os.pipe()
    pid = os.fork()
    if pid == 0:
        # Only what is safe after a fork of a process with threads.
        os.write(child_side, b"r" if service.is_running else b"n")
        time.sleep(30)
        os._exit(0)
    try:
        assert os.read(script_side, 1) == b"n"
        port = urlsplit(service.url).port or 0
        service.stop()
        from tensorplay.service import start

        again = start(port=port, context=service.context)
        assert httpx.get(again.url + "livez").status_code == 200
        again.stop()
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(script_side)
        os.close(child_side)


def test_a_process_that_forgets_to_stop_it_ends_quietly(tmp_path: Path) -> None:
    program = "from tensorplay import service; print(service.start().url)"
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("http://127.0.0.1:")


def test_importing_the_package_starts_and_imports_nothing(tmp_path: Path) -> None:
    program = "import sys, threading, tensorplay.service; print(threading.active_count(), 'fastapi' in sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "1 False\n"


def test_a_notebook_shows_a_link(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    assert service.url in service._repr_html_()
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/<b>/")
    assert "/user/&lt;b&gt;/proxy/" in service._repr_html_()


def test_it_can_be_mounted_in_an_application_of_the_host(context: TuningContext) -> None:
    import asyncio

    from fastapi import FastAPI

    outer = FastAPI()
    outer.mount("/tools/tensorplay", create_app(context))

    async def ask(path: str) -> int:
        transport = httpx.ASGITransport(app=outer)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (await client.get(path)).status_code

    assert asyncio.run(ask("/tools/tensorplay/api/v1/stats")) == 200
    assert asyncio.run(ask("/tools/tensorplay/livez")) == 200
    assert asyncio.run(ask("/api/v1/stats")) == 404
