"""Untuned files tuned with and without a script, tables sorted by gain, what changed seen, and curl copied."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., "Page"]
NAME = "tunableop_untuned7.csv"


@pytest.fixture
def untuned_file(tmp_path: Path, seeded: None) -> str:
    """The params of a signature that only a file has."""
    del seeded
    params = "taN_m77_n512_k64_bias0_dev0"
    (tmp_path / NAME).write_text(f"GemmTunableOp_Float32,{params}\n", encoding="utf-8")
    return params


@pytest.mark.parametrize("has_script", [True, False])
def test_an_untuned_file_is_tuned(
    open_page: Open, service: Service, context: TuningContext, untuned_file: str, has_script: bool
) -> None:
    page = open_page("login", java_script_enabled=has_script)
    page.fill("#token", service.token)
    page.click("button.primary")
    page.goto(service.url + "devices")
    page.click(f"tr:has-text('{NAME}') >> button:visible:text-is('Tune these')")
    page.wait_for_url("**/jobs" if has_script else "**/jobs#done")
    for _ in range(100):
        if page.locator(".job >> text=succeeded").count():
            break
        page.wait_for_timeout(100)
        page.reload()
    assert untuned_file in {params for _, params, *_ in context.get_results()}


def test_the_token_is_asked_for_without_a_script(open_page: Open, service: Service, untuned_file: str) -> None:
    del untuned_file
    page = open_page("devices", java_script_enabled=False)
    # A browser logs an answer that is an error as one; this one is meant.
    call = page.get_attribute("button:text-is('Tune these')", "value")
    headers = {"Accept": "text/html", "Origin": service.url.rstrip("/")}
    response = page.request.post(service.url + "do?on=devices", form={"call": call or ""}, headers=headers)
    assert response.status == 401
    assert "Changing something needs the token" in response.text()
    assert 'name="next" value="devices"' in response.text()


def test_winners_are_sorted_by_gain_by_a_click(open_page: Open, first_result: str) -> None:
    del first_result
    page = open_page("results")
    page.click("thead a:text-is('gain')")
    page.wait_for_selector("th[aria-sort=ascending]:has-text('gain')")
    page.click("thead a:text-is('gain')")
    page.wait_for_selector("th[aria-sort=descending]:has-text('gain')")
    assert page.locator("tbody tr").count() == 3


def test_what_changed_is_seen(open_page: Open, run: Callable[[int], str]) -> None:
    run(1)
    page = open_page("results", reduced_motion="no-preference")
    page.wait_for_selector("#live-state[data-state=live]")
    page.evaluate(
        """() => {
          window.faded = new Set();
          const animate = Element.prototype.animate;
          Element.prototype.animate = function (...given) {
            faded.add(this.closest("tr").textContent);
            return animate.apply(this, given);
          };
        }"""
    )
    run(2)
    for _ in range(100):
        # Not a function that is waited for: the page allows no text to be run as a script.
        if page.evaluate("[...faded].some((text) => text.includes('taN_m2_'))"):
            break
        page.wait_for_timeout(100)
    else:
        raise AssertionError("nothing was seen")
    assert not page.evaluate("[...faded].some((text) => text.includes('taN_m1_'))")


def test_a_line_for_curl_is_copied(open_page: Open, first_result: str) -> None:
    del first_result
    page = open_page("results", permissions=["clipboard-read", "clipboard-write"])
    page.click("summary:text-is('curl')")
    page.click("[data-copy-code]:visible")
    page.wait_for_selector("#toasts >> text=Copied.")
    assert page.evaluate("navigator.clipboard.readText()").startswith("curl")


def test_what_is_saved_is_drawn(open_page: Open, first_result: str) -> None:
    del first_result
    page = open_page()
    page.wait_for_selector("#saved-chart canvas")
