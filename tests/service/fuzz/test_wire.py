"""Bytes on a real connection that are no request, or no end of one: the server answers or hangs up, and goes on."""

import socket
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

import httpx
import pytest

from tensorplay.service import Service

HEAD = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"
PATCH = (
    b"PATCH /api/v1/settings HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nX-TensorPlay-Token: %s\r\n"
)
SENT = [
    b"\r\n\r\n",
    b"\x00" * 100,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET\r\n\r\n",
    b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://elsewhere/livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET //elsewhere/livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /livez HTTP/9.9\r\nHost: localhost\r\n\r\n",
    b"GET /livez HTTP/1.1\r\n\r\n",
    b"GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    HEAD + b"X: " + b"a" * 200_000 + b"\r\n\r\n",
    HEAD + b"X: a\r\n" * 10_000 + b"\r\n",
    HEAD + b"X\x00: a\r\n\r\n",
    HEAD + b"X: \x00\r\n\r\n",
    HEAD + b"X : a\r\n\r\n",
    HEAD + b"Content-Length: -1\r\n\r\n",
    HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
    HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
    HEAD + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n",
    PATCH + b"Content-Length: 99999999999\r\n\r\n{}",
    PATCH + b"Transfer-Encoding: chunked\r\n\r\nffffffffffff\r\n{}",
    PATCH + b"Transfer-Encoding: chunked\r\n\r\n" + (b"10000\r\n" + b" " * 65536 + b"\r\n") * 20 + b"0\r\n\r\n",
    PATCH + b"Content-Length: 12\r\n\r\n{",
    PATCH + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
]
# The server answers such a body while the application is at work, whose answer then comes too late, which is logged.
BROKEN_BODY = HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nzz\r\n"
STREAMS: list[dict[str, str]] = [
    {"Last-Event-ID": "9" * 190},
    {"Last-Event-ID": "-"},
    {"Last-Event-ID": "x-\u00b2"},
    {"Accept": "nothing/here"},
    {"Cache-Control": "x" * 4000},
]


def exchange(service: Service, sent: bytes) -> bytes:
    """Send bytes, end one's side, and return what came back before the server hung up."""
    with socket.create_connection(("127.0.0.1", urlsplit(service.url).port or 0), timeout=20) as connection:
        try:
            connection.sendall(sent)
            with suppress(OSError):
                # The server may have hung up before it read all.
                connection.shutdown(socket.SHUT_WR)
            received = b""
            # Without a keep-alive's end: the server waits for further requests for a while.
            while b"\r\n\r\n" not in received and (part := connection.recv(65536)):
                received += part
        except ConnectionError:
            return b""
        return received


def test_no_bytes_bring_it_down_or_make_it_fail(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    for sent in SENT:
        answer = exchange(service, sent.replace(b"%s", service.token.encode()))
        assert b"Traceback" not in answer
        assert not answer or answer.startswith(b"HTTP/1.1 "), answer[:80]
        assert not answer.startswith(b"HTTP/1.1 5"), (sent[:80], answer[:200])
        assert httpx.get(service.url + "livez").status_code == 200
    assert "Traceback" not in caplog.text
    assert "the service failed" not in caplog.text


def test_a_body_that_breaks_off_is_refused(service: Service) -> None:
    for _ in range(20):
        assert exchange(service, BROKEN_BODY)[:12] in {b"HTTP/1.1 400", b"HTTP/1.1 200"}
    assert httpx.get(service.url + "livez").status_code == 200


@pytest.mark.parametrize("query", ["", "kinds=", "kinds=log", "kinds=settings,results,settings"])
def test_the_stream_of_events_begins_as_declared_whatever_is_asked(service: Service, query: str) -> None:
    for headers in STREAMS:
        raw = httpx.Headers({name.encode(): value.encode("latin-1") for name, value in headers.items()})
        with httpx.stream("GET", f"{service.url}api/v1/events?{query}", headers=raw, timeout=20) as response:
            assert response.status_code == 200
            assert response.headers["content-type"].startswith("text/event-stream")
            assert next(line for line in response.iter_lines() if line.startswith("event:")) == "event: hello"


@pytest.mark.parametrize(
    "query",
    ["kinds=" + "a" * 201, "kinds=" + "a" * 5000, "kinds=,,", "kinds=%00", "kinds=nothing", "kinds=%ff,settings"],
)
def test_a_stream_is_refused_before_it_begins(service: Service, query: str) -> None:
    answer = httpx.get(f"{service.url}api/v1/events?{query}", timeout=20)
    assert 400 <= answer.status_code < 500
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_slow_request_holds_nobody_else_up(service: Service, serve: Callable[..., Service]) -> None:
    address = ("127.0.0.1", urlsplit(service.url).port or 0)
    slow = [socket.create_connection(address, timeout=20) for _ in range(50)]
    try:
        for connection in slow:
            connection.sendall(HEAD)
        assert httpx.get(service.url + "livez", timeout=5).status_code == 200
    finally:
        for connection in slow:
            connection.close()
