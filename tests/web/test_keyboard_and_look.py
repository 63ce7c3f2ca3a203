"""The keyboard, the theme, the clock, and a prefix in front of everything."""

import socket
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from tensorplay.runtime.context import TuningContext
from tensorplay.service.app import create_app

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., "Page"]


@pytest.fixture
def mounted(context: TuningContext) -> Iterator[str]:
    """The address of the application inside somebody else's."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = create_app(context)
    outer = Starlette(routes=[Mount("/user/a/proxy/8123", app)])
    server = uvicorn.Server(uvicorn.Config(outer, log_config=None, lifespan="off", timeout_graceful_shutdown=3))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/user/a/proxy/8123/"
    app.state.tensorplay.hub.close()
    server.should_exit = True
    thread.join()


def test_the_keyboard_reaches_everything(open_page: Open, seeded: None) -> None:
    page = open_page("results")
    page.wait_for_selector("#live-state[data-state=live]")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "filter"
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.evaluate("document.querySelector('tr.at').rowIndex") == 1
    page.keyboard.press("Enter")
    page.wait_for_selector("text=First choice against winner")
    page.keyboard.press("?")
    assert page.locator("#help-dialog").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("s")
    page.wait_for_url("**/settings")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"


def test_the_theme_is_kept(open_page: Open) -> None:
    page = open_page(color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.click("#theme")
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate(ground) != light
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_times_are_shown_as_the_reader_wants(open_page: Open, context: TuningContext) -> None:
    context.listeners.tell("file", action="read")
    page = open_page("events", timezone_id="Asia/Tokyo")

    def text() -> str:
        return page.inner_text("#log time")

    context.listeners.tell("file", action="read")
    page.wait_for_selector("#log time")
    assert text().endswith("UTC")
    page.select_option("#time-mode", "local")
    assert text().endswith("+09:00")
    page.select_option("#time-mode", "relative")
    assert "ago" in text() or text() == "now"


def test_everything_works_under_a_prefix(open_page: Open, seeded: None, context: TuningContext, mounted: str) -> None:
    page = open_page(url=mounted)
    page.wait_for_selector("#live-state[data-state=live]")
    for name in ("Results", "Untuned", "Rejections", "Jobs", "Settings", "Events", "Devices"):
        page.click(f"nav >> text={name}")
        page.wait_for_url(f"{mounted}{name.lower()}")
        page.wait_for_selector("#live-state[data-state=live]")
    context.change_setting("tuning", True)
    page.wait_for_selector(".strip .state.on:has-text('tuning')")
    page.goto(mounted + "results")
    page.click("table.rows tbody a >> nth=0")
    page.wait_for_selector("text=Candidates")
