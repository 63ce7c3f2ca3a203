"""Neighbours that are still being made cost a search no candidate, and no more time than it has."""

from collections.abc import Iterator, Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from tensorplay.measure import Budget, Deadline, Search, SearchMemory, choose
from tensorplay.measure.report import SelectionReport
from tensorplay.testing.manual_clock import ManualClock
from tensorplay.testing.scripted_space import ScriptedSpace
from tensorplay.typing import Pending

SETTINGS = {"a": range(5), "b": range(4), "c": range(3)}
COUNT = 60
NOTHING_ELSE = {"build_ms": 0.0, "check_ms": 0.0, "overhead_ms": 0.0}
TIMES = st.lists(st.floats(0.02, 0.024), min_size=COUNT, max_size=COUNT)
# How long each takes to be made, beside whatever else is done; some longer than a search has.
MAKING = st.lists(st.sampled_from([0.0, 0.0003, 0.004, 0.3, 3.0]), min_size=COUNT, max_size=COUNT)
LONGEST_WAIT_S = 0.005


class Makers:
    """Make the neighbours of a space while the clock goes on; who waits moves the clock."""

    def __init__(self, times: list[float], making: list[float]) -> None:
        self.clock = ManualClock()

        def time_ms(values: Mapping[str, int]) -> float:
            return times[values["a"] * 12 + values["b"] * 3 + values["c"]]

        self.space = ScriptedSpace("k", SETTINGS, time_ms, clock=self.clock, **NOTHING_ELSE)  # type: ignore[arg-type] # each takes its own type
        self._making = dict(zip(self.space.times, making, strict=True))
        self._made_at: dict[str, float] = {}

    def neighbours(self, kernel: str) -> Iterator[str | Pending]:
        for each in self.space.neighbours(kernel):
            made_at = self._made_at.setdefault(each, self.clock() + self._making[each])
            while self.clock() < made_at:
                yield Pending(self._wait)
            yield each

    def searched(self, *, seconds: float, deadline: float | None = None) -> SelectionReport:
        search = Search(
            neighbours=self.neighbours,
            passes=self.space.is_right,
            recall=self.space.recall,
            knowledge=SearchMemory().of("kind"),
            seconds=seconds,
        )
        first = next(iter(self.space.times))
        found = choose(
            [first],
            self.space.timer,
            budget=Budget(),
            describe=str,
            deadline=Deadline(self.clock, deadline),
            search=search,
        )
        return found.report

    def _wait(self, seconds: float) -> None:
        self.clock.advance(max(0.0, min(seconds, LONGEST_WAIT_S)))


@settings(max_examples=60, deadline=None)
@given(TIMES, MAKING, st.floats(0.0005, 2.0))
def test_a_search_that_waits_overruns_its_seconds_by_a_sample_at_most(
    times: list[float], making: list[float], seconds: float
) -> None:
    report = Makers(times, making).searched(seconds=seconds)
    assert report.search is not None
    assert report.search.seconds <= seconds + max(times) / 1000.0 * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(TIMES, MAKING, st.floats(0.0005, 2.0))
def test_a_process_whose_search_waits_is_late_by_one_launch_at_most(
    times: list[float], making: list[float], seconds: float
) -> None:
    makers = Makers(times, making)
    makers.searched(seconds=100.0, deadline=seconds)
    assert makers.clock() <= max(seconds, 2.0 * times[0] / 1000.0) + max(times) / 1000.0 + 1e-9


@settings(max_examples=60, deadline=None)
@given(TIMES, MAKING)
def test_who_has_time_looks_at_all_whether_they_have_to_be_made_or_not(times: list[float], making: list[float]) -> None:
    at_once = Makers(times, [0.0] * COUNT)
    later = Makers(times, making)
    assert at_once.searched(seconds=0.0).search is not None
    report = later.searched(seconds=0.0)
    assert report.search is not None
    assert report.search.is_complete
    assert len(set(later.space.checked)) == len(later.space.checked)
    # The times are near, so that all are worth asking for.
    assert set(later.space.checked) == set(at_once.space.checked)
