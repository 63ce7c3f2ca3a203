"""The event stream, over a real connection."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service

Run = Callable[[int], str]


def messages(response: httpx.Response) -> Iterator[dict[str, str]]:
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if not line:
            if "event" in fields:
                yield fields
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value


def test_what_happens_is_heard_at_once(service: Service, run: Run, context: TuningContext) -> None:
    headers = {"Accept": "text/event-stream"}
    with httpx.stream("GET", service.url + "api/v1/events", headers=headers, timeout=20) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        heard = messages(response)
        assert next(heard)["event"] == "hello"
        timer = threading.Timer(0.2, context.tuning_disable)
        timer.start()
        kinds = {next(heard)["event"] for _ in range(2)}
        timer.join()
        assert kinds == {"settings", "log"}
        run(4)
        assert any(message["event"] == "untuned" for message in (next(heard) for _ in range(4)))


def test_a_client_that_comes_back_hears_what_it_missed_or_that_it_missed_too_much(
    service: Service, context: TuningContext
) -> None:
    url = service.url + "api/v1/events"
    with httpx.stream("GET", url, timeout=20) as response:
        last = next(messages(response))["id"]
    context.tuning_disable()
    with httpx.stream("GET", url, headers={"Last-Event-ID": last}, timeout=20) as response:
        heard = messages(response)
        next(heard)
        assert {next(heard)["event"] for _ in range(2)} == {"settings", "log"}
    for stale in ("other-1", last.rpartition("-")[0] + "-99999999", "nonsense"):
        with httpx.stream("GET", url, headers={"Last-Event-ID": stale}, timeout=20) as response:
            heard = messages(response)
            next(heard)
            assert next(heard)["event"] == "resync"


def test_only_the_kinds_that_were_asked_for_are_heard(service: Service, context: TuningContext) -> None:
    with httpx.stream("GET", service.url + "api/v1/events?kinds=settings", timeout=20) as response:
        heard = messages(response)
        next(heard)
        context.tuning_disable()
        message = next(heard)
        assert message["event"] == "settings"
        assert json.loads(message["data"])["revision"] >= 1


@pytest.mark.parametrize("kinds", ["foo", "settings,resutls", "settings,", ",", "hello", "%00"])
def test_a_kind_that_is_never_told_is_refused_with_those_that_are(service: Service, kinds: str) -> None:
    answer = httpx.get(service.url + f"api/v1/events?kinds={kinds}", timeout=20)
    document = answer.json()
    assert (answer.status_code, document["type"]) == (422, "urn:tensorplay:problem:unknown-kind")
    assert document["allowed"] == ["settings", "results", "rejections", "untuned", "files", "jobs", "log"]
    assert "foo" not in answer.text


def test_the_log_keeps_the_last_events_with_hostile_text_as_text(client: httpx.Client, context: TuningContext) -> None:
    context.listeners.tell("file", action="<img src=x onerror=alert(1)>", path="\x00" * 500)
    (entry,) = client.get("log").json()["items"]
    assert entry["detail"]["action"].startswith("<img")
    assert len(entry["detail"]["path"]) <= 300
    context.listeners.tell("file", action="read", path="/home/somebody/winners0.csv")
    assert client.get("log", params={"since": entry["number"]}).json()["items"][0]["detail"]["path"] == "winners0.csv"
    assert client.get("log", params={"since": entry["number"] + 1}).json()["items"] == []


def test_the_limit_is_kept_when_all_streams_are_opened_together(service: Service) -> None:
    address = ("127.0.0.1", urlsplit(service.url).port or 0)
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(address, timeout=20)) for _ in range(100)]
        for connection in opened:
            connection.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        heads = [connection.recv(12)[9:] for connection in opened]
    assert (heads.count(b"200"), heads.count(b"429")) == (64, 36)
