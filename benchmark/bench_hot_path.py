"""Times what a hit and a disabled call cost on the host, over `numpy.matmul(a, b, out=c)` itself.

Everything is paired in one process: (16, 64) @ (64, 16) in float32, which takes NumPy about a microsecond,
through NumPy and through `tensorplay.mm`. The winner is NumPy's own kernel, so that both make the same BLAS call
and the difference is what TensorPlay adds.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from harness.command import run
from harness.host_shapes import Operands, Shape
from harness.product import numpy_matmul, tensorplay_mm
from harness.quiet import measure_quietly
from harness.result import Figure, Goal, Result
from harness.spread import differences, spread_of
from harness.timing import loops_to_fill
from harness.winners import write_winners

from tensorplay.gemm import signature_of
from tensorplay.gemm.problem import CPU
from tensorplay.ops.keyed import layout_key
from tensorplay.ops.layout import matrix_problem
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import state

WINNERS = 100_000
BLOCK_SECONDS = 0.004
# What two runs of the same code differ by on a quiet machine; a growth below cannot be told from none.
NOISE_US = 0.05

SHAPE = Shape("smallest", "float32", m=16, n=16, k=64)


def enabled_context(operands: Operands, folder: str, name: str, *, winners: int) -> TuningContext:
    """Return a context that replays NumPy's own kernel for the product, with `winners` others loaded."""
    context = TuningContext(environ={"TP_TUNABLEOP_ENABLED": "1"}, directory=folder)
    path = Path(folder, name)
    write_winners(path, context.get_validators(), winners)
    context.set_filename(name)
    problem = matrix_problem(*operands)
    if problem is None or not context.read_file():
        raise RuntimeError("the product has no signature, or the results file was refused")
    context.override(*signature_of(problem), context.backend(CPU).first_choice(problem).kernel)
    return context


def figures_us(
    values: Mapping[str, Sequence[float]], pairs: Sequence[tuple[str, str, str, Goal | None]]
) -> list[Figure]:
    """Return a figure in microseconds for each (what, who, over whom, goal), from values in seconds."""
    figures = []
    for what, who, over, goal in pairs:
        spread = spread_of(differences(values[who], values[over])).scaled(1e6)
        figures.append(Figure(what, spread.median, "us", goal, spread))
    return figures


def measure(quick: bool) -> Result:
    """Measure before and after the winners are loaded; the second time both contexts are compared directly."""
    rounds, seconds, winners = (3, 0.0, 1000) if quick else (301, 12.0, WINNERS)
    operands = SHAPE.operands(np.random.default_rng(0))
    plain = numpy_matmul(operands)
    with tempfile.TemporaryDirectory() as folder:
        few = enabled_context(operands, folder, "few.csv", winners=0)
        disabled = TuningContext(environ={}, directory=folder)
        contestants = {
            "numpy": plain,
            "hit": tensorplay_mm(operands, few),
            "disabled": tensorplay_mm(operands, disabled),
        }
        loops = loops_to_fill(list(contestants.values()), BLOCK_SECONDS)
        before = measure_quietly(contestants, rounds=rounds, loops=loops, seconds=seconds)
        many = enabled_context(operands, folder, "many.csv", winners=winners)
        contestants = {
            "numpy": plain,
            "hit": tensorplay_mm(operands, few),
            "hit among many": tensorplay_mm(operands, many),
        }
        after = measure_quietly(contestants, rounds=rounds, loops=loops, seconds=seconds)
        state.context = None
    for context in (few, many):
        if context.stats()["measured"] or context.stats()["replayed"] < loops:
            raise RuntimeError(f"these were no hits: {context.stats()}")
    numpy_us = spread_of(before.values["numpy"]).scaled(1e6)
    return Result(
        name="hot_path",
        question="What does a call cost over numpy.matmul(a, b, out=c), (16, 64) @ (64, 16) in float32?",
        figures=[
            *figures_us(
                before.values,
                [
                    ("hit over numpy", "hit", "numpy", Goal(2.0)),
                    ("disabled over numpy", "disabled", "numpy", Goal(1.0)),
                ],
            ),
            *figures_us(
                after.values,
                [
                    (f"hit over numpy, {winners:,} winners loaded", "hit among many", "numpy", Goal(2.0)),
                    (f"growth by {winners:,} winners", "hit among many", "hit", Goal(NOISE_US)),
                ],
            ),
            Figure("numpy.matmul itself", numpy_us.median, "us", None, numpy_us),
        ],
        settings={
            "rounds": [before.rounds, after.rounds],
            "calls a block": loops,
            "order": "A B C C B A, another each round",
            "processor share of others": [before.others, after.others],
            "winners": winners,
            "hits are looked up in": "C" if layout_key else "Python",
        },
    )


if __name__ == "__main__":
    sys.exit(run(measure))
