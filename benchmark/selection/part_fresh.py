"""The winners of the comparison in a fresh process, replayed with tuning off, beside the first choice and torch."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from selection.comparing import compared
from selection.frameworks import torch_mm
from selection.ours import Tuner, first_choice, product_call
from selection.recorder import Recorder
from selection.rounds import gain, summary_of
from selection.setting import Setting, allowing_tf32, operand_sets, shapes_by_name

__all__ = ["JUDGED", "items", "measured"]

JUDGED = ("wide", "search")
"""Whose winners are measured again."""

_REPLAY_ONLY = {"TUNING": "0"}


def items(setting: Setting) -> list[str]:
    """Return the names of all shapes."""
    return list(shapes_by_name(setting.shapes))


def measured(setting: Setting, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield one row a shape; one for which nothing is recorded is passed over.

    The public functions are what is captured, so that it is the file's entry that runs, found as in any program.
    SystemExit where no run of `shapes` left results in the same folder.
    """
    recorder, rng = Recorder(), random.Random(1)  # noqa: S311 - an order, not a secret
    tuners = {name: Tuner(setting.work, name, setting.search_seconds, _REPLAY_ONLY) for name in JUDGED}
    are_read = [tuner.context.read_file() for tuner in tuners.values()]
    if not any(are_read):
        raise SystemExit("there are no winners: run the parts shapes and fresh together, or name --work FOLDER")
    shapes = shapes_by_name(setting.shapes)
    for item in wanted:
        shape = shapes[item]
        here = {name: tuner for name, tuner in tuners.items() if tuner.has(shape)}
        if not here:
            continue
        sets = operand_sets(shape)
        with allowing_tf32(shape):
            calls: dict[str, Any] = {"torch": torch_mm(shape, sets).calls, "first": first_choice(shape, sets).calls}
            for name, tuner in here.items():
                calls[name] = [tuner.under(product_call(each)) for each in sets]
            times = compared(recorder, calls, rounds=2 * setting.rounds, rng=rng)
        yield {
            "item": item,
            **{f"{name}_us": summary_of(values).us for name, values in times.items()},
            **{f"{name}_over_{other}": gain(times, name, other) for name in here for other in ("first", "torch")},
            **{f"{name}_kernel": tuner.recorded(shape) for name, tuner in here.items()},
            "first_kernel": first_choice(shape, sets).detail,
            "measured": sum(tuner.context.stats()["measured"] for tuner in tuners.values()),
            "not_replayed": sum(_not_replayed(tuner) for tuner in tuners.values()),
        }


def _not_replayed(tuner: Tuner) -> int:
    stats = tuner.context.stats()
    return sum(stats[reason] for reason in ("first_choice", "fallback", "rejected"))
