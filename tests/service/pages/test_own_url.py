"""The address in the strip of every page: right where it is told, and left out where a proxy may have changed it."""

from typing import Any

import httpx
import pytest
from anyio.from_thread import BlockingPortal
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette

from tensorplay.service.pages.own_url import own_url


def scope(host: str | None = "127.0.0.1:8787", **changes: Any) -> dict[str, Any]:
    more = changes.pop("headers", {})
    headers = {**({} if host is None else {"host": host}), **more}
    path = changes.pop("path", "/results")
    return {
        "type": "http",
        "scheme": "http",
        "server": ("127.0.0.1", 8787),
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        **changes,
    }


@pytest.mark.parametrize(
    ("given_scope", "url"),
    [
        (scope(), "http://127.0.0.1:8787/"),
        (scope("localhost:8787", path="/results/0123456789abcdef"), "http://localhost:8787/"),
        (scope("[::1]:8787", server=("::1", 8787)), "http://[::1]:8787/"),
        (scope("ml.example", scheme="https", server=("10.0.0.1", 443)), "https://ml.example/"),
        (scope("ml.example", server=("10.0.0.1", 80)), "http://ml.example/"),
        (scope(root_path="/tools/tp", path="/tools/tp/results"), "http://127.0.0.1:8787/tools/tp/"),
    ],
)
def test_it_is_told_as_the_request_reached_the_service(given_scope: dict[str, Any], url: str) -> None:
    assert own_url(given_scope) == url


@pytest.mark.parametrize(
    "given_scope",
    [
        scope("127.0.0.1:8888"),
        scope("ml.example"),
        scope(headers={"x-forwarded-prefix": "/user/a/proxy/8787"}),
        scope(headers={"x-forwarded-host": "ml.example"}),
        scope(headers={"forwarded": "for=10.0.0.1"}),
        scope(headers={"via": "1.1 cache"}),
        scope(headers={"x-real-ip": "10.0.0.1"}),
        scope(root_path="/proxied", path="/results"),
        scope(root_path="/proxied", path="/proxiedx/results"),
        scope(None),
        scope("127.0.0.1:99999"),
        scope("[::1"),
        scope(server=None),
        scope(server=("/run/socket", None)),
        scope(scheme="ws"),
    ],
)
def test_it_is_left_out_where_it_may_be_another(given_scope: dict[str, Any]) -> None:
    assert own_url(given_scope) is None


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=255), max_size=40))
def test_whatever_the_host_header_says_it_is_none_or_names_the_port(host: str) -> None:
    given_scope = scope(None) | {"headers": [(b"host", host.encode("latin-1"))]}
    url = own_url(given_scope)
    assert url is None or url == f"http://{host}/"


@pytest.mark.parametrize(
    "path", ["", "results", "untuned", "rejections", "jobs", "ranks", "settings", "events", "devices"]
)
def test_every_page_shows_it_as_a_link_that_is_right_under_any_prefix(
    app: Starlette, portal: BlockingPortal, path: str
) -> None:
    async def get(**headers: str) -> str:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8787", headers={"Accept": "text/html"}
        ) as client:
            return (await client.get(f"/{path}", headers=headers)).text

    shown = '<a href="./" class="address"><code class="break">http://127.0.0.1:8787/</code></a>'
    assert shown in portal.call(get)
    behind = portal.call(lambda: get(**{"X-Forwarded-Prefix": "/proxy/1"}))
    assert 'class="address"' not in behind and "device" in behind
