import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorplay.measure import Budget, choose
from tensorplay.measure.judgement import FEWEST_PAIRS, NOISE_SHARE, SEPARATED_SHARE, judge
from tensorplay.measure.report import Verdict
from tensorplay.testing.scripted_timer import ScriptedTimer, steady


def test_seven_pairs_are_the_fewest_that_can_say_anything() -> None:
    assert FEWEST_PAIRS == 7


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


def test_few_pairs_that_overlap_or_miss_the_margin_once_decide_nothing() -> None:
    assert judge(pairs_of(*[0.03] * 4, 0.0101), 0.02)[0] is Verdict.WINNER
    assert judge(pairs_of(*[0.03] * 4, 0.0099), 0.02)[0] is Verdict.INSUFFICIENT_BUDGET
    assert judge([(1.0, 0.9), (0.9, 0.8), (1.0, 0.9), (1.0, 0.9), (1.0, 0.9)], 0.02)[0] is Verdict.INSUFFICIENT_BUDGET
    assert judge(pairs_of(*[-0.03] * 6), 0.02)[0] is Verdict.FIRST_CHOICE


@given(st.integers(0, 2**32), st.sampled_from([5, 6]))
@settings(max_examples=5, deadline=None)
def test_few_pairs_of_equal_kernels_are_separated_as_rarely_as_the_arithmetic_says(seed: int, pairs: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a simulation
    wins = sum(
        judge([(rng.lognormvariate(0, 0.1), rng.lognormvariate(0, 0.1)) for _ in range(pairs)], 0.0)[0]
        is Verdict.WINNER
        for _ in range(4000)
    )
    assert wins <= 4000 * 2.2 / 252


@pytest.mark.parametrize("noise", [0.002, 0.02])
def test_equal_kernels_that_only_five_pairs_fit_for_replace_the_first_choice_once_in_252_at_most(noise: float) -> None:
    """The first choice of 5 ms has one reading and five pairs in its 30 ms; the race has no room."""
    wins = 0
    for seed in range(500):
        timer = ScriptedTimer({name: steady(5.0, noise) for name in "ab"}, seed=seed)
        selection = choose("ab", timer, budget=Budget(), describe=str, min_gain=0.0)
        assert selection.report.confirmation is None or selection.report.confirmation.pairs <= 6
        wins += selection.winner == "b"
    assert wins <= 5


def test_the_margin_grows_with_the_scatter_of_the_pairs() -> None:
    calm = judge(pairs_of(*[0.03, 0.031] * 10), 0.02)
    assert (calm[0], calm[1].margin) == (Verdict.WINNER, 0.02)
    # Half of the pairs gain 1 %, half 9 %.
    verdict, confirmation = judge(pairs_of(*[0.01, 0.09] * 10), 0.02)
    assert confirmation.margin == pytest.approx(NOISE_SHARE * 0.08)
    assert confirmation.gain == pytest.approx(0.05, abs=0.001)
    assert verdict is Verdict.WINNER
    verdict, confirmation = judge(pairs_of(*[0.01, 0.01, 0.01, 0.09, 0.09] * 7), 0.005)
    assert 0.005 < confirmation.gain < confirmation.margin
    assert verdict is Verdict.UNSTABLE


@given(st.lists(st.floats(0.2, 5.0), min_size=5, max_size=80), st.floats(0.0, 0.5))
def test_no_verdict_of_a_winner_is_below_its_margin_or_possibly_no_gain(ratios: list[float], min_gain: float) -> None:
    verdict, confirmation = judge([(ratio, 1.0) for ratio in ratios], min_gain)
    assert confirmation.margin >= (min_gain if len(ratios) >= FEWEST_PAIRS else SEPARATED_SHARE * min_gain)
    if verdict is Verdict.WINNER:
        assert confirmation.gain >= confirmation.margin
        assert confirmation.gain_low >= 0.0
