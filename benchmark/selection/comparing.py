"""The heart of most parts: calls captured in graphs over rotated operands, replayed by turns."""

import random
from collections.abc import Mapping, Sequence

from harness.cuda_timing import interleave_replays

from selection.contestant import Call
from selection.recorder import Recorder
from selection.rounds import repeats_to_fill, timed_by_turns
from tensorplay.measure.statistics import median

__all__ = ["compared", "estimated_us"]

_GUESS_ROUNDS = 3


def compared(
    recorder: Recorder, calls: Mapping[str, Sequence[Call]], *, rounds: int, rng: random.Random
) -> dict[str, list[float]]:
    """Return microseconds of one product by contestant, one value a round; all are captured anew.

    Each contestant has one call for each set of operands. The first tells how long the graphs are to be.
    """
    graphs = {}
    repeats = 0
    for name, each in calls.items():
        recorder.warm_up(each)
        repeats = repeats or repeats_to_fill(estimated_us(recorder, each, rng), len(each))
        graphs[name] = recorder.captured(each, repeats)
    return timed_by_turns(graphs, {}, rounds=rounds, rng=rng)


def estimated_us(recorder: Recorder, calls: Sequence[Call], rng: random.Random) -> float:
    """Return about how long one of the calls takes the device."""
    graph = recorder.captured(calls, 1)
    return median(interleave_replays({"": graph}, rounds=_GUESS_ROUNDS, rng=rng)[""])
