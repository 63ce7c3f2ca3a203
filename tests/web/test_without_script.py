"""A browser that runs no script does on the real pages whatever a page offers, at the root and under a prefix."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from tensorplay.gemm import Signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service.app import ServiceSettings, create_app
from tensorplay.testing import scripted_kernel

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

OP, PARAMS = "GemmTunableOp_Float32", "taN_m{}_n512_k64_bias0_dev0"
TOKEN = "long-enough-not-to-be-guessed-at"  # noqa: S105 - of these tests


@pytest.fixture(params=["", "/user/a/proxy/8123"])
def root(context: TuningContext, seeded: None, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a service with winners, at the root of a server or below a prefix."""
    del seeded
    prefix: str = request.param
    app = create_app(context, ServiceSettings(token=TOKEN))
    outer = Starlette(routes=[Mount(prefix, app)]) if prefix else app
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(outer, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}{prefix}/"
    app.state.tensorplay.hub.close()
    server.should_exit = True
    thread.join()


@pytest.fixture
def page(browser: "Browser", root: str) -> Iterator["Page"]:
    """A page of a browser without scripts, which has signed in."""
    context = browser.new_context(java_script_enabled=False, base_url=root)
    context.set_default_timeout(10_000)
    made = context.new_page()
    made.goto("./login")
    made.fill("#token", TOKEN)
    made.click("button.primary")
    made.wait_for_url(root)
    yield made
    context.close()


def _ended(page: "Page") -> None:
    """Load the jobs until there is one that is over."""
    for _ in range(100):
        if page.locator(".job >> text=succeeded").count():
            return
        page.wait_for_timeout(50)
        page.reload()
    raise AssertionError(page.inner_text("main"))


AT_THE_ROOT = pytest.mark.parametrize("root", [""], indirect=True)


def test_settings_and_winners_are_changed(page: "Page", root: str, context: TuningContext) -> None:
    _set_switches_and_settings(page, root, context)
    _pin_override_and_forget(page, root, context)


def test_lists_and_files_are_tuned_cleared_saved_and_loaded(
    page: "Page", root: str, context: TuningContext, tmp_path: Path
) -> None:
    _tune_and_clear(page, root, context)
    _save_and_load(page, root, context, tmp_path)


def _set_switches_and_settings(page: "Page", root: str, context: TuningContext) -> None:
    page.click("[role=switch][aria-labelledby=s-tuning]")
    page.wait_for_selector("[role=switch][aria-labelledby=s-tuning][aria-checked=true]")
    assert context.tuning_is_enabled() and page.url == f"{root}#s-tuning"
    page.goto("./settings?q=min_gain")
    page.fill("#set-min_gain input", "0.25")
    page.keyboard.press("Enter")
    page.wait_for_selector("#set-min_gain .origin >> text=rest")
    assert page.url == f"{root}settings?q=min_gain#set-min_gain"
    page.goto("./settings")
    page.fill("#set-sources input", "No such name!")
    page.click("#set-sources button")
    page.wait_for_load_state()
    assert "names with commas between" in page.inner_text("main")
    page.click("text=Back to the page")
    page.wait_for_load_state()
    assert page.url == f"{root}settings"
    values = {each.name: each.value for each in context.settings()}
    assert values["min_gain"] == 0.25


def _pin_override_and_forget(page: "Page", root: str, context: TuningContext) -> None:
    page.goto("./results?q=m16_")
    page.click("button:text-is('Pin')")
    page.wait_for_selector("#done:visible >> text=Done.")
    page.click("button:text-is('Unpin')")
    page.wait_for_load_state()
    assert page.url.startswith(f"{root}results?q=m16_#r-")
    page.click("tbody th a")
    page.fill("[name=kernel]", scripted_kernel(3))
    page.click("button:text-is('Override')")
    page.click("button:text-is('Override')")
    page.wait_for_selector("#done:visible")
    assert scripted_kernel(3) in {row[2] for row in context.get_results()}
    page.click("button:text-is('Go back from the override')")
    page.wait_for_selector("section[aria-labelledby=h-history] tbody tr:nth-child(3)")
    before = len(context.get_results())
    page.click("button:text-is('Forget this winner')")
    page.click("text=Cancel")
    page.wait_for_load_state()
    assert len(context.get_results()) == before
    page.click("button:text-is('Forget this winner')")
    page.click("button:text-is('Forget this winner')")
    page.wait_for_url(f"{root}results#done")
    assert len(context.get_results()) == before - 1


