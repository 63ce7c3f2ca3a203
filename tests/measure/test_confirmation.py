import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.measure.budget import Budget, Deadline
from tensorplay.measure.confirmation import FUTILITY_LOOKS, RESERVED_SAMPLES, Ruling, confirm
from tensorplay.measure.judgement import judge
from tensorplay.measure.report import Confirmation, Verdict
from tensorplay.measure.sampler import Sampler
from tensorplay.measure.selection import choose
from tensorplay.testing.manual_clock import ManualClock
from tensorplay.testing.scripted_timer import ScriptedTimer, steady, with_outliers


def ruled(
    timer: ScriptedTimer[str], *, budget: Budget | None = None, deadline: Deadline | None = None, min_gain: float = 0.02
) -> Ruling[str]:
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
    return confirm(sampler, sampler.records[1:], min_gain=min_gain)


def confirmed(
    timer: ScriptedTimer[str], *, budget: Budget | None = None, deadline: Deadline | None = None, min_gain: float = 0.02
) -> tuple[Verdict, Confirmation | None]:
    ruling = ruled(timer, budget=budget, deadline=deadline, min_gain=min_gain)
    return ruling.verdict, ruling.confirmation


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


@pytest.mark.parametrize(("samples", "pairs"), [(5, None), (6, 5), (7, 6), (8, 7), (9, 8), (60, 59)])
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
    timer = ScriptedTimer({"first": 6.1, "fast": 2.0})
    assert confirmed(timer) == (Verdict.INSUFFICIENT_BUDGET, None)
    assert timer.samples_of("first") == 1


def test_five_pairs_decide_for_slow_kernels_whose_samples_are_separated() -> None:
    timer = ScriptedTimer({"first": 5.4, "fast": 5.3})
    verdict, confirmation = confirmed(timer, min_gain=0.01)
    assert verdict is Verdict.WINNER
    assert confirmation is not None
    assert (confirmation.pairs, confirmation.gain_low > 0.01) == (5, True)
    assert timer.spent_ms_of("first") <= 30.0 + 5.4


def test_kernels_that_become_slow_meanwhile_leave_too_few_pairs() -> None:
    verdict, confirmation = confirmed(ScriptedTimer({"first": [1.0] * 4 + [29.0], "fast": 0.9}))
    assert (verdict, confirmation) == (Verdict.INSUFFICIENT_BUDGET, None)


def test_a_deadline_without_time_for_the_fewest_pairs_starts_none() -> None:
    clock = ManualClock()
    timer = ScriptedTimer({"first": 10.0, "fast": 5.0}, clock=clock)
    # 15 ms for the readings, 75 for the pairs.
    assert confirmed(timer, budget=Budget(0, 0), deadline=Deadline(clock, 0.089)) == (Verdict.INSUFFICIENT_BUDGET, None)
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


def orders(timer: ScriptedTimer[str]) -> list[str]:
    return ["".join(call.order) for call in timer.calls if call.method == "sample"]


def test_runners_up_are_timed_in_the_same_rounds_which_run_both_ways() -> None:
    timer = ScriptedTimer({"A": 0.4, "B": 0.3, "C": 0.31})
    confirmed(timer)
    assert orders(timer)[:4] == ["ABC", "CBA", "ABC", "CBA"]
    assert [timer.samples_of(name) for name in "ABC"] == [75, 75, 75]


def test_the_best_of_those_that_are_confirmed_wins() -> None:
    ruling = ruled(ScriptedTimer({"first": 1.1, "leader": 1.03, "runner-up": 1.0, "third": 1.02}))
    assert (ruling.verdict, ruling.challenger.kernel) == (Verdict.WINNER, "runner-up")
    assert ruling.confirmation is not None
    assert (ruling.confirmation.first_choice_ms, ruling.confirmation.winner_ms) == (1.1, 1.0)


def test_a_runner_up_wins_nothing_where_the_leader_is_not_confirmed() -> None:
    """Else there would be three chances to be lucky instead of one."""
    ruling = ruled(ScriptedTimer({"first": 1.0, "leader": 1.0, "runner-up": 0.9}))
    assert (ruling.verdict, ruling.challenger.kernel) == (Verdict.FIRST_CHOICE, "leader")


