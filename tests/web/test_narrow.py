"""What a narrow window and a browser without a script show."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., "Page"]
IN_SIGHT = """() => {
    const tab = document.querySelector("nav [aria-current]").getBoundingClientRect();
    const nav = document.querySelector(".top nav").getBoundingClientRect();
    return tab.left >= nav.left - 1 && tab.right <= nav.right + 1;
}"""


def test_the_tab_of_a_page_is_in_sight_and_the_tools_are_one_row(open_page: Open) -> None:
    page = open_page("devices", viewport={"width": 360, "height": 740})
    assert page.evaluate(IN_SIGHT)
    tops = "[...document.querySelectorAll('.tools > *')].map((each) => each.getBoundingClientRect().top)"
    assert page.evaluate(f"Math.max(...{tops}) - Math.min(...{tops}) < 20")


OUTSIDE = """(of) => [...document.querySelectorAll(of)].filter((each) => {
    const box = each.getBoundingClientRect();
    return box.width && (box.left < 0 || box.right > innerWidth);
}).map((each) => each.textContent)"""


@pytest.mark.parametrize("width", [320, 375])
def test_nothing_of_an_event_nor_of_the_best_winners_is_off_the_screen(
    open_page: Open, service: Service, seeded: None, context: TuningContext, width: int
) -> None:
    page = open_page("", viewport={"width": width, "height": 800})
    assert page.locator(".best td").count() >= 6
    assert page.evaluate(OUTSIDE, ".best th, .best td") == []
    context.listeners.tell("file", action="explanation failed", path="results.csv", error="x" * 200 + " and so on")
    page.goto(service.url + "events")
    assert page.locator("#log .detail").count() >= 1
    assert page.evaluate(OUTSIDE, "#log th, #log td, #log .pair") == []
    assert page.locator("#log .detail").first.is_visible()


@pytest.mark.parametrize("width", [375, pytest.param(1280, marks=pytest.mark.nightly)])
def test_the_line_of_the_time_saved_runs_into_nothing(open_page: Open, seeded: None, width: int) -> None:
    page = open_page("", viewport={"width": width, "height": 800})
    page.wait_for_selector("#saved-chart canvas")
    line = page.locator("#saved-chart").bounding_box()
    assert line is not None
    for text in page.locator("li:has(#saved-chart) > :is(b, span)").all():
        box = text.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= line["y"] + 1


def test_a_switch_is_one_word_without_a_script(open_page: Open) -> None:
    page = open_page("", java_script_enabled=False)
    words = page.locator(".switch button .text").all()
    assert len(words) == 3
    for word in words:
        box = word.bounding_box()
        assert box is not None and box["width"] > box["height"]
