import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.measure.budget import OWN_MAX_SAMPLES, Allowance, Budget, Deadline
from tensorplay.testing.manual_clock import ManualClock

LIMITS = st.integers(0, 300)
TIMES = st.floats(1e-3, 1e3)
FIELDS = ["max_duration_ms", "max_samples", "warmup_duration_ms", "warmup_samples"]


def test_the_defaults_are_the_documented_ones() -> None:
    assert Budget() == Budget(max_duration_ms=30, max_samples=100, warmup_duration_ms=0, warmup_samples=0)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [-1, 1.0, 0.5, "30", None, True, math.nan, Decimal(3)])
def test_a_budget_that_is_no_integer_from_0_up_is_an_error_that_says_what_is_allowed(field: str, value: object) -> None:
    arguments: dict[str, Any] = {field: value}
    with pytest.raises(ValueError, match=rf"{field} is .*integer from 0 up"):
        Budget(**arguments)


def test_the_smaller_limit_wins() -> None:
    assert Allowance(Budget(30, 100)).remaining_samples(1.0) == 30
    assert Allowance(Budget(30, 100)).remaining_samples(0.01) == 100


def test_zero_means_no_limit_of_the_users() -> None:
    assert Allowance(Budget(0, 100)).remaining_samples(1e9) == 100
    assert Allowance(Budget(30, 0)).remaining_samples(10.0) == 3
    assert Allowance(Budget(0, 0)).remaining_samples(1e9) == OWN_MAX_SAMPLES


def test_a_limit_too_large_for_a_float_is_just_a_large_limit() -> None:
    assert Allowance(Budget(10**400, 0)).remaining_samples(1.0) == OWN_MAX_SAMPLES
    assert Allowance(Budget(10**400, 150)).remaining_samples(1e9) == 150


@pytest.mark.parametrize("samples", [OWN_MAX_SAMPLES, OWN_MAX_SAMPLES + 1, 2**31 - 1, 10**400])
def test_no_limit_of_the_users_is_larger_than_what_a_decision_takes(samples: int) -> None:
    assert Allowance(Budget(0, samples)).remaining_samples(1e9) == OWN_MAX_SAMPLES


def test_one_sample_is_always_allowed_but_only_one() -> None:
    allowance = Allowance(Budget(1, 1), reserved_samples=7)
    assert allowance.remaining_samples(1e6) == allowance.remaining_before_reserve(1e6) == 1
    allowance.charge(1e6)
    assert allowance.remaining_samples(1e6) == allowance.remaining_before_reserve(1e6) == 0


def test_several_launches_of_one_reading_all_count() -> None:
    allowance = Allowance(Budget(0, 10))
    allowance.charge(4.0, 4)
    assert (allowance.samples, allowance.spent_ms, allowance.remaining_samples(1.0)) == (4, 4.0, 6)


def test_the_last_sample_may_begin_before_the_ceiling_where_that_is_asked() -> None:
    allowance = Allowance(Budget(30, 0))
    assert allowance.remaining_samples(8.0) == 3
    assert allowance.remaining_samples(8.0, last_may_overrun=True) == 4


def test_three_fifths_are_kept_for_the_confirmation() -> None:
    assert Allowance(Budget(0, 100), reserved_samples=8).remaining_before_reserve(1.0) == 40


def test_a_small_budget_keeps_what_the_confirmation_needs_at_least() -> None:
    assert Allowance(Budget(0, 11), reserved_samples=8).remaining_before_reserve(1.0) == 3


@given(LIMITS, LIMITS, st.lists(TIMES, max_size=60), st.integers(0, 20))
def test_spending_only_what_remains_never_overruns_by_more_than_the_last_sample(
    max_ms: int, max_samples: int, times: list[float], reserved: int
) -> None:
    allowance = Allowance(Budget(max_ms, max_samples), reserved)
    estimate = 0.0
    for time_ms in times:
        early = allowance.remaining_before_reserve(estimate)
        assert 0 <= early <= allowance.remaining_samples(estimate)
        assert allowance.remaining_samples(estimate) <= allowance.remaining_samples(estimate, last_may_overrun=True)
        if allowance.remaining_samples(estimate, last_may_overrun=True) < 1:
            assert allowance.samples >= (max_samples or OWN_MAX_SAMPLES) or allowance.spent_ms >= max_ms > 0
            break
        assert allowance.samples == 0 or not max_ms or allowance.spent_ms < max_ms
        allowance.charge(time_ms)
        estimate = time_ms
    assert allowance.samples <= max(1, max_samples or OWN_MAX_SAMPLES)


@given(st.floats(1e-3, 10.0), st.integers(10, 300), st.integers(1, 300))
def test_what_remains_really_fits(estimate: float, max_ms: int, max_samples: int) -> None:
    allowance = Allowance(Budget(max_ms, max_samples))
    fitting = allowance.remaining_samples(estimate)
    allowance.charge(fitting * estimate, fitting)
    assert allowance.samples <= max_samples
    assert allowance.spent_ms <= max_ms * (1 + 1e-12)
    assert allowance.remaining_samples(estimate * (1 + 1e-9)) == 0


@pytest.mark.parametrize("seconds", [None, 0, 0.0])
def test_no_seconds_are_no_deadline(seconds: float | None) -> None:
    clock = ManualClock()
    deadline = Deadline(clock, seconds)
    clock.advance(1e9)
    assert not deadline.has_passed()
    assert deadline.remaining_seconds(0.5) == math.inf


def test_a_deadline_counts_from_when_it_was_made() -> None:
    clock = ManualClock(100.0)
    deadline = Deadline(clock, 4.0)
    clock.advance(3.0)
    assert (deadline.remaining_seconds(), deadline.has_passed()) == (1.0, False)
    clock.advance(1.0)
    assert (deadline.remaining_seconds(), deadline.has_passed()) == (0.0, True)


def test_a_share_of_a_deadline_passes_earlier() -> None:
    clock = ManualClock()
    deadline = Deadline(clock, 4.0)
    clock.advance(3.0)
    assert deadline.has_passed(0.75)
    assert deadline.remaining_seconds(0.5) == -1.0


@pytest.mark.parametrize("seconds", [-0.5, math.nan])
def test_a_deadline_in_the_past_is_an_error(seconds: float) -> None:
    with pytest.raises(ValueError, match="from 0 up"):
        Deadline(ManualClock(), seconds)


def test_a_deadline_within_another_is_the_earlier_of_both() -> None:
    clock = ManualClock()
    outer = Deadline(clock, 10.0)
    clock.advance(2.0)
    assert outer.within(1.0).remaining_seconds() == pytest.approx(1.0)
    assert outer.within(100.0).remaining_seconds() == pytest.approx(8.0)
    assert outer.within(100.0, 0.5).remaining_seconds() == pytest.approx(3.0)
    assert outer.within(math.inf).remaining_seconds(0.5) == pytest.approx(4.0)
    assert Deadline(clock).within(3.0).remaining_seconds() == pytest.approx(3.0)
    assert not Deadline(clock).within(math.inf).has_passed()
    clock.advance(100.0)
    assert outer.within(5.0).has_passed()
    assert outer.now() == 102.0
