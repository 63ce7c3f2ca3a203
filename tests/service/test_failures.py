"""Answers 500: as locked down as all others, told of once, and saying nothing of the cause."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service
from tensorplay.service.app import create_app
from tensorplay.service.guard import Guard


@pytest.fixture
def failing(context: TuningContext, serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch) -> Service:
    """A service whose statistics cannot be had."""

    def fail() -> None:
        raise RuntimeError("a secret")

    service = serve()
    monkeypatch.setattr(context, "stats", fail)
    return service


@pytest.mark.parametrize(
    ("path", "accept", "kind"),
    [
        ("api/v1/stats", "*/*", "application/problem+json"),
        ("api/v1/stats", "text/html", "application/problem+json"),
        ("", "text/html", "text/html; charset=utf-8"),
    ],
)
def test_a_failure_is_locked_down_and_logged_once(
    failing: Service, caplog: pytest.LogCaptureFixture, path: str, accept: str, kind: str
) -> None:
    answer = httpx.get(failing.url + path, headers={"Accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (500, kind)
    assert "secret" not in answer.text and "Traceback" not in answer.text
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    (logged,) = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert logged.name == "tensorplay" and logged.exc_info and "a secret" in str(logged.exc_info[1])
    assert httpx.get(failing.url + "livez").status_code == 200


def test_an_answer_that_fails_half_way_is_not_ended_as_if_it_were_whole(context: TuningContext) -> None:
    app = create_app(context)
    (rules,) = [each.kwargs["rules"] for each in app.user_middleware if "rules" in each.kwargs]
    sent: list[Message] = []

    async def half(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("half way")

    async def send(message: Message) -> None:
        sent.append(message)

    with pytest.raises(RuntimeError, match="half way"):
        asyncio.run(Guard(half, rules)(scope_of("/livez"), nothing, send))  # type: ignore[arg-type] # of pytest
    assert [each["type"] for each in sent] == ["http.response.start"]


def test_a_server_that_gives_no_raw_path_is_answered(context: TuningContext) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(create_app(context)(scope_of("/livez"), nothing, send))
    assert sent[0]["status"] == 200


def scope_of(path: str) -> dict[str, Any]:
    """Return a request of a server that tells no more than it must."""
    return {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": path, "query_string": b"", "headers": [(b"host", b"localhost")],
    }  # fmt: skip


async def nothing() -> Message:
    """Give the end of a body that there is not."""
    return {"type": "http.request", "body": b"", "more_body": False}
