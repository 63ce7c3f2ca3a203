"""What needs no script: every change that a page offers, by the forms of the page itself."""

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from tensorplay.gemm import Signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service.app import ServiceSettings, create_app
from tensorplay.service.pages.form_call import read_call
from tensorplay.testing import ScriptedBackend, scripted_kernel

OP, PARAMS = "GemmTunableOp_Float32", "taN_m{}_n3_k5_bias0_dev0"
NAME = "tunableop_untuned7.csv"
TOKEN = "long-enough-not-to-be-guessed-at"  # noqa: S105 - of these tests

# `NoScript` of the conftest, which tests cannot import.
Browser = Any
Run = Callable[[int], str]


@pytest.fixture(params=["", "/user/a/proxy/8123"])
def browser(
    context: TuningContext, request: pytest.FixtureRequest, no_script: Callable[[str], Browser]
) -> Iterator[Browser]:
    """A person who has signed in, on a service at the root, and inside another application."""
    prefix: str = request.param
    app = create_app(context, ServiceSettings(token=TOKEN))
    outer = Starlette(routes=[Mount(prefix, app)]) if prefix else app
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(outer, log_config=None, lifespan="off", timeout_graceful_shutdown=3))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    made = no_script(f"http://127.0.0.1:{listener.getsockname()[1]}{prefix}/")
    made.sign_in(TOKEN)
    yield made
    made.client.close()
    app.state.tensorplay.hub.close()
    server.should_exit = True
    thread.join()


def _is_at(browser: Browser, path: str, fragment: str = "done") -> bool:
    page = browser.page
    assert page.status_code == 200, page.text
    assert [each.status_code for each in page.history] == [303]
    location: str = page.history[0].headers["location"]
    assert location.startswith("./"), "it must work below any prefix"
    return bool(page.url.path.endswith(f"/{path}") and page.url.fragment == fragment)


def _ended(browser: Browser) -> dict[str, Any]:
    (job,) = browser.client.get("api/v1/jobs").json()["items"]
    ended: dict[str, Any] = browser.client.get(f"api/v1/jobs/{job['id']}", params={"wait": 20}).json()
    return ended


def _setting(context: TuningContext, name: str) -> object:
    return {each.name: each.value for each in context.settings()}[name]


def test_switches_are_turned(browser: Browser, context: TuningContext) -> None:
    assert browser.show("").headers["referrer-policy"] == "same-origin", "else browsers send forms as if from nowhere"
    browser.press("on", '"tuning":false')
    assert _is_at(browser, "", "s-tuning")
    assert not context.tuning_is_enabled()
    browser.press("off", '"tuning":true')
    assert context.tuning_is_enabled()


def test_settings_are_set(browser: Browser, context: TuningContext) -> None:
    browser.show("settings?q=min_gain")
    browser.press("Set", "settings/min_gain", value="0.25")
    assert _is_at(browser, "settings", "set-min_gain")
    assert browser.page.url.query == b"q=min_gain", "the filter stays"
    assert _setting(context, "min_gain") == 0.25
    browser.show("settings")
    browser.press("Set", "settings/max_tuning_samples", value="7")
    browser.press("Set", "settings/record_untuned", value="true")
    browser.press("Set", "settings/enabled")
    assert (_setting(context, "max_tuning_samples"), _setting(context, "record_untuned")) == (7, True)
    assert _setting(context, "enabled") is True, "a choice that is left as it is"
    for wrong in ("1.5", "x", "1e3", "9" * 30, "NaN", "-1"):
        browser.show("settings")
        assert browser.press("Set", "settings/max_tuning_samples", value=wrong).status_code == 422, wrong
    assert "Back to the page" in browser.page.text and 'href="./settings"' in browser.page.text
    assert _setting(context, "max_tuning_samples") == 7


def test_winners_are_pinned_overridden_and_forgotten(browser: Browser, context: TuningContext, run: Run) -> None:
    run(4)
    run(5)
    (found,) = browser.client.get("api/v1/results", params={"q": "m4_"}).json()["items"]
    identity = found["id"]
    browser.show("results?q=m4_&sort=-time_ms")
    browser.press("Pin")
    assert _is_at(browser, "results", f"r-{identity}") and browser.page.url.query == b"q=m4_&sort=-time_ms"
    browser.press("Unpin")
    assert not any(each.pinned for each in context.recorded())
    browser.show(f"results/{identity}")
    asked = browser.press("Override", kernel=scripted_kernel(3))
    assert f'<code class="break">{scripted_kernel(3)}</code>' in asked.text
    browser.press("Override")
    assert _is_at(browser, f"results/{identity}")
    assert scripted_kernel(3) in {row[2] for row in context.get_results()}
    browser.press("Go back from the override")
    assert scripted_kernel(3) not in {row[2] for row in context.get_results()}
    asked = browser.press("Forget this winner")
    assert asked.status_code == 200 and "Forget this winner, in memory and in its file?" in asked.text
    assert f'href="./results/{identity}">Cancel' in asked.text
    assert len(context.get_results()) == 2, "only when a person is sure"
    browser.press("Forget this winner")
    assert _is_at(browser, "results")
    assert len(context.get_results()) == 1


def test_a_page_that_was_opened_before_another_change_still_changes_its_winner(
    browser: Browser, context: TuningContext, run: Run
) -> None:
    params = run(4)
    browser.show("results")
    run(5)
    browser.press("Pin", browser.client.get("api/v1/results", params={"q": "m4_"}).json()["items"][0]["id"])
    assert [each.params for each in context.recorded() if each.pinned] == [params]
    assert ">Done.<" in browser.page.text


