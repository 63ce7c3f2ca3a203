"""What the parts let fresh processes do: tune shapes, and compare kernels that several of them have found."""

import random
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from selection.comparing import compared
from selection.ours import Tuner, plan_of, run_plan
from selection.recorder import Recorder
from selection.setting import allowing_tf32, operand_sets
from selection.shapes import SelectionShape
from tensorplay.backends.cublaslt.library import cublaslt, driver
from tensorplay.backends.registry import backend
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import signature_of
from tensorplay.measure.statistics import median

__all__ = ["compare", "prepare", "tune"]


def prepare() -> None:
    """Import what a process needs, without touching the device."""
    warnings.simplefilter("ignore")
    with suppress(KernelUnavailableError):
        driver()
        cublaslt()


def tune(shapes: Sequence[Sequence[Any]], breadth: str, search_seconds: float) -> list[dict[str, Any]]:
    """Return the winner of each shape and how it was found, in a folder that nobody else has seen."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        tuner = Tuner(folder, breadth, search_seconds)
        for each in shapes:
            shape = SelectionShape(*each)
            with allowing_tf32(shape):
                kernel, seconds = tuner.tune(shape, shape.operands())
            why = tuner.context.explain(*signature_of(shape.problem))
            facts = {name: why.get(name) for name in ("verdict", "confirmation", "search")}
            first = backend("cublaslt").first_choice(shape.problem).kernel
            found.append({"kernel": kernel, "seconds": seconds, "first": first, **facts})
    return found


def compare(shapes: Sequence[Sequence[Any]], kernels: Sequence[Sequence[str]], rounds: int) -> list[dict[str, float]]:
    """Return the median microseconds of each kernel of each shape, by turns; of kernels that are the same once."""
    recorder, rng = Recorder(), random.Random(3)  # noqa: S311 - an order, not a secret
    found = []
    for each, names in zip(shapes, kernels, strict=True):
        shape = SelectionShape(*each)
        sets = operand_sets(shape)
        calls = {name: run_plan(plan_of(shape, name), sets) for name in dict.fromkeys(names)}
        times = compared(recorder, calls, rounds=rounds, rng=rng)
        found.append({name: median(us) for name, us in times.items()})
    return found
