"""Who may change things by a form, and what a form can name: what the REST API takes from them, and nothing besides."""

import json
import re
from collections.abc import Callable
from html import unescape
from itertools import count
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from anyio.from_thread import BlockingPortal
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from tensorplay.runtime.context import TuningContext
from tensorplay.service.app import ServiceSettings, create_app
from tensorplay.service.own_user import OwnUserDoor

TOKEN = "right-and-too-long-to-be-guessed"  # noqa: S105 - of these tests
HTML = {"Accept": "text/html,*/*;q=0.8"}
FORM = HTML | {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
MINE = {"X-TensorPlay-Token": TOKEN}
OFF = {"method": "PATCH", "path": "switches", "body": {"tuning": False}}

Do = Callable[..., httpx.Response]


@pytest.fixture
def app(context: TuningContext) -> Starlette:
    return create_app(context, ServiceSettings(token=TOKEN))


class Door:
    """What stands before an application: each request comes from another address, and what is reached is noted."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.addresses = count()
        self.address: str | None = None
        self.portal: BlockingPortal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["client"] = (self.address or f"10.0.0.{next(self.addresses)}", 1)
        await self.app(scope, receive, send)

    def send(self, method: str, path: str, headers: dict[str, str], body: bytes, root_path: str = "") -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self, raise_app_exceptions=False, root_path=root_path)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return await client.request(method, root_path + path, headers=headers, content=body)

        return self.portal.call(ask)


@pytest.fixture
def door(app: Starlette, portal: BlockingPortal) -> Door:
    made = Door(app)
    made.portal = portal
    return made


@pytest.fixture
def do(door: Door) -> Do:
    """Sends a form to `/do` with the token; a header of None is left out."""

    def send(
        call: Any = None,
        fields: dict[str, str] | None = None,
        on: str = "results",
        root_path: str = "",
        **headers: str | None,
    ) -> httpx.Response:
        text = call if isinstance(call, str) else json.dumps(call)
        body = urlencode(({} if call is None else {"call": text}) | (fields or {})).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {name: value for name, value in (FORM | MINE | named).items() if value is not None}
        return door.send("POST", f"/do?{urlencode({'on': on})}", given, body, root_path)

    return send


@pytest.fixture
def cookie(door: Door) -> str:
    answer = door.send("POST", "/login", MINE, b"")
    return answer.headers["set-cookie"].partition(";")[0]


@pytest.mark.parametrize("prefix", ["", "/user/a/proxy/8787"])
def test_a_change_leads_back_to_the_page_whatever_stands_before_it(do: Do, context: TuningContext, prefix: str) -> None:
    answer = do(OFF, on="results?q=m4&sort=-time_ms", root_path=prefix)
    assert (answer.status_code, answer.headers["location"]) == (303, "./results?q=m4&sort=-time_ms#done")
    assert not context.tuning_is_enabled()
    assert do(OFF | {"go": "jobs", "at": "s-x"}).headers["location"] == "./jobs#s-x"


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil.example", "..//evil.example", "a\r\nb: c", "../x"]
)
def test_nobody_is_led_elsewhere(do: Do, target: str) -> None:
    assert do(OFF | {"go": target}).headers["location"] == "./#done"
    assert do(OFF, on=target).headers["location"] == "./#done"


def test_the_cookie_is_enough(do: Do, cookie: str, context: TuningContext) -> None:
    assert do(OFF, X_TensorPlay_Token=None, Cookie=cookie).status_code == 303
    assert not context.tuning_is_enabled()


@pytest.mark.parametrize("given", [{}, {"Cookie": "tensorplay_x=1"}, {"X_TensorPlay_Token": "wrong"}])
def test_who_is_not_signed_in_is_asked_for_the_token_and_comes_back_to_the_page(
    do: Do, context: TuningContext, given: dict[str, str]
) -> None:
    page = do(OFF, on="results?q=m4", **({"X_TensorPlay_Token": None} | given))
    assert page.status_code == 401
    assert "Changing something needs the token" in page.text and "not the token of this process" not in page.text
    assert 'name="next" value="results?q=m4"' in page.text
    assert context.tuning_is_enabled()


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": None, "Origin": "null"},
        {"Sec_Fetch_Site": None, "Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": None},
        {"Sec_Fetch_Site": None, "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"},
        {"Sec_Fetch_Site": "none", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"},
        {"Sec_Fetch_Site": "none", "Origin": "http://127.0.0.1:1"},
        {"Host": "evil.example"},
    ],
)
def test_another_page_changes_nothing(do: Do, cookie: str, context: TuningContext, headers: dict[str, Any]) -> None:
    answer = do(OFF, Cookie=cookie, **({"X_TensorPlay_Token": None} | headers))
    assert answer.status_code == 403
    assert context.tuning_is_enabled()


def test_a_form_of_ours_that_is_sent_once_more_says_so_by_its_origin(do: Do, cookie: str) -> None:
    again = {"Sec_Fetch_Site": "none", "Origin": "http://127.0.0.1"}
    assert do(OFF, Cookie=cookie, X_TensorPlay_Token=None, **again).status_code == 303


def test_a_program_with_the_token_need_not_say_where_a_form_is_from(do: Do) -> None:
    assert do(OFF, Sec_Fetch_Site=None).status_code == 303


@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data", "text/plain", None])
def test_nothing_but_a_form_is_taken(do: Do, context: TuningContext, kind: str | None) -> None:
    assert do(OFF, Content_Type=kind).status_code == 415
    assert context.tuning_is_enabled()


def test_it_is_not_read_and_no_other_address_takes_a_form(door: Door) -> None:
    assert door.send("GET", "/do", HTML, b"").status_code == 405
    for path in ("/do/", "/do/x", "/api/v1/switches", "/logout"):
        assert door.send("POST", path, FORM | MINE, b"call=x").status_code == 415, path


_NO_CALLS: list[Any] = [
    None,
    "",
    "x",
    "[]",
    "{}",
    "[" * 5000,
    '{"a":' * 1000 + "1" + "}" * 1000,
    '{"method":"PATCH","path":"switches","body":{"tuning":NaN}}',
    '{"method":"PATCH","path":"switches","sure":"\\ud800"}',
    OFF | {"x": 1},
    OFF | {"method": "GET"},
    OFF | {"method": "TRACE"},
    OFF | {"match": "a\r\nX: y"},
    OFF | {"match": "é"},
    OFF | {"at": "a b"},
    OFF | {"body": "text"},
    OFF | {"new": "yes"},
    OFF | {"fields": {"value": "a b"}},
    OFF | {"fields": {"value": "text"}},
    OFF | {"picks": True},
    OFF | {"picks": True, "sure": "Go on?"},
    OFF | {"sure": "x" * 601},
    OFF | {"sure": "Go on?", "yes": "x" * 61},
    OFF | {"body": {"tuning": "maybe"}},
    OFF | {"body": {"unknown": True}},
]


def test_what_no_page_of_ours_says_is_refused(do: Do, context: TuningContext) -> None:
    for call in _NO_CALLS:
        answer = do(call)
        assert answer.status_code == 422, call
        assert "text/html" in answer.headers["content-type"]
    assert context.tuning_is_enabled()


def test_a_form_that_is_too_large_is_refused(do: Do, door: Door) -> None:
    assert do(OFF, {"x": "y" * (1 << 18)}).status_code == 413
    assert do(OFF, {str(number): "" for number in range(700)}).status_code == 413
    assert do(OFF | {"body": {"tuning": False, "x": "y" * 9000}}).status_code == 413
    assert door.send("POST", "/do", FORM | MINE, b"a" * ((1 << 20) + 1)).status_code == 413
    many = urlencode({"call": json.dumps(OFF | {"body": {"x": [0] * 3000}})})
    assert door.send("POST", "/do", FORM | MINE, many.encode()).status_code == 413
    assert door.send("POST", "/do", FORM | MINE, urlencode([("call", json.dumps(OFF))] * 2).encode()).status_code == 422


def test_what_the_api_refuses_is_told_on_a_page_that_leads_back(do: Do) -> None:
    page = do({"method": "DELETE", "path": "jobs/0123456789abcdef"}, on="jobs")
    assert page.status_code == 404
    assert 'href="./jobs">Back to the page' in page.text
    page = do({"method": "PATCH", "path": "switches", "body": {"tuning": 1}})
    assert page.status_code == 422 and "<code>tuning</code>" in page.text
    assert do({"method": "DELETE", "path": "untuned"}).status_code == 422, "all must be meant"
    assert do({"method": "PUT", "path": "settings/filename", "body": {"value": "/x"}}).status_code == 409
    assert do({"method": "POST", "path": "events"}).status_code == 405


def test_programs_are_told_a_problem(do: Do) -> None:
    answer = do({"method": "DELETE", "path": "jobs/0123456789abcdef"}, Accept="application/json")
    assert (answer.status_code, answer.json()["type"]) == (404, "urn:tensorplay:problem:not-found")


def test_a_person_is_asked_first_and_the_question_is_text(do: Do, context: TuningContext) -> None:
    call = OFF | {"sure": "<b>Sure?</b>\"'"}
    page = do(call, on="results?q=a%20b")
    assert page.status_code == 200
    assert "<b>Sure" not in page.text and unescape("&lt;b&gt;Sure?") in unescape(page.text)
    assert page.headers["referrer-policy"] == "same-origin" and page.headers["cache-control"] == "private, no-cache"
    assert 'action="./do?on=results%3Fq%3Da%2520b"' in page.text and 'href="./results?q=a%20b">Cancel' in page.text
    assert context.tuning_is_enabled()
    assert do(call, {"yes": "1"}).status_code == 303
    assert not context.tuning_is_enabled()


def test_where_nothing_can_be_changed_no_form_changes_it(context: TuningContext, portal: BlockingPortal) -> None:
    door = Door(create_app(context, ServiceSettings(token=TOKEN, read_only=True)))
    door.portal = portal
    body = urlencode({"call": json.dumps(OFF)}).encode()
    for headers in (FORM, FORM | MINE):
        page = door.send("POST", "/do", headers, body)
        assert page.status_code == 403 and "read-only" in page.text
    assert context.tuning_is_enabled()
    for path in ("/", "/settings"):
        offered = re.findall(r"<button[^>]* name=\"call\" [^>]*>", door.send("GET", path, HTML, b"").text)
        assert all(each.endswith(" disabled>") for each in offered)


def test_ten_changes_a_second_are_ten_by_forms_too(do: Do, door: Door) -> None:
    door.address = "10.1.2.3"
    codes = [do(OFF).status_code for _ in range(30)]
    assert codes[:20] == [303] * 20, "each is counted once, though two requests make it"
    assert 429 in codes


def test_what_comes_through_the_door_of_the_own_user_still_does(door: Door, context: TuningContext) -> None:
    body = urlencode({"call": json.dumps(OFF)}).encode()
    assert door.send("POST", "/do", FORM, body).status_code == 401
    door.app = OwnUserDoor(door.app)
    assert door.send("POST", "/do", FORM, body).status_code == 303
    assert not context.tuning_is_enabled()


_PARTS = (
    "..", ".", "/", "//", "api/v1/", "%2e%2e", "%2F", "\\", "?", "#", "\n", "\0", "switches", "jobs", "login", "do",
    "https:", "@", "{name}", "é", "confirm=all", "metrics", ";", "*",
)  # fmt: skip
_PATHS = st.lists(st.sampled_from(_PARTS), max_size=6).map("".join) | st.text(max_size=30)


@pytest.fixture
def reached(app: Any) -> list[str]:
    """The paths of what gets behind the guard."""
    found: list[str] = []
    inner = app.router.middleware_stack

    async def note(scope: Scope, receive: Receive, send: Send) -> None:
        found.append(scope["path"])
        await inner(scope, receive, send)

    app.router.middleware_stack = note
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(path=_PATHS, method=st.sampled_from(["POST", "PUT", "PATCH", "DELETE"]))
@example(path="switches", method="PATCH")
def test_no_path_leads_out_of_the_api(do: Do, reached: list[str], path: str, method: str) -> None:
    reached.clear()
    answer = do({"method": method, "path": path}, {"name": path})
    assert answer.status_code < 500, answer.text
    assert reached[0] == "/do"
    assert len(reached) == 2 or path != "switches"
    assert all(each.startswith("/api/v1/") and "/." not in each and "//" not in each for each in reached[1:])
