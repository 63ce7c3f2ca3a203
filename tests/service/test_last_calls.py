"""When untuned signatures were last called: as far as looks at the counts tell."""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.gemm import Signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service import current_untuned, live_runtime
from tensorplay.service.last_calls import LastCalls

Run = Callable[[int], str]
Counts = dict[Signature, int]
_SIGNATURES = [Signature("op", name) for name in "abc"]
_COUNTS = st.dictionaries(st.sampled_from(_SIGNATURES), st.integers(1, 9))


def test_of_a_single_call_the_time_is_that_of_the_first_and_of_more_that_of_the_look(
    client: httpx.Client, run: Run, context: TuningContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(current_untuned, "_FRESH_S", 0.0)
    context.tuning_disable()
    run(1)
    (once,) = client.get("untuned").json()["items"]
    assert once["calls"] == 1 and once["last_seen"] == once["first_seen"]
    (same,) = client.get("untuned").json()["items"]
    assert same == once
    time.sleep(0.01)
    before = datetime.now(UTC).isoformat(timespec="milliseconds")
    run(1)
    (twice,) = client.get("untuned").json()["items"]
    assert twice["calls"] == 2 and twice["first_seen"] == once["first_seen"]
    assert before <= twice["last_seen"] <= datetime.now(UTC).isoformat(timespec="milliseconds")


def test_what_ran_before_the_service_started_has_no_time_until_it_runs_again(
    run: Run, context: TuningContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(current_untuned, "_FRESH_S", 0.0)
    context.tuning_disable()
    params = run(1)
    runtime = live_runtime.LiveRuntime(context)
    (row,) = runtime.untuned.now()
    assert runtime.untuned.last_seen(row.op, params) is None
    run(1)
    assert runtime.untuned.now()[0].calls == 2 and runtime.untuned.last_seen(row.op, params)
    runtime.close()


@given(_COUNTS, st.lists(_COUNTS, max_size=5))
def test_a_time_is_that_of_the_last_look_that_found_another_count(begin: Counts, looks: Sequence[Counts]) -> None:
    wanted = [tuple(each) for each in _SIGNATURES]
    told, before, expected = LastCalls(begin, {}), begin, dict[tuple[str, ...], str]()
    for number, calls in enumerate(looks):
        told = told.after(wanted, calls, {}, str(number))  # type: ignore[arg-type] # pairs, each of them
        expected |= {tuple(each): str(number) for each in _SIGNATURES if calls.get(each, 0) != before.get(each, 0)}
        before = calls
        assert told.times == expected


def test_what_is_no_longer_looked_for_is_forgotten() -> None:
    signature = _SIGNATURES[0]
    told = LastCalls({}, {}).after([("op", "a")], {signature: 1}, {("op", "a"): "first"}, "now")
    assert told.times == {("op", "a"): "first"}
    assert told.after([("op", "b")], {signature: 1}, {}, "later").times == {}
