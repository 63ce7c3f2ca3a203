"""Decode shapes: what `search` finds, against the best of cuBLASLt's 8, and as a share of the copy bandwidth."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from selection.comparing import compared
from selection.ours import Tuner, plan_of, run_plan
from selection.recorder import Recorder
from selection.roofline import measured_ceilings, moved_bytes
from selection.rounds import gain, summary_of
from selection.setting import Setting, operand_sets, shapes_by_name
from tensorplay.backends.registry import backend
from tensorplay.measure.statistics import median

__all__ = ["LARGE_WEIGHT_BYTES", "items", "measured"]

LARGE_WEIGHT_BYTES = 100_000_000
"""Above it a product should take as long as the weight takes to be read."""


def items(setting: Setting) -> list[str]:
    """Return the names of the decode shapes."""
    return list(shapes_by_name(setting.decode_shapes))


def measured(setting: Setting, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield one row a shape.

    All 8 run by turns, and their best is then compared with the winner in fresh rounds: the least of eight noisy
    medians would be too low to be compared with. The same kernel is as fast as itself, and not measured twice.
    """
    recorder, rng = Recorder(), random.Random(2)  # noqa: S311 - an order, not a secret
    tuner = Tuner(setting.work / "decode", "search", setting.search_seconds)
    shapes = shapes_by_name(setting.decode_shapes)
    ceilings = measured_ceilings(["bfloat16"], quick=True)
    for item in wanted:
        shape = shapes[item]
        sets = operand_sets(shape)
        winner, seconds = tuner.tune(shape, sets[0])
        library = {plan.kernel: run_plan(plan, sets) for plan in backend("cublaslt").library_choices(shape.problem)}
        times = {name: median(us) for name, us in compared(recorder, library, rounds=setting.rounds, rng=rng).items()}
        best = min(times, key=lambda name: times[name])
        final = {best: library[best]}
        if winner != best:
            final[winner] = run_plan(plan_of(shape, winner), sets)
        found = compared(recorder, final, rounds=2 * setting.rounds, rng=rng)
        took = summary_of(found[winner])
        yield {
            "item": item,
            "first_us": next(iter(times.values())),
            "best_of_8_us": summary_of(found[best]).us,
            **took._asdict(),
            "over_best_of_8": gain(found, winner, best),
            "copy_share": 1e6 * moved_bytes(shape) / took.us / ceilings.copy_bytes_per_s,
            "copy_tb_s": ceilings.copy_bytes_per_s / 1e12,
            "weight_mb": shape.weight_nbytes / 1e6,
            "offered": len(library),
            "best_of_8": best,
            "winner": winner,
            "seconds": seconds,
        }
