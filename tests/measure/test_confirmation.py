import random

import pytest

from tensorplay.measure.budget import Budget, Deadline
from tensorplay.measure.confirmation import FEWEST_PAIRS, RESERVED_SAMPLES, confirm, judge
from tensorplay.measure.report import Confirmation, Verdict
from tensorplay.measure.sampler import Sampler
from tensorplay.measure.selection import choose
from tensorplay.testing.manual_clock import ManualClock
from tensorplay.testing.scripted_timer import ScriptedTimer, steady, with_outliers


def confirmed(
    timer: ScriptedTimer[str], *, budget: Budget | None = None, deadline: Deadline | None = None, min_gain: float = 0.02
) -> tuple[Verdict, Confirmation | None]:
    sampler = Sampler(
        list(timer.launches),
        timer,
        describe=str,
        budget=budget or Budget(),
        reserved_samples=RESERVED_SAMPLES,
        deadline=deadline or Deadline(ManualClock()),
        rng=random.Random(0),  # noqa: S311 - repeatable order, not a secret
    )
    for record in sampler.records:
        sampler.read(record, 1)
    return confirm(sampler, sampler.records[1], min_gain=min_gain)


def test_seven_pairs_are_the_fewest_that_can_say_anything() -> None:
    assert FEWEST_PAIRS == 7


def test_the_order_of_the_pairs_alternates() -> None:
    timer = ScriptedTimer({"A": 4.0, "B": 3.0})
    confirmed(timer)
    orders = ["".join(call.order) for call in timer.calls if call.method == "sample"]
    assert orders == ["AB", "BA", "AB", "BA", "AB", "BA", "AB"]


def test_a_gain_over_the_margin_and_the_noise_wins() -> None:
    verdict, confirmation = confirmed(ScriptedTimer({"first": 1.05, "fast": 1.0}))
    assert verdict is Verdict.WINNER
    assert confirmation is not None
    assert (confirmation.pairs, confirmation.first_choice_ms, confirmation.winner_ms) == (27, 1.05, 1.0)
    assert [confirmation.gain_low, confirmation.gain, confirmation.gain_high] == pytest.approx([0.05] * 3)


@pytest.mark.parametrize(("min_gain", "wins"), [(0.0, True), (0.049, True), (0.051, False), (1.0, False)])
def test_a_gain_below_the_margin_does_not(min_gain: float, wins: bool) -> None:
    verdict, _ = confirmed(ScriptedTimer({"first": 1.05, "fast": 1.0}), min_gain=min_gain)
    assert verdict is (Verdict.WINNER if wins else Verdict.WITHIN_NOISE)


def test_no_gain_at_all_never_wins_even_without_a_margin() -> None:
    assert confirmed(ScriptedTimer({"first": 1.0, "same": 1.0}), min_gain=0.0)[0] is not Verdict.WINNER


def test_a_challenger_that_is_surely_no_faster_leaves_the_first_choice() -> None:
    assert confirmed(ScriptedTimer({"first": 1.0, "slow": 1.1}))[0] is Verdict.FIRST_CHOICE


def pairs_of(*gains: float) -> list[tuple[float, float]]:
    return [(1.0 + gain, 1.0) for gain in gains]


def test_one_lost_pair_of_seven_is_too_many() -> None:
    assert judge(pairs_of(*[0.05] * 7), 0.02)[0] is Verdict.WINNER
    assert judge(pairs_of(*[0.05] * 6, -0.01), 0.02)[0] is Verdict.WITHIN_NOISE


def test_a_few_lost_pairs_of_many_are_not() -> None:
    assert judge(pairs_of(*[0.04] * 16, *[-0.03] * 4), 0.02)[0] is Verdict.WINNER
    assert judge(pairs_of(*[0.04] * 15, *[-0.03] * 5), 0.02)[0] is Verdict.WITHIN_NOISE


def test_pairs_that_scatter_too_much_say_nothing() -> None:
    verdict, confirmation = judge(pairs_of(*[0.5, -0.3, 0.05] * 5), 0.02)
    assert verdict is Verdict.UNSTABLE
    assert confirmation.gain == pytest.approx(0.05)


