"""JAX as a contestant: it runs on streams of its own, which nobody else can capture, so it has a clock of its own.

One jitted program multiplies many times, each product waiting for the one before. Its time on the device is the slope
between a few and many runs in a row by the host's clock, so that what begins and ends a run does not
count.
"""

import os
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from math import ceil
from typing import Any

from harness.cuda_shapes import CudaOperands

from selection.contestant import Ready
from selection.shapes import SelectionShape
from tensorplay.measure.statistics import median

__all__ = ["jax", "prepare", "slope_us"]

# More make longer argument lists, which would take the host longer than the products take the device.
_MOST_PRODUCTS = 128
_PROGRAM_US = 600.0
_SHORT, _LONG_US = 2, 6000.0
# Peak figures of any device, to guess how long a program is before it has run.
_GUESSED_FLOPS_PER_US, _GUESSED_BYTES_PER_US = {"float32": 4e7, "float64": 5e7}, 4e6
_TENSOR_FLOPS_PER_US = 4e8
_SLOPES = 3
_HOST_SHARE = 0.9
# By default JAX multiplies float32 in TF32.
_PRECISIONS = {"float32": "highest", "tf32": "tensorfloat32"}


def prepare() -> None:
    """Import JAX, so that it leaves memory to the others; must come before anybody else imports it."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import_module("jax").config.update("jax_enable_x64", True)  # noqa: FBT003 - JAX's own


def jax(shape: SelectionShape, sets: Sequence[CudaOperands]) -> Ready:
    """Return a jitted chain of products in the precision that the shape asks for."""
    prepare()
    module = import_module("jax")
    used = sets[:_MOST_PRODUCTS]
    products = max(len(used), min(_MOST_PRODUCTS, round(_PROGRAM_US / _guessed_us(shape))))
    of_sets = [[None if part is None else module.dlpack.from_dlpack(part) for part in one[:3]] for one in used]
    arguments = [of_sets[place % len(of_sets)] for place in range(products)]
    begin = time.perf_counter()
    precision = _PRECISIONS.get(shape.dtype, "default")
    with module.default_matmul_precision(precision):
        program = module.jit(lambda operands: _chain(module, operands))
        first = module.block_until_ready(program(arguments))
    seconds = time.perf_counter() - begin
    facts: dict[str, object] = {"products a program": products, "sets": len(used), "host-limited": False}

    def run() -> Any:
        with module.default_matmul_precision(precision):
            return program(arguments)

    def clock() -> float:
        slopes = [slope_us(run, module.block_until_ready, products) for _ in range(_SLOPES)]
        facts["host-limited"] = facts["host-limited"] or any(is_limited for _, is_limited in slopes)
        return median([us for us, _ in slopes])

    return Ready(
        clock=clock,
        method="slope of the host's clock over jitted chains",
        detail=f"jax.jit of lax.dot_general, precision {precision}",
        seconds=seconds,
        result=lambda: import_module("torch").from_dlpack(first[0]),
        facts=facts,
    )


def slope_us(
    run: Callable[[], Any],
    wait: Callable[[Any], object],
    products: int,
    *,
    now: Callable[[], float] = time.perf_counter,
) -> tuple[float, bool]:
    """Return the microseconds of one product, and whether the host took nearly as long to ask as the device to run."""

    def block(runs: int) -> tuple[float, float]:
        begin = now()
        last = None
        for _ in range(runs):
            last = run()
        asked = now()
        wait(last)
        return now() - begin, asked - begin

    block(1)
    short, _ = block(_SHORT)
    runs = _SHORT + max(2, ceil(_LONG_US / max(1e6 * short / _SHORT, 1.0)))
    long, asking = block(runs)
    return 1e6 * (long - short) / ((runs - _SHORT) * products), asking > _HOST_SHARE * long


def _chain(module: Any, operands: Sequence[Sequence[Any]]) -> list[Any]:
    """Return all products, each waiting for the one before.

    Each has parameters of its own, also where two are the same arrays: equal products would be computed once.
    """
    results: list[Any] = []
    before = None
    for left, right, bias in operands:
        if before is not None:
            left, right, before = module.lax.optimization_barrier((left, right, before))  # noqa: PLW2901 - the same
        found = module.lax.dot_general(left, right, (((1,), (1,)), ((), ())))
        before = found if bias is None else found + bias
        results.append(before)
    return results


def _guessed_us(shape: SelectionShape) -> float:
    flops = _GUESSED_FLOPS_PER_US.get(shape.dtype, _TENSOR_FLOPS_PER_US)
    return max(3.0, shape.nbytes / _GUESSED_BYTES_PER_US, shape.problem.flops / flops)
