"""The name of a request and the version of what answered: in every answer, whoever gives it."""

import asyncio
import logging
import re
from collections.abc import Callable

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message, Receive, Scope, Send

import tensorplay
from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service
from tensorplay.service.request_id import NamedRequests, request_id_of

FRESH = re.compile(r"[0-9a-f]{32}")


@pytest.mark.parametrize(
    ("path", "accept", "status"),
    [
        ("api/v1", "*/*", 200), ("api/v1/results.csv", "*/*", 200), ("api/v1/nothing", "*/*", 404),
        ("", "text/html", 200), ("nothing", "text/html", 404), ("livez", "*/*", 200), ("metrics", "*/*", 200),
        ("api/v1/openapi.json", "*/*", 200), ("api/v1/results?limit=x", "*/*", 422), ("static/live.js", "*/*", None),
    ],
)  # fmt: skip
def test_every_answer_says_both(service: Service, path: str, accept: str, status: int | None) -> None:
    answer = httpx.get(service.url + path, headers={"Accept": accept, "X-Request-ID": "job-7/step_3"})
    assert status is None or answer.status_code == status
    assert answer.headers.get_list("x-request-id") == ["job-7/step_3"]
    assert answer.headers.get_list("x-tensorplay-version") == [tensorplay.__version__]
    if answer.headers["content-type"] == "application/problem+json":
        assert answer.json()["request_id"] == "job-7/step_3"


def test_a_stream_says_both(service: Service) -> None:
    with httpx.stream("GET", service.url + "api/v1/events", headers={"X-Request-ID": "s"}) as answer:
        assert (answer.headers["x-request-id"], answer.headers["x-tensorplay-version"]) == ("s", tensorplay.__version__)


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("DELETE", {}, 401),
        ("GET", {"Host": "evil.example"}, 403),
        ("GET", {"X": "x" * 20_000}, 431),
        ("POST", {"Transfer-Encoding": "chunked", "Content-Length": "0"}, 400),
    ],
)
def test_what_is_refused_at_the_door_has_a_name_too(
    service: Service, method: str, headers: dict[str, str], status: int
) -> None:
    answer = httpx.request(method, service.url + "api/v1/rejections", headers=headers)
    assert answer.status_code == status
    assert FRESH.fullmatch(answer.headers["x-request-id"]) and answer.headers["x-tensorplay-version"]
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_two_requests_have_two_names(service: Service) -> None:
    names = {httpx.get(service.url + "livez").headers["x-request-id"] for _ in range(3)}
    assert len(names) == 3 and all(map(FRESH.fullmatch, names))


def test_a_failure_is_found_in_the_log_by_its_name(
    service: Service, context: TuningContext, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(context, "stats", fail)
    answer = httpx.get(service.url + "api/v1/stats", headers={"X-Request-ID": "who-1"})
    assert (answer.status_code, answer.json()["request_id"]) == (500, "who-1")
    (logged,) = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert "request who-1" in logged.getMessage()


def named(*given: bytes) -> str:
    """Return the name that a request with such headers is answered under."""
    sent: list[Message] = []
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(request_id_of(scope))
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {"type": "http", "headers": [(b"x-request-id", each) for each in given]}
    # Twice around: the inner one leaves the name as it is.
    asyncio.run(NamedRequests(NamedRequests(app))(scope, receive, send))
    headers = [value.decode() for name, value in sent[0]["headers"] if name == b"x-request-id"]
    assert headers == seen
    return seen[0]


@given(st.binary(max_size=200) | st.from_regex(rb"\A[!-~]{1,140}\Z"))
def test_a_name_is_echoed_if_and_only_if_it_is_well_formed(given_name: bytes) -> None:
    is_name = 1 <= len(given_name) <= 128 and all(0x21 <= each <= 0x7E for each in given_name)
    answered = named(given_name)
    assert (answered == given_name.decode("latin-1")) if is_name else FRESH.fullmatch(answered)


def test_of_several_names_none_is_taken() -> None:
    assert FRESH.fullmatch(named(b"a", b"b")) and FRESH.fullmatch(named())


def test_what_comes_past_the_door_has_one_name_all_the_same() -> None:
    scope: Scope = {"type": "http"}
    assert request_id_of(scope) == request_id_of(scope) and FRESH.fullmatch(request_id_of(scope))


def test_a_client_has_the_name_in_the_document_of_its_error(serve: Callable[..., Service]) -> None:
    service = serve()
    with tensorplay.service.Client(service.url) as client, pytest.raises(tensorplay.service.ServiceError) as caught:
        client.result("0" * 16)
    assert FRESH.fullmatch(str(caught.value.document["request_id"]))
