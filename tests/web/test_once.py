"""What is pressed acts once, whichever way it is pressed, and does what it says and nothing else."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service
from tensorplay.testing import scripted_kernel

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

Sent = list[tuple[str, str]]


@pytest.fixture
def page(open_page: Callable[..., "Page"], service: Service, seeded: None) -> "Page":
    """A page of a browser that has signed in."""
    del seeded
    made = open_page(f"login?code={service._app.state.tensorplay_login.renew()}")
    made.wait_for_url(service.url)
    return made


@pytest.fixture
def sent(page: "Page", service: Service) -> Sent:
    """The changes that a page has sent, below the address of the service."""
    found: Sent = []

    def note(request: "Request") -> None:
        if request.method != "GET":
            found.append((request.method, request.url.removeprefix(service.url)))

    page.on("request", note)
    return found


def _open(page: "Page", service: Service, path: str) -> None:
    page.goto(service.url + path)
    page.wait_for_selector("#live-state[data-state=live]")


def test_enter_sets_the_setting_that_it_is_pressed_in_and_no_other(page: "Page", service: Service, sent: Sent) -> None:
    _open(page, service, "settings")
    page.fill("#set-min_gain input", "0.25")
    page.keyboard.press("Enter")
    page.wait_for_selector("#set-min_gain .origin >> text=rest")
    assert sent == [("PUT", "api/v1/settings/min_gain")]
    page.fill("#filter", "gain")
    page.keyboard.press("Enter")
    page.wait_for_url("**/settings?q=gain")
    assert len(sent) == 1


def test_enter_in_a_filter_only_filters(page: "Page", service: Service, sent: Sent) -> None:
    for path in ("results", "untuned"):
        _open(page, service, path)
        page.fill("#filter", "m1")
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/{path}?q=m1*")
    assert not sent


def test_enter_in_a_row_chooses_it_and_measures_nothing(page: "Page", service: Service, sent: Sent) -> None:
    _open(page, service, "untuned")
    for key in ("j", "Enter", "j", "Enter", "Enter"):
        page.keyboard.press(key)
    assert page.locator("[name=pick]:checked").count() == 1
    page.focus("#pick-all")
    page.keyboard.press("Enter")
    assert page.locator("[name=pick]:checked").count() == 2
    assert page.url == f"{service.url}untuned" and not sent


def test_enter_overrides_the_winner(page: "Page", service: Service, sent: Sent) -> None:
    _open(page, service, "results")
    page.click("tbody th a")
    page.fill("[name=kernel]", scripted_kernel(3))
    page.keyboard.press("Enter")
    page.click("#sure-yes")
    page.wait_for_selector(".facts >> text=override")
    assert [method for method, _ in sent] == ["PUT"]


def test_what_is_pressed_twice_is_done_once(page: "Page", service: Service, sent: Sent, tmp_path: Path) -> None:
    _open(page, service, "devices")
    page.fill("#save-name", "tunableop_kept.csv")
    page.dblclick("form[data-save] button")
    page.wait_for_selector("#toasts >> text=Saved as")
    assert (tmp_path / "tunableop_kept.csv").exists()
    _open(page, service, "untuned")
    page.dblclick("text=Tune all")
    page.wait_for_url("**/jobs")
    page.wait_for_selector(".job >> text=succeeded")
    assert sent == [("POST", "api/v1/files/tunableop_kept.csv/save"), ("POST", "api/v1/jobs")]


def test_a_button_works_before_the_scripts_are_there(
    browser: "Browser", service: Service, context: TuningContext
) -> None:
    page = browser.new_page()
    page.goto(service.login_url)
    page.wait_for_url(service.url)
    page.route(re.compile(r"actions\.js"), lambda route: route.abort())
    page.goto(service.url)
    page.click("[role=switch][aria-labelledby=s-tuning]")
    page.wait_for_url("**/#s-tuning")
    page.unroute(re.compile(r"actions\.js"))
    assert not context.tuning_is_enabled()
    page.context.close()


@pytest.fixture
def plain(browser: "Browser", service: Service, seeded: None) -> Iterator["Page"]:
    """A page of a browser without scripts, which has signed in."""
    del seeded
    made = browser.new_page(java_script_enabled=False)
    made.goto(service.login_url)
    made.wait_for_url(service.url)
    yield made
    made.context.close()


def test_going_back_to_a_question_and_loading_it_anew_only_asks(
    plain: "Page", service: Service, context: TuningContext
) -> None:
    before = len(context.get_results())
    plain.goto(service.url + "results")
    plain.click("tbody th a")
    plain.click("text=Forget this winner")
    plain.reload()
    assert "Forget this winner" in plain.inner_text("main")
    assert len(context.get_results()) == before
    plain.click("button:text-is('Forget this winner')")
    plain.wait_for_url("**/results#done")
    plain.go_back()
    assert "Are you sure?" in plain.inner_text("main")
    plain.click("button:text-is('Forget this winner')")
    plain.wait_for_load_state()
    assert "there is no such winner" in plain.inner_text("main")
    assert len(context.get_results()) == before - 1
