"""Every page in a browser: nothing fails, nothing leaves the host, everyone can read it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tensorplay.service import Service

if TYPE_CHECKING:
    from playwright.sync_api import Page

PAGES = ("", "results", "result", "untuned", "rejections", "jobs", "settings", "events", "devices")
Open = Callable[..., "Page"]


def _path(name: str, first_result: str) -> str:
    return first_result if name == "result" else name


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.nightly)])
def test_a_page_is_drawn_and_accessible(
    open_page: Open, service: Service, first_result: str, axe: str, scheme: str
) -> None:
    page = open_page(color_scheme=scheme, viewport={"width": 1280, "height": 860}, bypass_csp=True)
    for name in PAGES:
        page.goto(service.url + _path(name, first_result))
        page.wait_for_selector("#live-state[data-state=live]")
        if not name:
            page.wait_for_selector("#calls-chart canvas")
        page.evaluate(axe)
        found: dict[str, Any] = page.evaluate("axe.run({resultTypes: ['violations']})")
        told = [(each["id"], [node["html"][:200] for node in each["nodes"]][:3]) for each in found["violations"]]
        assert not told, (name, scheme)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_telephone(open_page: Open, first_result: str, name: str) -> None:
    page = open_page(_path(name, first_result), viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("name", PAGES)
def test_a_page_reads_without_javascript(open_page: Open, first_result: str, name: str) -> None:
    page = open_page(_path(name, first_result), java_script_enabled=False)
    assert page.locator("h1").is_visible()
    # Whatever else is a button is sent by a form.
    assert set(page.locator("button:visible:not([name=call])").all_inner_texts()) <= {"Filter"}
    assert all(each.evaluate("each => each.form?.method") == "post" for each in page.locator("[name=call]").all())
    assert page.locator("noscript p").is_visible()


def test_the_filter_works_without_javascript(open_page: Open, first_result: str) -> None:
    page = open_page("results", java_script_enabled=False)
    page.fill("#filter", "m128")
    with page.expect_navigation():
        page.click("form.filters button")
    assert page.locator("table.rows tbody tr").count() == 1
    assert "q=m128" in page.url
