"""What a page of another origin can send, to every route and under every method: nothing of it is done or read."""

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, create_app

TOKEN = "right-and-too-long-to-be-guessed"  # noqa: S105 - of these tests
EVIL: list[dict[str, str]] = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "none", "Origin": "https://evil.example"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"},
    {"Host": "evil.example"},
]


def routes() -> list[tuple[str, str]]:
    """Return each route of the document with its method, where parts of paths are something that may exist."""
    paths = create_app(TuningContext(environ={}, directory="/nonexistent")).openapi()["paths"]
    parts = {"{identity}": "0" * 16, "{name}": "tuning", "{rank}": "0", "{part}": "stats"}
    found = []
    for path, operations in paths.items():
        concrete = path
        for part, value in parts.items():
            concrete = concrete.replace(part, value)
        found += [(method.upper(), concrete.lstrip("/")) for method in operations]
    return sorted(found)


ROUTES = routes()
ALL_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "FOO")


@pytest.fixture
def browser(service: Service) -> Iterator[httpx.Client]:
    """A browser that is signed in, as an evil page would wish to use it."""
    with httpx.Client(base_url=service.url) as made:
        made.get(service.login_url.removeprefix(service.url))
        assert made.patch("api/v1/switches", json={}).status_code == 200
        yield made


@pytest.mark.parametrize("evil", EVIL)
def test_no_route_is_open_to_another_page_under_its_own_method(browser: httpx.Client, evil: dict[str, str]) -> None:
    for method, path in ROUTES:
        if path in {"livez", "readyz"}:
            continue
        answer = browser.request(method, path, headers=evil, json={} if method != "GET" else None)
        assert (answer.status_code, answer.json()["status"]) == (403, 403), (method, path)


def test_no_method_of_any_route_is_open_to_another_page(browser: httpx.Client) -> None:
    for path in sorted({path for _, path in ROUTES} - {"livez", "readyz"}):
        for method in ALL_METHODS:
            assert browser.request(method, path, headers=EVIL[0]).status_code == 403, (method, path)


def test_a_preflight_is_answered_with_no_permission_on_any_route(browser: httpx.Client) -> None:
    ask = {"Access-Control-Request-Method": "PATCH", "Access-Control-Request-Headers": "x-tensorplay-token"}
    for path in sorted({path for _, path in ROUTES}):
        for origin in ("https://evil.example", str(browser.base_url).rstrip("/")):
            answer = browser.options(path, headers=ask | {"Origin": origin})
            assert answer.status_code in {403, 405}, path
            assert not [name for name in answer.headers if name.startswith("access-control-")], path


@pytest.mark.parametrize("name", ["Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest"])
def test_where_a_page_comes_from_is_said_once(service: Service, name: str) -> None:
    own = {"Origin": f"http://{urlsplit(service.url).netloc}", "Sec-Fetch-Site": "same-origin"}.get(name, "cors")
    for values in ((own, own), (own, "null"), (own, "cross-site")):
        headers = httpx.Headers([(name, value) for value in values] + [("X-TensorPlay-Token", service.token)])
        assert httpx.get(service.url + "api/v1/stats", headers=headers).status_code == 403
        assert httpx.patch(service.url + "api/v1/switches", json={}, headers=headers).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1", "Forwarded": "for=127.0.0.1;host=localhost"},
        {"X-Forwarded-Host": "localhost", "X-Forwarded-Proto": "https", "X-Original-URL": "/livez"},
        {"Origin": "http://localhost", "Referer": "http://localhost/"},
        {"X-HTTP-Method-Override": "GET", "X-Rewrite-URL": "/livez"},
    ],
)
def test_a_name_or_an_address_of_this_machine_grants_nothing(
    serve: Callable[..., Service], host: str, more: dict[str, str]
) -> None:
    service = serve(host="0.0.0.0", token=TOKEN)  # noqa: S104 - what is tested
    url = f"http://127.0.0.1:{urlsplit(service.url).port}/"
    headers = {"Host": host} | more
    if "Origin" in more:
        headers["Origin"] = f"http://{host}"
    assert httpx.get(url + "api/v1/stats", headers=headers).status_code == 401
    assert httpx.patch(url + "api/v1/switches", json={}, headers=headers).status_code == 401
    assert httpx.get(url + "api/v1/stats", headers=headers | {"X-TensorPlay-Token": TOKEN}).status_code == 200


def test_who_says_to_come_from_many_addresses_is_still_counted_as_one(serve: Callable[..., Service]) -> None:
    service = serve(token="short-one")  # noqa: S106 - what is tested
    codes = []
    for number in range(8):
        headers = {"X-Forwarded-For": f"10.0.0.{number}", "X-TensorPlay-Token": "wrong"}
        codes.append(httpx.patch(service.url + "api/v1/switches", json={}, headers=headers).status_code)
    assert codes[0] == 401
    assert codes[-1] == 429


def test_every_route_but_the_way_in_needs_the_token_where_reading_does(serve: Callable[..., Service]) -> None:
    service = serve(host="0.0.0.0", token=TOKEN)  # noqa: S104 - what is tested
    url = f"http://127.0.0.1:{urlsplit(service.url).port}/"
    pages = ("", "results", "settings", "events", "api/v1/openapi.json", "openapi.json", "docs", "redoc", "nothing")
    for method, path in [*ROUTES, *(("GET", page) for page in pages)]:
        answer = httpx.request(method, url + path)
        assert answer.status_code == (200 if path in {"livez", "readyz"} else 401), (method, path)
