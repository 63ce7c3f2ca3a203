"""What a client may do to its connection, and what is said of it: nobody is waited for for ever, and little is said."""

import logging
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tensorplay.service import Service, audience, connection
from tensorplay.service.connection import OncePerMinute

HEAD = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"
EVENTS = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def connected(stack: ExitStack, service: Service, sent: bytes = b"") -> socket.socket:
    made = stack.enter_context(socket.create_connection(("127.0.0.1", urlsplit(service.url).port or 0), timeout=20))
    made.sendall(sent)
    return made


def rest(made: socket.socket) -> bytes:
    """Return what comes until the server hangs up."""
    received = b""
    with suppress(ConnectionError):
        while part := made.recv(65536):
            received += part
    return received


def test_a_request_that_does_not_come_ends_the_connection(
    service: Service, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MOST_WAIT_S", 0.5)
    change = f"X-TensorPlay-Token: {service.token}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{{"
    body = f"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n{change}".encode()
    opened = [connected(stack, service, sent) for sent in (b"", HEAD, body, HEAD + b"\r\n" + HEAD)]
    for made in opened:
        rest(made)
    assert httpx.get(service.url + "livez").status_code == 200


def test_an_answer_that_is_not_taken_ends_the_connection(
    service: Service, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MOST_WAIT_S", 0.5)
    made = stack.enter_context(socket.socket())
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.settimeout(20)
    made.connect(("127.0.0.1", urlsplit(service.url).port or 0))
    ask = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with pytest.raises(ConnectionError):  # noqa: PT012 - whichever of many fails
        while True:
            made.sendall(ask * 100)


def test_who_asks_nothing_shuts_nobody_out(service: Service, stack: ExitStack) -> None:
    for number in range(connection.MOST_CONNECTIONS + 20):
        connected(stack, service, HEAD if number % 2 else b"")
    assert httpx.get(service.url + "livez", timeout=20).status_code == 200


def test_a_body_with_two_lengths_is_refused(service: Service, stack: ExitStack) -> None:
    lengths = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    answer = rest(connected(stack, service, HEAD + lengths + HEAD + b"\r\n"))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"two-lengths" in answer
    assert answer.count(b"HTTP/1.1") == 1


def test_garbage_in_the_middle_of_an_answer_ends_it_in_silence(
    service: Service, stack: ExitStack, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audience, "_SILENCE_S", 0.2)
    made = connected(stack, service, EVENTS + b"Transfer-Encoding: chunked\r\n\r\n")
    assert b"event: hello" in made.recv(65536) + made.recv(65536)
    made.sendall(b"zz\r\n\r\n")
    rest(made)
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


def test_nothing_that_a_stranger_sends_is_written_by_a_process_without_a_log(tmp_path: Path) -> None:
    program = """
import socket, tensorplay.service
service = tensorplay.service.start()
port = int(service.url.rsplit(":", 1)[1].strip("/"))
upgrade = b"GET / HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n"
for sent in (b"\\x16\\x03\\x01 garbage\\r\\n\\r\\n", upgrade):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as made:
        made.sendall(sent)
        assert made.recv(100)
service.stop()
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_one_message_of_a_kind_passes_in_a_minute_and_warnings_as_information(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    once = OncePerMinute(lambda: now[0])

    def passes(level: int, text: str) -> bool:
        record = logging.LogRecord("tensorplay.http", level, "", 0, text, (), None)
        done = once.filter(record)
        assert not done or record.levelno != logging.WARNING
        return done

    with caplog.at_level(logging.INFO, "tensorplay"):
        assert [passes(logging.WARNING, "a"), passes(logging.WARNING, "a"), passes(logging.ERROR, "b")] == [
            True,
            False,
            True,
        ]
        now[0] = 60.0
        assert passes(logging.WARNING, "a")
    with caplog.at_level(logging.WARNING, "tensorplay"):
        now[0] = 120.0
        assert not passes(logging.WARNING, "a")


def test_the_logs_of_other_servers_stay_as_they_are(tmp_path: Path) -> None:
    program = """
import logging, uvicorn, tensorplay.service
uvicorn.Config("x:y")
names = ("uvicorn", "uvicorn.access", "uvicorn.error", "uvicorn.asgi")
look = lambda: [(each.handlers, each.propagate, each.level) for each in map(logging.getLogger, names)]
before = look()
with tensorplay.service.start():
    assert look() == before, look()
assert look() == before
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
