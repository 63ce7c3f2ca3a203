"""A real browser on a real service; skipped, loudly, where there is no Chromium."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tensorplay.gemm import parse_signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, start
from tensorplay.testing import ScriptedBackend, scripted_kernel
from tensorplay.testing.scripted_timer import steady

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

OP = "GemmTunableOp_Float32"
NO_BROWSER = "no Chromium or no playwright that starts here: the dashboard is NOT tested in a browser (make browser)"
NO_AXE = "no axe-playwright-python here: accessibility is NOT tested"
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP ml.example 127.0.0.1",
]  # fmt: skip


@cache
def chromium() -> str | None:
    """Return a browser, if it and what drives it start: the packages of some systems are only a hint to others."""
    named = os.environ.get("TENSORPLAY_CHROMIUM")
    for name in [named] if named else ["chromium", "chromium-browser"]:
        found = shutil.which(name)
        if found is not None and _starts(found) and _starts(sys.executable, "-m", "playwright"):
            return found
    return None


def _starts(*command: str) -> bool:
    try:
        return subprocess.run([*command, "--version"], capture_output=True, timeout=20, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    # No longer than a module: while it is there, no other test of this process can run a loop of its own.
    found = chromium()
    if found is None:
        pytest.skip(NO_BROWSER)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield made
        made.close()


@pytest.fixture
def backend() -> ScriptedBackend:
    times = {scripted_kernel(number): 0.04 * (1 + abs(7 - number) * 0.07) for number in range(12)}
    return ScriptedBackend({kernel: steady(time, 0.03) for kernel, time in times.items()})


@pytest.fixture
def context(tmp_path: Path, backend: ScriptedBackend) -> Iterator[TuningContext]:
    made = TuningContext(environ={"TP_TUNABLEOP_ENABLED": "1"}, directory=tmp_path, backends={"0": backend})
    made.change_setting("max_tuning_samples", 12)
    yield made
    made.close()


@pytest.fixture
def run(context: TuningContext, backend: ScriptedBackend) -> Callable[[int], str]:
    """Runs the product of m rows as an operation would, and returns its params."""

    def call(m: int) -> str:
        params = f"taN_m{m}_n512_k64_bias0_dev0"
        context.resolve(parse_signature(OP, params), backend)
        return params

    return call


@pytest.fixture
def seeded(run: Callable[[int], str], context: TuningContext) -> None:
    """Winners, and signatures without one."""
    for _ in range(40):
        for m in (1, 16, 128):
            run(m)
    context.change_setting("tuning", False)
    for m in (3, 5):
        for _ in range(m):
            run(m)


@pytest.fixture
def service(context: TuningContext) -> Iterator[Service]:
    made = start(context=context)
    yield made
    made.stop()


@pytest.fixture
def first_result(service: Service, seeded: None) -> str:
    """The path of a winner's page."""
    items = httpx.get(service.url + "api/v1/results").json()["items"]
    return f"results/{items[0]['id']}"


class Watched:
    """What a browser did that it should not: errors, and requests to another host."""

    def __init__(self, context: "BrowserContext", origin: str) -> None:
        self.errors: list[str] = []
        self.elsewhere: list[str] = []
        self._origin = origin
        context.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        context.on("weberror", lambda error: self.errors.append(str(error.error)))
        context.on("request", self._request)

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self._origin, "data:")):
            self.elsewhere.append(request.url)

    def check(self) -> None:
        assert not self.errors
        assert not self.elsewhere


@pytest.fixture
def open_page(browser: "Browser", service: Service) -> Iterator[Callable[..., "Page"]]:
    """Opens a page in a browser of its own; at the end nothing must have failed there."""
    opened: list[tuple[BrowserContext, Watched]] = []

    def open_(path: str = "", *, url: str = "", **options: Any) -> "Page":
        base = url or service.url
        context = browser.new_context(**options)
        context.set_default_timeout(30_000)
        watched = Watched(context, base)
        opened.append((context, watched))
        page = context.new_page()
        page.goto(base + path)
        return page

    yield open_
    for context, watched in opened:
        context.close()
        watched.check()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe, which tests accessibility."""
    if find_spec("axe_playwright_python") is None:
        pytest.skip(NO_AXE)
    folder = Path(str(import_module("axe_playwright_python").__path__[0]))
    return next(folder.glob("**/axe.min.js")).read_text()
