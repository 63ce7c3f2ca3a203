"""Steps: results of every type against float64, a type at a time."""

# The names and docstrings of steps are findings' headings, no sentences.

from collections.abc import Iterator
from dataclasses import replace

from gpu_steps.common import BACKEND, BrokenContextError, Cases, history, is_broken, posed, step
from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.gemm import GemmProblem, dtype_of_name, signature_of
from tensorplay.measure.numerics import agree
from tensorplay.measure.tolerance import problem_tolerance

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


def _float8_problems() -> Iterator[GemmProblem]:
    e5m2 = dtype_of_name("float8_e5m2")
    for k in (128, 4096):
        plain = posed("float8_e4m3fn", 64, 64, k, transpose_right=True)
        yield plain
        yield replace(plain, bias=True)
        for out in map(dtype_of_name, ("bfloat16", "float16", "float32")):
            yield replace(plain, out_dtype=out)
            yield replace(plain, out_dtype=out, bias=True)
            yield replace(plain, out_dtype=out, left_dtype=e5m2)


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
                verdict = agree(
                    trial.output(plan),
                    trial.reference(),
                    trial.reference,
                    dtype=problem.dtype,
                    k=problem.k,
                    tolerance=problem_tolerance(problem),
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


def _family(problems: Iterator[GemmProblem]) -> str:
    right, wrong = 0, []
    for case, problem in Cases.numbered(problems):
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
        return _family(_problems(name))

    values.__doc__ = f"Values of {name}."
    step(values)


for _name in ("float32", "tf32", "float64", "float16", "bfloat16", "complex64", "complex128"):
    _add(_name)


@step
def float8_values() -> str:
    """Values of FP8."""
    return _family(_float8_problems())
