import random

import pytest

from tensorplay.errors import LaunchError, MeasurementError
from tensorplay.measure.budget import MOST_WARMUP_MS, MOST_WARMUP_SAMPLES, Budget, Deadline
from tensorplay.measure.sampler import Record, Sampler
from tensorplay.testing.manual_clock import ManualClock
from tensorplay.testing.scripted_timer import ScriptedTimer


def sampler_of(
    timer: ScriptedTimer[str], candidates: str, *, budget: Budget | None = None, deadline: Deadline | None = None
) -> Sampler[str]:
    return Sampler(
        candidates,
        timer,
        describe=lambda candidate: f"kernel {candidate}",
        budget=budget or Budget(),
        reserved_samples=8,
        deadline=deadline or Deadline(ManualClock()),
        rng=random.Random(0),  # noqa: S311 - repeatable order, not a secret
    )


def rounds_of(timer: ScriptedTimer[str]) -> list[str]:
    return ["".join(call.order) for call in timer.calls if call.method == "sample"]


def test_it_needs_a_candidate() -> None:
    with pytest.raises(ValueError, match="first choice"):
        sampler_of(ScriptedTimer({}), "")


def test_a_warm_up_is_one_untimed_launch_unless_the_budget_asks_for_more() -> None:
    timer = ScriptedTimer({"a": 1.0})
    sampler = sampler_of(timer, "a")
    sampler.warm_up(sampler.first)
    assert timer.launches == {"a": 1}
    assert (sampler.first.allowance.samples, sampler.first.readings) == (0, [])


@pytest.mark.parametrize(
    ("duration_ms", "samples", "launches"), [(0, 5, 6), (9, 0, 4), (9, 2, 3), (3, 100, 2), (1, 1, 2)]
)
def test_further_warm_ups_end_at_the_smaller_limit_and_cost_nothing_of_the_budget(
    duration_ms: int, samples: int, launches: int
) -> None:
    timer = ScriptedTimer({"a": 3.0})
    sampler = sampler_of(timer, "a", budget=Budget(30, 100, duration_ms, samples))
    sampler.warm_up(sampler.first)
    assert timer.launches == {"a": launches}
    assert sampler.first.allowance.spent_ms == 0.0


@pytest.mark.parametrize("budget", [Budget(warmup_samples=2**31 - 1), Budget(warmup_duration_ms=2**31 - 1)])
@pytest.mark.parametrize(("time_ms", "launches"), [(1e-6, MOST_WARMUP_SAMPLES), (100.0, 3), (MOST_WARMUP_MS, 1)])
def test_further_warm_ups_end_somewhere_whatever_the_limits_are(budget: Budget, time_ms: float, launches: int) -> None:
    timer = ScriptedTimer({"a": time_ms})
    sampler = sampler_of(timer, "a", budget=budget)
    sampler.warm_up(sampler.first)
    assert timer.launches == {"a": 1 + launches}


def test_warm_ups_end_with_the_deadline() -> None:
    clock = ManualClock()
    timer = ScriptedTimer({"a": 10.0}, clock=clock)
    sampler = sampler_of(timer, "a", budget=Budget(warmup_samples=1000), deadline=Deadline(clock, 0.1))
    sampler.warm_up(sampler.first)
    assert timer.launches["a"] <= 10


def test_a_reading_is_charged_for_every_launch() -> None:
    timer = ScriptedTimer({"a": 2.0})
    sampler = sampler_of(timer, "a")
    sampler.read(sampler.first, 4)
    assert sampler.first.readings == [2.0]
    assert (sampler.first.allowance.samples, sampler.first.allowance.spent_ms) == (4, 8.0)


def test_each_round_times_each_candidate_once() -> None:
    timer = ScriptedTimer({"a": 1.0, "b": 2.0, "c": 3.0})
    sampler = sampler_of(timer, "abc")
    for number in range(4):
        sampler.round(number, sampler.survivors)
    assert [sorted(order) for order in rounds_of(timer)] == [["a", "b", "c"]] * 4
    assert [record.rounds for record in sampler.records] == [dict.fromkeys(range(4), ms) for ms in (1.0, 2.0, 3.0)]


