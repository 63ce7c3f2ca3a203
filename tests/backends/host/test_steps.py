"""Neighbours of host kernels: other sizes of blocks, ways to multiply and copies, each computing the product."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorplay.backends.base import CandidateQuery
from tensorplay.backends.host.backend import HostBackend
from tensorplay.backends.host.library import numpy_blas
from tensorplay.backends.host.steps import steps
from tensorplay.gemm import GemmProblem, HostKernelId, dtype_of_word, parse_kernel_id

BACKEND = HostBackend()
FLOAT32 = dtype_of_word("Float32")
SEARCH = CandidateQuery(breadth="search")

blocks = st.tuples(st.sampled_from(["rows", "cols"]), st.integers(1, 4096))
switches = st.tuples(st.sampled_from(["swap", "packa", "packb"]), st.just(1))
kernels = st.builds(
    HostKernelId,
    st.sampled_from(["numpy", "scipy", "mkl"]),
    st.lists(st.one_of(blocks, switches), max_size=3, unique_by=lambda option: option[0]).map(tuple),
)


def problem_of(m: int = 300, n: int = 200, k: int = 100, **further: object) -> GemmProblem:
    return GemmProblem(dtype=FLOAT32, m=m, n=n, k=k, **further)  # type: ignore[arg-type] # each field takes its own type


def texts(kernel: str, problem: GemmProblem) -> list[str]:
    parsed = parse_kernel_id(kernel)
    assert isinstance(parsed, HostKernelId)
    return [str(step) for step in steps(parsed, problem)]


def test_a_block_is_made_smaller_and_larger() -> None:
    found = texts("host_numpy_dot1_rows128", problem_of())
    assert {f"host_numpy_dot1_rows{size}" for size in (256, 64, 192, 96)} <= set(found)


def test_copies_the_transposed_product_and_further_blocks_are_added_and_taken_away() -> None:
    found = texts("host_numpy_packa1_rows128", problem_of())
    added = {f"host_numpy_packa1_rows128_{option}" for option in ("swap1", "packb1", "cols64")}
    assert added | {"host_numpy_rows128", "host_numpy_packa1", "host_numpy_dot1_packa1_rows128"} <= set(found)


@settings(deadline=None)
@given(kernels, st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**6))
def test_steps_are_kernel_ids_of_the_same_source_each_once(kernel: HostKernelId, m: int, n: int, k: int) -> None:
    found = list(steps(kernel, problem_of(m, n, k)))
    assert kernel not in found
    assert len(set(found)) == len(found) <= 80
    assert {step.source for step in found} <= {kernel.source}
    own_count = ("threads", numpy_blas().threads)
    assert not any(step.source == "numpy" and own_count in step.options for step in found)


@pytest.mark.parametrize("kernel", ["host_numpy", "host_numpy_dot1_swap1", "host_numpy_cols64", "host_scipy"])
def test_neighbours_are_available_and_compute_the_product(kernel: str) -> None:
    problem = problem_of(60, 90, 70)
    rng = np.random.default_rng(0)
    left = rng.uniform(-1, 1, (60, 70)).astype(np.float32)
    right = rng.uniform(-1, 1, (70, 90)).astype(np.float32)
    plan = BACKEND.rebuild(problem, kernel) if kernel != "host_scipy" else BACKEND.first_choice(problem)
    plans = list(BACKEND.neighbours(problem, plan, SEARCH))
    assert plans
    for each in plans:
        np.testing.assert_allclose(each.run(left, right, None), left @ right, atol=1e-4)
        assert BACKEND.rebuild(problem, each.kernel).kernel == each.kernel


def test_sources_and_scratch_memory_bound_neighbours_too() -> None:
    problem = problem_of()
    plan = BACKEND.rebuild(problem, "host_numpy_rows64")
    assert not list(BACKEND.neighbours(problem, plan, CandidateQuery(sources=frozenset({"scipy"}))))
    allowed = list(BACKEND.neighbours(problem, plan, CandidateQuery(workspace_bytes=0)))
    assert allowed
    assert all(each.workspace_bytes == 0 for each in allowed)
