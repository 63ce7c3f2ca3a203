import random
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

rounds = import_module("selection.rounds")
jax_chain = import_module("selection.jax_chain")
eager = import_module("selection.eager")
contestant = import_module("selection.contestant")
estimate = import_module("selection.estimate")
setting = import_module("selection.setting")

TIMES = st.lists(st.floats(1.0, 1e4), min_size=1, max_size=41)


@given(TIMES, st.floats(0.5, 2.0))
def test_a_gain_of_pairs_is_how_much_longer_the_other_takes(ours: list[float], factor: float) -> None:
    times = {"ours": ours, "theirs": [factor * value for value in ours]}
    assert rounds.gain(times, "ours", "theirs") == pytest.approx(factor)
    assert rounds.gain(times, "ours", "ours") == 1.0


def test_a_drift_that_hits_both_alike_changes_no_gain() -> None:
    drift = [1.0 + 0.05 * step for step in range(40)]
    times = {"ours": [10 * each for each in drift], "theirs": [11 * each for each in drift]}
    assert rounds.gain(times, "ours", "theirs") == pytest.approx(1.1)


def test_a_clock_of_its_own_is_compared_by_medians() -> None:
    assert rounds.gain({"ours": [1.0, 2.0, 3.0], "theirs": [5.0]}, "ours", "theirs") == 2.5


@given(TIMES)
def test_quartiles_lie_around_the_median(values: list[float]) -> None:
    summary = rounds.summary_of(values)
    assert min(values) <= summary.low <= summary.us <= summary.high <= max(values)


@given(st.floats(0.5, 1e4), st.integers(1, 1000))
def test_a_graph_takes_about_the_wanted_time_or_walks_once(one_us: float, calls: int) -> None:
    repeats = rounds.repeats_to_fill(one_us, calls)
    assert repeats >= 1
    assert repeats == 1 or repeats * one_us * calls <= 1.5 * rounds.GRAPH_US


def test_clocks_run_between_the_rounds_of_the_graphs() -> None:
    asked: list[int] = []

    def replayed(replays: Any, *, rounds: int, rng: random.Random) -> dict[str, list[float]]:
        del rng
        asked.append(rounds)
        return {name: [1.0] * rounds for name in replays}

    rng = random.Random(0)  # noqa: S311 - an order, not a secret
    further = {"rounds": 12, "rng": rng, "replay_by_turns": replayed}
    times = rounds.timed_by_turns({"a": 0, "b": 0}, {"c": lambda: 7.0}, **further)
    assert {name: len(values) for name, values in times.items()} == {"a": 12, "b": 12, "c": 3}
    assert asked == [5, 5, 2]
    assert rounds.timed_by_turns({"a": 0}, {}, **further) == {"a": [1.0] * 12}


class Device:
    """A clock that runs as an asynchronous device does: asking takes the host's time, waiting the rest."""

    def __init__(self, *, asking: float, running: float, once: float) -> None:
        self.asking, self.running, self.once = asking, running, once
        self.host = self.device = 0.0

    def now(self) -> float:
        return self.host

    def run(self) -> int:
        self.host += self.asking
        self.device = max(self.device, self.host) + self.running
        return 0

    def wait(self, _: object) -> None:
        self.host = max(self.host, self.device) + self.once


@given(st.floats(1e-4, 1e-2), st.floats(1e-6, 1e-3), st.floats(0, 1e-3), st.integers(1, 128))
def test_a_slope_leaves_out_what_a_run_costs_once(running: float, asking: float, once: float, products: int) -> None:
    assume(asking < 0.8 * running)
    device = Device(asking=asking, running=running, once=once)
    us, is_host_limited = jax_chain.slope_us(device.run, device.wait, products, now=device.now)
    assert us == pytest.approx(1e6 * running / products, rel=1e-6)
    assert not is_host_limited


def test_a_slope_says_where_the_host_was_the_limit() -> None:
    device = Device(asking=1e-3, running=1e-5, once=1e-5)
    assert jax_chain.slope_us(device.run, device.wait, 1, now=device.now)[1]


@pytest.mark.parametrize(
    ("one_ms", "launches"), [(0.0, 100), (0.01, 100), (0.3, 100), (1.0, 30), (20.0, 1), (500.0, 1)]
)
def test_the_naive_tuner_launches_as_often_as_its_model(one_ms: float, launches: int) -> None:
    assert eager.launches_within(one_ms) == launches


def test_every_type_has_a_tolerance() -> None:
    for shape in setting.read_shapes():
        assert 0 < contestant.tolerance_of(shape.dtype) < 0.1


def test_what_is_estimated_grows_with_items_and_fits_a_long_run() -> None:
    wanted = setting.Setting(work=Path())
    for part in ("shapes", "fresh", "decode", "again", "quality", "wrong"):
        assert 0 < estimate.estimated_seconds(part, 1, wanted) < estimate.estimated_seconds(part, 2, wanted)
    assert "all together about" in estimate.plan_text({"shapes": 57}, wanted)
    # What one command on a device may take: the comparison must be cut in two at most.
    assert estimate.estimated_seconds("shapes", 29, wanted) < 540
