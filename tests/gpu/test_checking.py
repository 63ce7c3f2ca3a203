"""The check before anything is timed: plans with planted faults are refused, and whatever the sources offer is not.

A faulty plan runs real kernels, of another problem or on other addresses. The tests run on the stand-in libraries too.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.classic import LEAST_BYTES
from tensorplay.backends.cublaslt.classic_handle import classic_handles
from tensorplay.backends.cublaslt.device import current, device
from tensorplay.backends.cublaslt.library import cublas
from tensorplay.errors import LaunchError
from tensorplay.gemm import GemmProblem, LtKernelId, dtype_of_name, parse_kernel_id, signature_of
from tensorplay.measure.numerics import agree
from tensorplay.measure.tolerance import problem_tolerance
from tensorplay.runtime.result_check import ResultCheck

TYPES = ("float32", "tf32", "float64", "float16", "bfloat16", "complex64", "complex128")
REAL = TYPES[:5]


def posed(name: str, m: int = 24, n: int = 40, k: int = 777, **further: Any) -> GemmProblem:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return replace(GemmProblem(dtype=dtype, m=m, n=n, k=k, device="0"), **further)


def is_stand_in() -> bool:
    return "FAKE" in device(0).name


def verdicts(backend: CublasLtBackend, problem: GemmProblem, plan: Plan) -> tuple[bool, bool]:
    """Return whether a plan is refused, and whether its results surely are right, by what tells that soon."""
    first = backend.first_choice(problem)
    with backend.open_trial(problem, rotating_bytes=0) as trial:
        check = ResultCheck(trial, first, problem_tolerance(problem))
        assert check.why_not(first) is None
        assert check.is_surely_right(first)
        try:
            is_right = check.is_surely_right(plan)
        except LaunchError:
            is_right = False
        return check.why_not(plan) is not None, is_right


def assert_refused(backend: CublasLtBackend, problem: GemmProblem, run: Callable[..., Any]) -> None:
    assert verdicts(backend, problem, Plan(problem, "faulty", run)) == (True, False), signature_of(problem)


def of_other_sizes(problem: GemmProblem, **sizes: int) -> GemmProblem:
    """Return a problem of other sizes, whose operands lie as the problem's do."""
    loose: dict[str, Any] = {"ld_left": None, "ld_right": None, "ld_out": None} | sizes
    other = replace(problem, alignment=min(16, problem.dtype.itemsize), **loose)
    steps = {
        "ld_left": (problem.ld_left or problem.left_columns, other.left_columns),
        "ld_right": (problem.ld_right or problem.right_columns, other.right_columns),
        "ld_out": (problem.ld_out or problem.n, other.n),
    }
    padded: dict[str, Any] = {name: step if step > least else None for name, (step, least) in steps.items()}
    return replace(other, **padded)


def transposed(problem: GemmProblem) -> list[GemmProblem]:
    return [
        replace(problem, transpose_left=left, transpose_right=right)
        for left in (False, True)
        for right in (False, True)
    ]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("k", [2, 9, 64, 777, 16384])
def test_whoever_drops_the_end_of_the_sums_is_refused(backend: CublasLtBackend, name: str, k: int) -> None:
    for problem in transposed(posed(name, 4, 24, k)) + transposed(posed(name, 1, 1, k)):
        for count in (1, 3, 8, 64) if min(problem.m, k) > 1 else (1,):
            if count < k:
                plan = backend.first_choice(of_other_sizes(problem, k=k - count))
                assert_refused(backend, problem, plan.run)


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_no_epilogue_hides_a_dropped_end(backend: CublasLtBackend, name: str, activation: str) -> None:
    for k in (48, 4096):
        for sizes in ((24, 40), (1, 1)):
            problem = posed(name, *sizes, k, bias=True, activation=activation)
            plan = backend.first_choice(of_other_sizes(problem, k=k - 5))
            assert_refused(backend, problem, plan.run)


