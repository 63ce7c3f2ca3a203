"""Readings of a search hold what lies between launches, which differs by kernel: the race must get who is fast."""

from collections.abc import Sequence

import pytest

from tensorplay.measure import Budget, Deadline, Search, SearchMemory, choose
from tensorplay.testing.manual_clock import ManualClock
from tensorplay.testing.scripted_timer import ScriptedTimer, steady

FIRST_MS = 0.0085


class LaunchBoundTimer(ScriptedTimer[str]):
    """Its careful samples are true; its readings hold what surrounds a launch, by kernel."""

    def __init__(self, times_ms: dict[str, float], around_ms: dict[str, float], clock: ManualClock) -> None:
        super().__init__({name: steady(time, 0.003) for name, time in times_ms.items()}, clock=clock)
        self._around_ms = around_ms

    def screen(self, candidate: str, launches: int) -> float:
        return super().screen(candidate, launches) + self._around_ms[candidate]


def chosen(times_ms: dict[str, float], around_ms: dict[str, float], offered: Sequence[str]) -> str:
    clock = ManualClock()
    timer = LaunchBoundTimer(times_ms, around_ms, clock)
    search: Search[str] = Search(
        neighbours=lambda kernel: [each for each in times_ms if each not in offered and kernel == offered[0]],
        passes=None,
        recall=lambda _: None,
        knowledge=SearchMemory().of("kind"),
        seconds=3.0,
    )
    return choose(offered, timer, budget=Budget(), describe=str, deadline=Deadline(clock), search=search).winner


@pytest.mark.parametrize("ahead", [10, 20])
def test_the_fastest_wins_though_others_are_launched_sooner(ahead: int) -> None:
    times = {"k_first1": FIRST_MS, "k_best1": 0.94 * FIRST_MS}
    times |= {f"k_plain{number}": 0.98 * FIRST_MS for number in range(ahead)}
    around = dict.fromkeys(times, 0.0010) | {"k_best1": 0.0016, "k_first1": 0.0016}
    assert chosen(times, around, ["k_first1"]) == "k_best1"


def test_a_kernel_of_milliseconds_is_not_helped_by_what_lies_between_launches() -> None:
    times = {"k_first1": 5.0, "k_far1": 4.99, "k_best1": 4.5}
    around = dict.fromkeys(times, 0.0010)
    assert chosen(times, around, ["k_first1"]) == "k_best1"
