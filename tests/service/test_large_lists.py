"""Tens of thousands of winners and signatures: work for a page, and not for all of it each time."""

import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tensorplay.database.csv_text import format_results
from tensorplay.database.record import Entry, Validator
from tensorplay.gemm import Signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service.jobs import OVER, Jobs
from tensorplay.service.listing import Filter
from tensorplay.service.live_runtime import LiveRuntime
from tensorplay.testing import scripted_kernel

OP, PARAMS = "GemmTunableOp_Float32", "taN_m{}_n3_k5_bias0_dev0"
MANY = 12_000


@pytest.fixture
def large(context: TuningContext) -> Iterator[LiveRuntime]:
    validators = [Validator(*pair) for pair in context.validators_of("0")]
    entries = [Entry(OP, PARAMS.format(m), scripted_kernel(2), 0.1 * m) for m in range(1, MANY + 1)]
    context.load_results("0", "x.csv", format_results(validators, entries).encode())
    runtime = LiveRuntime(context)
    yield runtime
    runtime.close()


def test_one_change_does_not_read_everything_anew(
    large: LiveRuntime, context: TuningContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = large.winners.now()
    assert len(before) == MANY

    def fail(*_: Any) -> Any:
        raise AssertionError("everything was read")

    monkeypatch.setattr(context, "each_recorded", fail)
    context.pin_winner(OP, PARAMS.format(77))
    assert [row.m for row in large.winners.now().rows(Filter(pinned=True))] == [77]
    context.forget(OP, PARAMS.format(78))
    assert len(large.winners.now()) == MANY - 1
    assert large.winners.now() is large.winners.now()


def test_the_index_leaves_the_garbage_collector_nothing_to_look_at(large: LiveRuntime) -> None:
    large.winners.now()
    gc.collect()
    before = len(gc.get_objects())
    large.context.load_results("0", "y.csv", b"")
    index = large.winners.now()
    list(index.page(Filter(), "-m", 100, None).rows)
    gc.collect()
    assert len(gc.get_objects()) - before < MANY / 10


def test_a_page_asks_only_for_what_it_shows(large: LiveRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorplay.runtime.steered_results import SteeredResults

    asked: list[int] = []
    first_choices = SteeredResults.first_choices

    def counted(self: SteeredResults, signatures: Any) -> Any:
        found = list(signatures)
        asked.append(len(found))
        return first_choices(self, found)

    monkeypatch.setattr(SteeredResults, "first_choices", counted)
    page = large.winners.now().page(Filter(), "m", 100, None)
    large.context.first_choices([row.signature for row in page.rows])
    assert asked == [100]


def test_a_job_of_many_signatures_leaves_the_garbage_collector_nothing_to_look_at(large: LiveRuntime) -> None:
    jobs = Jobs(large)
    gc.collect()
    before = len(gc.get_objects())
    job = jobs.start(Signature(OP, PARAMS.format(m)) for m in range(MANY))
    jobs.close()
    gc.collect()
    assert len(gc.get_objects()) - before < MANY / 10
    assert len(job.signatures) == MANY
    while job.state not in OVER:
        time.sleep(0.01)


def test_calls_of_one_signature_are_found_without_a_walk(context: TuningContext, run: Callable[[int], str]) -> None:
    context.tuning_disable()
    for m in range(1, 50):
        run(m)
    counters = context._ledger.counters
    assert context.calls_of(OP, PARAMS.format(7)) == {"first_choice": 1}

    class Unwalkable(dict[Any, Any]):
        def items(self) -> Any:
            raise AssertionError("all tallies were walked")

    counters._tallies = Unwalkable(counters._tallies)
    assert context.calls_of(OP, PARAMS.format(7)) == {"first_choice": 1}
    assert context.explain(OP, PARAMS.format(7))["calls"] == {"first_choice": 1}


def test_untuned_signatures_are_counted_once_for_the_list(
    context: TuningContext, run: Callable[[int], str], tmp_path: Path
) -> None:
    context.tuning_disable()
    for m in range(1, 20):
        run(m)
    runtime = LiveRuntime(context)
    assert runtime.untuned.now() is runtime.untuned.now()
    assert {row.signature for row in runtime.untuned.now()} == {Signature(OP, PARAMS.format(m)) for m in range(1, 20)}
    context.measure_beside(next(iter([_problem(3)])))
    assert len(runtime.untuned.now()) == 18
    runtime.close()


def _problem(m: int) -> Any:
    from tensorplay.gemm import parse_signature

    return parse_signature(OP, PARAMS.format(m))
