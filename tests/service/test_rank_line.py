"""A rank that says anything but what a rank says: another version, another program, or one that goes mad."""

import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tensorplay.service import Service
from tensorplay.service import rank_line as module
from tensorplay.service.problems import PROBLEM_TYPE, Problem
from tensorplay.service.rank_line import Answer
from tensorplay.service.routes.ranks import proxied
from tensorplay.service.unix_socket import PrivateSocket

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: "


def answer(body: bytes, kind: str = "application/json", status: str = "200 OK", more: str = "") -> bytes:
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}Connection: close\r\n\r\n"
    ).encode() + body


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch, serve: Callable[..., Service]) -> Iterator[httpx.Client]:
    """The first rank of a job, in a folder with a short path."""
    folder = tempfile.mkdtemp(prefix="tp-")
    for name, value in {"TENSORPLAY_RUNTIME_DIR": folder, "TORCHELASTIC_RUN_ID": "job", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    # The thread that answers for the second rank has to wait for its turn on a busy machine.
    monkeypatch.setattr(module, "READ_S", 30.0)
    service = serve()
    headers = {"Authorization": f"Bearer {service.token}"}
    with httpx.Client(base_url=service.url, headers=headers, timeout=30) as client:
        yield client
    service.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def second(first: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bytes], None]]:
    """Answers every request that the second rank is asked with some bytes."""
    made = PrivateSocket(Path(os.environ["TENSORPLAY_RUNTIME_DIR"]) / "job" / "1.sock")
    told: list[bytes] = []

    def talk() -> None:
        while True:
            connection, _ = made.listener.accept()
            with connection:
                request = connection.recv(65536)
                if request == b"end":
                    return
                for number in range(0, len(told[0]) if request else 0, 1 << 16):
                    try:
                        connection.sendall(told[0][number : number + (1 << 16)])
                    except OSError:
                        break
                if told[0].endswith(b"..."):
                    time.sleep(1)

    thread = threading.Thread(target=talk)
    thread.start()
    yield told.append
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(os.fspath(made.path))
        client.sendall(b"end")
    thread.join()
    made.close()


@pytest.mark.parametrize(
    ("said", "status", "reason"),
    [
        (b"", 502, "hangs up"),
        (b"nonsense\r\n\r\n", 502, "hangs up"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", 502, "hangs up"),
        (answer(b"<script>", "text/html"), 502, "understood"),
        (answer(b"x" * 100, "application/json; charset=utf-8"), 200, "understood"),
        (answer(b"{}"), 200, "understood"),
        (answer(b"{}", status="500 Oh"), 502, "answers 500"),
        (answer(b"{}", status="302 Found", more="Location: http://127.0.0.1:1/\r\n"), 502, "answers 302"),
        (HEAD + b"application/json\r\nContent-Length: 9\r\n\r\n{...", 504, "does not answer in time"),
    ],
)
def test_what_is_no_answer_of_a_rank_is_a_problem_and_a_state(
    first: httpx.Client,
    second: Callable[[bytes], None],
    monkeypatch: pytest.MonkeyPatch,
    said: bytes,
    status: int,
    reason: str,
) -> None:
    if status == 504:
        monkeypatch.setattr(module, "READ_S", 0.5)
    second(said)
    listed = first.get("api/v1/ranks").json()["items"][1]
    assert listed["state"] == "unreachable"
    assert reason in listed["reason"]
    read = first.get("api/v1/ranks/1/stats")
    assert read.status_code == status
    assert "location" not in read.headers
    assert first.get("ranks", headers={"Accept": "text/html"}).status_code == 200
    assert first.get("metrics").status_code == 200


def test_an_answer_without_end_is_cut_off(
    first: httpx.Client, second: Callable[[bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 1 << 20)
    second(answer(b"x" * (4 << 20)))
    read = first.get("api/v1/ranks/1/stats")
    assert (read.status_code, read.json()["type"]) == (502, "urn:tensorplay:problem:rank-too-large")


def test_headers_of_a_rank_are_ours_or_left_out(first: httpx.Client, second: Callable[[bytes], None]) -> None:
    more = "Set-Cookie: a=b\r\nLocation: //evil.example/\r\nContent-Security-Policy: none\r\nX-Own: 1\r\n"
    second(answer(b"{}", more=more + 'ETag: "r1"\r\n'))
    read = first.get("api/v1/ranks/1/stats")
    assert (read.status_code, read.headers["etag"]) == (200, '"r1"')
    assert not {"set-cookie", "location", "x-own"} & set(read.headers)
    assert "script-src 'self'" in read.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("status", "kind", "passes"),
    [
        (200, "application/json", True), (200, "text/csv; charset=utf-8", True), (404, PROBLEM_TYPE, True),
        (503, PROBLEM_TYPE, True), (507, PROBLEM_TYPE, True), (500, PROBLEM_TYPE, False), (307, PROBLEM_TYPE, False),
        (503, "text/csv", False), (200, "text/html", False), (200, "", False), (200, "image/svg+xml", False),
    ],
)  # fmt: skip
def test_only_documents_of_a_rank_are_passed_on(status: int, kind: str, passes: bool) -> None:
    told: Any = httpx.Headers({"content-type": kind} if kind else {})
    if passes:
        assert proxied(Answer(status, told, b"{}")).status_code == status
    else:
        with pytest.raises(Problem, match="the log of its process"):
            proxied(Answer(status, told, b"{}"))
