"""A first choice that is too slow for five pairs is found out before anybody else is run, and no other is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.measure import Budget, Deadline, Verdict, choose
from tensorplay.measure.glance import GLANCES, glance, report_slow, why_out_of_reach
from tensorplay.testing.manual_clock import ManualClock
from tensorplay.testing.scripted_timer import Script, ScriptedTimer

NO_DEADLINE = Deadline(lambda: 0.0)


def seen(script: Script | float | list[float], budget: Budget | None = None) -> list[float] | None:
    return glance("first", ScriptedTimer({"first": script}), budget or Budget(), NO_DEADLINE)


def test_a_fast_first_choice_is_launched_once_more_than_to_warm_up() -> None:
    timer = ScriptedTimer({"first": 5.0})
    assert glance("first", timer, Budget(), NO_DEADLINE) is None
    assert timer.launches["first"] == 2


def test_a_slow_one_is_read_several_times_and_its_readings_are_kept() -> None:
    assert seen(90.0) == [90.0] * GLANCES


@pytest.mark.parametrize("script", [[1.0, 90.0, 2.0, 90.0], [1.0, 90.0, 90.0, 2.0], [90.0, 2.0, 90.0, 90.0]])
def test_one_launch_that_is_fast_enough_is_enough(script: list[float]) -> None:
    assert seen(script) is None


@pytest.mark.parametrize(("limit_ms", "is_slow"), [(0, False), (30, True), (300, False), (200, True)])
def test_it_goes_by_the_duration_that_is_allowed(limit_ms: int, is_slow: bool) -> None:
    assert (seen(50.0, Budget(limit_ms)) is not None) == is_slow


def test_what_takes_no_time_that_can_be_is_left_to_the_measurement() -> None:
    assert seen(float("inf")) is None
    assert seen(float("nan")) is None


def test_a_launch_that_fails_is_left_to_the_measurement() -> None:
    timer = ScriptedTimer({"first": 90.0}, fails_at={"first": 2})
    assert glance("first", timer, Budget(), NO_DEADLINE) is None


def test_a_deadline_ends_it() -> None:
    clock = ManualClock()
    timer = ScriptedTimer({"first": 90.0}, clock=clock)
    assert glance("first", timer, Budget(), Deadline(clock, 0.1)) is None
    assert timer.launches["first"] == 2


@given(st.floats(0.01, 100.0), st.floats(1.02, 5.0), st.integers(1, 60))
def test_whoever_it_gives_up_could_not_have_been_replaced(first_ms: float, gain: float, limit_ms: int) -> None:
    budget = Budget(limit_ms)
    if seen(first_ms, budget) is None:
        return
    timer: ScriptedTimer[str] = ScriptedTimer({"first": first_ms, "fast": first_ms / gain})
    selection = choose(["first", "fast"], timer, budget=budget, describe=str)
    assert (selection.winner, selection.verdict) == ("first", Verdict.INSUFFICIENT_BUDGET)


def test_the_reason_names_the_setting_and_the_time() -> None:
    assert why_out_of_reach([80.0, 90.0, 100.0], Budget()) == (
        "not measured: max_tuning_duration_ms=30 holds fewer than 5 pairs with the first choice (90 ms a launch)"
    )


@pytest.mark.parametrize(("others", "verdict"), [(0, Verdict.ALONE), (3, Verdict.INSUFFICIENT_BUDGET)])
def test_the_report_has_the_median_of_the_readings(others: int, verdict: Verdict) -> None:
    report = report_slow("host_numpy", [80.0, 90.0, 120.0], others=others)
    assert (report.verdict, report.winner, report.winner_ms, report.first_choice_ms) == (
        verdict,
        "host_numpy",
        90.0,
        90.0,
    )
    assert report.candidates[0].samples == GLANCES
