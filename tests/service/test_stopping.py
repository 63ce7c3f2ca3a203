"""Stopping, ending and forking while something is under way: soon, in silence, and without harm to a child."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, server, start
from tensorplay.service.http_server import HttpServer
from tensorplay.service.jobs import Job

LONGEST_S = 2.0


def stopped(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    begin = time.monotonic()
    service.stop()
    # Far more than it takes, far less than the three seconds that uvicorn would give a client.
    assert time.monotonic() - begin < LONGEST_S
    assert not service._thread.is_alive()
    assert [each for each in caplog.records if each.exc_info or each.levelname in {"WARNING", "ERROR"}] == []


def address(service: Service) -> tuple[str, int]:
    return "127.0.0.1", urlsplit(service.url).port or 0


def test_a_wait_for_a_job_is_answered(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    job = Job("ab" * 8, (), "now", state="running")
    service._state.jobs._jobs[job.id] = job
    found: list[int] = []

    def wait() -> None:
        found.append(httpx.get(f"{service.url}api/v1/jobs/{job.id}?wait=30", timeout=60).status_code)

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not service._servers[0].connections:
        time.sleep(0.01)
    time.sleep(0.2)
    stopped(service, caplog)
    waiting.join(20)
    assert found == [200]


def test_no_thread_is_left_of_what_was_asked_for(service: Service) -> None:
    # An idle worker that is told to end takes a moment for it; the moment is longer while others use the processor.
    for path in ("metrics", "api/v1/results", "api/v1/files", "results"):
        httpx.get(f"{service.url}{path}").raise_for_status()
    assert any(each.name == "tensorplay-lists" for each in threading.enumerate())
    service.stop()
    assert [each.name for each in threading.enumerate() if each.name.startswith("tensorplay-")] == []


def test_half_an_upload_and_an_unread_answer_are_cut_off(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    head = f"Host: localhost\r\nX-TensorPlay-Token: {service.token}\r\nContent-Type: application/json\r\n"
    with ExitStack() as stack:
        upload = stack.enter_context(socket.create_connection(address(service)))
        upload.sendall(f"POST /api/v1/jobs HTTP/1.1\r\n{head}Content-Length: 1000\r\n\r\n{{".encode())
        unread = stack.enter_context(socket.socket())
        unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        unread.connect(address(service))
        unread.sendall(b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200)
        time.sleep(1)
        stopped(service, caplog)


def test_a_process_that_ends_in_the_middle_of_a_request_is_silent(tmp_path: Path) -> None:
    program = """
import socket, time, tensorplay.service
service = tensorplay.service.start()
made = socket.create_connection(("127.0.0.1", int(service.url.rsplit(":", 1)[1].strip("/"))))
token = service.token.encode()
made.sendall(b"POST /api/v1/jobs HTTP/1.1\\r\\nHost: localhost\\r\\nX-TensorPlay-Token: " + token)
made.sendall(b"\\r\\nContent-Type: application/json\\r\\nContent-Length: 99\\r\\n\\r\\n{")
time.sleep(0.3)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_child_that_is_forked_while_another_thread_starts_one_can_start_its_own(context: TuningContext) -> None:
    is_held, may_go = threading.Event(), threading.Event()

    def hold() -> None:
        with server._lock:
            is_held.set()
            may_go.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    is_held.wait(20)
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        own = start(context=context)
        os._exit(0 if httpx.get(own.url + "livez", timeout=10).status_code == 200 else 1)
    try:
        assert os.waitpid(pid, 0)[1] == 0
    finally:
        may_go.set()
        holder.join()


def test_one_that_cannot_serve_closes_its_port(context: TuningContext, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_: HttpServer, __: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(HttpServer, "serve", fail)
    service = start(context=context)
    service._thread.join(20)
    assert not service.is_running
    with pytest.raises(ConnectionError):
        socket.create_connection(address(service), timeout=20)
    service.stop()
