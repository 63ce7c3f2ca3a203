"""What the steps share: the list of them, the backend, and short ways to pose problems."""

import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.gemm import GemmProblem, dtype_of_name

__all__ = ["BACKEND", "STEPS", "BrokenContextError", "Cases", "history", "is_broken", "microseconds", "posed", "step"]

_Case = TypeVar("_Case")

STEPS: list[tuple[str, Callable[[], str]]] = []
BACKEND = CublasLtBackend()


class BrokenContextError(Exception):
    """A fault on the device: nothing runs in this process any more; `case` is the number of the case that made it."""

    def __init__(self, case: int, message: str) -> None:
        super().__init__(message)
        self.case = case


class Cases:
    """Which cases a step of many runs: after a fault, the rest of them run in another process.

    Attributes
    ----------
    start : int
        The first.
    count : int
        How many at most.
    """

    start: int = 0
    count: int = 1 << 30

    @classmethod
    def numbered(cls, cases: Iterable[_Case]) -> list[tuple[int, _Case]]:
        """Return the cases to run, each with its number."""
        return list(enumerate(cases))[cls.start : cls.start + cls.count]


def history(error: BaseException) -> str:
    """Return an error's words and, newest first, those of the errors that it came after: the last is the cause."""
    words: list[str] = []
    here: BaseException | None = error
    while here is not None:
        if str(here) not in words:
            words.append(str(here))
        here = here.__cause__ or here.__context__
    return " <- ".join(words)


def is_broken(error: BaseException | str) -> bool:
    """Return whether an error says that the device faulted."""
    text = str(error)
    return "breaks the CUDA context" in text or "CUDA error" in text


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
