"""Measures recorded winners again, in a fresh process, against `numpy.matmul(a, b, out=c)`.

One process tunes the host shapes with the default settings. A second one lets a naive chooser pick among the
same candidates: one sample each, lowest wins. A third one, which measures nothing by itself, then compares by turns,
on the same operands:

- `numpy.matmul(a, b, out=c)`;
- `tensorplay.mm(a, b, out=c)` as it replays the winner: the whole call, look-up included, which is judged;
- the winner's kernel alone, without the look-up;
- both once more for the naive chooser's kernel.

Gains are NumPy's time over the other's: above 1 is faster than NumPy.
"""

import sys
import tempfile
import time
from typing import Any

import numpy as np
from harness.command import run
from harness.fresh import call_in_fresh_process
from harness.host_shapes import HOST_SHAPES, Operands, Shape
from harness.product import kernel_alone, numpy_matmul, tensorplay_mm
from harness.quiet import FEWEST_ROUNDS, QUIET_SHARE, Bystanders, measure_quietly
from harness.result import Figure, Goal, Result
from harness.spread import Spread, geometric_mean_spread, ratios, spread_of
from harness.timing import loops_to_fill

from tensorplay import mm, tunable
from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.gemm import DEFAULT, GemmProblem, signature_of
from tensorplay.gemm.problem import CPU
from tensorplay.measure.mean_choice import lowest_mean
from tensorplay.ops.keyed import layout_key
from tensorplay.ops.layout import matrix_problem
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import state

TUNED, LOWEST = "tuned.csv", "lowest.csv"
BLOCK_SECONDS = 0.003
MOST_ROUNDS = 101
GAINS = ("call", "kernel", "lowest call", "lowest kernel")


SHORTFALL = (
    "Where the extension makes the key, a hit costs 0.30 us: the call of mm 0.05, the key 0.04, the look-up 0.05, the "
    "count 0.04, the rest attributes and the kernel's call. Where it was not built it costs 0.74 us, which shows in "
    "32x32x32 (0.92) and 64x64x64 (0.97), of 1.5 and 5.6 us: a call, seven attributes, a tuple and its hash. Tried "
    "there: all nine attributes as the key (0.81 us), a subscript (0.79 us), contiguity flags for strides (0.74 us)."
)
# Who makes the key of a hit.
LOOK_UP = "C" if layout_key else "Python"


def problem_of(operands: Operands) -> GemmProblem:
    """Return the problem that the operands pose."""
    problem = matrix_problem(*operands)
    if problem is None:
        raise RuntimeError("a shape of the benchmark has no signature")
    return problem


def tune(shapes: int) -> list[dict[str, Any]]:
    """Tune the shapes as a user's program would, by running them; return how each was decided."""
    rng = np.random.default_rng(1)
    found = []
    for shape in HOST_SHAPES[:shapes]:
        operands = shape.operands(rng)
        bystanders = Bystanders()
        begin = time.perf_counter()
        mm(operands.left, operands.right, out=operands.out)
        seconds = time.perf_counter() - begin
        why = tunable.explain(*signature_of(problem_of(operands)))
        found.append({"verdict": why["verdict"], "seconds": seconds, "others": bystanders.share()})
    return found


def choose_lowest(shapes: int) -> None:
    """Record for each shape the kernel with the lowest of one sample each."""
    rng = np.random.default_rng(1)
    backend = tunable.get_tuning_context().backend(CPU)
    for shape in HOST_SHAPES[:shapes]:
        problem = problem_of(shape.operands(rng))
        with backend.open_trial(problem, rotating_bytes=backend.default_rotating_bytes(CPU)) as trial:
            candidates = [backend.first_choice(problem), *backend.candidates(problem, CandidateQuery())]
            chosen = lowest_mean(candidates, trial.timer)
        tunable.override(*signature_of(problem), chosen.kernel)


def remeasure(shapes: int, seconds: float) -> list[dict[str, Any]]:
    """Compare winners and naive choices with NumPy, about `seconds` for each shape; return gains round by round."""
    rng = np.random.default_rng(2)
    contexts = [_replaying(TUNED), _replaying(LOWEST)]
    rows = [_compare(shape, shape.operands(rng), contexts, seconds) for shape in HOST_SHAPES[:shapes]]
    for context in contexts:
        stats = context.stats()
        if stats["measured"] or stats["first_choice"] or stats["rejected"]:
            raise RuntimeError(f"not everything was replayed: {stats}")
    return rows


def _replaying(filename: str) -> TuningContext:
    return TuningContext(
        environ={f"TP_TUNABLEOP_{name}": value for name, value in _settings(filename, tuning="0").items()}
    )