@pytest.mark.parametrize("name", TYPES)
def test_whoever_doubles_the_end_of_the_sums_is_refused(backend: CublasLtBackend, name: str) -> None:
    problem, count = posed(name, 24, 40, 1024), 32
    once = backend.first_choice(problem)
    again = backend.first_choice(replace(of_other_sizes(problem, k=count), accumulate=True))
    skipped = (problem.k - count) * problem.dtype.itemsize

    def run(left: int, right: int, out: int, c: int, bias: int, alpha: float, beta: float, stream: int) -> None:
        once.run(left, right, out, c, bias, alpha, beta, stream)
        again.run(left + skipped, right + problem.n * skipped, out, 0, 0, alpha, 1.0, stream)

    assert_refused(backend, problem, run)


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("activation", ["none", "relu", "gelu"])
@pytest.mark.parametrize("k", [7, 64, 8192])
def test_a_bias_that_is_left_out_or_beside_its_place_is_seen(
    backend: CublasLtBackend, name: str, activation: str, k: int
) -> None:
    problem = posed(name, 8, 16, k, bias=True, activation=activation)
    assert_refused(backend, problem, backend.first_choice(replace(problem, bias=False)).run)
    plan, item = backend.first_choice(problem), problem.dtype.itemsize
    assert_refused(
        backend, problem, lambda left, right, out, c, bias, *rest: plan.run(left, right, out, c, bias + item, *rest)
    )


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("k", [7, 64, 8192])
def test_alpha_beta_and_the_addend_are_checked(backend: CublasLtBackend, name: str, k: int) -> None:
    problem = posed(name, 8, 16, k, accumulate=True)
    plan = backend.first_choice(problem)
    changes: list[Callable[[tuple[Any, ...]], tuple[Any, ...]]] = [
        # Of c, bias, alpha, beta.
        lambda of: (of[0], of[1], 1.0, of[3]),
        lambda of: (of[0], of[1], abs(of[2]), of[3]),
        lambda of: (of[0], of[1], of[2], 0.0),
        lambda of: (of[0], of[1], of[2], 1.0),
        lambda of: (of[0], of[1], of[3], of[2]),
        # The addend that lies in the result.
        lambda of: (0, *of[1:]),
    ]
    for change in changes:

        def run(left: int, right: int, out: int, *rest: Any, change: Callable[..., Any] = change) -> None:
            plan.run(left, right, out, *change(rest[:-1]), rest[-1])

        assert_refused(backend, problem, run)
    plain = replace(problem, accumulate=False)
    once = backend.first_choice(plain)
    assert_refused(backend, plain, lambda *rest: once.run(*rest[:5], 1.0, *rest[6:]))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("batch", [1, 3])
def test_rows_and_columns_too_few_or_too_many_are_seen(backend: CublasLtBackend, name: str, batch: int) -> None:
    dense = posed(name, 24, 40, 64, batch=batch)
    padded = replace(dense, ld_left=72, ld_right=48, ld_out=48)
    columns: list[tuple[GemmProblem, dict[str, int]]] = [
        (dense, {"n": 39}), (padded, {"n": 39}), (padded, {"n": 41}), (dense, {"batch": batch - 1})
    ]  # fmt: skip
    # Fewer rows of each product of a dense stack would lie elsewhere.
    rows = [(each, {"m": m}) for each in (dense, padded) for m in (23, 25)] if batch == 1 else []
    for problem, sizes in columns + rows:
        if sizes != {"batch": 0}:
            assert_refused(backend, problem, backend.first_choice(of_other_sizes(problem, **sizes)).run)


@pytest.mark.parametrize("name", TYPES)
def test_whoever_reads_what_is_between_the_rows_is_refused(backend: CublasLtBackend, name: str) -> None:
    for left, right in ((False, True), (False, False), (True, True)):
        problem = posed(name, 24, 40, 64, transpose_left=left, transpose_right=right)
        if not left:
            problem = replace(problem, ld_left=72)
        if right:
            problem = replace(problem, ld_right=72)
        assert_refused(backend, problem, backend.first_choice(of_other_sizes(problem, k=65)).run)


def test_a_plan_that_does_nothing_is_refused(backend: CublasLtBackend) -> None:
    for name in TYPES if is_stand_in() else (*TYPES, "float8_e4m3fn"):
        problem = posed(name, 16, 32, 64, transpose_right=True, accumulate=name in TYPES)
        assert_refused(backend, problem, lambda *_operands: None)


def test_fp8_sums_are_checked_to_their_end(backend: CublasLtBackend) -> None:
    if is_stand_in():
        pytest.skip("the stand-in multiplies no FP8")
    for out in ("float8_e4m3fn", "bfloat16", "float16", "float32"):
        for k in (32, 1024, 8192):
            problem = posed("float8_e4m3fn", 32, 64, k, transpose_right=True, out_dtype=dtype_of_name(out))
            if out == "float8_e4m3fn":
                problem = replace(problem, out_dtype=None)
            fewer = replace(problem, k=k - 16, ld_left=k, ld_right=k)
            assert_refused(backend, problem, backend.first_choice(fewer).run)


