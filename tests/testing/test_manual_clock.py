from typing import TYPE_CHECKING

import pytest

from tensorplay.testing.manual_clock import ManualClock

if TYPE_CHECKING:
    from tensorplay.typing import Clock


def test_it_stands_still_until_it_is_advanced() -> None:
    clock: Clock = ManualClock(5.0)
    assert [clock(), clock()] == [5.0, 5.0]


def test_it_shows_what_it_was_advanced_by() -> None:
    clock = ManualClock()
    clock.advance(1.5)
    clock.advance(0.25)
    assert clock() == 1.75


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_it_never_goes_back(seconds: float) -> None:
    clock = ManualClock(1.0)
    with pytest.raises(ValueError, match="from 0 up"):
        clock.advance(seconds)
    assert clock() == 1.0
