"""Orders of winners by what they gain over the first choice, for as long as a moment.

What the first choice took is no part of a winner: the process or a file of explanations tells it, and may tell more of
it later. So such an order is made anew after a few seconds, and for each revision.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any

from tensorplay.gemm import Signature
from tensorplay.runtime.slices import in_slices, sorted_in_slices
from tensorplay.service.cursor import Cursor
from tensorplay.service.row import Row, gain_of, saved_of
from tensorplay.typing import Clock

__all__ = ["GAIN_KEYS", "FirstChoices", "GainOrders"]

GAIN_KEYS = ("gain", "saved_ms")
"""What a list may be sorted by that needs the first choice's time; winners without are last, also with `-`."""

FirstChoices = Callable[[Iterable[Signature]], Mapping[Signature, float]]

_KEPT_S = 5.0
# Longer than `has` says, so that nobody who relies on it makes an order on the loop.
_USED_S = _KEPT_S + 2.0
_SLICE = 512
_OP, _TIME = Row._fields.index("op"), Row._fields.index("time_ms")


class GainOrders:
    """The orders by gain of the winners of one index.

    Parameters
    ----------
    first_choices : callable
        Returns the first choices' times of winners, in milliseconds, where they are known.
    clock : callable
        Seconds that only grow.
    """

    def __init__(self, first_choices: FirstChoices, clock: Clock = time.monotonic) -> None:
        self.first_choices = first_choices
        self._clock = clock
        self._made: dict[str, tuple[float, list[Cursor]]] = {}

    def has(self, sort: str) -> bool:
        """Return whether an order was made a moment ago."""
        return self._age(sort) <= _KEPT_S

    def places(self, sort: str, rows: Iterable[tuple[Any, ...]]) -> list[Cursor]:
        """Return the places of all rows in an order, each a number that grows and the row's id."""
        if self._age(sort) > _USED_S:
            self._made[sort] = self._clock(), self._places(sort, rows)
        return self._made[sort][1]

    def _age(self, sort: str) -> float:
        made = self._made.get(sort)
        return math.inf if made is None else self._clock() - made[0]

    def _places(self, sort: str, rows: Iterable[tuple[Any, ...]]) -> list[Cursor]:
        value_of = gain_of if sort.removeprefix("-") == "gain" else saved_of
        sign = -1.0 if sort.startswith("-") else 1.0
        places: list[Cursor] = []
        for part in in_slices(rows, _SLICE):
            found = self.first_choices([Signature(*row[_OP : _OP + 2]) for row in part])
            for row in part:
                value = value_of(row[_TIME], found.get(Signature(*row[_OP : _OP + 2])))
                places.append((math.inf if value is None else sign * value, row[0]))
        return sorted_in_slices(places, itemgetter(0, 1))
