"""Tens of thousands of winners changed at once: nothing that makes the garbage collector look at the whole process."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tensorplay.database.csv_text import format_results
from tensorplay.database.record import Entry, Validator
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

OP, MANY = "GemmTunableOp_Float32", 6000


@pytest.fixture
def context(tmp_path: Path) -> Iterator[TuningContext]:
    backend = ScriptedBackend({scripted_kernel(1): 1.0})
    made = TuningContext(environ={"TP_TUNABLEOP_ENABLED": "1"}, directory=tmp_path, backends={"0": backend})
    yield made
    made.close()


def file_of(context: TuningContext, time_ms: float) -> bytes:
    validators = [Validator(*pair) for pair in context.validators_of("0")]
    entries = [Entry(OP, f"taN_m{m}_n3_k5_bias0_dev0", "Default", time_ms) for m in range(1, MANY + 1)]
    return format_results(validators, entries).encode()


def objects() -> int:
    gc.collect()
    return len(gc.get_objects())


def test_a_load_over_others_a_save_and_a_clearing_leave_nothing_to_look_at(context: TuningContext) -> None:
    old, new = file_of(context, 1.0), file_of(context, 2.0)
    before = objects()
    assert context.load_results("0", "a.csv", old).merged == MANY
    assert objects() - before < MANY / 10
    assert context.load_results("0", "a.csv", new, overwrite=True).replaced == MANY
    assert objects() - before < MANY / 10
    assert context.write_file()
    assert objects() - before < MANY / 10
    assert context.forget_all() == MANY
    assert objects() - before < MANY / 10


def test_what_a_file_replaced_has_its_history_and_its_origin(context: TuningContext) -> None:
    params = "taN_m1_n3_k5_bias0_dev0"
    context.override(OP, params, "Default")
    context.load_results("0", "a.csv", file_of(context, 2.0), overwrite=True)
    assert [(past.origin, past.time_ms) for past in context.past_winners(OP, params)] == [
        ("override", 0.0),
        ("file", 2.0),
    ]
    assert next(each.origin for each in context.each_recorded() if each.params == params) == "file"


def test_of_a_hostile_file_lines_are_counted_and_few_are_kept(context: TuningContext) -> None:
    report = context.load_results("0", "a.csv", file_of(context, 1.0) + b"garbage\n" * 5000)
    assert (report.merged, report.rejected, len(report.bad_lines)) == (MANY, 5000, 100)
    assert report.bad_lines[0].text == "garbage"
    more = b"".join(b"Validator,V%d,x\n" % number for number in range(5000))
    refused = context.load_results("0", "a.csv", more + file_of(context, 1.0))
    assert 0 < len(refused.mismatches) < 500
    assert refused.merged == refused.replaced == 0


def test_a_file_without_validators_is_refused_unless_it_is_blank(context: TuningContext) -> None:
    assert context.load_results("0", "a.csv", b"").mismatches == ()
    assert context.load_results("0", "a.csv", b"# nothing\n\n").mismatches == ()
    assert context.load_results("0", "a.csv", b"garbage\n").mismatches
    assert context.load_results("0", "a.csv", f"{OP},taN_m1_n3_k5_bias0_dev0,Default,1.0\n".encode()).mismatches
