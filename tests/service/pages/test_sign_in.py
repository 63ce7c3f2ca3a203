"""Where reading needs the token, a browser is asked for it: without a script, and for nobody else's benefit."""

import re
from collections.abc import Callable
from http.cookies import SimpleCookie
from urllib.parse import urlencode, urljoin

import httpx
import pytest
from anyio.from_thread import BlockingPortal
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette

from tensorplay.runtime.context import TuningContext
from tensorplay.service.app import ServiceSettings, create_app
from tensorplay.service.pages.next_page import checked_next

TOKEN = "right&unusual=+%;"  # noqa: S105 - of this test
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
FORM = HTML | {"Content-Type": "application/x-www-form-urlencoded"}

Browser = Callable[..., httpx.Response]


@pytest.fixture
def app(context: TuningContext) -> Starlette:
    return create_app(context, ServiceSettings(token=TOKEN, token_for_reads=True, hosts=frozenset({"ML.example"})))


@pytest.fixture(params=["", "/user/a/proxy/8787"])
def browse(app: Starlette, portal: BlockingPortal, request: pytest.FixtureRequest) -> Browser:
    """A browser without scripts on one host, at the root and under a prefix; its cookies are those of the prefix."""
    prefix: str = request.param
    jar: dict[str, str] = {}

    async def send(method: str, path: str, headers: dict[str, str], body: bytes) -> httpx.Response:
        transport = httpx.ASGITransport(app, root_path=prefix)
        async with httpx.AsyncClient(transport=transport, base_url="http://ml.example:8787") as client:
            return await client.request(method, prefix + path, headers=headers, content=body)

    def call(path: str, fields: dict[str, str] | None = None, **headers: str) -> httpx.Response:
        method, body = ("GET", b"") if fields is None else ("POST", urlencode(fields).encode())
        sent = (HTML if fields is None else FORM) | headers
        if jar:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in jar.items())
        answer = portal.call(send, method, path, sent, body)
        for name, morsel in SimpleCookie(answer.headers.get("Set-Cookie", "")).items():
            jar[name] = morsel.coded_value
        return answer

    return call


def field(page: httpx.Response, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page.text)
    assert found, page.text
    return found[1].replace("&amp;", "&")


def test_a_person_signs_in_without_a_script_and_goes_on_where_they_wanted_to(browse: Browser) -> None:
    page = browse("/results?q=m4&sort=-time_ms")
    assert (page.status_code, page.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert page.headers["www-authenticate"] == "Bearer"
    assert page.headers["referrer-policy"] == "same-origin"
    assert 'type="password"' in page.text and 'action="./login"' in page.text
    wanted = field(page, "next")
    answer = browse("/login", {"token": f" {TOKEN} ", "next": wanted}, Origin="http://ml.example:8787")
    assert answer.status_code == 303
    assert answer.headers["location"] == "./results?q=m4&sort=-time_ms"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path" not in cookie
    seen = browse("/" + answer.headers["location"].removeprefix("./"))
    assert seen.status_code == 200
    assert TOKEN not in seen.text


def test_a_page_further_down_leads_to_the_same_form(browse: Browser) -> None:
    page = browse("/results/0123456789abcdef")
    assert 'action="../login"' in page.text
    assert field(page, "next") == "results/0123456789abcdef"


def test_a_wrong_token_is_said_and_where_to_go_on_is_kept(browse: Browser) -> None:
    page = browse("/login", {"token": "<b>wrong</b>", "next": "jobs"})
    assert page.status_code == 401
    assert "This is not the token" in page.text and "wrong</b>" not in page.text
    assert field(page, "next") == "jobs"
    assert "set-cookie" not in page.headers


def test_wrong_tokens_of_a_form_are_counted_with_those_of_headers(browse: Browser) -> None:
    codes = [browse("/login", {"token": str(number)}).status_code for number in range(4)]
    codes += [browse("/", Authorization=f"Bearer {number}").status_code for number in range(2)]
    page = browse("/login", {"token": "again"})
    assert codes == [401] * 5 + [429]
    assert (page.status_code, page.headers["retry-after"]) == (429, "60")
    assert "wait a minute" in page.text and 'type="password"' in page.text
    assert browse("/login", {"token": TOKEN}).status_code == 429, "guessing goes on"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://ml.example:8788"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
        {"Host": "evil.example"},
    ],
)
def test_a_form_of_another_page_is_refused(browse: Browser, headers: dict[str, str]) -> None:
    answer = browse("/login", {"token": TOKEN}, **headers)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("path", ["/api/v1/settings", "/logout", "/login/", "/results"])
def test_no_other_address_takes_a_form(browse: Browser, path: str) -> None:
    answer = browse(path, {"token": TOKEN}, **{"X-TensorPlay-Token": TOKEN})
    assert answer.status_code == 415
    assert browse(path, {"token": TOKEN}).status_code == 401


@pytest.mark.parametrize(
    "fields", [{}, {"token": ""}, {"token": "  "}, {"next": "jobs"}, {str(n): "" for n in range(9)}]
)
def test_a_form_without_a_token_is_no_way_in(browse: Browser, fields: dict[str, str]) -> None:
    answer = browse("/login", fields)
    assert answer.status_code in {401, 422}
    assert "set-cookie" not in answer.headers


def test_a_form_that_is_too_large_is_refused(browse: Browser) -> None:
    assert browse("/login", {"token": "a" * 9000}).status_code == 413


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)",
        "/results",
        "results//evil", "..//evil.example", "results\r\nSet-Cookie: a=b", "results#x",
        "%2f%2fevil.example", "http:evil",
    ],
)  # fmt: skip
def test_nobody_is_led_elsewhere(browse: Browser, target: str) -> None:
    answer = browse("/login", {"token": TOKEN, "next": target})
    assert (answer.status_code, answer.headers["location"]) == (303, "./")


@given(st.text(max_size=40) | st.from_regex(r"[a-z/:.\\?%@]{0,20}", fullmatch=True))
def test_wherever_one_goes_on_it_is_below_the_root(given_next: str) -> None:
    base = "https://host.example/prefix/login"
    assert urljoin(base, f"./{checked_next(given_next)}").startswith("https://host.example/prefix/")


def test_programs_are_answered_as_before(browse: Browser) -> None:
    answer = browse("/results", Accept="*/*")
    assert (answer.status_code, answer.json()["type"]) == (401, "urn:tensorplay:problem:token-needed")
    assert browse("/api/v1/results").headers["content-type"] == "application/problem+json"
    assert browse("/login", Accept="application/json").status_code == 403


def test_the_way_in_is_open_and_nothing_else(browse: Browser) -> None:
    assert browse("/login").status_code == 200
    assert 'type="password"' in browse("/login").text
    used = browse("/login?code=used")
    assert used.status_code == 403
    assert "has been used" in used.text and 'type="password"' in used.text
    assert browse("/metrics").status_code == 401
    assert browse("/livez").status_code == 200


def test_a_name_that_is_not_ours_is_a_page_for_people(browse: Browser) -> None:
    page = browse("/", Host="evil.example")
    assert (page.status_code, page.headers["content-type"]) == (403, "text/html; charset=utf-8")
    assert "evil" not in page.text