def test_rounds_change_their_order_and_every_second_one_runs_the_other_way() -> None:
    timer = ScriptedTimer(dict.fromkeys("abcdef", 1.0))
    sampler = sampler_of(timer, "abcdef")
    for number in range(8):
        sampler.round(number, sampler.survivors)
    orders = rounds_of(timer)
    assert all(back == there[::-1] for there, back in zip(orders[::2], orders[1::2], strict=True))
    assert len(set(orders)) == 8


def test_who_takes_no_part_in_a_round_is_not_launched() -> None:
    timer = ScriptedTimer(dict.fromkeys("abc", 1.0))
    sampler = sampler_of(timer, "abc")
    sampler.round(0, sampler.survivors)
    sampler.round(1, [sampler.records[0], sampler.records[2]])
    assert sorted(rounds_of(timer)[1]) == ["a", "c"]


def test_a_large_round_is_several_calls_so_that_the_deadline_is_seen() -> None:
    names = "abcdefghijklmnopqrst"
    timer = ScriptedTimer(dict.fromkeys(names, 1.0))
    sampler = sampler_of(timer, names)
    sampler.round(0, sampler.survivors)
    assert [len(order) for order in rounds_of(timer)] == [8, 8, 4]


def test_a_round_stops_at_the_deadline_by_one_sample_at_most() -> None:
    clock = ManualClock()
    timer = ScriptedTimer(dict.fromkeys("abcdef", 100.0), clock=clock)
    sampler = sampler_of(timer, "abcdef", deadline=Deadline(clock, 1.0))
    for record in sampler.records:
        sampler.read(record, 1)
    sampler.round(0, sampler.survivors)
    # 75 % of the second is for this stage; 600 ms of it were spent on reading.
    assert clock() == pytest.approx(0.8)


def test_a_round_of_the_confirmation_keeps_the_order_that_was_asked_and_stays_apart_from_the_race() -> None:
    timer = ScriptedTimer({"a": 1.0, "b": 2.0})
    sampler = sampler_of(timer, "ab")
    first, second = sampler.records
    assert sampler.together([second, first]) == {second: 2.0, first: 1.0}
    assert rounds_of(timer) == ["ba"]
    assert (first.confirming, first.rounds, second.confirming) == ([1.0], {}, [2.0])


@pytest.mark.parametrize("launch", [1, 2, 3, 4])
def test_a_candidate_that_fails_is_dropped_with_its_reason_and_the_others_go_on(launch: int) -> None:
    timer = ScriptedTimer(dict.fromkeys("abc", 1.0), fails_at={"b": launch})
    sampler = sampler_of(timer, "abc")
    failing = sampler.records[1]
    for record in sampler.records:
        sampler.warm_up(record)
        if record.dropped is None:
            sampler.read(record, 1)
    sampler.round(0, sampler.survivors)
    sampler.round(1, sampler.survivors)
    assert [record.kernel for record in sampler.survivors] == ["kernel a", "kernel c"]
    assert failing.is_broken
    assert failing.dropped == f"cannot run: launch {timer.launches['b']} of b fails by script"
    assert all(set(record.rounds) == {0, 1} for record in sampler.survivors)


def test_a_candidate_that_fails_in_the_confirmation_leaves_no_sample() -> None:
    sampler = sampler_of(ScriptedTimer({"a": 1.0, "b": 1.0}, fails_at={"b": 1}), "ab")
    assert sampler.together(sampler.records) == {sampler.first: 1.0}
    assert sampler.records[1].dropped is not None


