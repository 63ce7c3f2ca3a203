"""Timing by turns: graphs replayed by turns, and between the rounds whatever has a clock of its own."""

import random
from collections.abc import Callable, Mapping
from typing import NamedTuple

from harness.cuda_timing import Replay, interleave_replays
from harness.spread import ratios

from tensorplay.measure.statistics import median, quartiles

__all__ = ["Summary", "Times", "gain", "repeats_to_fill", "summary_of", "timed_by_turns"]

Times = Mapping[str, list[float]]
_CHUNK = 5
GRAPH_US = 300.0


class Summary(NamedTuple):
    """Microseconds of one product: median, and the quartiles between which half of the values lie."""

    us: float
    low: float
    high: float


def timed_by_turns(
    replays: Mapping[str, Replay],
    clocks: Mapping[str, Callable[[], float]],
    *,
    rounds: int,
    rng: random.Random,
    replay_by_turns: Callable[..., dict[str, list[float]]] = interleave_replays,
) -> dict[str, list[float]]:
    """Return microseconds of one product, one value a round of each graph, and one every few rounds of each clock."""
    values: dict[str, list[float]] = {name: [] for name in (*replays, *clocks)}
    done = 0
    while done < rounds:
        chunk = min(_CHUNK, rounds - done) if clocks else rounds
        for name, more in replay_by_turns(replays, rounds=chunk, rng=rng).items():
            values[name] += more
        for name in rng.sample(sorted(clocks), len(clocks)):
            values[name].append(clocks[name]())
        done += chunk
    return values


def summary_of(values: list[float]) -> Summary:
    """Return median and quartiles."""
    return Summary(median(values), *quartiles(values))


def gain(times: Times, ours: str, theirs: str) -> float:
    """Return how many times as long theirs takes: the median of the rounds' quotients, above 1 where ours is faster.

    Where one of them has a clock of its own, rounds do not belong together, and it is the quotient of the medians.
    """
    above, below = times[theirs], times[ours]
    if len(above) == len(below):
        return median(ratios(above, below))
    return median(above) / median(below)


def repeats_to_fill(one_us: float, calls: int) -> int:
    """Return how often a graph walks through its calls to take about 0.3 ms; at least once."""
    return max(1, round(GRAPH_US / (one_us * calls)))
