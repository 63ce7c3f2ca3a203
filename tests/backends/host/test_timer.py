import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorplay.backends.base import Plan
from tensorplay.backends.host.operands import Operands, random_operands
from tensorplay.backends.host.timer import HostTimer
from tensorplay.errors import LaunchError, MeasurementError
from tensorplay.gemm import GemmProblem, dtype_of_word

PROBLEM = GemmProblem(dtype=dtype_of_word("Float32"), m=3, n=4, k=5)


class Clock:
    """Nanoseconds that pass only while a plan runs."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def plan(self, duration_ns: int | list[int]) -> Plan:
        """Return a plan that takes so long, or each of these times in turn, the last for ever."""
        durations = [duration_ns] if isinstance(duration_ns, int) else list(duration_ns)
        return self.running(lambda *_: durations.pop(0) if len(durations) > 1 else durations[0])

    def running(self, duration: Callable[..., int]) -> Plan:
        def run(left: Any, right: Any, out: Any) -> Any:
            self.now += duration(left, right, out)
            return out

        return Plan(PROBLEM, "host_numpy", run)


def sets(number: int) -> list[Operands]:
    return [random_operands(PROBLEM, seed) for seed in range(number)]


def test_screening_is_the_mean_of_the_launches_in_milliseconds() -> None:
    clock = Clock()
    assert HostTimer(sets(1), clock).screen(clock.plan([1_000_000, 2_000_000, 6_000_000]), 3) == 3.0


def test_samples_come_in_the_places_asked_for() -> None:
    clock = Clock()
    slow, fast = clock.plan(4_000_000), clock.plan(1_000_000)
    assert HostTimer(sets(1), clock).sample([slow, fast, fast, slow]) == [4.0, 1.0, 1.0, 4.0]


@pytest.mark.parametrize(("duration_ns", "launches"), [(500, 100), (10_000, 5), (30_000, 2), (50_000, 1), (10**9, 1)])
def test_a_sample_lasts_fifty_microseconds_or_one_launch(duration_ns: int, launches: int) -> None:
    clock = Clock()
    timer, plan = HostTimer(sets(1), clock), clock.plan(duration_ns)
    timer.sample([plan])
    before = clock.now
    timer.sample([plan])
    assert clock.now - before == launches * duration_ns


def test_an_interruption_while_calibrating_does_not_make_samples_shorter() -> None:
    clock = Clock()
    timer, plan = HostTimer(sets(1), clock), clock.plan([5_000_000, 1000])
    timer.sample([plan])
    before = clock.now
    assert timer.sample([plan]) == [0.001]
    assert clock.now - before == 50_000


def test_a_plan_too_fast_for_the_clock_still_has_an_end() -> None:
    clock = Clock()
    assert HostTimer(sets(1), clock).sample([clock.plan(0)]) == [0.0]


def test_launches_use_one_set_of_operands_after_the_other() -> None:
    def notice(left: Any, *_: Any) -> int:
        seen.append(id(left))
        return 10**6

    clock, three = Clock(), sets(3)
    seen: list[int] = []
    plan = clock.running(notice)
    timer = HostTimer(three, clock)
    timer.warm_up(plan)
    timer.screen(plan, 3)
    timer.screen(plan, 2)
    assert seen == [id(three[turn % 3].left) for turn in range(6)]


def test_the_garbage_collector_rests_during_launches_and_is_put_back() -> None:
    def fail(*_: Any) -> int:
        assert not gc.isenabled()
        raise RuntimeError("by intention")

    def watch(*_: Any) -> int:
        states.append(gc.isenabled())
        return 10**6

    clock = Clock()
    states: list[bool] = []
    timer = HostTimer(sets(1), clock)
    watching = clock.running(watch)
    assert gc.isenabled()
    timer.sample([watching])
    assert gc.isenabled()
    with pytest.raises(LaunchError):
        timer.sample([clock.running(fail)])
    assert gc.isenabled()
    gc.disable()
    try:
        timer.sample([watching])
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert not any(states)


@pytest.mark.parametrize("error", [ValueError, MemoryError, OSError, LaunchError, ZeroDivisionError])
def test_what_a_plan_raises_becomes_a_launch_error_that_names_it(error: type[Exception]) -> None:
    def fail(*_: Any) -> int:
        raise error("no luck")

    clock = Clock()
    timer, plan = HostTimer(sets(1), clock), clock.running(fail)
    for launch in (lambda: timer.warm_up(plan), lambda: timer.screen(plan, 2), lambda: timer.sample([plan])):
        with pytest.raises(LaunchError, match=f"host_numpy failed: {error.__name__}: no luck") as raised:
            launch()
        assert isinstance(raised.value.__cause__, error)


def test_an_interrupt_by_the_user_is_not_swallowed() -> None:
    def interrupt(*_: Any) -> int:
        raise KeyboardInterrupt

    clock = Clock()
    with pytest.raises(KeyboardInterrupt):
        HostTimer(sets(1), clock).warm_up(clock.running(interrupt))
    assert gc.isenabled()


def test_a_closed_timer_launches_nothing() -> None:
    clock = Clock()
    timer, plan = HostTimer(sets(2), clock), clock.plan(1)
    timer.warm_up(plan)
    timer.close()
    with pytest.raises(MeasurementError, match="closed"):
        timer.warm_up(plan)


def test_the_processors_clock_times_real_products() -> None:
    timer, plan = HostTimer(sets(2)), Plan(PROBLEM, "host_numpy", np.matmul)
    timer.warm_up(plan)
    assert 0 < timer.screen(plan, 10) < 1000
    assert all(0 < sample < 1000 for sample in timer.sample([plan] * 4))