@pytest.mark.parametrize("launch", [1, 2, 3])
def test_a_first_choice_that_fails_ends_the_measurement(launch: int) -> None:
    sampler = sampler_of(ScriptedTimer({"a": 1.0, "b": 1.0}, fails_at={"a": launch}), "ab")

    def measure() -> None:
        sampler.warm_up(sampler.first)
        sampler.read(sampler.first, 1)
        sampler.round(0, sampler.survivors)

    with pytest.raises(MeasurementError, match="first choice kernel a cannot be timed: launch") as raised:
        measure()
    assert isinstance(raised.value.__cause__, LaunchError)


def test_a_failure_that_nobody_repeats_drops_nobody() -> None:
    failures = [LaunchError("once")]

    def once(now_ms: float, launch: int, rng: random.Random) -> float:
        if failures:
            raise failures.pop()
        return 1.0

    sampler = sampler_of(ScriptedTimer({"a": 1.0, "b": once}), "ab")
    sampler.round(0, sampler.survivors)
    assert len(sampler.survivors) == 2
    assert [record.rounds for record in sampler.records] == [{0: 1.0}, {0: 1.0}]


@pytest.mark.parametrize("time_ms", [0.0, -1.0, float("nan"), float("inf"), 1e300])
def test_a_time_that_is_no_duration_drops_the_candidate(time_ms: float) -> None:
    sampler = sampler_of(ScriptedTimer({"a": 1.0, "b": time_ms}), "ab")
    sampler.round(0, sampler.survivors)
    assert sampler.records[1].dropped == f"timed as {time_ms} ms, which is no duration of a launch"
    assert sampler.records[1].rounds == {}


def test_a_timer_that_returns_too_few_samples_ends_the_measurement() -> None:
    class Short(ScriptedTimer[str]):
        def sample(self, order: object) -> list[float]:
            return [1.0]

    sampler = sampler_of(Short({"a": 1.0, "b": 1.0}), "ab")
    with pytest.raises(MeasurementError, match="1 samples for 2 candidates"):
        sampler.round(0, sampler.survivors)


def test_an_estimate_is_not_spoiled_by_one_interruption() -> None:
    sampler = sampler_of(ScriptedTimer({"a": [1.0, 50.0]}), "a")
    record: Record[str] = sampler.first
    assert record.estimate_ms == 0.0
    sampler.read(record, 1)
    sampler.round(0, [record])
    assert record.estimate_ms == 1.0


def test_the_pace_is_the_first_choices_and_counts_against_no_budget() -> None:
    timer = ScriptedTimer({"a": 3.0, "b": 1.0})
    sampler = sampler_of(timer, "ab")
    assert [sampler.pace(2), sampler.pace(1)] == [3.0, 3.0]
    assert (sampler.first.allowance.samples, sampler.first.readings) == (0, [])
    assert timer.launches == {"a": 3, "b": 0}


@pytest.mark.parametrize("time_ms", [0.0, float("nan")])
def test_a_pace_that_is_no_duration_ends_the_measurement(time_ms: float) -> None:
    sampler = sampler_of(ScriptedTimer({"a": time_ms}), "a")
    with pytest.raises(MeasurementError, match="first choice kernel a cannot be timed"):
        sampler.pace(1)


def test_a_first_choice_that_fails_while_it_sets_the_pace_ends_the_measurement() -> None:
    sampler = sampler_of(ScriptedTimer({"a": 1.0}, fails_at={"a": 1}), "a")
    with pytest.raises(MeasurementError, match="first choice kernel a cannot be timed: launch"):
        sampler.pace(1)


def test_who_enters_takes_part_in_nothing_before_it_is_among_the_records() -> None:
    timer = ScriptedTimer({"a": 1.0, "new": 2.0})
    sampler = sampler_of(timer, "a")
    record = sampler.enter("new")
    sampler.warm_up(record, is_proven=True)
    sampler.read(record, 2)
    assert (record.kernel, record.readings, record.allowance.samples) == ("kernel new", [2.0], 2)
    assert timer.launches["new"] == 2
    assert sampler.survivors == [sampler.first]