def test_a_challenger_that_is_often_slow_does_not_win_by_its_median() -> None:
    # Faster in 19 of 24 pairs, and three times as slow in the others.
    pairs = [(1.0, 0.9)] * 19 + [(1.0, 3.0)] * 5
    verdict, confirmation = judge(pairs, 0.02)
    assert confirmation.gain_low > 0.0
    assert verdict is Verdict.UNSTABLE


def test_one_interruption_does_not_cost_the_win() -> None:
    assert judge([(1.0, 0.9)] * 19 + [(1.0, 90.0)], 0.02)[0] is Verdict.WINNER


def test_an_advantage_of_the_first_place_does_not_hide_a_gain() -> None:
    pairs = [(1.04 * 1.1, 1.0), (1.04, 1.1)] * 25
    verdict, confirmation = judge(pairs, 0.02)
    assert verdict is Verdict.WINNER
    assert confirmation.pairs == 50
    assert confirmation.gain == pytest.approx(0.04)


@pytest.mark.parametrize(("samples", "pairs"), [(7, None), (8, 7), (9, 8), (60, 59)])
def test_it_takes_all_pairs_that_the_samples_allow_or_none(samples: int, pairs: int | None) -> None:
    timer = ScriptedTimer({"first": 0.2, "fast": 0.1})
    verdict, confirmation = confirmed(timer, budget=Budget(0, samples))
    assert (confirmation.pairs if confirmation else None) == pairs
    assert verdict is (Verdict.WINNER if pairs else Verdict.INSUFFICIENT_BUDGET)
    assert timer.samples_of("first") == (samples if pairs else 1)


def test_the_last_of_the_fewest_pairs_may_overrun_by_less_than_a_sample() -> None:
    timer = ScriptedTimer({"first": 4.0, "fast": 2.0})
    assert confirmed(timer)[0] is Verdict.WINNER
    assert timer.spent_ms_of("first") == 32.0


def test_a_larger_overrun_is_not_begun() -> None:
    timer = ScriptedTimer({"first": 4.3, "fast": 2.0})
    assert confirmed(timer) == (Verdict.INSUFFICIENT_BUDGET, None)
    assert timer.samples_of("first") == 1


def test_kernels_that_become_slow_meanwhile_leave_too_few_pairs() -> None:
    verdict, confirmation = confirmed(ScriptedTimer({"first": [1.0] * 4 + [15.0], "fast": 0.9}))
    assert (verdict, confirmation) == (Verdict.INSUFFICIENT_BUDGET, None)


def test_a_deadline_without_time_for_the_fewest_pairs_starts_none() -> None:
    clock = ManualClock()
    timer = ScriptedTimer({"first": 10.0, "fast": 5.0}, clock=clock)
    # 15 ms for the readings, 105 for the pairs.
    assert confirmed(timer, budget=Budget(0, 0), deadline=Deadline(clock, 0.119)) == (Verdict.INSUFFICIENT_BUDGET, None)
    assert timer.samples_of("first") == 1


def test_the_deadline_ends_the_pairs_but_not_what_they_say() -> None:
    clock = ManualClock()
    timer = ScriptedTimer({"first": 10.0, "fast": 5.0}, clock=clock)
    verdict, confirmation = confirmed(timer, budget=Budget(0, 0), deadline=Deadline(clock, 0.150))
    assert verdict is Verdict.WINNER
    assert confirmation is not None
    assert confirmation.pairs == 9
    assert clock() == pytest.approx(0.150)


def test_a_challenger_that_breaks_is_dropped() -> None:
    timer = ScriptedTimer({"first": 1.0, "fast": 0.5}, fails_at={"fast": 6})
    assert confirmed(timer)[1] is None


def test_a_challenger_that_is_ahead_only_while_something_disturbs_the_first_choice_does_not_win() -> None:
    """Another program slows the first choice's many threads in three of four samples, and then goes away."""
    timer = ScriptedTimer(
        {"first": with_outliers(steady(1.0, 0.01), share=0.75, factor=3.0), "one thread": steady(1.3, 0.01)}, seed=3
    )
    selection = choose(["first", "one thread"], timer, budget=Budget(0, 100), describe=str)
    assert selection.winner == "first"
    assert selection.verdict is Verdict.UNSTABLE