def test_a_file_that_was_written_meanwhile_is_not_written_over(
    browser: Browser, context: TuningContext, run: Run, tmp_path: Path
) -> None:
    del context
    run(4)
    browser.show("devices")
    browser.press("Save", "{name}", name="winners.csv")
    (tmp_path / "winners.csv").write_text("", encoding="utf-8")
    page = browser.press("Save", "files/winners.csv/save")
    assert page.status_code == 412 and "It has changed since this page showed it." in page.text


def test_untuned_signatures_are_tuned_dropped_and_cleared(browser: Browser, context: TuningContext, run: Run) -> None:
    context.tuning_disable()
    params = [run(m) for m in (6, 7, 8, 9)]
    browser.show("untuned")
    assert browser.press("Tune the chosen").status_code == 422
    assert "choose at least one signature" in browser.page.text
    browser.show("untuned")
    browser.press("Tune the chosen", picks=[f"{OP},{each}" for each in params[:2]])
    assert _is_at(browser, "jobs")
    assert (_ended(browser)["state"], _ended(browser)["total"]) == ("succeeded", 2)
    browser.show("jobs")
    browser.press("Remove from the list")
    assert "No job has run" in browser.page.text
    left = browser.client.get("api/v1/untuned").json()["items"]
    assert {each["params"] for each in left} == set(params[2:])
    browser.show("untuned")
    browser.press("Drop")
    assert browser.client.get("api/v1/untuned").json()["total"] == 1
    browser.press("Clear the list")
    browser.press("Clear the list")
    assert _is_at(browser, "untuned")
    assert browser.client.get("api/v1/untuned").json()["total"] == 0


def test_all_untuned_signatures_are_tuned(browser: Browser, context: TuningContext, run: Run) -> None:
    context.tuning_disable()
    params = run(6)
    browser.show("untuned")
    assert browser.press("Tune all 1").url.path.endswith("/jobs")
    assert _ended(browser)["state"] == "succeeded"
    assert params in {row[1] for row in context.get_results()}


def test_files_are_tuned_loaded_and_saved(browser: Browser, context: TuningContext, run: Run, tmp_path: Path) -> None:
    run(1)
    lines = "".join(f"{OP},{PARAMS.format(m)}\n" for m in (1, 8, 9))
    (tmp_path / NAME).write_text(lines, encoding="utf-8")
    browser.show("devices")
    browser.press("Tune these")
    assert _is_at(browser, "jobs")
    assert (_ended(browser)["state"], _ended(browser)["total"]) == ("succeeded", 3)
    browser.show("devices")
    browser.press("Save", "{name}", name="winners.csv")
    assert _is_at(browser, "devices")
    assert (tmp_path / "winners.csv").read_text().count(OP) == 3
    assert "Saved: 3 winners in the file, 3 of them new, 0 replaced, 0 written by others kept." in browser.page.text
    assert browser.press("Save", "{name}", name="winners.csv").status_code == 412
    assert "use “Save” in its row" in browser.page.text and "If-Match" not in browser.page.text
    for wrong in ("", "../x.csv", "a/b.csv", "x.txt", "é.csv", ".x.csv", "a" * 200 + ".csv", "x.csv?y", "{name}"):
        browser.show("devices")
        assert browser.press("Save", "{name}", name=wrong).status_code == 422, wrong
    context.forget_all()
    browser.show("devices")
    browser.press("Load", "winners.csv")
    assert "Loaded: 3 merged, 0 replaced, 0 kept as they were, 0 pinned, 0 lines rejected." in browser.page.text
    assert len(context.get_results()) == 3
    browser.show("devices")
    browser.press("Load over", "winners.csv")
    assert "Replace the winners in memory" in browser.page.text
    browser.press("Load over")
    assert _is_at(browser, "devices")
    assert "Loaded: the winners in memory are those of the file already." in browser.page.text
    browser.press("Save", "files/winners.csv/save")
    assert _is_at(browser, "devices")
    browser.press("Write the files now")
    assert _is_at(browser, "devices")


def test_a_job_is_cancelled(
    browser: Browser, context: TuningContext, run: Run, backend: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = backend.open_trial

    def slowly(*arguments: Any, **options: Any) -> Any:
        time.sleep(0.2)
        return opened(*arguments, **options)

    context.tuning_disable()
    for m in range(6, 20):
        run(m)
    monkeypatch.setattr(backend, "open_trial", slowly)
    browser.show("untuned")
    browser.press("Tune all 14")
    browser.press("Cancel")
    assert _is_at(browser, "jobs")
    assert _ended(browser)["state"] == "cancelled"


def test_the_rejections_are_measured_again_and_cleared(browser: Browser, context: TuningContext, run: Run) -> None:
    params = run(4)
    context._ledger.rejections.add(Signature(OP, params), "no_such_kernel", "it was removed")
    browser.show("rejections")
    browser.press("Measure again")
    assert _is_at(browser, "jobs")
    assert _ended(browser)["state"] == "succeeded"
    browser.show("rejections")
    browser.press("Clear the list")
    browser.press("Clear the list")
    assert _is_at(browser, "rejections")
    assert "No winner was rejected" in browser.page.text


def test_a_switch_that_others_have_turned_meanwhile_is_set_and_not_turned(
    browser: Browser, context: TuningContext
) -> None:
    browser.show("")
    context.tuning_disable()
    browser.press("on", '"tuning":false')
    assert not context.tuning_is_enabled()


def test_every_button_says_a_call_that_is_read(browser: Browser, run: Run, context: TuningContext) -> None:
    run(4)
    context.tuning_disable()
    run(5)
    for path in ("", "results", "untuned", "devices", "settings"):
        page = browser.show(path)
        texts = [unescape(each) for each in re.findall(r"name=\"call\" value='([^']*)'", page.text)]
        assert texts
        for text in texts:
            assert read_call(text).path
