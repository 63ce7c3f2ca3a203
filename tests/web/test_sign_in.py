"""A browser gets in where reading needs the token: on a name, without TLS, with and without JavaScript."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, start

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TOKEN = "of-the-test"  # noqa: S105 - of these tests
# The browser of these tests takes it for this machine. Unlike on 127.0.0.1 it says of no request where it comes from.
NAME = "ml.example"
IMAGES = Path(__file__).parents[2] / "docs" / "images"


@pytest.fixture
def address(context: TuningContext, seeded: None) -> Iterator[str]:
    """Of a service that others reach, by a name."""
    made: Service = start("0.0.0.0", token=TOKEN, context=context, hosts=frozenset({NAME}))  # noqa: S104 - what is tested
    yield f"http://{NAME}:{urlsplit(made.url).port}/"
    made.stop()


@pytest.mark.parametrize("has_script", [True, False])
def test_a_person_signs_in_and_goes_on_where_they_wanted_to(browser: "Browser", address: str, has_script: bool) -> None:
    page = browser.new_page(java_script_enabled=has_script)
    answer = page.goto(f"{address}results?q=m128&sort=-time_ms")
    assert answer and answer.status == 401
    page.fill("#token", "wrong")
    page.click("button.primary")
    page.wait_for_load_state()
    assert "This is not the token" in page.inner_text("[role=alert]")
    page.fill("#token", TOKEN)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{address}results?q=m128&sort=-time_ms")
    assert page.locator("table.rows tbody tr").count() == 1
    page.goto(f"{address}settings")
    assert page.inner_text("h1") == "Settings"
    (cookie,) = page.context.cookies()
    assert (cookie.get("httpOnly"), cookie.get("sameSite")) == (True, "Strict")
    page.context.close()


def test_who_has_signed_in_changes_things_and_sees_them_live(
    browser: "Browser", address: str, context: TuningContext
) -> None:
    page = browser.new_page()
    page.goto(address)
    page.fill("#token", TOKEN)
    page.click("button.primary")
    page.wait_for_selector("#live-state[data-state=live]")
    before = context.tuning_is_enabled()
    page.click("[role=switch][aria-labelledby=s-tuning]")
    page.wait_for_selector(f"[role=switch][aria-labelledby=s-tuning][aria-checked={str(not before).lower()}]")
    assert context.tuning_is_enabled() is not before
    page.context.close()


def test_a_page_of_others_cannot_send_the_form(browser: "Browser", address: str, context: TuningContext) -> None:
    page = browser.new_page()
    form = f'<form method="post" action="{address}login"><input name="token" value="{TOKEN}"><button>x</button></form>'
    page.route("http://evil.example/", lambda route: route.fulfill(body=form, content_type="text/html"))
    page.goto("http://evil.example/")
    with page.expect_navigation() as caught:
        page.click("button")
    assert caught.value.status == 403
    assert page.context.cookies() == []
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_that_asks_is_accessible_and_fits_a_telephone(
    browser: "Browser", address: str, axe: str, scheme: Any, tmp_path: Path
) -> None:
    folder = IMAGES if os.environ.get("TENSORPLAY_SCREENSHOTS") else tmp_path
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 860}, bypass_csp=True)
    page: Page = context.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if "Security Policy" in message.text else None)
    page.goto(address)
    page.screenshot(path=folder / f"dashboard-sign-in-{scheme}.png")
    page.evaluate(axe)
    found: dict[str, Any] = page.evaluate("axe.run({resultTypes: ['violations']})")
    assert [each["id"] for each in found["violations"]] == []
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert errors == []
    context.close()
