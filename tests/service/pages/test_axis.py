"""Ticks: few, round, in the picture, and in the unit that suits them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tensorplay.service.pages.axis import percent_axis, time_axis

TIMES = st.floats(1e-6, 1e6)


@given(TIMES, TIMES)
@example(1.0, 1.0)
@example(1.0, 1.0000000000000002)
def test_ticks_are_few_and_in_the_picture(one: float, other: float) -> None:
    axis = time_axis(min(one, other), max(one, other), left=9.0, right=91.0)
    assert 1 <= len(axis.ticks) <= 6
    assert all(9 <= tick.x <= 91 for tick in axis.ticks)
    assert [tick.x for tick in axis.ticks] == sorted(tick.x for tick in axis.ticks)
    assert len({tick.text for tick in axis.ticks}) == len(axis.ticks)


@pytest.mark.parametrize(
    ("low", "high", "unit", "texts"),
    [
        (0.04832, 0.2061, "µs", ["100", "150", "200"]),
        (0.0003, 0.0007, "ns", ["400", "500", "600"]),
        (1.0, 1.04, "ms", ["1.01", "1.02", "1.03"]),
        (900.0, 2500.0, "s", ["1.0", "1.5", "2.0"]),
        (2.0, 2.0, "ms", ["2"]),
    ],
)
def test_ticks_stand_at_round_numbers(low: float, high: float, unit: str, texts: list[str]) -> None:
    axis = time_axis(low, high)
    assert axis.unit == unit
    assert [tick.text for tick in axis.ticks] == texts


def test_shares_are_percent() -> None:
    axis = percent_axis(-0.02, 0.08)
    assert (axis.unit, [tick.text for tick in axis.ticks]) == ("%", ["0", "2", "4", "6"])
