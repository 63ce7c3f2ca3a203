"""Counts are exact, in any number of threads."""

import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.gemm import Signature
from tensorplay.runtime import counters as counting
from tensorplay.runtime.counters import Counters
from tensorplay.runtime.resolution import Reason

ONE, OTHER = Signature("op", "one"), Signature("op", "other")


def test_every_reason_is_there_before_anything_happened() -> None:
    assert Counters().totals() == dict.fromkeys((reason.value for reason in Reason), 0)


def test_calls_add_up_over_signatures_and_events_join_them() -> None:
    counters = Counters()
    counters.tally(ONE, Reason.REPLAYED).calls += 2
    counters.tally(OTHER, Reason.REPLAYED).calls += 3
    counters.tally(None, Reason.FIRST_CHOICE).calls += 1
    counters.count(Reason.MEASURED)
    assert counters.totals()["replayed"] == 5
    assert counters.totals()["first_choice"] == 1
    assert counters.totals()["measured"] == 1
    assert counters.calls(ONE) == {"replayed": 2}
    assert counters.calls_made() == 6
    assert counters.calls_without_winner() == {}
    counters.tally(ONE, Reason.FALLBACK).calls += 1
    counters.tally(OTHER, Reason.SELECTED_IN_PROCESS).calls += 2
    assert counters.calls_without_winner() == {ONE: 1, OTHER: 2}
    assert counters.tally(ONE, Reason.REPLAYED) is counters.tally(ONE, Reason.REPLAYED)


def test_no_call_is_lost_between_threads_that_count_without_a_lock() -> None:
    counters = Counters()
    tally = counters.tally(ONE, Reason.REPLAYED)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def count() -> None:
        for _ in range(20_000):
            tally.calls += 1

    try:
        with ThreadPoolExecutor(4) as pool:
            for future in [pool.submit(count) for _ in range(4)]:
                future.result()
    finally:
        sys.setswitchinterval(interval)
    assert counters.totals()["replayed"] == 80_000


@given(st.lists(st.sampled_from("abcdefgh")))
def test_once_full_it_counts_known_signatures_on_and_new_ones_together(names: list[str]) -> None:
    expected: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(counting, "MOST_TALLIES", 3)
        counters = Counters()
        for name in names:
            counters.tally(Signature("op", name), Reason.REPLAYED).calls += 1
            if name in expected or len(expected) < 3:
                expected[name] += 1
    assert counters.totals()["replayed"] == counters.calls_made() == len(names)
    for name in "abcdefgh":
        assert counters.calls(Signature("op", name)).get("replayed", 0) == expected[name]
