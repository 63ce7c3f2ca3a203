"""Where ranks disagree: one shape, and more than one kernel recorded for it."""

import math
from collections import defaultdict
from typing import NamedTuple

from tensorplay.service.identity import result_id, without_device
from tensorplay.service.rank_schemas import Disagreement, RankWinner

__all__ = ["Disagreements", "Winner", "winner_of"]


class Winner(NamedTuple):
    """What a rank recorded for a signature; the time is in milliseconds."""

    op: str
    params: str
    kernel: str
    time_ms: float


def winner_of(op: object, params: object, kernel: object, time_ms: object) -> Winner:
    """Return what a rank tells of a winner; `ValueError` or `TypeError` when it can be none."""
    if not (isinstance(op, str) and isinstance(params, str) and isinstance(kernel, str)):
        raise TypeError("a winner is told in texts")
    # A lone surrogate has no UTF-8, and could neither be told on nor counted.
    f"{op}{params}{kernel}".encode()
    if isinstance(time_ms, bool) or not isinstance(time_ms, int | float) or not math.isfinite(time_ms) or time_ms < 0:
        raise ValueError("its time is no number from 0 up")
    return Winner(op, params, kernel, float(time_ms))


class Disagreements:
    """The winners of all ranks, by shape."""

    def __init__(self) -> None:
        self._winners: defaultdict[tuple[str, str], list[tuple[int, Winner]]] = defaultdict(list)

    def add(self, local_rank: int, winner: Winner) -> None:
        """Count a winner of a rank in."""
        self._winners[winner.op, without_device(winner.params)].append((local_rank, winner))

    def listed(self) -> list[Disagreement]:
        """Return the shapes with more than one kernel, the greatest difference in time first."""
        found = [
            _disagreement(op, params, winners)
            for (op, params), winners in self._winners.items()
            if len({winner.kernel for _, winner in winners}) > 1
        ]
        return sorted(found, key=lambda each: (-(each.spread or 0.0), each.op, each.params))


def _disagreement(op: str, params: str, winners: list[tuple[int, Winner]]) -> Disagreement:
    times = [winner.time_ms for _, winner in winners if winner.time_ms > 0]
    spread = max(times) / min(times) if times else math.inf
    return Disagreement(
        shape_id=result_id(op, params),
        op=op,
        params=params,
        spread=spread if math.isfinite(spread) else None,
        winners=[
            RankWinner(
                local_rank=number,
                id=result_id(winner.op, winner.params),
                params=winner.params,
                kernel=winner.kernel,
                time_ms=winner.time_ms,
            )
            for number, winner in sorted(winners)
        ],
    )
