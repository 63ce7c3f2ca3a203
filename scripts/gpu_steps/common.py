"""What the steps share: the list of them, the backend, and short ways to pose problems."""

import time
from collections.abc import Callable
from typing import Any

from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.gemm import GemmProblem, dtype_of_name

__all__ = ["BACKEND", "STEPS", "microseconds", "posed", "step"]

STEPS: list[tuple[str, Callable[[], str]]] = []
BACKEND = CublasLtBackend()


def step(function: Callable[[], str]) -> Callable[[], str]:
    """Add a step; its docstring is its name, and what it returns its finding."""
    STEPS.append(((function.__doc__ or function.__name__).rstrip("."), function))
    return function


def posed(name: str, m: int, n: int, k: int, **further: Any) -> GemmProblem:
    """Return a problem on device 0."""
    dtype = dtype_of_name(name)
    if dtype is None:
        raise ValueError(f"{name} is no data type")
    return GemmProblem(dtype=dtype, m=m, n=n, k=k, device="0", **further)


def microseconds(call: Callable[[], object], count: int = 2000) -> float:
    """Return the host time of one call, the best of five rounds."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, time.perf_counter() - start)
    return best / count * 1e6