def test_a_runner_up_that_is_not_confirmed_leaves_the_leader() -> None:
    # Faster in most rounds, three times as slow in the others.
    fickle = [0.1, *[0.08, 0.08, 0.08, 0.3] * 50]
    ruling = ruled(ScriptedTimer({"first": 0.1, "leader": 0.09, "fickle": fickle}))
    assert (ruling.verdict, ruling.challenger.kernel) == (Verdict.WINNER, "leader")


def test_a_runner_up_that_breaks_takes_nothing_from_the_leader() -> None:
    timer = ScriptedTimer({"first": 1.0, "leader": 0.9, "broken": 0.5}, fails_at={"broken": 9})
    ruling = ruled(timer)
    assert (ruling.verdict, ruling.challenger.kernel) == (Verdict.WINNER, "leader")
    assert ruling.confirmation is not None
    assert ruling.confirmation.pairs == 29


def test_a_runner_up_that_cannot_stay_to_the_end_does_not_begin() -> None:
    timer = ScriptedTimer({"first": 1.0, "leader": 0.9, "slow": 1.1})
    assert ruled(timer).verdict is Verdict.WINNER
    assert timer.samples_of("slow") == 1


def test_a_runner_up_whose_share_ends_early_takes_no_round_from_the_leader() -> None:
    slowing = [0.5] * 12 + [3.0] * 90
    ruling = ruled(ScriptedTimer({"first": 1.0, "leader": 0.9, "slowing": slowing}))
    assert ruling.challenger.kernel == "leader"
    assert ruling.confirmation is not None
    assert ruling.confirmation.pairs == 29


def test_runners_up_stay_away_where_the_deadline_has_no_time_for_them() -> None:
    clock = ManualClock()
    timer = ScriptedTimer({"first": 10.0, "leader": 5.0, "runner-up": 5.0}, clock=clock)
    ruling = ruled(timer, budget=Budget(0, 12), deadline=Deadline(clock, 0.2))
    assert ruling.verdict is Verdict.WINNER
    assert timer.samples_of("runner-up") == 1


@pytest.mark.parametrize(("first", "pairs"), [(0.999, 16), (1.01, 16), (1.03, 99)])
def test_a_leader_that_surely_gains_too_little_gives_up_at_the_first_look(first: float, pairs: int) -> None:
    verdict, confirmation = confirmed(ScriptedTimer({"first": first, "other": 1.0}), budget=Budget(0, 100))
    assert confirmation is not None
    assert confirmation.pairs == pairs
    assert (verdict is Verdict.WINNER) == (first == 1.03)


def test_a_leader_in_doubt_goes_on_to_the_next_look() -> None:
    # Gains of 0 and 4 % by turns say nothing for sure at 16 pairs; from there on it gains nothing.
    first = [1.0] + [1.0, 1.0, 1.04, 1.04] * 4 + [1.0] * 90
    timer = ScriptedTimer({"first": lambda _now_ms, launch, _rng: first[launch], "other": 1.0})
    _, confirmation = confirmed(timer, budget=Budget(0, 100))
    assert confirmation is not None
    assert confirmation.pairs == 32


@given(st.lists(st.floats(0.9, 1.2), min_size=64, max_size=64), st.sampled_from([0.0, 0.01, 0.02]))
def test_no_leader_gives_up_that_would_win_at_that_look(first: list[float], min_gain: float) -> None:
    timer = ScriptedTimer({"first": lambda _now_ms, launch, _rng: [1.0, *first][launch], "other": 1.0})
    _, confirmation = confirmed(timer, budget=Budget(0, 65), min_gain=min_gain)
    assert confirmation is not None
    assert confirmation.pairs in {*FUTILITY_LOOKS, 64}
    if confirmation.pairs < 64:
        assert confirmation.gain_high < min_gain
        assert judge([(each, 1.0) for each in first[: confirmation.pairs]], min_gain)[0] is not Verdict.WINNER