def _tune_and_clear(page: "Page", root: str, context: TuningContext) -> None:
    page.goto("./untuned")
    page.check("[name=pick][value*=taN_m5_]")
    page.click("button:text-is('Tune the chosen')")
    page.wait_for_url(f"{root}jobs#done")
    _ended(page)
    assert "1 of 1" in page.inner_text(".job h2")
    assert PARAMS.format(5) in {params for _, params, *_ in context.get_results()}
    page.click("text=Remove from the list")
    page.wait_for_selector("text=No job has run")
    page.goto("./untuned")
    page.click("button:text-is('Drop')")
    page.wait_for_selector("text=Every product that was met has a winner")
    context._ledger.rejections.add(Signature(OP, PARAMS.format(1)), "no_such_kernel", "it was removed")
    page.goto("./rejections")
    page.click("button:text-is('Measure again')")
    page.wait_for_url(f"{root}jobs#done")
    _ended(page)
    page.goto("./rejections")
    page.click("button:text-is('Clear the list')")
    page.click("button:text-is('Clear the list')")
    page.wait_for_selector("text=No winner was rejected")


def _save_and_load(page: "Page", root: str, context: TuningContext, tmp_path: Path) -> None:
    before = len(context.get_results())
    page.goto("./devices")
    page.fill("#save-name", "tunableop_kept.csv")
    page.click("form[data-save] button")
    page.wait_for_url(f"{root}devices?told=save.*#done")
    assert (tmp_path / "tunableop_kept.csv").read_bytes().count(b"GemmTunableOp") == before
    page.click("tr:has-text('tunableop_kept') >> button:text-is('Save')")
    page.wait_for_selector("#done:visible")
    context.forget_all()
    page.click("tr:has-text('tunableop_kept') >> button:text-is('Load')")
    page.wait_for_selector(f"#done:visible >> text=Loaded: {before} merged")
    assert len(context.get_results()) == before


@AT_THE_ROOT
def test_who_has_not_signed_in_does_so_first(browser: "Browser", root: str, context: TuningContext) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(f"{root}settings?q=tuning")
    page.click("#set-tuning button")
    page.wait_for_load_state()
    assert "Changing something needs the token" in page.inner_text("main")
    page.fill("#token", TOKEN)
    page.click("button.primary")
    page.wait_for_url(f"{root}settings?q=tuning")
    page.select_option("#set-tuning select", "true")
    page.click("#set-tuning button")
    page.wait_for_selector("#set-tuning .origin >> text=rest")
    assert context.tuning_is_enabled()
    page.context.close()


@AT_THE_ROOT
def test_a_page_of_others_cannot_send_the_form(page: "Page", root: str, context: TuningContext) -> None:
    call = '{"method":"PATCH","path":"switches","body":{"tuning":true}}'
    form = f"<form method='post' action='{root}do'><button name='call' value='{call}'>x</button></form>"
    for origin in ("http://evil.example/", "http://127.0.0.1:9/"):
        page.route(origin, lambda route: route.fulfill(body=form, content_type="text/html"))
        page.goto(origin)
        with page.expect_navigation() as caught:
            page.click("button")
        assert caught.value.status == 403, "the second one is of the same site, so that the cookie is sent"
    assert not context.tuning_is_enabled()


@AT_THE_ROOT
def test_every_page_is_accessible_and_fits_a_telephone_without_a_script(
    browser: "Browser", root: str, context: TuningContext, axe: str
) -> None:
    context._ledger.rejections.add(Signature(OP, PARAMS.format(1)), "no_such_kernel", "it was removed")
    first = httpx.get(f"{root}api/v1/results").json()["items"][0]["id"]
    made = browser.new_context(viewport={"width": 360, "height": 740}, bypass_csp=True)
    # None of ours run; what looks at the page does.
    made.route("**/*.js", lambda route: route.abort())
    page = made.new_page()
    page.goto(f"{root}login")
    page.fill("#token", TOKEN)
    page.click("button.primary")

    def check(name: str, scheme: Any) -> None:
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
        page.evaluate(axe)
        found: dict[str, Any] = page.evaluate("axe.run({resultTypes: ['violations']})")
        assert not [(each["id"], each["nodes"][0]["html"][:200]) for each in found["violations"]], (name, scheme)

    # Both schemes where something looks otherwise than with a script; the others are looked at there.
    for name, schemes in (
        ("#done", ("light", "dark")), ("settings#set-min_gain", ("dark",)), (f"results#r-{first}", ("light",)),
        (f"results/{first}", ("dark",)), ("devices", ("light",)), ("rejections", ("dark",)), ("untuned", ("light",)),
    ):  # fmt: skip
        page.goto(root + name)
        for scheme in schemes:
            check(name, scheme)
    page.click("button:text-is('Clear the list')")
    for scheme in ("light", "dark"):
        check("sure", scheme)
    made.close()
