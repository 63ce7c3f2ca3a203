"""What changes in the process changes in an open page, with one stream for a whole browser."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., "Page"]


def _wait_live(page: "Page") -> None:
    page.wait_for_selector("#live-state[data-state=live]")


def test_a_change_in_python_appears_in_an_open_page(open_page: Open, context: TuningContext) -> None:
    page = open_page()
    _wait_live(page)
    context.change_setting("tuning", False)
    page.wait_for_selector(".strip .state.off:has-text('tuning')")
    context.change_setting("tuning", True)
    page.wait_for_selector(".strip .state.on:has-text('tuning')")


def test_a_new_winner_appears_and_what_was_typed_stays(open_page: Open, run: Callable[[int], str]) -> None:
    run(1)
    page = open_page("results")
    _wait_live(page)
    page.fill("#filter", "half a wor")
    run(2)
    page.wait_for_selector("text=taN_m2_n512")
    assert page.input_value("#filter") == "half a wor"
    assert page.evaluate("document.activeElement.id") == "filter"


def test_a_chosen_signature_stays_chosen(open_page: Open, context: TuningContext, run: Callable[[int], str]) -> None:
    context.change_setting("tuning", False)
    run(3)
    page = open_page("untuned")
    _wait_live(page)
    page.check("[name=pick]")
    run(4)
    page.wait_for_selector("text=taN_m4_n512")
    assert page.locator("[name=pick][value*=taN_m3_]").is_checked()


def test_all_tabs_of_a_browser_share_one_stream(open_page: Open, service: Service, context: TuningContext) -> None:
    first = open_page()
    _wait_live(first)
    tabs = [first.context.new_page() for _ in range(8)]
    for tab in tabs:
        tab.goto(service.url)
    tabs[-1].bring_to_front()
    context.change_setting("tuning", False)
    tabs[-1].wait_for_selector(".strip .state.off:has-text('tuning')")
    assert service._state.hub.clients == 1
    first.close()
    context.change_setting("tuning", True)
    tabs[-1].wait_for_selector(".strip .state.on:has-text('tuning')")


def test_a_paused_page_stays_as_it_is_until_it_is_resumed(open_page: Open, context: TuningContext) -> None:
    page = open_page("settings")
    _wait_live(page)
    page.keyboard.press("p")
    page.wait_for_selector("#live-state[data-state=paused]")
    context.change_setting("tuning", False)
    page.wait_for_timeout(900)
    assert page.locator(".strip .state.on", has_text="tuning").count() == 1
    page.keyboard.press("p")
    page.wait_for_selector(".strip .state.off:has-text('tuning')")


def test_hostile_text_stays_text_in_a_live_page(open_page: Open, context: TuningContext) -> None:
    page = open_page("events")
    _wait_live(page)
    text = "<img src=x onerror=\"document.title='hit'\">"
    context.listeners.tell("rejected", reason=text)
    page.wait_for_selector("#log .detail")
    page.wait_for_function(f"document.querySelector('#log').innerText.includes({json.dumps(text)})")
    assert "hit" not in page.title()
    assert page.locator("#log img").count() == 0
