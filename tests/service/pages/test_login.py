import asyncio
from collections.abc import Callable
from http.cookies import SimpleCookie

import httpx
from starlette.applications import Starlette

from tensorplay.runtime.context import TuningContext
from tensorplay.service.app import ServiceSettings, create_app
from tensorplay.service.pages.login import LoginCode

TOKEN = "the-right-token"  # noqa: S105 - of this test
Ask = Callable[..., httpx.Response]


def test_a_code_works_once() -> None:
    codes = LoginCode()
    code = codes.renew()
    assert codes.redeem("x" * len(code)) is False
    assert codes.redeem(code) is True
    assert codes.redeem(code) is False
    assert codes.redeem("") is False
    assert codes.redeem("é") is False


def test_the_printed_address_is_exchanged_for_a_cookie_of_which_no_script_knows(ask: Ask, app: Starlette) -> None:
    code = app.state.tensorplay_login.renew()
    answer = ask(f"/login?code={code}")
    assert answer.status_code == 200
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path" not in cookie
    assert code not in answer.text
    (name, morsel), *_ = SimpleCookie(cookie).items()
    changed = ask("/api/v1/files/save", "POST", {"Cookie": f"{name}={morsel.value}"})
    assert changed.status_code == 200
    assert ask(f"/login?code={code}").status_code == 403


def test_only_the_token_is_kept(context: TuningContext, ask: Ask) -> None:
    del context
    assert ask("/login", "POST").status_code == 401
    assert ask("/login", "POST", {"X-TensorPlay-Token": "wrong"}).status_code == 401


def test_the_token_is_kept_and_forgotten(context: TuningContext) -> None:
    app = create_app(context, ServiceSettings(token=TOKEN))

    async def play() -> tuple[httpx.Response, httpx.Response, httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            kept = await client.post("/login", headers={"X-TensorPlay-Token": TOKEN})
            changed = await client.post("/api/v1/files/save")
            await client.post("/logout")
            return kept, changed, await client.post("/api/v1/files/save")

    kept, changed, refused = asyncio.run(play())
    assert (kept.status_code, changed.status_code, refused.status_code) == (204, 200, 401)
