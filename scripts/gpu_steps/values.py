"""Steps: results of every type against float64."""

# The names and docstrings of steps are findings' headings, no sentences.
# ruff: noqa: BLE001

from dataclasses import replace

import numpy as np

from gpu_steps.common import BACKEND, posed, step
from tensorplay.backends.base import CandidateQuery
from tensorplay.gemm import GemmProblem, dtype_of_name, signature_of
from tensorplay.measure.numerics import agree


def _worst(problem: GemmProblem) -> str:
    plans = [BACKEND.first_choice(problem), *BACKEND.candidates(problem, CandidateQuery(breadth="heuristic"))]
    fixed = BACKEND.fixed_dispatch(problem)
    if fixed.kernel == "Default":
        plans.append(fixed)
    bad = []
    with BACKEND.open_trial(problem, rotating_bytes=0) as trial:
        for plan in plans:
            try:
                found = trial.output(plan)
            except Exception as error:
                bad.append(f"{plan.kernel}: {error}")
                continue
            verdict = agree(found, trial.reference(), trial.reference, dtype=problem.dtype, k=problem.k)
            if not verdict.ok:
                bad.append(f"{plan.kernel}: {verdict.reason}")
    if bad:
        raise AssertionError(f"{' '.join(signature_of(problem))}: {bad[:3]}")
    return f"{len(plans)}"


@step
def values() -> str:
    """Values of every type against float64."""
    counts = []
    failed = []
    bfloat16 = dtype_of_name("bfloat16")
    for name in ("float32", "tf32", "float64", "float16", "bfloat16", "complex64", "complex128"):
        plain = posed(name, 65, 48, 97, alignment=16)
        for problem in (
            plain,
            replace(plain, transpose_right=True),
            replace(plain, transpose_left=True, ld_left=80, ld_right=64, ld_out=56),
            replace(plain, accumulate=True),
            replace(plain, batch=3),
            replace(plain, m=1, transpose_right=True),
            replace(plain, m=1),
            replace(plain, n=1),
            replace(plain, n=1, transpose_left=True),
            replace(plain, alignment=plain.dtype.itemsize // (2 if plain.dtype.is_complex else 1)),
            *(() if plain.dtype.is_complex else (replace(plain, bias=True), replace(plain, activation="relu"))),
            *(() if plain.dtype.is_complex else (replace(plain, bias=True, activation="gelu"),)),
        ):
            try:
                counts.append(_worst(problem))
            except Exception as error:
                failed.append(f"{type(error).__name__}: {error}")
    for out in (bfloat16, None):
        try:
            problem = posed("float8_e4m3fn", 64, 64, 128, transpose_right=True, out_dtype=out)
            with BACKEND.open_trial(problem, rotating_bytes=0) as trial:
                found, exact = trial.output(BACKEND.first_choice(problem)), trial.reference()
                worst = float(np.abs(found - exact).max() / np.abs(exact).max())
                counts.append(f"fp8 {worst:.2g}")
        except Exception as error:
            failed.append(f"FP8: {error}")
    if failed:
        raise AssertionError(f"{len(failed)} failed, {len(counts)} passed: " + " | ".join(failed[:6]))
    return f"{len(counts)} problems, {counts[-2:]}"
