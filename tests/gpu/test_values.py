"""Results of every type and shape against float64, for every kernel that the library lists."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.device import device
from tensorplay.backends.cublaslt.number_types import float8_results
from tensorplay.errors import OperandError
from tensorplay.gemm import GemmProblem, dtype_of_name, signature_of
from tensorplay.measure.numerics import agree, problem_tolerance

TYPES = ("float32", "tf32", "float64", "float16", "bfloat16", "complex64", "complex128")
REAL = TYPES[:5]
E4M3, E5M2 = "float8_e4m3fn", "float8_e5m2"
LISTED = CandidateQuery(breadth="heuristic")


def posed(name: str, m: int = 65, n: int = 48, k: int = 97, **further: Any) -> GemmProblem:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return replace(GemmProblem(dtype=dtype, m=m, n=n, k=k, device="0"), **further)


def check(backend: CublasLtBackend, problem: GemmProblem) -> None:
    """Compare the first choice, the fixed dispatch and the library's list with the reference."""
    plans: list[Plan] = [backend.first_choice(problem), backend.fixed_dispatch(problem)]
    plans += backend.candidates(problem, LISTED)
    with backend.open_trial(problem, rotating_bytes=0) as trial:
        exact, allowed = trial.reference(), problem_tolerance(problem)
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
        for accumulate in (False, True):
            check(backend, posed(name, 64, 80, 96, bias=bias, accumulate=accumulate, activation=activation))


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
    check(backend, problem)
    with backend.open_trial(problem, rotating_bytes=0) as trial:
        assert trial.output(backend.first_choice(problem)).dtype == np.float32


@pytest.fixture
def float8() -> None:
    """Skip the test on a device that has no FP8."""
    if device(0).capability < (8, 9):
        pytest.skip("this device has no FP8")


@pytest.mark.usefixtures("float8")
@pytest.mark.parametrize(("left", "right"), [(E4M3, E4M3), (E5M2, E4M3), (E4M3, E5M2)])
@pytest.mark.parametrize("out", ["bfloat16", "float16", "float32", E4M3, E5M2])
@pytest.mark.parametrize("bias", [False, True])
def test_fp8_products_of_every_pair_are_right_in_every_result(
    backend: CublasLtBackend, left: str, right: str, out: str, bias: bool
) -> None:
    mixed = None if left == right else dtype_of_name(left)
    stored = None if out == right else dtype_of_name(out)
    problem = posed(right, 64, 96, 128, transpose_right=True, left_dtype=mixed, out_dtype=stored, bias=bias)
    if out not in float8_results(problem.left_type, problem.dtype):
        with pytest.raises(OperandError, match=f"as {out}"):
            backend.first_choice(problem)
        return
    check(backend, problem)
    # Any number of rows, and rows that are padded to whole vectors.
    check(backend, replace(problem, m=7, ld_left=144, ld_right=160, ld_out=112))


@pytest.mark.usefixtures("float8")
@pytest.mark.parametrize("out", ["bfloat16", "float16", "float32"])
def test_fp8_products_are_added_to_what_is_wider(backend: CublasLtBackend, out: str) -> None:
    check(backend, posed(E4M3, 64, 96, 128, transpose_right=True, out_dtype=dtype_of_name(out), accumulate=True))


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
