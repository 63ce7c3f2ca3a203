import random

import pytest

from tensorplay.measure.budget import Budget, Deadline
from tensorplay.measure.confirmation import RESERVED_SAMPLES
from tensorplay.measure.sampler import Sampler
from tensorplay.measure.screening import TIME_RAN_OUT, screen
from tensorplay.testing.manual_clock import ManualClock
from tensorplay.testing.scripted_timer import ScriptedTimer


def screened(
    timer: ScriptedTimer[str], *, budget: Budget | None = None, deadline: Deadline | None = None
) -> Sampler[str]:
    sampler = Sampler(
        list(timer.launches),
        timer,
        describe=str,
        budget=budget or Budget(),
        reserved_samples=RESERVED_SAMPLES,
        deadline=deadline or Deadline(ManualClock()),
        rng=random.Random(0),  # noqa: S311 - repeatable order, not a secret
    )
    screen(sampler)
    return sampler


def survivors(timer: ScriptedTimer[str]) -> list[str]:
    return [record.kernel for record in screened(timer).survivors]


def test_what_is_clearly_slower_is_dropped_with_how_much() -> None:
    sampler = screened(ScriptedTimer({"first": 1.0, "slow": 1.6, "close": 1.4}))
    assert [record.kernel for record in sampler.survivors] == ["first", "close"]
    assert sampler.records[1].dropped == "screening: took 1.60 times the fastest of its look"


def test_a_larger_field_is_looked_at_twice_and_more_strictly() -> None:
    close = {f"close{number}": 1.1 for number in range(4)}
    assert survivors(ScriptedTimer({"first": 1.0, "slow": 1.4, **close})) == ["first", *close]


def test_the_first_choice_is_never_dropped() -> None:
    timer = ScriptedTimer({"first": 9.0, **{f"fast{number}": 1.0 for number in range(5)}})
    assert survivors(timer)[0] == "first"


def test_one_interrupted_launch_drops_nobody() -> None:
    # The untimed launch, an interrupted one, and as it is.
    assert survivors(ScriptedTimer({"first": 1.0, "good": [0.9, 9.0, 0.9]})) == ["first", "good"]


def test_a_candidate_that_is_fast_only_at_first_drops_nobody() -> None:
    timer = ScriptedTimer({"first": 1.0, "flatterer": [0.1, 0.1, 1.1], "good": 0.9, "fair": 1.0})
    assert survivors(timer) == ["first", "flatterer", "good", "fair"]


def test_an_interrupted_first_choice_is_read_again() -> None:
    sampler = screened(ScriptedTimer({"first": [1.0, 8.0, 1.0], "other": 1.0}))
    assert sampler.first.readings == [8.0, 1.0]


def test_a_slow_candidate_without_a_share_for_a_second_look_is_dropped_by_one() -> None:
    timer = ScriptedTimer({"first": 20.0, "slow": 40.0})
    assert survivors(timer) == ["first"]
    assert timer.samples_of("slow") == 1


def test_a_second_look_does_not_take_what_the_confirmation_needs() -> None:
    timer = ScriptedTimer({"first": 3.7, "fast": 1.0})
    assert survivors(timer) == ["first", "fast"]
    assert timer.samples_of("first") == 1


def test_everybody_is_warmed_up_and_read_in_the_order_given() -> None:
    timer = ScriptedTimer(dict.fromkeys("abc", 1.0))
    screened(timer)
    order = [(call.method, call.order[0]) for call in timer.calls]
    assert order == [(method, name) for name in "abc" for method in ("warm_up", "screen")]


@pytest.mark.parametrize("launch", [1, 2])
def test_a_candidate_that_cannot_run_is_no_fastest(launch: int) -> None:
    timer = ScriptedTimer({"first": 1.0, "broken": 0.01, "good": 1.0}, fails_at={"broken": launch})
    assert survivors(timer) == ["first", "good"]


def test_a_candidate_that_breaks_in_the_second_look_is_dropped_for_that() -> None:
    timer = ScriptedTimer({"first": 1.0, "broken": 2.0}, fails_at={"broken": 3})
    sampler = screened(timer)
    assert sampler.records[1].is_broken


def test_no_more_than_two_fifths_of_the_budget_is_used() -> None:
    timer = ScriptedTimer({name: 1.0 + 0.01 * place for place, name in enumerate("abcdefgh")})
    screened(timer, budget=Budget(0, 20))
    assert max(timer.samples_of(name) for name in "abcdefgh") <= 8


def test_what_the_deadline_leaves_unread_is_dropped_for_that() -> None:
    clock = ManualClock()
    timer = ScriptedTimer(dict.fromkeys("abcdef", 100.0), clock=clock)
    sampler = screened(timer, deadline=Deadline(clock, 0.79))
    assert [record.dropped for record in sampler.records] == [None] * 3 + [TIME_RAN_OUT] * 3


def test_a_deadline_that_has_passed_still_reads_the_first_choice_once() -> None:
    clock = ManualClock()
    deadline = Deadline(clock, 0.001)
    clock.advance(1.0)
    timer = ScriptedTimer({"first": 1.0, "other": 1.0}, clock=clock)
    screened(timer, deadline=deadline)
    assert timer.launches == {"first": 2, "other": 0}
