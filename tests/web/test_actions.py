"""What a person does on the pages: the token once, then switches, jobs, winners and settings."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service
from tensorplay.testing import scripted_kernel

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., "Page"]


def _signed_in(open_page: Open, service: Service, path: str) -> "Page":
    page = open_page()
    assert page.evaluate(
        "token => fetch('login', {method: 'POST', headers: {'X-TensorPlay-Token': token}}).then(each => each.status)",
        service.token,
    ) == 204  # fmt: skip
    page.goto(service.url + path)
    page.wait_for_selector("#live-state[data-state=live]")
    return page


def test_the_token_is_asked_for_once(browser: object, service: Service, context: TuningContext, seeded: None) -> None:
    from playwright.sync_api import Browser

    assert isinstance(browser, Browser)
    page = browser.new_page()
    page.goto(service.url)
    page.click("[role=switch][aria-labelledby=s-tuning]")
    page.fill("#token", "wrong")
    page.click("#token-dialog button.primary")
    page.wait_for_selector("text=This is not the token")
    page.fill("#token", service.token)
    page.click("#token-dialog button.primary")
    page.wait_for_selector("[role=switch][aria-labelledby=s-tuning][aria-checked=true]")
    assert context.settings()[1].value is True
    page.click("[role=switch][aria-labelledby=s-tuning]")
    page.wait_for_selector("[role=switch][aria-labelledby=s-tuning][aria-checked=false]")
    assert page.evaluate("document.cookie") == ""
    page.context.close()


def test_the_chosen_signatures_are_tuned(
    open_page: Open, service: Service, context: TuningContext, seeded: None
) -> None:
    page = _signed_in(open_page, service, "untuned")
    page.check("[name=pick][value*=taN_m5_]")
    page.click("text=Tune the chosen")
    page.wait_for_url("**/jobs")
    page.wait_for_selector(".job >> text=succeeded")
    assert "1 of 1" in page.inner_text(".job h2")
    assert "taN_m5_n512_k64_bias0_dev0" in {params for _, params, *_ in context.get_results()}
    page.goto(service.url + "untuned")
    assert page.locator("[name=pick]").count() == 1
    page.goto(service.url + "jobs")
    page.click("text=Remove from the list")
    page.wait_for_selector("text=No job has run")


def test_a_winner_is_overridden_and_forgotten(
    open_page: Open, service: Service, context: TuningContext, first_result: str
) -> None:
    page = _signed_in(open_page, service, first_result)
    page.fill("[name=kernel]", scripted_kernel(3))
    page.click("[data-form] button")
    page.click("#sure-yes")
    page.wait_for_selector(".facts >> text=override")
    before = len(context.get_results())
    page.click("text=Forget this winner")
    page.click("#sure-yes")
    page.wait_for_url("**/results")
    assert len(context.get_results()) == before - 1


def test_a_setting_is_set_and_reset(open_page: Open, service: Service, context: TuningContext) -> None:
    page = _signed_in(open_page, service, "settings")
    before = {each.name: (each.value, each.origin) for each in context.settings()}["min_gain"]
    page.fill("#set-min_gain input", "0.25")
    page.click("#set-min_gain button")
    page.wait_for_selector("#set-min_gain .origin >> text=rest")
    assert {each.name: each.value for each in context.settings()}["min_gain"] == 0.25
    page.click("#set-min_gain button[aria-label='Reset min_gain']")
    page.wait_for_selector(f"#set-min_gain .origin >> text={before[1]}")
    assert {each.name: (each.value, each.origin) for each in context.settings()}["min_gain"] == before
    assert page.locator("#set-min_gain button").count() == 1


def test_a_setting_that_is_refused_says_why(browser: object, service: Service) -> None:
    from playwright.sync_api import Browser

    assert isinstance(browser, Browser)
    page = browser.new_page()
    page.goto(service.url)
    page.evaluate("token => fetch('login', {method: 'POST', headers: {'X-TensorPlay-Token': token}})", service.token)
    page.goto(service.url + "settings")
    page.fill("#set-sources input", "No such name!")
    page.click("#set-sources button")
    page.wait_for_selector("#toasts .bad >> text=names with commas between")
    page.context.close()


def test_the_printed_code_signs_in(open_page: Open, service: Service) -> None:
    code = service._app.state.tensorplay_login.renew()
    page = open_page(f"login?code={code}")
    page.wait_for_url(service.url)
    page.click("[role=switch][aria-labelledby=s-record_untuned]")
    page.wait_for_selector("[role=switch][aria-labelledby=s-record_untuned][aria-checked=true]")


def test_a_winner_is_pinned_and_an_override_taken_back(
    open_page: Open, service: Service, context: TuningContext, first_result: str
) -> None:
    page = _signed_in(open_page, service, first_result)
    before = {row[1]: row[2] for row in context.get_results()}
    page.fill("[name=kernel]", scripted_kernel(3))
    page.click("[data-form] button")
    page.click("#sure-yes")
    page.click("button:text-is('Go back from the override')")
    page.wait_for_selector("section[aria-labelledby=h-history] tbody tr:nth-child(3)")
    assert {row[1]: row[2] for row in context.get_results()} == before
    page.click("button:text-is('Pin')")
    page.wait_for_selector("button:text-is('Unpin')")
    assert page.is_disabled("text=Forget this winner")
    page.goto(service.url + "results?pinned=true")
    assert page.locator("tbody tr").count() == 1
    page.click("button:text-is('Unpin')")
    page.wait_for_selector("text=Nothing fits the filter")
    assert not any(each.pinned for each in context.recorded())


def test_a_file_is_loaded(open_page: Open, service: Service, context: TuningContext, seeded: None) -> None:
    before = len(context.get_results())
    context.save_results("0", context.results_files()[0][1].replace("results0", "copy"))
    context.forget_all()
    page = _signed_in(open_page, service, "devices")
    page.click("tr:has-text('tunableop_copy.csv') >> button:text-is('Load')")
    page.wait_for_selector(f"#toasts >> text=Loaded: {before} merged, 0 replaced, 0 kept as they were, 0 pinned")
    assert len(context.get_results()) == before


def test_winners_are_saved_as_a_new_file_and_over_none_that_is_there(
    browser: object, service: Service, context: TuningContext, seeded: None, tmp_path: Path
) -> None:
    from playwright.sync_api import Browser

    assert isinstance(browser, Browser)
    page = browser.new_page()
    page.goto(service.login_url)
    page.wait_for_url(service.url)
    page.goto(service.url + "devices")
    page.fill("#save-name", "../elsewhere.csv")
    page.click("form[data-save] button")
    assert page.evaluate("document.getElementById('save-name').validity.patternMismatch")
    page.fill("#save-name", "tunableop_kept.csv")
    page.click("form[data-save] button")
    page.wait_for_selector("#toasts >> text=/Saved as tunableop_kept.csv: [0-9]+ winners in the file/")
    kept = (tmp_path / "tunableop_kept.csv").read_bytes()
    assert kept.count(b"GemmTunableOp") == len(context.get_results())
    page.wait_for_selector("th >> text=tunableop_kept.csv")
    page.fill("#save-name", "tunableop_kept.csv")
    page.click("form[data-save] button")
    page.wait_for_selector("#toasts .bad >> text=use “Save” in its row")
    assert (tmp_path / "tunableop_kept.csv").read_bytes() == kept
    page.context.close()


def test_lists_are_cleared(open_page: Open, service: Service, context: TuningContext, seeded: None) -> None:
    page = _signed_in(open_page, service, "untuned")
    page.click("tr:has-text('taN_m3_') >> text=Drop")
    page.wait_for_selector("tr:has-text('taN_m3_')", state="detached")
    assert len(context.get_untuned()) == 1
    page.click("text=Clear the list")
    page.click("#sure-yes")
    page.wait_for_selector("text=Every product that was met has a winner")
    assert context.get_untuned() == []
