"""Steady state of replay against the feature turned off, and what tuning costs before.

Both are captured in graphs of this process and replayed by turns. Each graph walks through sets of operands of twice
the second-level cache, as weights of a model do; a second pair of graphs uses one set only, and is not judged.
"""

import random
import tempfile
import time
from typing import Any

from harness.cuda_machine import clocks
from harness.cuda_shapes import REACH_SHAPES, CudaShape, product_of
from harness.cuda_timing import back_to_back_us, captured, interleave_replays
from harness.result import Figure, Goal, Result
from harness.spread import geometric_mean_spread, ratios, spread_of

from cuda_reach.setting import context_of, kernel_run, prime, run_under
from tensorplay.backends.cublaslt.device import device
from tensorplay.measure.statistics import median
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context

MOST_SETS = 128
GRAPH_US = 300.0


def measure(quick: bool) -> Result:
    """Tune all shapes, then compare what was recorded with the in-process selection."""
    shapes = REACH_SHAPES[-3:] if quick else REACH_SHAPES
    rounds = 5 if quick else 41
    rng = random.Random(0)  # noqa: S311 - an order, not a secret
    with tempfile.TemporaryDirectory() as folder:
        tuning = context_of(folder)
        prime(tuning)
        passes_ms = [_tuning_pass_ms(tuning, shape) for shape in shapes]
        off, replay = context_of(folder, enabled=False), context_of(folder, {"TUNING": "0"})
        found = [_compared(shape, off, replay, rounds, rng) for shape in shapes]
        stats, busy = replay.stats(), clocks()
    gains = {str(shape): each["gains"] for shape, each in zip(shapes, found, strict=True)}
    middle = {name: spread_of(values) for name, values in gains.items()}
    worst = min(middle, key=lambda name: middle[name].median)
    overall, tuned = geometric_mean_spread(gains), spread_of(passes_ms)
    return Result(
        name="steady",
        question="Is replay ever slower than the feature turned off (0.99 is 1 % slower), by time on the device?",
        figures=[
            Figure(f"worst shape: {worst}", middle[worst].median, "", Goal(0.99, at_least=True), middle[worst]),
            Figure("geometric mean", overall.median, "", None, overall),
            Figure(
                "calls that were no replays",
                stats["first_choice"] + stats["fallback"] + stats["rejected"],
                goal=Goal(0),
            ),
            Figure("tuning pass, median shape", tuned.median, "ms", Goal(250.0), tuned),
            Figure("tuning pass, slowest shape", max(passes_ms), "ms"),
        ],
        settings={"rounds": rounds, "microseconds a graph": GRAPH_US, "tuning": "default settings", "clocks": busy},
        rows=[
            {
                "shape": str(shape),
                "tuning ms": tuning_ms,
                "off us": each["off_us"],
                "replay us": each["replay_us"],
                "off/replay": middle[str(shape)].median,
                "low": middle[str(shape)].low,
                "high": middle[str(shape)].high,
                "one set off/replay": each["one_set"],
                "sets": each["sets"],
                "off kernel": each["off"],
                "winner": each["winner"],
            }
            for shape, tuning_ms, each in zip(shapes, passes_ms, found, strict=True)
        ],
    )


def _tuning_pass_ms(context: TuningContext, shape: CudaShape) -> float:
    """Return how long the first call of a shape takes while tuning, its operands being there."""
    import torch

    call = product_of(shape.operands())
    torch.cuda.synchronize()
    begin = time.perf_counter()
    run_under(context, call)
    return 1e3 * (time.perf_counter() - begin)


def _compared(
    shape: CudaShape, off: TuningContext, replay: TuningContext, rounds: int, rng: random.Random
) -> dict[str, Any]:
    sets = max(1, min(MOST_SETS, 1 + 2 * device(0).l2_bytes // shape.nbytes))
    calls = [product_of(shape.operands(seed)) for seed in range(sets)]
    for context in (off, replay):
        for call in calls:
            run_under(context, call)
    with use_context(replay):
        one_us = median(back_to_back_us(calls[0], milliseconds=2.0, blocks=5))
    repeats = max(1, round(GRAPH_US / one_us / sets))
    graphs, warm = {}, {}
    for name, context in (("off", off), ("replay", replay)):
        with use_context(context):
            graphs[name] = captured(calls, repeats)
            warm[name] = captured(calls[:1], max(1, round(GRAPH_US / one_us)))
    times = interleave_replays(graphs, rounds=rounds, rng=rng)
    one_set = interleave_replays(warm, rounds=max(5, rounds // 4), rng=rng)
    return {
        "sets": sets,
        "off": kernel_run(off, shape),
        "winner": kernel_run(replay, shape),
        "off_us": median(times["off"]),
        "replay_us": median(times["replay"]),
        "gains": ratios(times["off"], times["replay"]),
        "one_set": median(ratios(one_set["off"], one_set["replay"])),
    }
