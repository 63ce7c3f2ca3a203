"""An application that is called without a network, so that any byte reaches it, and what its document says."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from itertools import count
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import httpx
import pytest
import requests
import schemathesis

from tensorplay.runtime.context import TuningContext
from tensorplay.service.app import ServiceSettings, create_app

TOKEN = "right-and-too-long-to-be-guessed"  # noqa: S105 - of these tests
PROBLEM = "application/problem+json"


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    def check(self) -> None:
        """Nothing failed, and what was refused is told as a problem."""
        assert self.status < 500, self.body
        if self.status >= 400:
            assert self.headers["content-type"] in {PROBLEM, "text/html; charset=utf-8"}
            assert b"Traceback" not in self.body


class Caller:
    """Calls an application; each call comes from another address, since the rate of changes is limited by that."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._loop = asyncio.new_event_loop()
        self._numbers = count()

    def close(self) -> None:
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def ask(
        self,
        method: str,
        path: str,
        query: str | bytes = "",
        headers: Mapping[str, str | bytes] | None = None,
        body: bytes = b"",
    ) -> Answer:
        given: dict[str, str | bytes] = {"host": "localhost", "content-length": str(len(body))}
        given |= {name.lower(): value for name, value in (headers or {}).items()}
        number = next(self._numbers)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path, errors="replace"),
            "raw_path": path.encode("ascii", "replace"),
            "query_string": _as_bytes(query),
            "root_path": "",
            "headers": [(_as_bytes(name), _as_bytes(value)) for name, value in given.items()],
            "client": (f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", 1),
            "server": ("localhost", 80),
            "state": {},
        }
        return self._loop.run_until_complete(self._ask(scope, body))

    async def _ask(self, scope: dict[str, Any], body: bytes) -> Answer:
        sent: list[Any] = []
        given = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            if given:
                return given.pop()
            await asyncio.sleep(60)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        headers = httpx.Headers(sent[0]["headers"])
        return Answer(sent[0]["status"], headers, b"".join(each.get("body", b"") for each in sent[1:]))

    def call(self, case: Any, headers: Mapping[str, str]) -> httpx.Response:
        """Send a generated case."""
        request = requests.Request(**case.as_transport_kwargs(base_url="http://localhost")).prepare()
        method, url = request.method or "GET", request.url or ""
        sent: Any = request.body or b""
        body = sent.encode() if isinstance(sent, str) else sent
        kept = {name: value for name, value in request.headers.items() if name.lower() != "content-length"}
        answer = self.ask(method, urlsplit(url).path, urlsplit(url).query, {**kept, **headers}, body)
        response = httpx.Response(
            answer.status,
            headers=answer.headers,
            content=answer.body,
            request=httpx.Request(method, "http://localhost/"),
        )
        response.elapsed = timedelta(0)
        return response


def _as_bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1", "replace")


@pytest.fixture
def make_caller(context: TuningContext) -> Iterator[Callable[..., Caller]]:
    """Makes the application over the context, with settings."""
    made: list[Caller] = []

    def make(**options: Any) -> Caller:
        made.append(Caller(create_app(context, ServiceSettings(token=TOKEN, **options))))
        return made[-1]

    yield make
    for caller in made:
        caller.close()


@pytest.fixture
def caller(make_caller: Callable[..., Caller]) -> Caller:
    return make_caller()


@pytest.fixture(scope="session")
def document(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    context = TuningContext(environ={}, directory=tmp_path_factory.mktemp("document"))
    yield create_app(context).openapi()
    context.close()


@pytest.fixture(scope="session")
def operations(document: dict[str, Any]) -> list[Any]:
    """Every operation but the stream of events, which never ends."""
    # What is not allowed may be refused for another reason that is met before.
    refused = ["400", "401", "403", "404", "405", "409", "412", "413", "414", "415", "422", "428", "429", "431"]
    config = schemathesis.Config.from_dict({"checks": {"negative_data_rejection": {"expected-statuses": refused}}})
    schema: Any = schemathesis.openapi.from_dict(document, config=config)
    found = [each.ok() for each in schema.get_all_operations()]
    assert len(found) > 25
    return [each for each in found if not each.path.endswith("/events")]
