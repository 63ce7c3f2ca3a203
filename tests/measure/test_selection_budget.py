"""No measurement takes more than its budget, whatever the timer says."""

from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorplay.measure import Budget, Deadline, choose
from tensorplay.measure.budget import OWN_MAX_SAMPLES
from tensorplay.testing.manual_clock import ManualClock
from tensorplay.testing.scripted_timer import Script, ScriptedTimer

ANY_TIMES = st.lists(st.lists(st.floats(0.01, 200.0), min_size=1, max_size=30), min_size=1, max_size=6)
NEAR_TIMES = st.lists(st.lists(st.floats(0.9, 1.2), min_size=1, max_size=30), min_size=1, max_size=6)
CONSTANT_TIMES = st.lists(st.floats(0.01, 200.0).map(lambda time_ms: [time_ms]), min_size=1, max_size=6)
LIMITS = st.integers(0, 150)


def measured(
    scripts: list[list[float]], budget: Budget, *, deadline: Deadline | None = None, clock: ManualClock | None = None
) -> ScriptedTimer[int]:
    timer: ScriptedTimer[int] = ScriptedTimer(dict(enumerate(scripts)), clock=clock)
    choose(range(len(scripts)), timer, budget=budget, describe=str, deadline=deadline)
    return timer


def readings_of(timer: ScriptedTimer[int], candidate: int) -> list[float]:
    """Return what each timed reading of the candidate took, a screening reading counting as one."""
    timed = (call for call in timer.calls if call.method != "warm_up" and candidate in call.order)
    return [sum(ms for who, ms in zip(call.order, call.times_ms, strict=True) if who == candidate) for call in timed]


@settings(max_examples=150, deadline=None)
@given(st.one_of(ANY_TIMES, NEAR_TIMES), LIMITS, LIMITS)
def test_no_candidate_overruns_by_more_than_its_last_reading(
    scripts: list[list[float]], max_ms: int, max_samples: int
) -> None:
    timer = measured(scripts, Budget(max_ms, max_samples))
    for candidate in timer.launches:
        assert 1 <= timer.samples_of(candidate) <= (max_samples or OWN_MAX_SAMPLES)
        if max_ms:
            before_last = [0.0, *accumulate(readings_of(timer, candidate))][-2]
            assert before_last < max_ms


@settings(max_examples=100, deadline=None)
@given(CONSTANT_TIMES, st.integers(1, 150), LIMITS)
def test_steady_candidates_overrun_by_less_than_one_launch(
    scripts: list[list[float]], max_ms: int, max_samples: int
) -> None:
    timer = measured(scripts, Budget(max_ms, max_samples))
    for candidate, (time_ms,) in enumerate(scripts):
        assert timer.spent_ms_of(candidate) < max_ms + time_ms * (1 + 1e-9)


@settings(max_examples=100, deadline=None)
@given(CONSTANT_TIMES, st.integers(1, 150), LIMITS, st.integers(2, 90))
def test_all_launches_of_a_sample_count_and_steady_candidates_overrun_by_less_than_one_sample(
    scripts: list[list[float]], max_ms: int, max_samples: int, launches: int
) -> None:
    timer: ScriptedTimer[int] = ScriptedTimer(dict(enumerate(scripts)), sample_launches=launches)
    choose(range(len(scripts)), timer, budget=Budget(max_ms, max_samples), describe=str)
    for candidate, (time_ms,) in enumerate(scripts):
        assert timer.spent_ms_of(candidate) < max_ms + launches * time_ms * (1 + 1e-9)


def test_a_sample_is_one_however_many_launches_it_is_the_mean_of() -> None:
    timer: ScriptedTimer[int] = ScriptedTimer({0: 0.02, 1: 0.01}, sample_launches=10)
    choose(range(2), timer, budget=Budget(0, 41), describe=str)
    assert [timer.samples_of(candidate) for candidate in (0, 1)] == [2 + 39 * 10] * 2


@settings(max_examples=100, deadline=None)
@given(CONSTANT_TIMES, st.floats(0.001, 1.0), LIMITS)
def test_a_deadline_is_overrun_by_one_launch_at_most(scripts: list[list[float]], seconds: float, max_ms: int) -> None:
    clock = ManualClock()
    timer = measured(scripts, Budget(max_ms, 0), deadline=Deadline(clock, seconds), clock=clock)
    # The first choice is read once, whatever it takes. What one launch of another takes is not known before it.
    longest = max(times[0] for times in scripts)
    assert timer.now_ms <= max(seconds * 1000.0, 2.0 * scripts[0][0]) + longest + 1e-6


def test_a_slow_first_choice_among_many_fast_candidates_is_not_doubted_at_length() -> None:
    timer = measured([[12.0], *[[0.01]] * 5], Budget(30, 100))
    assert timer.spent_ms_of(0) < 30.0 + 12.0


@pytest.mark.parametrize("launch_ms", [0.001, 1.0, 1000.0])
def test_without_limits_it_ends_all_the_same(launch_ms: float) -> None:
    timer = measured([[launch_ms]] * 5, Budget(0, 0))
    assert max(timer.samples_of(candidate) for candidate in range(5)) <= OWN_MAX_SAMPLES


def test_warm_ups_come_on_top_of_the_budget() -> None:
    timer = measured([[1.0], [0.9]], Budget(0, 20, 0, 50))
    assert timer.launches[0] == 1 + 50 + 20


def test_no_call_holds_a_candidate_twice() -> None:
    timer = measured([[1.0], [0.99], [0.98]], Budget())
    sampled = [call.order for call in timer.calls if call.method == "sample"]
    assert sampled
    assert all(len(set(order)) == len(order) for order in sampled)


def test_a_candidate_that_turns_slow_overruns_by_the_one_sample_in_which_it_does() -> None:
    def turning(now_ms: float, launch: int, rng: object) -> float:
        return 1.0 if launch < 8 else 500.0

    script: Script = turning
    timer: ScriptedTimer[str] = ScriptedTimer({"first": 1.0, "turning": script})
    choose(["first", "turning"], timer, budget=Budget(), describe=str)
    assert timer.spent_ms_of("turning") < 30.0 + 500.0
