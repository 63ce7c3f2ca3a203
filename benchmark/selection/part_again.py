"""Fresh tuning processes: whether each finds the same winner, or one within 1 %."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from harness.fresh import FreshProcessError
from harness.prepared import PreparedProcess

from selection import processes
from selection.setting import Setting, shapes_by_name

__all__ = ["BATCH", "DEFAULT", "items", "measured", "slowest_over_fastest"]

DEFAULT = slice(None, None, 5)
"""Every fifth shape: 12 of 57."""

_BREADTH = "search"
BATCH = 6
"""Shapes of one round of processes, whose rows come together: so much is lost to a time limit at most."""

_TIMEOUT = 590.0


def items(setting: Setting) -> list[str]:
    """Return the names of all shapes."""
    return list(shapes_by_name(setting.shapes))


def measured(setting: Setting, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield one row a shape; the processes have the device one after another. A batch that fails is left out."""
    named = shapes_by_name(setting.shapes)
    for start in range(0, len(wanted), BATCH):
        batch = wanted[start : start + BATCH]
        shapes = [list(named[item]) for item in batch]
        try:
            found, times = _tuned_and_compared(shapes, setting)
        except FreshProcessError as error:
            sys.stderr.write(f"{batch}: {error}\n")
            continue
        for place, item in enumerate(batch):
            tuned = [each[place] for each in found]
            kernels = [each["kernel"] for each in tuned]
            us = {kernel: times[place][kernel] for kernel in kernels}
            yield {
                "item": item,
                "candidates": _BREADTH,
                "search_seconds": setting.search_seconds,
                "kernels": kernels,
                "different": len(set(kernels)),
                "us": [us[kernel] for kernel in kernels],
                "first_us": times[place][tuned[0]["first"]],
                "slowest_over_fastest": slowest_over_fastest(us),
                "seconds": max(each["seconds"] for each in tuned),
                **{f"{name}_of_each": [each[name] for each in tuned] for name in ("verdict", "confirmation", "search")},
            }


def slowest_over_fastest(times: dict[str, float]) -> float:
    """Return how many times as long the slowest of the winners takes; 1 where there is one only."""
    return max(times.values()) / min(times.values())


def _tuned_and_compared(
    shapes: list[list[Any]], setting: Setting
) -> tuple[list[list[dict[str, Any]]], list[dict[str, float]]]:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        # All import at once, beside whoever has the device.
        tuning = [
            stack.enter_context(PreparedProcess(processes.tune, directory=folder)) for _ in range(setting.repeats)
        ]
        comparing = stack.enter_context(PreparedProcess(processes.compare, directory=folder))
        for process in (*tuning, comparing):
            process.wait_until_ready()
        wish = {"shapes": shapes, "breadth": _BREADTH, "search_seconds": setting.search_seconds}
        found = [process.call(timeout=_TIMEOUT, **wish) for process in tuning]
        # The first choice too, so that the row tells what all of them are worth.
        kernels = [
            [*(each[place]["kernel"] for each in found), found[0][place]["first"]] for place in range(len(shapes))
        ]
        times = comparing.call(timeout=_TIMEOUT, shapes=shapes, kernels=kernels, rounds=2 * setting.rounds)
    return found, times