def test_a_lower_precision_is_refused(backend: CublasLtBackend) -> None:
    if is_stand_in():
        pytest.skip("the stand-in multiplies everything in float64")
    for k in (64, 1024, 8192):
        single = posed("float32", 64, 128, k)
        assert_refused(backend, single, backend.first_choice(replace(single, dtype=posed("tf32").dtype)).run)
        half = posed("float16", 64, 128, k)
        assert_refused(backend, half, backend.first_choice(replace(half, accumulation=half.dtype)).run)


HONEST = [
    posed("float32", 64, 256, 1024, bias=True),
    posed("float32", 16, 1024, 4096, transpose_right=True),
    posed("tf32", 64, 10, 784),
    posed("tf32", 256, 256, 8192),
    posed("float64", 100, 100, 1000),
    posed("bfloat16", 16, 4096, 4096, transpose_right=True),
    posed("bfloat16", 64, 512, 16384, transpose_right=True, bias=True),
    posed("bfloat16", 256, 512, 1024, bias=True, activation="gelu"),
    posed("float16", 64, 512, 8192, bias=True, activation="relu"),
    posed("float16", 256, 512, 512, activation="gelu"),
    posed("float16", 64, 64, 64, accumulate=True, bias=True),
    posed("float16", 33, 57, 777, accumulate=True, alignment=2),
    posed("bfloat16", 64, 512, 512, out_dtype=dtype_of_name("float32")),
    posed("bfloat16", 64, 128, 512, batch=4),
    posed("complex64", 64, 96, 512),
    posed("complex128", 33, 64, 200, accumulate=True),
    posed("float8_e4m3fn", 64, 256, 1024, transpose_right=True),
    posed("float8_e4m3fn", 64, 256, 8192, transpose_right=True, out_dtype=dtype_of_name("bfloat16")),
    posed("float8_e4m3fn", 64, 256, 512, transpose_right=True, out_dtype=dtype_of_name("bfloat16"), bias=True),
]


@pytest.mark.parametrize("problem", HONEST, ids=lambda problem: "_".join(signature_of(problem)).replace("/", "_"))
def test_what_the_sources_offer_is_right_against_the_first_choice_and_the_reference(
    backend: CublasLtBackend, problem: GemmProblem
) -> None:
    if is_stand_in() and problem.dtype.itemsize == 1:
        pytest.skip("the stand-in multiplies no FP8")
    first, allowed = backend.first_choice(problem), problem_tolerance(problem)
    # The stand-in's kernel 6 is wrong on purpose.
    plans = [plan for plan in backend.candidates(problem, CandidateQuery()) if not plan.kernel.startswith("lt_id6_")]
    wrong = []
    with backend.open_trial(problem, rotating_bytes=0) as trial:
        check = ResultCheck(trial, first, allowed)
        for plan in (first, *plans):
            reason = check.why_not(plan)
            if reason is not None and reason.startswith("wrong"):
                wrong.append((plan.kernel, reason))
        exact = trial.reference()
        own = agree(trial.output(first), exact, trial.reference, dtype=problem.dtype, k=problem.k, tolerance=allowed)
    assert own.ok, own.reason
    assert not wrong, wrong


def test_deterministic_candidates_give_the_same_bits_each_time(backend: CublasLtBackend) -> None:
    query = CandidateQuery(deterministic=True)
    for problem in (
        posed("float32", 16, 256, 8192),
        posed("bfloat16", 16, 1024, 8192, transpose_right=True),
        posed("float16", 64, 64, 16384, bias=True),
        posed("tf32", 64, 64, 16384),
        posed("float64", 32, 32, 8192),
    ):
        with backend.open_trial(problem, rotating_bytes=0) as trial:
            for plan in backend.candidates(problem, query):
                kernel_id = parse_kernel_id(plan.kernel)
                assert not isinstance(kernel_id, LtKernelId) or kernel_id.red == 0, plan.kernel
                found = trial.output(plan)
                for _ in range(10):
                    np.testing.assert_array_equal(trial.output(plan), found, err_msg=plan.kernel)


def test_the_classic_call_adds_nothing_atomically() -> None:
    if is_stand_in():
        pytest.skip("the stand-in has no atomic additions")
    handles = classic_handles(0)
    with handles.lock, current(0):
        handle = handles.take()
        try:
            assert cublas().get_atomics_mode(handle.bound(0, LEAST_BYTES, strict=True)) == 0
        finally:
            handles.give_back(handle)
