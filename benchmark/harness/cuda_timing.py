"""Time on the device: captured graphs of what is compared, replayed by turns between events."""

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

__all__ = ["Replay", "back_to_back_us", "captured", "interleave_replays"]

_SLEEP_CYCLES = 400_000
_TRIES = 5


class Replay:
    """A captured graph of several calls.

    Attributes
    ----------
    graph : torch.cuda.CUDAGraph
        What is replayed.
    calls : int
        How many calls it holds.
    """

    __slots__ = ("calls", "graph")

    def __init__(self, graph: Any, calls: int) -> None:
        self.graph = graph
        self.calls = calls


def captured(calls: Sequence[Callable[[], object]], repeats: int) -> Replay:
    """Return a graph of the calls, one after another, all of them `repeats` times; they must have run before."""
    import torch

    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            for call in calls:
                call()
    return Replay(graph, repeats * len(calls))


def back_to_back_us(call: Callable[[], object], *, milliseconds: float, blocks: int) -> list[float]:
    """Return the microseconds of a call when many follow each other, one value a block: host or device limits it."""
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def block(calls: int) -> float:
        torch.cuda.synchronize()
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / calls

    estimate = min(block(3) for _ in range(_TRIES))
    calls = max(1, min(20_000, round(milliseconds / blocks / estimate)))
    return [1e3 * block(calls) for _ in range(blocks)]


def interleave_replays(replays: Mapping[str, Replay], *, rounds: int, rng: random.Random) -> dict[str, list[float]]:
    """Return the microseconds of one call of each, one value a round.

    A round replays everybody and then once more in the opposite order (A B B A), the device being busy throughout,
    and averages the two. Values of one round belong together: compare them as pairs.
    """
    import torch

    names = list(replays)
    values: dict[str, list[float]] = {name: [] for name in names}
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2 * len(names) + 1)]
    for replay in replays.values():
        replay.graph.replay()
    for _ in range(rounds):
        there = rng.sample(names, len(names))
        order = there + there[::-1]
        torch.cuda.synchronize()
        torch.cuda._sleep(_SLEEP_CYCLES)
        # Untimed: the first replay behind a wait begins later than one behind another.
        replays[order[0]].graph.replay()
        events[0].record()
        for name, event in zip(order, events[1:], strict=True):
            replays[name].graph.replay()
            event.record()
        torch.cuda.synchronize()
        spans = [begin.elapsed_time(end) for begin, end in pairwise(events)]
        for name in names:
            both = [span for each, span in zip(order, spans, strict=True) if each == name]
            values[name].append(1e3 * sum(both) / 2 / replays[name].calls)
    return values
