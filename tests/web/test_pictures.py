"""The pictures of the documentation: the pages of a program that multiplies, as whoever opens them finds them.

`TENSORPLAY_SCREENSHOTS=1` puts them into docs/images; otherwise it is only seen that they can be made. What they show
is measured by the machine that makes them.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

IMAGES = Path(__file__).parents[2] / "docs" / "images"
PAGES = ("", "results", "result", "untuned", "rejections", "jobs", "settings", "events", "devices")
# Long enough that the charts have something to show.
WATCHED_MS = 8000
MODEL = """
import time
import numpy as np
import tensorplay, tensorplay.service
from tensorplay import tunable

LAYERS = [(m, n, k) for n, k in ((768, 768), (3072, 768), (768, 3072)) for m in (4, 8, 16, 64)]
LAYERS += [(64, 64, 64), (20000, 8, 32)]
REST = [(12, 768, 768), (12, 3072, 768), (5, 10, 784), (40, 768, 768), (12, 768, 3072)]
rng = np.random.default_rng(0)

def layer(m, n, k):
    return rng.random((m, k), dtype=np.float32), rng.random((n, k), dtype=np.float32).T

tunable.enable()
layers = [layer(*each) for each in LAYERS]
for a, b in layers:
    tensorplay.mm(a, b)
"""
SERVED = """
tunable.tuning_enable(False)
rest = [layer(*each) for each in REST]
print(tensorplay.service.start().login_url, flush=True)
while True:
    for a, b in layers + rest:
        tensorplay.mm(a, b)
    time.sleep(0.004 + 0.004 * np.sin(time.time()))
"""


@pytest.fixture
def training(tmp_path: Path) -> Iterator[str]:
    """The address of a program that tuned some products and runs them, after an update that took a kernel away."""
    (tmp_path / "tune.py").write_text(MODEL)
    subprocess.run([sys.executable, "tune.py"], cwd=tmp_path, check=True, timeout=300)
    results = tmp_path / "tunableop_resultscpu.csv"
    lines = results.read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if "_m8_n3072_" in line)
    op, params, _, time_ms = lines[at].split(",")
    lines[at] = f"{op},{params},host_numpy_cols1048576,{time_ms}"
    results.write_text("".join(lines))
    (tmp_path / "train.py").write_text(MODEL + SERVED)
    with subprocess.Popen([sys.executable, "train.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout
            yield program.stdout.readline().strip()
        finally:
            program.kill()


def _best(page: "Page", url: str) -> str:
    page.goto(f"{url}results?sort=-gain")
    return page.locator("table.winners tbody a").first.get_attribute("href") or ""


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_the_pictures_of_the_documentation_can_be_made(training: str, browser: "Browser", tmp_path: Path) -> None:
    folder = IMAGES if os.environ.get("TENSORPLAY_SCREENSHOTS") else tmp_path
    url = training.partition("login")[0]
    contexts = {
        each: browser.new_context(color_scheme=each, viewport={"width": 1280, "height": 860})
        for each in ("light", "dark")
    }
    page = contexts["light"].new_page()
    page.goto(training)
    page.wait_for_url(url)
    page.goto(f"{url}untuned")
    for box in page.locator("[name=pick]").all()[:2]:
        box.check()
    page.click("button:visible:has-text('Tune the chosen')")
    page.wait_for_url(f"{url}jobs")
    page.get_by_text("succeeded").wait_for(timeout=120_000)
    best = _best(page, url)
    for scheme, context in contexts.items():
        page = context.new_page()
        for name in PAGES:
            page.goto(url + (best if name == "result" else name))
            page.wait_for_selector("#live-state[data-state=live]")
            if not name:
                page.wait_for_timeout(WATCHED_MS)
            page.screenshot(path=folder / f"dashboard-{name or 'overview'}-{scheme}.png")
        context.close()
    assert len(list(folder.glob("dashboard-*.png"))) >= 2 * len(PAGES)