def _settings(filename: str, *, tuning: str = "1") -> dict[str, str]:
    return {"ENABLED": "1", "TUNING": tuning, "FILENAME": filename}


def _compare(shape: Shape, operands: Operands, contexts: list[TuningContext], seconds: float) -> dict[str, Any]:
    expected = operands.left @ operands.right
    contestants = {"numpy": numpy_matmul(operands)}
    kernels = []
    for context, prefix in zip(contexts, ("", "lowest "), strict=True):
        state.context = context
        result = mm(operands.left, operands.right, out=operands.out)
        np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-3 * shape.k**0.5)
        plan = _recorded_plan(context, problem_of(operands))
        kernels.append(plan.kernel)
        contestants[f"{prefix}call"] = tensorplay_mm(operands, context)
        contestants[f"{prefix}kernel"] = kernel_alone(operands, plan)
    loops = loops_to_fill(list(contestants.values()), BLOCK_SECONDS)
    values, others = measure_quietly(contestants, rounds=MOST_ROUNDS, loops=loops, seconds=seconds)
    return {
        "numpy us": 1e6 * spread_of(values["numpy"]).median,
        "winner": kernels[0],
        "lowest": kernels[1],
        "others": others,
        "gains": {name: ratios(values["numpy"], values[name]) for name in GAINS},
    }


def _recorded_plan(context: TuningContext, problem: GemmProblem) -> Plan:
    op, params = signature_of(problem)
    kernel = next(entry[2] for entry in context.get_results() if entry[:2] == (op, params))
    backend = context.backend(CPU)
    return backend.first_choice(problem) if kernel == DEFAULT else backend.rebuild(problem, kernel)


def measure(quick: bool) -> Result:
    """Tune, choose naively and measure again, in three fresh processes."""
    shapes, seconds = (2, 0.02) if quick else (len(HOST_SHAPES), 1.3)
    with tempfile.TemporaryDirectory() as folder:
        tuned = call_in_fresh_process(tune, directory=folder, settings=_settings(TUNED), shapes=shapes)
        call_in_fresh_process(choose_lowest, directory=folder, settings=_settings(LOWEST), shapes=shapes)
        found = call_in_fresh_process(remeasure, directory=folder, shapes=shapes, seconds=seconds)
    gains = {
        name: {str(shape): row["gains"][name] for shape, row in zip(HOST_SHAPES, found, strict=False)} for name in GAINS
    }
    spreads = {name: {shape: spread_of(values) for shape, values in gains[name].items()} for name in GAINS}
    return Result(
        name="never_slower",
        question="How much faster than numpy.matmul are recorded winners in a fresh process (1.05 is 5 % faster)?",
        figures=[figure for name in GAINS for figure in _figures(name, gains[name], spreads[name])],
        shortfall=SHORTFALL,
        settings={
            "shapes": shapes,
            "seconds a shape": seconds,
            "rounds": f"{FEWEST_ROUNDS} to {MOST_ROUNDS}",
            "quiet": f"others take at most {QUIET_SHARE:.0%} of the processors, or every round counts",
            "operands": "the same in every call, as warm as the caches keep them",
            "tuning": "default settings",
            "hits are looked up in": LOOK_UP,
            "tuning seconds": sum(row["seconds"] for row in tuned),
        },
        rows=[
            {
                "kind": shape.kind,
                "shape": str(shape),
                "numpy us": row["numpy us"],
                **{name: spreads[name][str(shape)].median for name in GAINS},
                "call low": spreads["call"][str(shape)].low,
                "call high": spreads["call"][str(shape)].high,
                "others then/now": f"{decided['others']:.0%}/{row['others']:.0%}",
                "verdict": decided["verdict"],
                "winner": row["winner"],
                "lowest": row["lowest"],
            }
            for shape, row, decided in zip(HOST_SHAPES, found, tuned, strict=False)
        ],
    )


def _figures(name: str, gains: dict[str, list[float]], spreads: dict[str, Spread]) -> list[Figure]:
    overall = geometric_mean_spread(gains)
    worst = min(spreads.values(), key=lambda spread: spread.median)
    text = {
        "call": "whole call, look-up included",
        "kernel": "winner's kernel alone",
        "lowest call": "naive chooser: whole call",
        "lowest kernel": "naive chooser: kernel alone",
    }[name]
    goals = (Goal(1.0, at_least=True), Goal(0.95, at_least=True)) if name == "call" else (None, None)
    return [
        Figure(f"{text}: geometric mean", overall.median, "", goals[0], overall),
        Figure(f"{text}: worst shape", worst.median, "", goals[1], worst),
    ]


if __name__ == "__main__":
    sys.exit(run(measure))
