"""The plans of a context, beside which a hot path in C keeps a table."""

from typing import Any

from tensorplay.gemm import Signature
from tensorplay.runtime.counters import Tally
from tensorplay.runtime.plans import TABLE, plan_count, resolved_items, without
from tensorplay.runtime.resolved import Resolved

ONE, OTHER = Signature("GemmTunableOp_Float32", "one"), Signature("GemmTunableOp_Float32", "other")


def plans(*, table: bool) -> Any:
    made: dict[Any, Any] = {("key", each): Resolved(lambda *_: None, Tally(), each) for each in (ONE, OTHER, None)}
    return made | {TABLE: object()} if table else made


def test_a_table_is_no_plan() -> None:
    assert plan_count({}) == 0
    assert plan_count(plans(table=False)) == plan_count(plans(table=True)) == 3


def test_readers_of_plans_meet_no_table() -> None:
    for table in (False, True):
        known = plans(table=table)
        assert dict(resolved_items(known)) == {key: each for key, each in known.items() if key != TABLE}
        assert {each.signature for _, each in resolved_items(known)} == {ONE, OTHER, None}


def test_the_others_of_a_signature_are_kept_without_the_table_that_may_know_it() -> None:
    for table in (False, True):
        before = plans(table=table)
        kept = without(before, ONE)
        assert set(kept) == {("key", OTHER), ("key", None)}
        assert all(kept[key] is before[key] for key in kept)
