import random
import statistics
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tensorplay.errors import LaunchError
from tensorplay.testing.manual_clock import ManualClock
from tensorplay.testing.scripted_timer import (
    Call,
    Script,
    ScriptedTimer,
    drift,
    fast_at_first,
    heavy_tailed,
    steady,
    step,
    wandering,
    with_outliers,
)

if TYPE_CHECKING:
    from tensorplay.typing import Timer


def times_of(script: Script, launches: int) -> list[float]:
    rng = random.Random(1)  # noqa: S311 - repeatable noise, not a secret
    return [script(0.0, launch, rng) for launch in range(launches)]


def test_it_is_a_timer() -> None:
    timer: Timer[str] = ScriptedTimer({"a": 2.0})
    timer.warm_up("a")
    assert timer.screen("a", 3) == 2.0
    assert list(timer.sample(["a", "a"])) == [2.0, 2.0]


def test_a_sequence_plays_launch_by_launch_and_its_last_time_repeats() -> None:
    timer = ScriptedTimer({"a": [1.0, 2.0, 4.0]})
    assert timer.sample(["a", "a", "a", "a"]) == (1.0, 2.0, 4.0, 4.0)


def test_a_screening_time_is_the_mean_of_its_launches() -> None:
    assert ScriptedTimer({"a": [1.0, 2.0, 6.0]}).screen("a", 3) == 3.0


def test_samples_come_back_in_the_order_that_was_asked() -> None:
    timer = ScriptedTimer({"a": 1.0, "b": 2.0})
    assert timer.sample(["b", "a", "b"]) == (2.0, 1.0, 2.0)


def test_equal_seeds_play_equal_times_and_others_do_not() -> None:
    first, again, other = (ScriptedTimer({"a": steady(1.0, 0.1)}, seed=seed) for seed in (3, 3, 4))
    assert first.sample(["a"] * 5) == again.sample(["a"] * 5) != other.sample(["a"] * 5)


def test_it_counts_launches_and_timed_samples_of_each_candidate() -> None:
    timer = ScriptedTimer({"a": 2.0, "b": 3.0})
    timer.warm_up("a")
    timer.screen("a", 4)
    timer.sample(["b", "a"])
    assert timer.launches == {"a": 6, "b": 1}
    assert (timer.samples_of("a"), timer.spent_ms_of("a")) == (5, 10.0)
    assert (timer.samples_of("b"), timer.spent_ms_of("b")) == (1, 3.0)
    assert timer.now_ms == 15.0


def test_it_remembers_every_call() -> None:
    timer = ScriptedTimer({"a": 1.0, "b": 2.0})
    timer.warm_up("b")
    timer.sample(["b", "a"])
    assert timer.calls == [Call("warm_up", ("b",), (2.0,)), Call("sample", ("b", "a"), (2.0, 1.0))]


def test_it_advances_the_clock_by_launches_and_overhead() -> None:
    clock = ManualClock()
    timer = ScriptedTimer({"a": 20.0}, clock=clock, overhead_ms=5.0)
    timer.warm_up("a")
    timer.screen("a", 2)
    assert clock() == pytest.approx(0.070)
    assert timer.spent_ms_of("a") == 40.0


def test_a_candidate_fails_from_the_launch_that_was_scripted() -> None:
    timer = ScriptedTimer({"a": 1.0, "b": 1.0}, fails_at={"a": 3})
    timer.warm_up("a")
    timer.sample(["a"])
    with pytest.raises(LaunchError, match="launch 3 of a"):
        timer.sample(["b", "a"])
    with pytest.raises(LaunchError):
        timer.warm_up("a")
    assert timer.sample(["b"]) == (1.0,)


def test_a_step_changes_everything_from_one_moment_on() -> None:
    timer = ScriptedTimer({"a": 10.0, "b": 20.0}, environment=step(25.0, 1.5))
    assert timer.sample(["a", "b", "a", "b"]) == (10.0, 20.0, 15.0, 30.0)


def test_a_drift_slows_everything_down_with_time() -> None:
    timer = ScriptedTimer({"a": 100.0}, environment=drift(0.5))
    assert timer.sample(["a", "a"]) == (100.0, pytest.approx(105.0))


def test_steady_times_have_the_mean_and_noise_that_were_asked() -> None:
    times = times_of(steady(2.0, 0.05), 2000)
    assert statistics.mean(times) == pytest.approx(2.0, rel=0.01)
    assert statistics.stdev(times) == pytest.approx(0.1, rel=0.1)


def test_outliers_hit_the_share_that_was_asked() -> None:
    times = times_of(with_outliers(steady(1.0), share=0.1, factor=5.0), 2000)
    assert set(times) == {1.0, 5.0}
    assert times.count(5.0) == pytest.approx(200, abs=50)


def test_heavy_tails_have_a_floor_and_reach_far() -> None:
    times = times_of(heavy_tailed(1.0, 1.5), 2000)
    assert min(times) >= 1.0
    assert max(times) > 20 * statistics.median(times)


def test_a_flattered_candidate_is_fast_in_its_first_launches_only() -> None:
    assert times_of(fast_at_first(steady(8.0), factor=0.25), 4) == [2.0, 2.0, 8.0, 8.0]


def test_a_wandering_time_stays_near_the_one_before_and_comes_back() -> None:
    times = times_of(wandering(1.0, 0.1, 0.95), 4000)
    steps = [abs(after - before) for before, after in pairwise(times)]
    assert statistics.mean(steps) < 0.04
    assert 0.07 < statistics.pstdev(times) < 0.13
    assert abs(statistics.mean(times) - 1.0) < 0.05


def test_a_sample_may_be_the_mean_of_several_launches() -> None:
    timer = ScriptedTimer({"a": [1.0, 3.0, 5.0, 7.0], "b": 4.0}, sample_launches=2)
    assert timer.sample(["a", "b", "a"]) == (2.0, 4.0, 6.0)
    assert (timer.samples_of("a"), timer.spent_ms_of("a"), timer.sample_launches("a")) == (4, 16.0, 2)
