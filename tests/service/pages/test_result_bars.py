"""Candidates of a result: medians are drawn among medians, and readings of the screening among readings."""

from collections.abc import Callable
from typing import Any

import httpx

from tensorplay.runtime.context import TuningContext
from tensorplay.service.pages.result_page import bars_of, interval_of

Ask = Callable[..., httpx.Response]
Run = Callable[[int], str]


def _candidate(kernel: str, median_ms: float | None, screened_ms: float | None) -> dict[str, Any]:
    return {
        "kernel": kernel, "samples": 3 if median_ms else 0, "median_ms": median_ms, "quartile_low_ms": median_ms,
        "quartile_high_ms": median_ms, "screened_ms": screened_ms, "dropped": None,
    }  # fmt: skip


def test_a_reading_is_never_scaled_against_a_median() -> None:
    bars = {
        each.kernel: each
        for each in bars_of(
            [_candidate("first", 1.0, 4.0), _candidate("best", 0.5, 2.0), _candidate("slow", None, 3.0)], "best"
        )
    }
    assert list(bars) == ["best", "first", "slow"]
    assert (bars["slow"].median_ms, bars["slow"].screened_ms) == (None, 3.0)
    assert bars["slow"].width == round(100 * 3.0 / 4.08, 2), "of the longest reading"
    assert bars["first"].width == round(100 * 1.0 / 1.02, 2), "of the longest median"
    assert not bars["slow"].is_cut, "it takes six times the best median, and 1.5 times the best reading"


def test_what_was_never_timed_comes_last() -> None:
    order = [each.kernel for each in bars_of([_candidate("x", None, None), _candidate("y", None, 9.0)], "z")]
    assert order == ["y", "x"]


def test_no_gain_the_interval_and_its_ticks_are_in_the_picture() -> None:
    view = interval_of({"gain_low": 2.791, "gain_high": 2.886, "margin": 0.06, "gain": 2.842})
    assert 0 < view.zero < view.margin < view.low < view.gain < view.high < 100
    assert [tick.text for tick in view.axis.ticks][:3] == ["0", "100", "200"]


def test_the_page_keeps_readings_and_medians_apart(ask: Ask, run: Run) -> None:
    run(4)
    (item,) = ask("/api/v1/results", headers={"Accept": "application/json"}).json()["items"]
    text = ask(f"/results/{item['id']}").text
    assert 'id="h-raced"' in text and 'id="h-screened"' in text
    assert "times the fastest of its look" in text
    assert 'class="num">screened</th>' in text


def test_an_overridden_winner_says_that_its_measurement_comes_back(ask: Ask, run: Run, context: TuningContext) -> None:
    params = run(4)
    context.override("GemmTunableOp_Float32", params, "Default")
    (item,) = ask("/api/v1/results", headers={"Accept": "application/json"}).json()["items"]
    text = ask(f"/results/{item['id']}").text
    assert "comes back with “Go back from the override”" in text
    assert "no explanation" not in text and "measured again when it is next met" in text
    context.tuning_disable()
    assert "measured again when it is next met" not in ask(f"/results/{item['id']}").text
