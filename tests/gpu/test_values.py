"""Results of every type and shape against float64, for every kernel that the library lists."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.gemm import GemmProblem, dtype_of_name, signature_of
from tensorplay.measure.numerics import Tolerance, agree, default_tolerance

TYPES = ("float32", "tf32", "float64", "float16", "bfloat16", "complex64", "complex128")
REAL = TYPES[:5]
LISTED = CandidateQuery(breadth="heuristic")


def posed(name: str, m: int = 65, n: int = 48, k: int = 97, **further: Any) -> GemmProblem:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return replace(GemmProblem(dtype=dtype, m=m, n=n, k=k, device="0"), **further)


# GELU is a function of the library's own making; in cuBLAS 13.1 right to 3e-10 in float64.
GELU = 1e-8


def tolerance(problem: GemmProblem, exact: NDArray[Any]) -> Tolerance:
    """Return what may be off: more where a split sum is rounded to 16 bits once before the bias is added."""
    plain = default_tolerance(problem.dtype, problem.k)
    atol = plain.atol
    if problem.bias and problem.dtype.itemsize == 2:
        atol += problem.dtype.unit_roundoff * float(np.abs(exact).max() + 1.0)
    return Tolerance(max(atol, GELU) if problem.activation == "gelu" else atol, plain.rtol)


def check(backend: CublasLtBackend, problem: GemmProblem) -> None:
    """Compare the first choice, the fixed dispatch and the library's list with the reference."""
    plans: list[Plan] = [backend.first_choice(problem), backend.fixed_dispatch(problem)]
    plans += backend.candidates(problem, LISTED)
    with backend.open_trial(problem, rotating_bytes=0) as trial:
        exact = trial.reference()
        allowed = tolerance(problem, exact)
        for plan in plans:
            found = trial.output(plan)
            verdict = agree(found, exact, trial.reference, dtype=problem.dtype, k=problem.k, tolerance=allowed)
            assert verdict.ok, (signature_of(problem), plan.kernel, verdict.reason)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("transposes", [(False, False), (True, False), (False, True), (True, True)])
def test_every_transpose_is_right(backend: CublasLtBackend, name: str, transposes: tuple[bool, bool]) -> None:
    check(backend, posed(name, transpose_left=transposes[0], transpose_right=transposes[1]))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(
    "sizes", [(1, 48, 97), (65, 1, 97), (65, 48, 1), (1, 1, 1), (1, 1, 999), (3, 5, 7), (128, 256, 64)]
)
def test_single_rows_columns_and_odd_sizes_are_right(
    backend: CublasLtBackend, name: str, sizes: tuple[int, int, int]
) -> None:
    for right in (False, True):
        for left in (False, True):
            check(backend, posed(name, *sizes, transpose_right=right, transpose_left=left))


@pytest.mark.parametrize("name", TYPES)
def test_padded_rows_are_left_alone_and_read_over(backend: CublasLtBackend, name: str) -> None:
    check(backend, posed(name, ld_left=112, ld_right=64, ld_out=56))
    check(backend, posed(name, transpose_left=True, transpose_right=True, ld_left=80, ld_right=112, ld_out=49))


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("activation", ["none", "relu", "gelu"])
def test_bias_and_activation_are_applied_in_this_order(backend: CublasLtBackend, name: str, activation: str) -> None:
    for bias in (False, True):
        check(backend, posed(name, 64, 80, 96, bias=bias, activation=activation))


@pytest.mark.parametrize("name", TYPES)
def test_an_addend_elsewhere_is_added_and_not_written(backend: CublasLtBackend, name: str) -> None:
    check(backend, posed(name, accumulate=True))
    if name in REAL:
        check(backend, posed(name, 64, 80, 96, accumulate=True, bias=True))


@pytest.mark.parametrize("name", TYPES)
def test_stacks_are_multiplied_pair_by_pair(backend: CublasLtBackend, name: str) -> None:
    check(backend, posed(name, batch=3))
    check(backend, posed(name, batch=3, stride_right=0, transpose_right=True))


@pytest.mark.parametrize("name", TYPES)
def test_operands_aligned_to_one_element_only_are_right(backend: CublasLtBackend, name: str) -> None:
    problem = posed(name, 64, 80, 96)
    for alignment in (8, 4, 2):
        if problem.dtype.itemsize <= alignment:
            check(backend, replace(problem, alignment=alignment))
            if name in REAL:
                check(backend, replace(problem, alignment=alignment, bias=True))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_products_may_have_a_wider_result(backend: CublasLtBackend, name: str) -> None:
    problem = posed(name, 64, 80, 96, out_dtype=dtype_of_name("float32"))
    with backend.open_trial(problem, rotating_bytes=0) as trial:
        found = trial.output(backend.first_choice(problem))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, trial.reference(), atol=1e-4)


@pytest.mark.parametrize("out", ["bfloat16", "float16", "float32"])
def test_fp8_products_are_right(backend: CublasLtBackend, out: str) -> None:
    problem = posed("float8_e4m3fn", 64, 96, 128, transpose_right=True, out_dtype=dtype_of_name(out))
    with backend.open_trial(problem, rotating_bytes=0) as trial:
        for plan in (backend.first_choice(problem), *backend.candidates(problem, LISTED)):
            np.testing.assert_allclose(trial.output(plan), trial.reference(), atol=0.1, rtol=0.02)


def random_problem(rng: random.Random) -> GemmProblem:
    name = rng.choice(TYPES)
    bias = name in REAL and rng.random() < 0.5
    m, n, k = (rng.choice((1, 2, 3, 8, 17, 64, 100, 255, 256)) for _ in range(3))
    problem = posed(name, m, n, k, transpose_left=rng.random() < 0.5, transpose_right=rng.random() < 0.5, bias=bias)
    problem = replace(problem, accumulate=rng.random() < 0.3, batch=rng.choice((1, 1, 1, 2)))
    if rng.random() < 0.3:
        problem = replace(problem, ld_left=problem.left_columns + rng.randrange(1, 9))
    if rng.random() < 0.3:
        problem = replace(problem, ld_right=problem.right_columns + rng.randrange(1, 9))
    if rng.random() < 0.3:
        problem = replace(problem, ld_out=problem.n + rng.randrange(1, 9))
    if rng.random() < 0.3:
        problem = replace(problem, alignment=max(problem.dtype.itemsize, rng.choice((2, 4, 8))))
    return problem


@pytest.mark.parametrize("seed", range(8))
def test_random_problems_are_right(backend: CublasLtBackend, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - shapes, no secret
    for _ in range(25):
        check(backend, random_problem(rng))
