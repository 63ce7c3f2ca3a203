"""Contestants of this repository: the library's first choice, a naive tuner, and each breadth of candidates."""

import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from harness.cuda_shapes import CudaOperands, CudaShape

from selection.contestant import Ready
from selection.eager import EagerTimer
from selection.shapes import SelectionShape
from tensorplay import linear, mm
from tensorplay.backends.base import Plan
from tensorplay.backends.registry import backend
from tensorplay.gemm import signature_of
from tensorplay.measure.mean_choice import lowest_mean
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context

__all__ = ["BREADTHS", "Tuner", "first_choice", "naive", "plan_of", "product_call", "run_plan", "settings_of"]

BREADTHS = ("heuristic", "wide", "search")
_PREFIX = "TP_TUNABLEOP_"


def settings_of(breadth: str, search_seconds: float) -> dict[str, str]:
    """Return the variables, without their prefix, under which a breadth is measured; all families take part."""
    settings = {"ENABLED": "1", "FAMILIES": "all", "CANDIDATES": breadth, "FILENAME": f"winners_{breadth}.csv"}
    return settings | ({"MAX_SEARCH_SECONDS": f"{search_seconds:g}"} if breadth == "search" else {})


class Tuner:
    """A context on a folder, for one breadth of candidates.

    Parameters
    ----------
    folder : path
        Where the results file is.
    breadth : str
        Of `BREADTHS`.
    search_seconds : float
        What `search` may take a shape.
    further : mapping, optional
        More variables without their prefix; `TUNING=0` only replays.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        breadth: str,
        search_seconds: float,
        further: Mapping[str, str] | None = None,
    ) -> None:
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        wanted = settings_of(breadth, search_seconds) | dict(further or {})
        Path(folder).mkdir(parents=True, exist_ok=True)
        self.breadth = breadth
        self.context = TuningContext(
            environ={_PREFIX + name: value for name, value in wanted.items()}, directory=Path(folder)
        )

    def under(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """Return the call as it runs under this context."""

        def run() -> Any:
            with use_context(self.context):
                return call()

        return run

    def tune(self, shape: CudaShape, operands: CudaOperands) -> tuple[str, float]:
        """Multiply once; return the recorded kernel and the seconds that took, with all that was measured for it."""
        import torch

        torch.cuda.synchronize()
        begin = time.perf_counter()
        self.under(product_call(operands))()
        torch.cuda.synchronize()
        return self.recorded(shape), time.perf_counter() - begin

    def has(self, shape: CudaShape) -> bool:
        """Return whether a kernel is recorded for a shape."""
        return signature_of(shape.problem) in self._recorded()

    def recorded(self, shape: CudaShape) -> str:
        """Return the kernel that is recorded for a shape; RuntimeError where there is none."""
        try:
            return self._recorded()[signature_of(shape.problem)]
        except KeyError:
            raise RuntimeError(f"nothing is recorded for {shape} under CANDIDATES={self.breadth}") from None

    def ready(self, shape: SelectionShape, sets: Sequence[CudaOperands]) -> Ready:
        """Return the recorded kernel, having tuned for it."""
        kernel, seconds = self.tune(shape, sets[0])
        calls = run_plan(plan_of(shape, kernel), sets)
        why = self.context.explain(*signature_of(shape.problem))
        candidates = why.get("candidates")
        count = len(candidates) if isinstance(candidates, Sequence) else None
        facts = {"verdict": why.get("verdict"), "candidates": count, "search": why.get("search")}
        return Ready(calls=calls, detail=kernel, seconds=seconds, facts=facts)

    def _recorded(self) -> dict[tuple[str, str], str]:
        return {(op, params): kernel for op, params, kernel, _ in self.context.get_results()}


def product_call(operands: CudaOperands) -> Callable[[], Any]:
    """Return the product by this package's public functions."""
    left, right, bias, out = operands
    if bias is None:
        return partial(mm, left, right.T, out=out)
    return partial(linear, left, right, bias, out=out)


def plan_of(shape: CudaShape, kernel: str) -> Plan:
    """Return the plan that a recorded kernel is rebuilt to."""
    return backend("cublaslt").rebuild(shape.problem, kernel)


def run_plan(plan: Plan, sets: Sequence[CudaOperands]) -> list[Callable[[], None]]:
    """Return the runs of a plan, one for each set of operands, on whatever stream is torch's current one."""
    return [partial(_run, plan, *(0 if part is None else part.data_ptr() for part in one)) for one in sets]


def _run(plan: Plan, left: int, right: int, bias: int, out: int) -> None:
    import torch

    plan.run(left, right, out, 0, bias, 1.0, 0.0, torch.cuda.current_stream().cuda_stream)


def first_choice(shape: SelectionShape, sets: Sequence[CudaOperands]) -> Ready:
    """Return the library's own first answer."""
    begin = time.perf_counter()
    plan = backend("cublaslt").first_choice(shape.problem)
    return Ready(calls=run_plan(plan, sets), detail=plan.kernel, seconds=time.perf_counter() - begin)


def naive(shape: SelectionShape, sets: Sequence[CudaOperands]) -> Ready:
    """Return what a naive tuner takes of the library's 8: each launch timed eagerly, the lowest mean wins."""
    begin = time.perf_counter()
    candidates = backend("cublaslt").library_choices(shape.problem)
    plan = lowest_mean(candidates, EagerTimer(sets, lambda plan: run_plan(plan, sets)))
    seconds = time.perf_counter() - begin
    return Ready(calls=run_plan(plan, sets), detail=plan.kernel, seconds=seconds, facts={"candidates": len(candidates)})
