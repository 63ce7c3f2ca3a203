"""A rank that lies, or is of another version: it is not understood, and what the first rank shows of others stays."""

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

OWN = "/api/v1/ranks/own"
WINNER = {"op": "GemmTunableOp_Float32", "params": "taN_m1_n2_k3_bias0_dev0", "kernel": "a", "time_ms": 1.0}


@pytest.fixture(scope="module")
def first(make_job: Callable[[], Any]) -> Any:
    """The first rank of two; what it is told of the other it asks for each time."""
    job = make_job()
    return job, job.start(0, LOCAL_WORLD_SIZE="2")


@pytest.fixture
def lie(first: Any) -> Iterator[Callable[[dict[str, bytes]], Any]]:
    """Puts in the place of the second rank what answers each path with some bytes."""
    job, rank = first
    with ExitStack() as stack:

        def begin(answers: dict[str, bytes]) -> Any:
            client = stack.enter_context(rank.client())
            own = client.get(OWN).json() | {"local_rank": 1, "rank": 9, "id": "1" * 16}
            asked: list[str] = []
            told = {OWN: json.dumps(own).encode(), "/api/v1/results.jsonl": b""} | answers

            class Handler(BaseHTTPRequestHandler):
                def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base's word
                    """Say nothing."""

                def do_GET(self) -> None:
                    asked.append(self.path)
                    body = told.get(self.path.partition("?")[0], b"{}")
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

                do_PATCH = do_GET  # noqa: N815 - the base's word

            class Server(socketserver.ThreadingUnixStreamServer):
                daemon_threads = True

            place = job.sockets / "1.sock"
            server = stack.enter_context(Server(str(place), Handler))
            stack.callback(place.unlink)
            stack.callback(lambda: asked or pytest.fail("the first rank did not ask"))
            stack.callback(server.shutdown)
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
            return client

        yield begin


def shown(client: Any) -> str:
    page = client.get("ranks", headers={"Accept": "text/html"})
    assert page.status_code == 200, page.text
    assert client.get("metrics").status_code == 200
    return str(page.text)


@pytest.mark.parametrize("own", [b"[" * 100_000, b'{"id": "1"}', b"\xff", b"[]", b"{}"])
def test_a_rank_that_tells_nonsense_of_itself_is_not_understood(lie: Any, own: bytes) -> None:
    client = lie({OWN: own})
    first, second = client.get("api/v1/ranks").json()["items"]
    assert (first["state"], second["state"]) == ("reachable", "unreachable")
    assert "not understood" in second["reason"]
    assert "not understood" in shown(client)


def test_a_rank_that_counts_other_things_is_not_understood(lie: Any) -> None:
    summary = {
        "id": "1" * 16, "pid": 1, "rank": 1, "local_rank": 1, "world_size": 2, "version": "9", "started_at": "x",
        "read_only": False, "devices": [], "stats": {}, "results": 0, "results_revision": 0, "rejections": 0,
        "untuned": 0, "settings": {},
    }  # fmt: skip
    client = lie({OWN: json.dumps(summary).encode()})
    assert "not understood" in client.get("api/v1/ranks").json()["items"][1]["reason"]
    assert "not understood" in shown(client)


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        json.dumps(WINNER | {"params": "\ud800"}).encode(),
        json.dumps(WINNER | {"time_ms": 10**400}).encode(),
        json.dumps(WINNER | {"kernel": ["a"]}).encode(),
        b"{}",
    ],
    ids=["deep", "surrogate", "huge", "list", "empty"],
)
def test_a_winner_that_is_none_is_passed_over_and_the_others_are_compared(lie: Any, line: bytes) -> None:
    twice = [json.dumps(WINNER | {"kernel": kernel}).encode() for kernel in ("a", "b")]
    client = lie({"/api/v1/results.jsonl": b"\n".join([line, line.replace(b'"a"', b'"c"'), *twice, b""])})
    found = client.get("api/v1/ranks/disagreements")
    assert found.status_code == 200, found.text
    assert [{each["kernel"] for each in one["winners"]} for one in found.json()["items"]] == [{"a", "b"}]
    shown(client)


@pytest.mark.parametrize("body", [b"{", b'{"a": NaN}', b'{"a": "\\ud800"}', b"[" * 100_000])
def test_what_cannot_be_told_on_of_a_change_is_the_failure_of_that_rank_alone(lie: Any, body: bytes) -> None:
    client = lie({"/api/v1/switches": body})
    answer = client.patch("api/v1/ranks/all/switches", json={"tuning": True})
    assert answer.status_code == 207, answer.text
    assert [each["status"] for each in answer.json()["items"]] == [200, 502]
