"""When a browser shows the results page among 50,000 winners, and how soon an open page shows a change made in Python.

Needs a Chromium and Playwright; where they are missing nothing is measured, and the figures say so by being missed.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from harness.quiet import Bystanders
from harness.result import Figure, Goal, Result
from harness.spread import spread_of

from service.told import ToldProcess

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["WINNERS", "measure"]

WINNERS = 50_000
_CHROMIUM = os.environ.get("TENSORPLAY_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
_ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
_PAINT_MS, _VISIBLE_MS = Goal(500.0), Goal(1000.0)
_ROWS = "table.rows tbody tr"
# What changes, on which page it is shown, where there, and what is seen of it.
_CHANGES: dict[str, tuple[str, str, Callable[[int], str]]] = {
    "switch": ("", ".strip", lambda number: f"tuning <b>{'off' if number % 2 else 'on'}</b>"),
    "budget": ("settings", "#live", lambda number: f'value="{1000 + number}"'),
    "winner": ("results?dtype=BFloat16&k_min=10000", "#live", lambda number: f"_m1_n1_k{10_000 + number}_"),
    "untuned": ("untuned", "#live", lambda number: f"_m2_n2_k{20_000 + number}_"),
    "event": ("events", "#live", lambda number: f"event{number}"),
}
# Two frames behind the rows, since the first only begins to draw them.
_WATCH_ROWS = f"""
new MutationObserver((_, observer) => {{
  if (!document.querySelector("{_ROWS}")) return;
  observer.disconnect();
  requestAnimationFrame(() => requestAnimationFrame(() => {{ window.rowsShown = performance.now(); }}));
}}).observe(document, {{ childList: true, subtree: true }});
"""
_TIMES = """() => {
  const navigation = performance.getEntriesByType("navigation")[0];
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return { paint: paint.startTime - navigation.responseEnd, rows: window.rowsShown - navigation.responseEnd,
           response: navigation.responseEnd - navigation.requestStart };
}"""
_WAIT = """([selector, text]) => {
  window.seen = new Promise((done, failed) => {
    setTimeout(() => failed(new Error(`${text} was never shown`)), 15000);
    const look = () => {
      if (document.querySelector(selector)?.outerHTML.includes(text)) done(Date.now());
      else requestAnimationFrame(look);
    };
    look();
  });
}"""


def measure(quick: bool) -> Result:
    """Load the page again and again, each time in a browser that knows nothing; then change things."""
    winners, loads, changes = (500, 2, 1) if quick else (WINNERS, 25, 8)
    question = f"How soon does a browser show {winners:,} winners, and what changes in Python?"
    if _CHROMIUM is None or find_spec("playwright") is None:
        return Result("service_page", question, [Figure("browsers", 0, "", None if quick else Goal(1, at_least=True))])
    bystanders = Bystanders()
    with (
        tempfile.TemporaryDirectory() as folder,
        ToldProcess("service.host", directory=folder) as host,
        _browser(_CHROMIUM) as browser,
    ):
        host.ask("load", winners=winners)
        url = host.ask("start")["url"]
        shown = [_load(browser, url + "results") for _ in range(loads + 1)][1:]
        seconds = {kind: _changes(browser, host, url, kind, changes) for kind in _CHANGES}
        host.ask("stop")
    every = [value for values in seconds.values() for value in values]
    return Result(
        name="service_page",
        question=question,
        figures=[
            _figure("rows painted, after the response", [each["rows"] for each in shown], _PAINT_MS),
            _figure("first paint of anything, after the response", [each["paint"] for each in shown], _PAINT_MS),
            Figure("rows painted, the slowest", max(each["rows"] for each in shown), "ms"),
            _figure("the response itself", [each["response"] for each in shown], None),
            _figure("a change is visible", every, _VISIBLE_MS),
            Figure("a change is visible, the slowest", max(every), "ms", _VISIBLE_MS),
            *(_figure(f"a change is visible: {kind}", values, None) for kind, values in seconds.items()),
        ],
        settings={
            "winners": winners,
            "loads": loads,
            "changes": len(every),
            "processor share of others": bystanders.share(),
        },
    )


def _figure(name: str, values: Sequence[float], goal: Goal | None) -> Figure:
    spread = spread_of(values)
    return Figure(name, spread.median, "ms", goal, spread)


@contextmanager
def _browser(path: str) -> Iterator["Browser"]:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - there is not one everywhere

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        yield made
        made.close()


def _load(browser: "Browser", url: str) -> dict[str, float]:
    """Return the milliseconds from the end of the response until something, and until the rows, were painted."""
    context = browser.new_context()
    try:
        page = context.new_page()
        page.add_init_script(_WATCH_ROWS)
        page.goto(url)
        page.wait_for_function("window.rowsShown && performance.getEntriesByName('first-contentful-paint').length")
        times: dict[str, float] = page.evaluate(_TIMES)
        return times
    finally:
        context.close()


def _changes(browser: "Browser", host: ToldProcess, url: str, kind: str, count: int) -> list[float]:
    """Return the milliseconds from each change until an open page shows it."""
    path, selector, text_of = _CHANGES[kind]
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(url + path)
        page.wait_for_selector("#live-state[data-state=live]")
        found = []
        for number in range(1, count + 1):
            # At another moment of the page's own pauses each time.
            time.sleep(0.7 + 0.13 * (number % 5))
            page.evaluate(_WAIT, [selector, text_of(number)])
            begun: float = host.ask("change", kind=kind, number=number)
            seen: float = page.evaluate("window.seen")
            found.append(seen - 1e3 * begun)
        return found
    finally:
        context.close()
