"""Bodies that end before they are whole: what they would have changed is not changed, as if nothing had come."""

import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, connection

# Whole as JSON, and short of what was announced: only the count of bytes tells that it is not all.
JOB = b'{"source": {"untuned": true}}'
CHANGES = [
    ("POST", "jobs", JOB),
    ("PATCH", "switches", b'{"tuning": false}'),
    ("PATCH", "settings", b'{"values": {"tuning": false}}'),
    ("PUT", "switches/tuning", b'{"value": false}'),
    ("POST", "files/tunableop_results0.csv/save", b"{}"),
    ("POST", "files/save", b""),
    ("DELETE", "untuned?confirm=all", b""),
]


def counted(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%s" % (len(body) + 1, body)


def chunked(body: bytes) -> bytes:
    return b"Transfer-Encoding: chunked\r\n\r\n" + (b"%x\r\n%s\r\n" % (len(body), body) if body else b"")


def in_the_middle_of_a_chunk(body: bytes) -> bytes:
    return b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s" % (len(body) + 9, body)


def hang_up(client: socket.socket) -> None:
    client.close()


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def say_no_more(client: socket.socket) -> None:
    client.shutdown(socket.SHUT_WR)
    with suppress(ConnectionError):
        assert client.recv(65536) == b""
    client.close()


def send(service: Service, method: str, path: str, rest: bytes, key: str = "") -> socket.socket:
    client = socket.create_connection(("127.0.0.1", urlsplit(service.url).port or 0), timeout=20)
    head = (
        f"{method} /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nX-TensorPlay-Token: {service.token}\r\n"
        f"Content-Type: application/json\r\n{f'Idempotency-Key: {key}' if key else 'X-None: 1'}\r\n"
    )
    client.sendall(head.encode() + rest)
    return client


def wait_until(is_done: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not is_done():
        assert time.monotonic() < end
        time.sleep(0.01)


def wait_until_begun(service: Service) -> None:
    wait_until(lambda: service._servers[0]._state.tasks)


def wait_until_over(service: Service) -> None:
    wait_until(lambda: not service._servers[0].connections and not service._servers[0]._state.tasks)


@pytest.fixture
def untuned(context: TuningContext, run: Callable[[int], str]) -> str:
    context.change_setting("tuning", False)
    params = run(3)
    context.change_setting("tuning", True)
    return params


def seen(client: httpx.Client) -> dict[str, object]:
    # The time that is left, and what was asked, are no state.
    return {name: client.get(name).json() for name in ("jobs", "switches", "untuned", "files", "results")}


@pytest.mark.usefixtures("untuned")
@pytest.mark.parametrize("cut", [hang_up, reset, say_no_more])
@pytest.mark.parametrize("framed", [counted, chunked, in_the_middle_of_a_chunk])
def test_a_change_whose_body_is_cut_off_changes_nothing(
    service: Service,
    client: httpx.Client,
    framed: Callable[[bytes], bytes],
    cut: Callable[[socket.socket], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = seen(client)
    client.close()
    wait_until_over(service)
    for method, path, body in CHANGES:
        sender = send(service, method, path, framed(body))
        wait_until_begun(service)
        cut(sender)
        wait_until_over(service)
    with httpx.Client(base_url=f"{service.url}api/v1/") as later:
        assert seen(later) == before
    assert [each for each in caplog.records if each.exc_info or each.levelname in {"WARNING", "ERROR"}] == []


@pytest.mark.usefixtures("untuned")
def test_the_same_changes_with_a_whole_body_are_made(client: httpx.Client) -> None:
    headers = {"Content-Type": "application/json"}
    answers = [client.request(method, path, content=body, headers=headers) for method, path, body in CHANGES]
    assert [answer.status_code for answer in answers] == [202, 200, 200, 200, 428, 200, 204]


def test_the_key_of_a_request_that_was_cut_off_is_free(service: Service, client: httpx.Client, untuned: str) -> None:
    sender = send(service, "POST", "jobs", counted(JOB), key="mine")
    wait_until_begun(service)
    hang_up(sender)
    wait_until_over(service)
    other = {"source": {"signatures": [{"op": "GemmTunableOp_Float32", "params": untuned}]}}
    assert client.post("jobs", json=other, headers={"Idempotency-Key": "mine"}).status_code == 202
    assert client.get("jobs").json()["total"] == 1


@pytest.mark.usefixtures("untuned")
def test_a_body_that_comes_byte_by_byte_for_ever_ends_the_connection_and_changes_nothing(
    service: Service, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MOST_WAIT_S", 0.5)
    sender = send(service, "POST", "jobs", b"Content-Length: 100000\r\n\r\n" + JOB)
    with pytest.raises(ConnectionError):  # noqa: PT012 - whichever of many fails
        while True:
            sender.sendall(b" ")
            time.sleep(0.05)
    sender.close()
    assert client.get("jobs").json()["total"] == 0
