"""Searching beyond the offered candidates on a device: capabilities, neighbours, and whole searches."""

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.capabilities import algorithm_ids, capabilities_of, tile_size
from tensorplay.backends.cublaslt.neighbours import neighbour_algorithms
from tensorplay.backends.cublaslt.operation import Operation
from tensorplay.gemm import GemmProblem, LtKernelId, dtype_of_name, parse_kernel_id
from tensorplay.measure import Budget, SearchMemory
from tensorplay.measure.numerics import agree, problem_tolerance
from tensorplay.runtime.tuner import Measurement, TuningRules, measure

SEARCH = CandidateQuery(breadth="search", sources=frozenset({"cublaslt"}))
MIB = 1 << 20


def posed(name: str, m: int, n: int, k: int, **further: Any) -> GemmProblem:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return replace(GemmProblem(dtype=dtype, m=m, n=n, k=k, device="0"), **further)


PROBLEMS = [
    posed("bfloat16", 64, 4096, 4096, transpose_right=True),
    posed("float16", 333, 1000, 777, bias=True),
    posed("float32", 16, 1024, 4096),
    posed("tf32", 256, 64, 1024),
    posed("float64", 64, 512, 512),
]
NAMES = [problem.dtype.name for problem in PROBLEMS]


def first_id(backend: CublasLtBackend, problem: GemmProblem) -> LtKernelId:
    kernel_id = parse_kernel_id(backend.first_choice(problem).kernel)
    assert isinstance(kernel_id, LtKernelId)
    return kernel_id


@pytest.mark.parametrize("problem", PROBLEMS, ids=NAMES)
def test_algorithms_say_what_may_be_set(backend: CublasLtBackend, problem: GemmProblem) -> None:
    types, first = Operation(problem).types, first_id(backend, problem)
    known = {each: capabilities_of(0, types, each) for each in algorithm_ids(0, types)}
    assert first.id in known
    mine = known[first.id]
    assert mine is not None
    assert first.tile in mine.tiles or not first.tile
    assert first.stages in mine.stages or not first.stages
    assert first.custom <= mine.custom_max
    assert not first.red or (mine.splits and first.red & mine.reductions)
    assert sum(each is not None and bool(each.tiles) for each in known.values()) > 1
    assert all(tile_size(tile) for tile in mine.tiles if 0 < tile <= 634)


@pytest.mark.parametrize("problem", PROBLEMS, ids=NAMES)
def test_neighbours_are_many_rebuild_and_compute_the_product(backend: CublasLtBackend, problem: GemmProblem) -> None:
    first = backend.first_choice(problem)
    plans = [each for each in backend.neighbours(problem, first, SEARCH) if isinstance(each, Plan)]
    assert len(plans) > 20
    assert len({plan.kernel for plan in plans}) == len(plans)
    assert all(plan.workspace_bytes <= SEARCH.workspace_bytes for plan in plans)
    allowed, wrong = problem_tolerance(problem), 0
    with backend.open_trial(problem, rotating_bytes=0) as trial:
        exact = trial.reference()
        for plan in plans[:: max(1, len(plans) // 25)]:
            found = trial.output(plan)
            verdict = agree(found, exact, trial.reference, dtype=problem.dtype, k=problem.k, tolerance=allowed)
            wrong += not verdict.ok
            assert (
                np.array_equal(trial.output(backend.rebuild(problem, plan.kernel)), found)
                or "_red0_" not in plan.kernel
            )
    # Some of the library's kernels drop the end of split sums: that is what the check is for.
    assert wrong <= 3


@pytest.mark.parametrize("problem", PROBLEMS[:3], ids=NAMES[:3])
def test_no_sum_is_split_where_the_order_must_not_change(backend: CublasLtBackend, problem: GemmProblem) -> None:
    at = first_id(backend, problem)
    algorithms = neighbour_algorithms(Operation(problem), at, ceiling=32 * MIB, deterministic=True)
    found = [each.kernel_id for each in islice(algorithms, 200)]
    assert found
    assert {each.red for each in found} == {0}
    assert all(each.splitk in {0, 1, at.splitk} for each in found)


def searched(backend: CublasLtBackend, problem: GemmProblem, seconds: float, memory: SearchMemory) -> Measurement:
    rules = TuningRules(
        query=SEARCH,
        budget=Budget(),
        min_gain=0.01,
        check=True,
        tolerance=None,
        rotating_bytes=backend.default_rotating_bytes("0"),
        search_seconds=seconds,
    )
    return measure(backend, problem, rules, memory=memory)


@pytest.mark.parametrize("problem", PROBLEMS, ids=NAMES)
def test_a_search_looks_at_many_within_its_time_and_its_winner_is_right(
    backend: CublasLtBackend, problem: GemmProblem
) -> None:
    found = searched(backend, problem, 1.0, SearchMemory())
    report = found.report.search
    assert report is not None
    assert report.timed > 40
    assert report.timed <= report.passed <= report.checked
    assert report.seconds < 1.2
    with backend.open_trial(problem, rotating_bytes=0) as trial:
        output, exact = trial.output(found.plan), trial.reference()
        tolerance = problem_tolerance(problem)
        assert agree(output, exact, trial.reference, dtype=problem.dtype, k=problem.k, tolerance=tolerance).ok


def test_the_second_size_of_a_kind_begins_with_what_won_for_the_first(backend: CublasLtBackend) -> None:
    memory = SearchMemory()
    first = searched(backend, posed("bfloat16", 64, 4096, 4096, transpose_right=True), 1.0, memory)
    second = searched(backend, posed("bfloat16", 64, 4096, 5120, transpose_right=True), 0.05, memory)
    assert first.report.search is not None
    assert second.report.search is not None
    assert second.report.search.checked >= 1
