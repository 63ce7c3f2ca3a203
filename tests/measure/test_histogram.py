"""The histogram of a confirmation's samples: nothing is lost, and one interruption hides nothing."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.measure.histogram import BINS, SampleHistogram, Spread, histogram_of

TIMES = st.lists(st.floats(1e-9, 1e12), min_size=1, max_size=80)


def size(spread: Spread) -> int:
    return sum(spread.counts) + spread.below + spread.above


@given(first=TIMES, winner=TIMES, bins=st.integers(1, 40))
def test_every_sample_is_counted_once_whatever_the_times_are(
    first: list[float], winner: list[float], bins: int
) -> None:
    found = histogram_of(first, winner, bins=bins)

    assert size(found.first_choice) == len(first)
    assert size(found.winner) == len(winner)
    assert len(found.first_choice.counts) == len(found.winner.counts) == bins
    assert min(*first, *winner) <= found.low_ms <= found.high_ms <= max(*first, *winner)


@given(first=TIMES, winner=TIMES)
def test_a_sample_is_in_the_bin_that_it_lies_in(first: list[float], winner: list[float]) -> None:
    found = histogram_of(first, winner)

    width = (found.high_ms - found.low_ms) / BINS
    for times, spread in ((first, found.first_choice), (winner, found.winner)):
        assert spread.below == sum(time < found.low_ms for time in times)
        assert spread.above == sum(time > found.high_ms for time in times)
        for number in range(BINS):
            # Rounding may put what lies on an edge on either side of it.
            low, high = found.low_ms + number * width, found.low_ms + (number + 1) * width
            slack = 1e-9 * max(found.high_ms, 1e-9)
            inside = sum(low + slack < time < high - slack for time in times)
            around = sum(low - slack <= time <= high + slack for time in times)
            assert inside <= spread.counts[number] <= around


@given(first=TIMES, winner=TIMES)
def test_the_order_of_the_samples_and_which_side_is_which_change_nothing(
    first: list[float], winner: list[float]
) -> None:
    found = histogram_of(first, winner)

    assert histogram_of(sorted(first), winner[::-1]) == found
    assert histogram_of(winner, first) == found._replace(first_choice=found.winner, winner=found.first_choice)


@given(first=TIMES, winner=TIMES)
def test_at_least_half_of_the_samples_of_each_side_are_in_the_bins(first: list[float], winner: list[float]) -> None:
    found = histogram_of(first, winner)

    for spread in (found.first_choice, found.winner):
        assert 2 * sum(spread.counts) >= size(spread)


def test_one_interruption_is_counted_above_the_bins_and_does_not_stretch_them() -> None:
    first = [1.0 + number / 100 for number in range(20)]
    found = histogram_of([*first, 500.0], [time - 0.5 for time in first])

    assert found.high_ms < 2.0
    assert (found.first_choice.above, found.winner.above) == (1, 0)
    assert found.low_ms == 0.5


def test_two_sides_that_never_vary_are_the_first_and_the_last_bin() -> None:
    found = histogram_of([2.0] * 5, [1.0] * 5)

    assert found.winner.counts == (5, *[0] * 15)
    assert found.first_choice.counts == (*[0] * 15, 5)


def test_equal_samples_are_all_in_the_first_bin() -> None:
    found = histogram_of([1.0] * 3, [1.0] * 4)

    assert (found.low_ms, found.high_ms) == (1.0, 1.0)
    assert (found.first_choice.counts[0], found.winner.counts[0]) == (3, 4)


@given(first=TIMES, winner=TIMES)
def test_it_is_plain_json_of_a_few_hundred_bytes(first: list[float], winner: list[float]) -> None:
    told = histogram_of(first, winner).to_dict()

    text = json.dumps(told, allow_nan=False)
    assert json.loads(text) == told
    assert len(text) < 500
    assert all(math.isfinite(value) for value in (told["low_ms"], told["high_ms"]) if isinstance(value, float))


def test_no_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="sample"):
        histogram_of([], [1.0])
    assert isinstance(histogram_of([1.0], [1.0]), SampleHistogram)
