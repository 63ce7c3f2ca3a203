"""The page of the ranks in a browser: a real second process, and what is seen of it while it lives and when it ends."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tensorplay.database.record import Entry
from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, start

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., "Page"]
Process = subprocess.Popen[str]

OTHER = """
import os, sys
import numpy as np, tensorplay
from tensorplay import service
print(service.start().url, flush=True)
tensorplay.mm(np.ones((4, 8)), np.ones((8, 8)))
print("done", flush=True)
sys.stdin.read()
"""
HTML = {"Accept": "text/html"}
IMAGES = Path(__file__).parents[2] / "docs" / "images"


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """What a launcher sets, for this process as the first rank."""
    folder = tempfile.mkdtemp(prefix="tp-")
    made = {
        "TENSORPLAY_RUNTIME_DIR": f"{folder}/run", "TORCHELASTIC_RUN_ID": "job", "LOCAL_RANK": "0", "RANK": "0",
        "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3",
    }  # fmt: skip
    for name, value in made.items():
        monkeypatch.setenv(name, value)
    yield made
    shutil.rmtree(folder)


@pytest.fixture
def other(environ: dict[str, str], tmp_path: Path) -> Iterator[Process]:
    """The second rank; the third one never comes."""
    told = {"LOCAL_RANK": "1", "RANK": "1", "TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_MAX_TUNING_DURATION_MS": "1"}
    (tmp_path / "other").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER],
        cwd=tmp_path / "other",
        env=os.environ | environ | told,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert [process.stdout.readline()[:5], process.stdout.readline()] == ["unix:", "done\n"]
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def differing(service: Service, context: TuningContext) -> None:
    """A setting and a winner that are not the same on both ranks."""
    winner = httpx.get(f"{service.url}api/v1/ranks/1/results").json()["items"][0]
    params = winner["params"].replace("devcpu", "dev0")
    device = context._device("0")
    device.ensure_loaded()
    device.results.put(Entry(winner["op"], params, "Default", 2 * winner["time_ms"]))
    context.change_setting("min_gain", 0.02)


@pytest.fixture
def service(other: Process, context: TuningContext) -> Iterator[Service]:
    made = start(context=context)
    yield made
    made.stop()


def test_the_page_follows_a_rank_that_ends(open_page: Open, other: Process) -> None:
    page = open_page("ranks")
    page.wait_for_selector("#rank-1 .state.on")
    assert page.locator("#rank-2 .state.bad").count() == 1
    assert "tensorplay.service.start()" in page.inner_text("#rank-2")
    other.kill()
    page.wait_for_selector("#rank-1 .state.bad")


@pytest.mark.parametrize("options", [{}, {"java_script_enabled": False}])
def test_the_winners_of_a_rank_are_a_click_away(open_page: Open, options: dict[str, Any]) -> None:
    page = open_page("ranks", **options)
    page.click("#rank-1 th a")
    page.wait_for_url("**/ranks/1/results")
    assert page.inner_text("h1").split() == ["Results", "of", "rank", "1", "1"]
    page.fill("#filter", "m4_")
    page.click("form.filters button")
    page.wait_for_url("**/ranks/1/results?*q=m4_*")
    assert page.locator("table.rows tbody tr").count() == 1


def test_a_switch_is_turned_on_all_ranks_at_once(open_page: Open, service: Service) -> None:
    page = open_page("ranks")
    page.wait_for_selector("#live-state[data-state=live]")
    assert page.evaluate(
        "token => fetch('login', {method: 'POST', headers: {'X-TensorPlay-Token': token}}).then(each => each.status)",
        service.token,
    ) == 204  # fmt: skip
    page.click("text=Tuning off")
    # The third one has no service.
    page.wait_for_selector("#toasts p.bad:has-text('Not on rank 2: it has no service')")
    for number in (0, 1):
        switches = httpx.get(f"{service.url}api/v1/ranks/{number}/switches").json()
        assert switches["tuning"]["value"] is False


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.nightly)])
def test_the_pages_are_drawn_accessible_and_fit_a_telephone(
    open_page: Open, service: Service, axe: str, scheme: str, differing: None, tmp_path: Path
) -> None:
    folder = IMAGES if os.environ.get("TENSORPLAY_SCREENSHOTS") else tmp_path
    page = open_page(color_scheme=scheme, viewport={"width": 1280, "height": 860}, bypass_csp=True)
    page.goto(service.url + "ranks")
    page.wait_for_selector("#live-state[data-state=live]")
    page.screenshot(path=folder / f"dashboard-ranks-{scheme}.png")
    page.set_viewport_size({"width": 360, "height": 740})
    for path in ("ranks", "ranks/1/results"):
        page.goto(service.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.evaluate(axe)
        found: dict[str, Any] = page.evaluate("axe.run({resultTypes: ['violations']})")
        assert not [(each["id"], each["nodes"][0]["html"][:200]) for each in found["violations"]]


def test_a_page_reads_without_a_browser_that_runs_scripts(service: Service) -> None:
    page = httpx.get(service.url + "ranks", headers=HTML).text
    assert "<script src=" in page and "<noscript>" in page
    assert "reachable" in page and "job <code>job</code>" in page
