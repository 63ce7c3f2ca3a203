import itertools
import math
import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.measure.statistics import (
    bound_rank,
    fewest_samples,
    mean_without_worst,
    median,
    median_absolute_deviation,
    median_bounds,
    paired_gain,
    quartiles,
    relative_spread,
)

TIMES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=60)
PAIRS = st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)), min_size=2, max_size=40)


@given(TIMES)
def test_median_and_quartiles_are_numpys(values: list[float]) -> None:
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    assert median(values) == pytest.approx(statistics.median(values))
    assert (median(values), *quartiles(values)) == pytest.approx((middle, low, high))


@given(TIMES)
def test_the_absolute_deviation_is_the_median_distance_from_the_median(values: list[float]) -> None:
    expected = np.median(np.abs(np.asarray(values) - np.median(values)))
    assert median_absolute_deviation(values) == pytest.approx(float(expected), abs=1e-9)


def test_the_deviation_is_deaf_to_a_minority_of_outliers() -> None:
    assert median_absolute_deviation([1.0, 1.1, 0.9, 1.0, 1e9]) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("values", "spread"), [([3.0], 0.0), ([2.0, 2.0, 2.0], 0.0), ([1.0, 2.0, 3.0], 0.5), ([0.0, 0.0], 0.0)]
)
def test_the_relative_spread_is_the_quartile_distance_over_the_median(values: list[float], spread: float) -> None:
    assert relative_spread(values) == spread


@pytest.mark.parametrize(("worst", "mean"), [(0, 26.5), (1, 2.0), (2, 1.5), (9, 1.0)])
def test_the_worst_values_are_left_out_of_the_mean_but_never_all(worst: int, mean: float) -> None:
    assert mean_without_worst([100.0, 1.0, 3.0, 2.0], worst) == mean


@pytest.mark.parametrize("function", [median, quartiles, median_absolute_deviation, relative_spread])
def test_no_samples_are_an_error(function: object) -> None:
    assert callable(function)
    with pytest.raises(ValueError, match="at least one"):
        function([])


@pytest.mark.parametrize(
    ("count", "confidence", "rank"),
    [
        (1, 0.99, 0),
        (6, 0.99, 0),
        (7, 0.99, 1),
        (15, 0.99, 3),
        (20, 0.99, 5),
        (100, 0.99, 38),
        (5, 0.95, 1),
        (1, 0.5, 1),
    ],
)
def test_ranks_are_those_of_the_sign_test_tables(count: int, confidence: float, rank: int) -> None:
    assert bound_rank(count, confidence) == rank


@given(st.integers(1, 300), st.floats(0.5, 0.9999))
def test_a_rank_keeps_its_confidence_and_the_next_would_not(count: int, confidence: float) -> None:
    def chance_of_fewer_than(rank: int) -> float:
        return float(Fraction(sum(math.comb(count, heads) for heads in range(rank)), 2**count))

    rank = bound_rank(count, confidence)
    assert chance_of_fewer_than(rank) <= (1 - confidence) * (1 + 1e-9)
    assert chance_of_fewer_than(rank + 1) >= (1 - confidence) * (1 - 1e-9)


def test_ranks_agree_with_counting_every_sequence_of_throws() -> None:
    for count in range(1, 11):
        heads = [sum(throws) for throws in itertools.product((0, 1), repeat=count)]
        rank = bound_rank(count, 0.9)
        assert sum(seen < rank for seen in heads) <= 0.1 * len(heads) < sum(seen < rank + 1 for seen in heads)


@pytest.mark.parametrize(("confidence", "count"), [(0.5, 1), (0.95, 5), (0.99, 7), (0.999, 10)])
def test_the_fewest_samples_are_the_first_that_give_a_bound(confidence: float, count: int) -> None:
    assert fewest_samples(confidence) == count
    assert bound_rank(count - 1, confidence) == 0


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, math.nan])
def test_a_confidence_that_no_number_of_samples_gives_is_an_error(confidence: float) -> None:
    with pytest.raises(ValueError, match="less than 1"):
        fewest_samples(confidence)


def test_too_few_samples_have_infinite_bounds() -> None:
    assert median_bounds([1.0, 2.0, 3.0], 0.99) == (2.0, -math.inf, math.inf)


@given(TIMES)
def test_bounds_enclose_the_median_and_are_samples(values: list[float]) -> None:
    bounds = median_bounds(values, 0.9)
    assert bounds.low <= bounds.median <= bounds.high
    assert {bounds.low, bounds.high} <= {*values, -math.inf, math.inf}


@pytest.mark.parametrize("count", [7, 15, 40])
def test_the_lower_bound_misses_as_rarely_as_it_says(count: int) -> None:
    # Skewed samples whose true median is 1: the bound must hold without knowing the shape.
    samples = np.random.default_rng(7).lognormal(0.0, 1.0, (4000, count))
    lows = np.sort(samples, axis=1)[:, bound_rank(count, 0.99) - 1]
    assert np.mean(lows > 1.0) < 0.017


@given(PAIRS, st.sampled_from([1, 2]))
def test_swapping_the_pairs_mirrors_the_gain(pairs: list[tuple[float, float]], block: int) -> None:
    gain = paired_gain(pairs, 0.9, block=block)
    swapped = paired_gain([(second, first) for first, second in pairs], 0.9, block=block)
    assert (1 + gain.median) * (1 + swapped.median) == pytest.approx(1.0)
    if math.isfinite(gain.high):
        assert (1 + gain.low) * (1 + swapped.high) == pytest.approx(1.0)
    else:
        assert (gain.low, swapped.high) == (-1.0, math.inf)


def test_a_gain_is_what_the_first_takes_longer() -> None:
    assert paired_gain([(1.05, 1.0)] * 7, 0.99) == pytest.approx((0.05, 0.05, 0.05))


def test_what_drifts_for_both_of_a_pair_leaves_the_gain_alone() -> None:
    drifting = [(1.1 * 1.2**step, 1.2**step) for step in range(9)]
    assert paired_gain(drifting, 0.99) == pytest.approx((0.1, 0.1, 0.1))


def test_blocks_of_two_cancel_an_advantage_of_the_first_place() -> None:
    # The first place costs 10 %; the order alternates.
    pairs = [(1.05 * 1.1, 1.0), (1.05, 1.1)] * 8
    assert paired_gain(pairs, 0.99).low < 0 < paired_gain(pairs, 0.99).high
    assert paired_gain(pairs, 0.99, block=2) == pytest.approx((0.05, 0.05, 0.05))


def test_an_odd_pair_is_left_out_of_blocks_of_two() -> None:
    assert paired_gain([(1.0, 1.0)] * 2 + [(9.0, 1.0)], 0.5, block=2).high == 0.0
