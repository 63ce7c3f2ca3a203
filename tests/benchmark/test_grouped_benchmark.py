import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorplay.backends.cublaslt import grouped_limits
from tensorplay.ops.device import grouped as public

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmark"
sys.path.insert(0, str(BENCHMARK))

cell_module = import_module("grouped.cell")
contest = import_module("grouped.contest")
verdict = import_module("grouped.verdict")
bench = import_module("bench_grouped")
result = import_module("harness.result")
cuda_machine = import_module("harness.cuda_machine")

CELLS = list(cell_module.cells())


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = str(BENCHMARK / "bench_grouped.py")
    return subprocess.run((sys.executable, script, *arguments), capture_output=True, text=True, check=False)


def outcome(cell: Any, loop: float, at_once: float) -> Any:
    total = {"loop": [loop] * 5, "grouped": [at_once] * 5, "torch": [loop] * 5}
    if cell.mix == "alike":
        total["batched"] = [at_once] * 5
    medians = {name: values[0] for name, values in total.items()}
    return verdict.outcome_of(cell, total, dict.fromkeys(total, 1.0), medians)


@pytest.mark.skipif(cuda_machine.reason_for_no_device() is None, reason="there is a device")
def test_without_a_device_it_says_so_and_claims_nothing(tmp_path: Path) -> None:
    done = run("--quick", "--results", str(tmp_path))
    assert done.returncode == 77
    assert "nothing was measured: " in done.stderr
    assert not list(tmp_path.iterdir())


def test_wrong_arguments_are_refused() -> None:
    assert run("--dtypes", "int8").returncode == 2
    assert run("--counts", "0").returncode == 2


def test_the_cells_are_of_every_type_mix_size_and_number_that_fit() -> None:
    assert len(CELLS) == len(set(CELLS)) == 2 * 3 * 6 * 8
    for cell in CELLS:
        assert len(cell.members) == cell.products
        assert (len(set(cell.members)) == 1) == (cell.mix == "alike")
        assert cell.mix != "skinny" or max(cell.rows) <= 8
        assert all(member.is_short and member.multiplications for member in cell.members)
        assert max(member.multiplications for member in cell.members) == cell.multiplications


def test_the_limits_are_lifted_for_a_while_and_nothing_runs_one_by_one_meanwhile() -> None:
    before = dict(grouped_limits.MOST_MULTIPLICATIONS), grouped_limits.LEAST_PRODUCTS, vars(public)["mm"]
    with contest.without_limits():
        assert all(grouped_limits.is_worthwhile(cell.dtype, cell.members) for cell in CELLS)
        with pytest.raises(RuntimeError, match="one by one"):
            public.grouped_mm([[[1.0]]], [[[1.0]]])
    assert (dict(grouped_limits.MOST_MULTIPLICATIONS), grouped_limits.LEAST_PRODUCTS, vars(public)["mm"]) == before


def test_a_group_that_is_slower_at_once_misses_the_goal() -> None:
    fast = [outcome(cell, 100.0, 50.0) for cell in CELLS]
    assert bench.summed_up(fast, 0).is_reached
    assert not bench.summed_up(fast, 1).is_reached
    chosen = next(each for each in fast if each.is_chosen)
    assert not bench.summed_up([*fast, outcome(chosen.cell, 100.0, 103.0)], 0).is_reached
    left = next(each for each in fast if not each.is_chosen)
    assert left.is_missed
    assert bench.summed_up([*fast, outcome(left.cell, 100.0, 1000.0)], 0).is_reached
    assert "worst group at once over a loop" in result.render(bench.summed_up(fast, 0))


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([cell.multiplications for cell in CELLS]), st.sampled_from(cell_module.DTYPES))
def test_the_suggested_limit_is_the_largest_size_below_the_first_slow_one(size: int, dtype: str) -> None:
    outcomes = [
        outcome(cell, 100.0, 200.0 if cell.multiplications >= size and cell.dtype == dtype else 50.0) for cell in CELLS
    ]
    suggested = verdict.suggested_limits(outcomes)
    many = [cell.multiplications for cell in CELLS if cell.products >= grouped_limits.LEAST_PRODUCTS]
    assert suggested[dtype] == max((each for each in many if each < size), default=0)
    other = next(each for each in cell_module.DTYPES if each != dtype)
    assert suggested[other] == cell_module.SIZES[-1] ** 3


def test_what_is_slow_only_in_few_products_does_not_count() -> None:
    few = [cell for cell in CELLS if cell.products < grouped_limits.LEAST_PRODUCTS]
    many = [cell for cell in CELLS if cell.products >= grouped_limits.LEAST_PRODUCTS]
    outcomes = [outcome(cell, 1.0, 9.0) for cell in few] + [outcome(cell, 9.0, 1.0) for cell in many]
    assert set(verdict.suggested_limits(outcomes).values()) == {cell_module.SIZES[-1] ** 3}
