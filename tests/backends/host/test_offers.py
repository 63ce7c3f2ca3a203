import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorplay.backends.base import CandidateQuery
from tensorplay.backends.host import offers
from tensorplay.backends.host.backend import HostBackend
from tensorplay.backends.host.library import Blas, numpy_blas, thread_limit
from tensorplay.backends.host.offers import MOST_OFFERED
from tensorplay.backends.host.promising import promising, searched
from tensorplay.gemm import DType, GemmProblem, HostKernelId, dtype_of_word, parse_kernel_id
from tensorplay.gemm.dtype import DTYPES

FLOAT32 = dtype_of_word("Float32")
HOST_TYPES = [dtype for dtype in DTYPES if dtype.name != "tf32" and not dtype.name.startswith("float8")]

problems = st.builds(
    GemmProblem,
    dtype=st.sampled_from(HOST_TYPES),
    m=st.integers(1, 10**18 - 1),
    n=st.integers(1, 10**18 - 1),
    k=st.integers(1, 10**18 - 1),
    transpose_left=st.booleans(),
    transpose_right=st.booleans(),
    batch=st.integers(1, 10**18 - 1),
)


def kernels(problem: GemmProblem, **query: object) -> list[str]:
    return [plan.kernel for plan in HostBackend().candidates(problem, CandidateQuery(**query))]  # type: ignore[arg-type]


@settings(deadline=None)
@given(problem=problems, breadth=st.sampled_from(sorted(MOST_OFFERED)))
def test_offers_are_bounded_and_made_at_once_for_products_of_any_size(problem: GemmProblem, breadth: str) -> None:
    assert len(kernels(problem, breadth=breadth)) <= MOST_OFFERED[breadth]


@given(problem=problems)
def test_every_promising_text_is_the_options_of_a_kernel_id(problem: GemmProblem) -> None:
    for options in (*promising(problem), *searched(problem)):
        assert isinstance(parse_kernel_id(f"host_numpy_{options}"), HostKernelId)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ({"m": 16, "n": 16, "k": 64}, "host_numpy_dot1"),
        ({"m": 4, "n": 4096, "k": 1024, "transpose_right": True}, "host_numpy_dot1_swap1"),
        ({"m": 256, "n": 256, "k": 1}, "host_numpy_dot1"),
        ({"m": 1, "n": 1024, "k": 1024}, "host_numpy_dot1"),
        ({"m": 16, "n": 16, "k": 8192}, "host_numpy_dot1_swap1_rows4"),
        ({"m": 2000, "n": 2000, "k": 16}, "host_numpy_cols128"),
        ({"m": 4096, "n": 8, "k": 512}, "host_numpy_dot1_rows128"),
        ({"m": 300, "n": 300, "k": 300, "ld_right": 320}, "host_numpy_packb1"),
        ({"m": 20, "n": 30, "k": 40, "batch": 8, "stride_right": 0}, "host_numpy_fold1"),
    ],
)
def test_what_has_won_before_for_such_a_product_is_offered_even_heuristically(
    shape: dict[str, int], expected: str
) -> None:
    assert expected in kernels(GemmProblem(dtype=FLOAT32, **shape), breadth="heuristic", sources=frozenset({"numpy"}))  # type: ignore[arg-type]


@pytest.mark.parametrize("word", ["Float16", "BFloat16"])
def test_half_types_are_offered_blas(word: str) -> None:
    assert "host_numpy_upcast1" in kernels(GemmProblem(dtype=dtype_of_word(word), m=20, n=30, k=40))


def test_large_half_types_are_offered_blocks_that_fit_scratch_memory() -> None:
    problem = GemmProblem(dtype=dtype_of_word("Float16"), m=4096, n=4096, k=4096)
    offered = kernels(problem)
    assert "host_numpy_upcast1" not in offered
    assert "host_numpy_upcast1_cols512_rows512" in offered
    assert "host_numpy_upcast1" in kernels(problem, workspace_bytes=256 << 20)


@pytest.mark.usefixtures("own_blas")
def test_numpys_own_thread_count_is_not_offered_again() -> None:
    offered = kernels(GemmProblem(dtype=FLOAT32, m=300, n=300, k=300), breadth="search")
    assert not [kernel for kernel in offered if kernel.startswith(f"host_numpy_threads{numpy_blas().threads}")]
    if thread_limit() > 1:
        assert "host_numpy_threads1" in offered


@pytest.mark.usefixtures("own_blas")
def test_thread_counts_stay_below_the_limit_that_the_user_gave_numpy() -> None:
    code = """
from tensorplay.backends.base import CandidateQuery
from tensorplay.backends.host.backend import HostBackend
from tensorplay.gemm import GemmProblem, dtype_of_word
problem = GemmProblem(dtype=dtype_of_word("Float32"), m=300, n=300, k=300)
print(*(plan.kernel for plan in HostBackend().candidates(problem, CandidateQuery(breadth="search"))))
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert "host_numpy_cols128" in done.stdout
    assert "threads2" not in done.stdout
    assert "host_numpy_threads1" not in done.stdout


@pytest.mark.parametrize("dtype", HOST_TYPES, ids=lambda dtype: dtype.name)
def test_only_the_sources_that_take_part_are_asked(dtype: DType) -> None:
    problem = GemmProblem(dtype=dtype, m=20, n=30, k=40)
    for source in HostBackend.sources:
        offered = kernels(problem, breadth="search", sources=frozenset({source}))
        assert all(kernel.startswith(f"host_{source}") for kernel in offered)
    assert kernels(problem, sources=frozenset()) == []


@pytest.mark.parametrize(
    ("kernel", "name", "threads", "is_tried"),
    [
        ("host_scipy_threads2", "openblas", 2, False),
        ("host_scipy_threads2_cols128", "openblas", 8, False),
        ("host_scipy", "openblas", 8, False),
        ("host_scipy_threads1", "openblas", 8, True),
        ("host_scipy_threads2", "openblas", 1, True),
        ("host_scipy_threads2", "blis", 8, True),
        ("host_mkl_threads2", "openblas", 8, True),
        ("host_numpy_threads2", "openblas", 8, True),
    ],
)
def test_no_second_pool_of_threads_is_tried_for_the_same_library(
    monkeypatch: pytest.MonkeyPatch, kernel: str, name: str, threads: int, is_tried: bool
) -> None:
    monkeypatch.setattr(offers, "numpy_blas", lambda: Blas(name, "1", threads=threads))
    monkeypatch.setattr(offers, "thread_limit", lambda: 8)
    wanted = parse_kernel_id(kernel)
    assert isinstance(wanted, HostKernelId)
    assert offers.is_worth_trying(wanted, GemmProblem(dtype=FLOAT32, m=300, n=300, k=300)) is is_tried
