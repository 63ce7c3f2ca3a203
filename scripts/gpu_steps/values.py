"""Steps: results of every type against float64, a type at a time."""

# The names and docstrings of steps are findings' headings, no sentences.

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpu_steps.common import BACKEND, BrokenContextError, Cases, history, is_broken, posed, step
from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.errors import LaunchError
from tensorplay.gemm import DType, GemmProblem, dtype_of_name, signature_of
from tensorplay.measure.numerics import Tolerance, agree, default_tolerance

_LISTED = CandidateQuery(breadth="heuristic")


def _problems(name: str) -> Iterator[GemmProblem]:
    plain = posed(name, 65, 48, 97, alignment=16)
    yield plain
    yield replace(plain, transpose_right=True)
    yield replace(plain, transpose_left=True, ld_left=80, ld_right=64, ld_out=56)
    yield replace(plain, accumulate=True)
    yield replace(plain, batch=3)
    yield replace(plain, m=1, transpose_right=True)
    yield replace(plain, m=1)
    yield replace(plain, n=1)
    yield replace(plain, n=1, transpose_left=True)
    yield replace(plain, alignment=plain.dtype.itemsize)
    if not plain.dtype.is_complex:
        yield replace(plain, bias=True)
        yield replace(plain, bias=True, accumulate=True)
        yield replace(plain, activation="relu")
        yield replace(plain, activation="gelu")
        yield replace(plain, bias=True, activation="gelu")


def _tolerance(problem: GemmProblem, exact: NDArray[np.float64]) -> Tolerance:
    """Return what may be off: more where the library rounds a product before the bias, or approximates GELU."""
    plain = default_tolerance(problem.dtype, problem.k)
    atol = plain.atol
    if problem.bias and problem.dtype.itemsize == 2:
        atol += problem.dtype.unit_roundoff * float(np.abs(exact).max() + 1.0)
    if problem.activation == "gelu":
        # Measured on cuBLAS 13.1: 3e-10 in float64.
        atol = max(atol, 1e-8)
    return Tolerance(atol, plain.rtol)


def _plans(problem: GemmProblem) -> Iterator[tuple[str, Plan]]:
    yield "first", BACKEND.first_choice(problem)
    yield "fixed", BACKEND.fixed_dispatch(problem)
    for plan in BACKEND.candidates(problem, _LISTED):
        yield "listed", plan


def _wrong(case: int, problem: GemmProblem) -> tuple[int, list[str]]:
    """Return how many kernels were right, and what was wrong with the others."""
    right, wrong, named = 0, [], " ".join(signature_of(problem))
    role, plan = "", None
    try:
        with BACKEND.open_trial(problem, rotating_bytes=0) as trial:
            for role, plan in _plans(problem):
                exact = trial.reference()
                verdict = agree(
                    trial.output(plan),
                    exact,
                    trial.reference,
                    dtype=problem.dtype,
                    k=problem.k,
                    tolerance=_tolerance(problem, exact),
                )
                right += verdict.ok
                if not verdict.ok:
                    wrong.append(f"{named}: {role} {plan.kernel}: {verdict.reason}")
    except Exception as error:
        message = f"case {case} {named}: {role} {plan.kernel if plan else ''}: {history(error)}"
        if is_broken(error):
            raise BrokenContextError(case, message) from error
        wrong.append(message)
    return right, wrong


def _family(name: str) -> str:
    right, wrong = 0, []
    for case, problem in Cases.numbered(_problems(name)):
        more_right, more_wrong = _wrong(case, problem)
        right += more_right
        wrong += more_wrong
        for line in more_wrong:
            print(f"     {line}", flush=True)
    if wrong:
        raise AssertionError(f"{len(wrong)} wrong, {right} right")
    return f"{right} results right"


def _add(name: str) -> None:
    def values() -> str:
        return _family(name)

    values.__doc__ = f"Values of {name}."
    step(values)


for _name in ("float32", "tf32", "float64", "float16", "bfloat16", "complex64", "complex128"):
    _add(_name)


def _float8_errors(out: DType | None) -> list[str]:
    """Return each kernel's largest error relative to the largest result; `AssertionError` for one too large."""
    problem, found = posed("float8_e4m3fn", 64, 64, 128, transpose_right=True, out_dtype=out), []
    # An element of FP8 may be off by half the distance to the next, a sixteenth.
    allowed = 0.02 if out else 0.07
    with BACKEND.open_trial(problem, rotating_bytes=0) as trial:
        exact = trial.reference()
        for plan in (BACKEND.first_choice(problem), *BACKEND.candidates(problem, _LISTED)):
            worst = float(np.abs(trial.output(plan) - exact).max() / np.abs(exact).max())
            found.append(f"{out.name if out else 'float8'} {worst:.2g}")
            if not worst <= allowed:
                raise AssertionError(f"{plan.kernel} after {', '.join(found)}")
    return found


@step
def float8_values() -> str:
    """Values of FP8."""
    found: list[str] = []
    for case, out in Cases.numbered((dtype_of_name("bfloat16"), dtype_of_name("float16"), None)):
        try:
            found += _float8_errors(out)
        except LaunchError as error:
            if is_broken(error):
                raise BrokenContextError(case, f"case {case}: {history(error)}") from error
            raise
    return ", ".join(found)
