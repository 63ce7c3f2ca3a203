"""What is sent on to a rank: any header and query, also hostile ones, and ranks that end in the middle of an answer."""

import signal
import socket
import socketserver
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

HEADERS = [
    {"If-None-Match": b"\xe9"},
    {"If-None-Match": b'"' + b"a" * 150 + b'"'},
    {"If-None-Match": b"\xff\xfe"},
    {"Accept-Encoding": b"br;q=9"},
    {"Connection": b"x-tensorplay-token"},
]
QUERIES = [b"", b"limit=1e9", b"cursor=\xff", b"q=%00", b"q=%0d%0aX:%20y", b"%", b"#", b"?", b"a=" + b"%41" * 1000]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
BOMB = zlib.compress(b" " * (80 << 20), 9)
ANSWERS = [
    b"",
    b"HTTP/1.1",
    HEAD,
    HEAD + b"Content-Length: 1000\r\n\r\n{",
    HEAD + b"Content-Length: -1\r\n\r\n{}",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}",
    HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    HEAD + b"Content-Encoding: deflate\r\nContent-Length: %d\r\n\r\n%s" % (len(BOMB), BOMB),
    HEAD + b"X: \xff\xfe\r\nETag: \xff\r\nContent-Length: 2\r\n\r\n{}",
    HEAD + b"ETag: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 999 \xff\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n" * 50,
    b"HTTP/1.1 302 Found\r\nLocation: http://evil.example/\r\nContent-Length: 0\r\n\r\n",
    b"\x00" * 1000,
]


def raw(client: httpx.Client, headers: dict[str, bytes]) -> httpx.Headers:
    own = [(b"authorization", client.headers["Authorization"].encode())]
    return httpx.Headers([*own, *((name.encode(), value) for name, value in headers.items())])


def status_of(rank: Any, path: str, query: bytes) -> int:
    """Return how bytes that no client would send as a query are answered."""
    address = urlsplit(rank.url)
    with socket.create_connection((address.hostname, address.port), timeout=20) as made:
        made.sendall(b"GET %s?%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % (path.encode(), query))
        return int(made.recv(65536).split(b" ", 2)[1])


@pytest.mark.parametrize("rank", [0, 1])
def test_no_header_or_query_that_is_sent_on_is_a_failure(job: Any, rank: int) -> None:
    first, _ = job.start_all(2)
    with first.client() as client:
        for part in ("stats", "results", "switches", "log", "results.csv"):
            for headers in HEADERS:
                answer = client.get(f"api/v1/ranks/{rank}/{part}", headers=raw(client, headers))
                assert answer.status_code in {200, 304, 400, 422}, (part, headers, answer.text)
            for query in QUERIES:
                assert status_of(first, f"/api/v1/ranks/{rank}/{part}", query) in {200, 400, 422}, (part, query)
        for key in (b"\xe9", b"\xff\xfe", b"a" * 150):
            answer = client.post(
                f"api/v1/ranks/{rank}/jobs",
                content=b'{"source": {"untuned": true}}',
                headers=raw(client, {"Idempotency-Key": key, "Content-Type": b"application/json"}),
            )
            assert answer.status_code in {202, 400, 409, 422}, (key, answer.text)
            answer = client.patch(
                f"api/v1/ranks/{rank}/switches",
                content=b'{"tuning": true}',
                headers=raw(client, {"If-Match": key, "Content-Type": b"application/json"}),
            )
            assert answer.status_code in {400, 412, 422}, (key, answer.text)


@pytest.fixture
def broken(job: Any) -> Iterator[Callable[[bytes], Any]]:
    """Starts the first rank, and in the place of the second what answers everything with some bytes, and hangs up."""
    with ExitStack() as stack:

        def begin(answer: bytes) -> httpx.Client:
            first = job.start(0, LOCAL_WORLD_SIZE="2")
            client: httpx.Client = stack.enter_context(first.client())
            assert client.get("livez").status_code == 200

            class Handler(socketserver.BaseRequestHandler):
                def handle(self) -> None:
                    received = b""
                    while b"\r\n\r\n" not in received and (part := self.request.recv(65536)):
                        received += part
                    try:
                        self.request.sendall(answer)
                        self.request.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        return

            class Server(socketserver.ThreadingUnixStreamServer):
                daemon_threads = True

            server = stack.enter_context(Server(str(job.sockets / "1.sock"), Handler))
            stack.callback(server.shutdown)
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
            return client

        yield begin


@pytest.mark.parametrize("answer", ANSWERS, ids=range(len(ANSWERS)))
def test_an_answer_that_is_none_is_the_failure_of_that_rank_alone(broken: Any, answer: bytes) -> None:
    client = broken(answer)
    first, second = client.get("api/v1/ranks").json()["items"]
    assert (first["state"], second["state"]) == ("reachable", "unreachable")
    for path in ("api/v1/ranks/1/stats", "api/v1/ranks/1/results.jsonl"):
        told = client.get(path)
        # What is some document is told on; nothing is a failure of ours.
        assert told.status_code in {200, 502, 504}, (path, told.text)
        assert "evil" not in str(told.headers)
    assert client.get("ranks", headers={"Accept": "text/html"}).status_code == 200
    assert client.get("metrics").status_code == 200
    assert client.get("api/v1/ranks/disagreements").status_code == 200
    changed = client.patch("api/v1/ranks/all/switches", json={"tuning": True}).json()["items"]
    assert changed[0]["status"] == 200


def test_a_rank_that_is_killed_while_it_is_asked_delays_nobody_and_fails_alone(job: Any) -> None:
    first, second, third = job.start_all(3)
    with first.client() as client:
        for kill in (second, third):
            # It has taken the question, and will never answer it.
            kill.process.send_signal(signal.SIGSTOP)
            found: list[httpx.Response] = []

            def ask(found: list[httpx.Response] = found) -> None:
                paths = ("api/v1/ranks", "api/v1/ranks/disagreements", "metrics")
                found.extend(httpx.get(first.url + path, timeout=20) for path in paths)

            asking = threading.Thread(target=ask)
            asking.start()
            # By now it has been asked, mostly; before and after it must come to the same.
            time.sleep(0.3)
            kill.kill()
            asking.join(30)
            assert [each.status_code for each in found] == [200, 200, 200]
        states = [each["state"] for each in client.get("api/v1/ranks").json()["items"]]
        assert states[0] == "reachable" and "reachable" not in states[1:]
        assert client.get("livez").status_code == 200
    assert first.end() == (0, "")
