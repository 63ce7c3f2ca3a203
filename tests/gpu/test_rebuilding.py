"""Kernel ids: the same bits again, and refusals with a reason."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tensorplay.backends.base import CandidateQuery
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem, LtKernelId, dtype_of_name, parse_kernel_id


def posed(name: str, m: int, n: int, k: int, **further: Any) -> GemmProblem:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return replace(GemmProblem(dtype=dtype, m=m, n=n, k=k, device="0"), **further)


PROBLEMS = [
    posed("float32", 512, 1024, 256),
    posed("float32", 16, 1024, 4096, bias=True),
    posed("tf32", 64, 784, 10),
    posed("float64", 100, 100, 100),
    posed("bfloat16", 64, 512, 4096, transpose_right=True, bias=True),
    posed("float16", 256, 256, 256, alignment=2),
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.dtype.name)
def test_another_backend_rebuilds_every_kernel_to_the_same_bits(backend: CublasLtBackend, problem: GemmProblem) -> None:
    again = CublasLtBackend()
    with backend.open_trial(problem, rotating_bytes=0) as trial:
        plans = [backend.first_choice(problem), *backend.candidates(problem, CandidateQuery())]
        assert len({plan.kernel for plan in plans}) == len(plans) > 1
        for plan in plans:
            rebuilt = again.rebuild(problem, plan.kernel)
            assert rebuilt.workspace_bytes == plan.workspace_bytes
            np.testing.assert_array_equal(trial.output(rebuilt), trial.output(plan))
            np.testing.assert_array_equal(trial.output(rebuilt), trial.output(rebuilt))


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.dtype.name)
def test_the_wide_union_holds_the_librarys_own_list(backend: CublasLtBackend, problem: GemmProblem) -> None:
    own = {plan.kernel for plan in backend.candidates(problem, CandidateQuery(breadth="heuristic"))}
    wide = {plan.kernel for plan in backend.candidates(problem, CandidateQuery())}
    assert own <= wide
    assert backend.library_choices(problem)[0].kernel == backend.first_choice(problem).kernel


def test_no_candidate_takes_more_workspace_than_allowed(backend: CublasLtBackend) -> None:
    for mib in (0, 1, 32):
        problem = posed("float32", 16, 1024, 8192, workspace_mib=mib)
        plans = [backend.first_choice(problem), *backend.candidates(problem, CandidateQuery())]
        assert max(plan.workspace_bytes for plan in plans) <= mib << 20
        query = CandidateQuery(workspace_bytes=1 << 20)
        assert all(plan.workspace_bytes <= 1 << 20 for plan in backend.candidates(problem, query))


def test_deterministic_candidates_split_no_sum(backend: CublasLtBackend) -> None:
    problem = posed("bfloat16", 16, 1024, 8192, transpose_right=True)
    for plan in backend.candidates(problem, CandidateQuery(deterministic=True, sources=frozenset({"cublaslt"}))):
        kernel_id = parse_kernel_id(plan.kernel)
        assert isinstance(kernel_id, LtKernelId)
        assert kernel_id.red == 0


@pytest.mark.parametrize("k", [8192, 65536])
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_a_first_choice_that_splits_sums_gives_way_to_one_that_does_not(
    backend: CublasLtBackend, name: str, k: int
) -> None:
    problem = posed(name, 16, 1024, k, bias=True)
    first, kept = backend.first_choice(problem), backend.deterministic_choice(problem)
    kernel_id = parse_kernel_id(kept.kernel)
    assert isinstance(kernel_id, LtKernelId)
    assert (kernel_id.red, kept.is_deterministic) == (0, True)
    assert kept is first or not first.is_deterministic


@pytest.mark.parametrize(
    "kernel",
    [
        "lt_id9999_tile1_stages1_splitk1_red0_swizzle0_custom0_inner0_cluster0",
        "lt_id2147483647_tile4294967295_stages4294967295_splitk2147483647_red7_swizzle1_custom9_inner65535_cluster65535",
        "host_numpy",
        "lt_nonsense",
    ],
)
def test_an_invented_kernel_is_refused(backend: CublasLtBackend, kernel: str) -> None:
    with pytest.raises(KernelUnavailableError):
        backend.rebuild(PROBLEMS[0], kernel)


def test_a_kernel_that_needs_too_much_workspace_is_refused(backend: CublasLtBackend) -> None:
    problem = posed("float32", 16, 1024, 8192)
    greedy = [plan for plan in backend.candidates(problem, CandidateQuery()) if plan.workspace_bytes > 0]
    if not greedy:
        pytest.skip("the library offers nothing that needs workspace")
    with pytest.raises(KernelUnavailableError, match="workspace"):
        backend.rebuild(replace(problem, workspace_mib=0), greedy[0].kernel)


def test_kernels_of_other_shapes_and_types_are_right_or_refused(backend: CublasLtBackend) -> None:
    problem = posed("float32", 65, 33, 17, alignment=4)
    kernels = {
        plan.kernel for other in PROBLEMS for plan in backend.candidates(other, CandidateQuery(breadth="heuristic"))
    }
    with backend.open_trial(problem, rotating_bytes=0) as trial:
        for kernel in sorted(kernels):
            try:
                plan = backend.rebuild(problem, kernel)
            except KernelUnavailableError:
                continue
            np.testing.assert_allclose(trial.output(plan), trial.reference(), atol=1e-3)
