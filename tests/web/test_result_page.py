"""The page of a result while it changes: it is drawn anew around its cards, and nothing of it is lost."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service
from tensorplay.testing import scripted_kernel

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., "Page"]
BOTTOMS = "[...document.querySelectorAll('.stack')].map((each) => each.lastElementChild.getBoundingClientRect().bottom)"


def _signed_in(open_page: Open, service: Service, path: str, **options: object) -> "Page":
    page = open_page(f"login?code={service._app.state.tensorplay_login.renew()}", **options)
    page.wait_for_url(service.url)
    page.goto(service.url + path)
    return page


def test_it_survives_an_override_and_the_way_back(open_page: Open, service: Service, first_result: str) -> None:
    page = _signed_in(open_page, service, first_result)
    page.wait_for_selector("#h-confirm")
    for _ in range(2):
        page.fill("[name=kernel]", scripted_kernel(3))
        page.click("[data-form] button")
        page.click("#sure-yes")
        page.wait_for_selector("#h-confirm", state="detached")
        page.click("button:text-is('Go back from the override')")
        page.wait_for_selector("#h-confirm")
    assert page.locator("section:has(h2:text-is('Change'))").count() == 1


@pytest.mark.parametrize("is_overridden", [False, True])
def test_its_two_columns_end_at_one_line(
    open_page: Open, service: Service, first_result: str, context: TuningContext, is_overridden: bool
) -> None:
    if is_overridden:
        found = httpx.get(f"{service.url}api/v1/{first_result}").json()
        context.override(found["op"], found["params"], scripted_kernel(3))
    page = open_page(first_result, viewport={"width": 1280, "height": 900})
    left, right = page.evaluate(BOTTOMS)
    assert abs(left - right) < 2


def test_who_decides_against_it_changes_nothing(
    open_page: Open, service: Service, first_result: str, context: TuningContext
) -> None:
    page = _signed_in(open_page, service, first_result)
    before = context.get_results()
    page.click("button:text-is('Forget this winner')")
    assert page.inner_text("#sure-yes") == "Forget this winner"
    page.keyboard.press("Enter")
    page.wait_for_selector("#sure-dialog", state="hidden")
    assert context.get_results() == before, "Enter is for Cancel"


def test_who_is_signed_in_signs_out_with_a_script(open_page: Open, service: Service, first_result: str) -> None:
    page = _signed_in(open_page, service, first_result)
    page.click("button:text-is('Sign out')")
    page.wait_for_url("**/login?out=1")
    assert page.context.cookies() == []
    page.goto(service.url)
    assert page.locator("button:text-is('Sign out')").count() == 0


@pytest.mark.parametrize("width", [360, 390])
def test_a_telephone_shows_the_menu_the_gain_and_the_reasons(
    open_page: Open, service: Service, first_result: str, width: int
) -> None:
    page = open_page("results", viewport={"width": width, "height": 800})
    right = "(all) => Math.max(...all.map((each) => each.getBoundingClientRect().right))"
    assert page.eval_on_selector_all("nav li a", right) <= width
    assert page.eval_on_selector_all("td.gain span", right) <= width
    page.goto(service.url + first_result)
    assert page.eval_on_selector_all(".candidates td", right) <= width
    page.goto(service.url + "devices")
    assert page.eval_on_selector_all(".cards button, .cards th", right) <= width
