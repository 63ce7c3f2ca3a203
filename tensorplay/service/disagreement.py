"""Where ranks disagree: one shape, and more than one kernel recorded for it."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from tensorplay.runtime.slices import emptied, sorted_in_slices
from tensorplay.service.identity import result_id, without_device
from tensorplay.service.made_rows import MadeRows
from tensorplay.service.rank_schemas import Disagreement, RankWinner

__all__ = ["Disagreements", "Winner", "winner_of"]

# Rank, op, params, kernel and time: a plain tuple, as in `Entries`.
_Told = tuple[int, str, str, str, float]
_Winners = tuple[_Told, ...]


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
        self._winners: defaultdict[tuple[str, str], list[_Told]] = defaultdict(list)

    def add(self, local_rank: int, winner: Winner) -> None:
        """Count a winner of a rank in."""
        self._winners[winner.op, without_device(winner.params)].append((local_rank, *winner))

    def taken(self) -> Sequence[Disagreement]:
        """Return the shapes with more than one kernel, the greatest difference in time first; leave no winners here."""
        found = [
            tuple(winners)
            for part in emptied(self._winners)
            for winners in part
            if len({kernel for _, _, _, kernel, _ in winners}) > 1
        ]
        return MadeRows(sorted_in_slices(found, _place), _disagreement)


def _shape(winners: _Winners) -> tuple[str, str]:
    _, op, params, _, _ = winners[0]
    return op, without_device(params)


def _spread(winners: _Winners) -> float | None:
    """Return how many times the shortest time the longest is; None where that is no number."""
    times = [time_ms for *_, time_ms in winners if time_ms > 0]
    spread = max(times) / min(times) if times else math.inf
    return spread if math.isfinite(spread) else None


def _place(winners: _Winners) -> tuple[float, str, str]:
    return -(_spread(winners) or 0.0), *_shape(winners)


def _disagreement(winners: _Winners) -> Disagreement:
    op, params = _shape(winners)
    return Disagreement(
        shape_id=result_id(op, params),
        op=op,
        params=params,
        spread=_spread(winners),
        winners=[
            RankWinner(
                local_rank=number, id=result_id(op, own_params), params=own_params, kernel=kernel, time_ms=time_ms
            )
            for number, op, own_params, kernel, time_ms in sorted(winners)
        ],
    )
