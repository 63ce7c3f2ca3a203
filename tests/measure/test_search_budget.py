"""No search takes more than its budgets: of each candidate, of the product, and of the process."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorplay.measure import Budget, Deadline, Search, SearchMemory, choose
from tensorplay.measure.budget import OWN_MAX_SAMPLES
from tensorplay.measure.report import SelectionReport
from tensorplay.testing.manual_clock import ManualClock
from tensorplay.testing.scripted_space import ScriptedSpace

SETTINGS = {"a": range(5), "b": range(4), "c": range(3)}
COUNT = 60
TIMES = st.lists(st.floats(0.01, 60.0), min_size=COUNT, max_size=COUNT)
NEAR_TIMES = st.lists(st.floats(0.02, 0.03), min_size=COUNT, max_size=COUNT)
# Of a fast first choice a reading has four launches.
FAST_FIRST = TIMES.map(lambda times: [0.01, *times[1:]])
SECONDS = st.floats(0.001, 2.0)
NOTHING_ELSE = {"build_ms": 0.0, "check_ms": 0.0, "overhead_ms": 0.0}


def space_of(times: list[float], clock: ManualClock, **options: float) -> ScriptedSpace:
    def time_ms(values: Mapping[str, int]) -> float:
        return times[values["a"] * 12 + values["b"] * 3 + values["c"]]

    return ScriptedSpace("k", SETTINGS, time_ms, clock=clock, **options)  # type: ignore[arg-type] # each takes its own type


def searched(
    space: ScriptedSpace, *, budget: Budget, deadline: Deadline, seconds: float, checks: bool = True
) -> SelectionReport:
    search = Search(
        neighbours=space.neighbours,
        passes=space.is_right if checks else None,
        recall=space.recall,
        knowledge=SearchMemory().of("kind"),
        seconds=seconds,
    )
    first = next(iter(space.times))
    return choose([first], space.timer, budget=budget, describe=str, deadline=deadline, search=search).report


@settings(max_examples=60, deadline=None)
@given(st.one_of(TIMES, NEAR_TIMES, FAST_FIRST), st.integers(0, 60), st.integers(0, 120), SECONDS)
def test_no_candidate_overruns_its_own_budget_by_more_than_a_launch(
    times: list[float], max_ms: int, max_samples: int, seconds: float
) -> None:
    clock = ManualClock()
    space = space_of(times, clock)
    searched(space, budget=Budget(max_ms, max_samples), deadline=Deadline(clock), seconds=seconds)
    # The first choice sets the pace too, which counts against the search.
    for kernel in list(space.times)[1:]:
        assert space.timer.samples_of(kernel) <= (max_samples or OWN_MAX_SAMPLES)
        if max_ms:
            assert space.timer.spent_ms_of(kernel) < max_ms + space.times[kernel] * (1 + 1e-9)


@pytest.mark.parametrize("checks", [True, False])
def test_a_slow_neighbour_of_a_fast_first_choice_is_launched_once(checks: bool) -> None:
    clock = ManualClock()
    space = space_of([0.01] + [20.0] * (COUNT - 1), clock)
    searched(space, budget=Budget(1, 100), deadline=Deadline(clock), seconds=5.0, checks=checks)
    timed = [space.timer.samples_of(kernel) for kernel in list(space.times)[1:]]
    assert max(timed) == 1


@settings(max_examples=60, deadline=None)
@given(st.one_of(TIMES, FAST_FIRST), SECONDS, st.booleans())
def test_a_product_is_searched_for_its_seconds_and_one_sample_at_most(
    times: list[float], seconds: float, checks: bool
) -> None:
    clock = ManualClock()
    space = space_of(times, clock, **NOTHING_ELSE)
    report = searched(space, budget=Budget(), deadline=Deadline(clock), seconds=seconds, checks=checks)
    assert report.search is not None
    # What a sample takes is not known before it was taken.
    longest_s = max(times) / 1000.0
    assert report.search.seconds <= seconds + longest_s * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(NEAR_TIMES, SECONDS)
def test_what_comes_after_the_search_is_bounded_by_the_candidates_own_budgets(
    times: list[float], seconds: float
) -> None:
    clock = ManualClock()
    space = space_of(times, clock, **NOTHING_ELSE)
    report = searched(space, budget=Budget(2, 100), deadline=Deadline(clock), seconds=seconds)
    timed = sum(candidate.samples > 0 or candidate.screened_ms is not None for candidate in report.candidates)
    assert report.search is not None
    assert clock() <= report.search.seconds + timed * (0.002 + 2 * max(times) / 1000.0)


@settings(max_examples=60, deadline=None)
@given(st.one_of(TIMES, NEAR_TIMES, FAST_FIRST), SECONDS, st.integers(0, 60), st.booleans())
def test_a_process_is_never_late_by_more_than_one_launch(
    times: list[float], seconds: float, max_ms: int, checks: bool
) -> None:
    clock = ManualClock()
    space = space_of(times, clock, **NOTHING_ELSE)
    searched(space, budget=Budget(max_ms, 0), deadline=Deadline(clock, seconds), seconds=100.0, checks=checks)
    # The first choice is read once, whatever it takes. What one launch of another takes is not known before it.
    started = 2.0 * times[0] / 1000.0
    assert clock() <= max(seconds, started) + max(times) / 1000.0 + 1e-9


@settings(max_examples=25, deadline=None)
@given(NEAR_TIMES, st.floats(0.05, 2.0))
def test_half_of_what_a_process_has_left_is_kept_for_race_and_confirmation(times: list[float], seconds: float) -> None:
    clock = ManualClock()
    space = space_of(times, clock, build_ms=20.0)
    report = searched(space, budget=Budget(), deadline=Deadline(clock, seconds), seconds=100.0)
    assert report.search is not None
    assert report.search.seconds <= 0.5 * seconds + 0.021


def test_a_process_without_time_searches_nothing() -> None:
    clock = ManualClock()
    space = space_of([0.02] * COUNT, clock)
    deadline = Deadline(clock, 0.001)
    clock.advance(1.0)
    report = searched(space, budget=Budget(), deadline=deadline, seconds=1.0)
    assert report.search is not None
    assert (report.search.checked, report.search.timed, report.search.is_complete) == (0, 0, False)
