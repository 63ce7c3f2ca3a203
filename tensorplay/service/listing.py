"""The list of winners: filtered, sorted and paged from a snapshot that is made once for each revision.

Sorting fifty thousand rows takes longer than a page may, so each order is made once and kept, and when some winners
change only they are moved; a page is then found by bisection. Nothing here holds a lock of the runtime, nor the
interpreter's for long.
"""

import sys
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from operator import itemgetter
from typing import Any

from tensorplay.gemm import Signature
from tensorplay.runtime.archive import Recorded
from tensorplay.runtime.slices import emptied, paced, sorted_in_slices
from tensorplay.service.cursor import Cursor
from tensorplay.service.gain_orders import GAIN_KEYS, FirstChoices, GainOrders
from tensorplay.service.row import Row, row_of

__all__ = ["MOST_MOVED", "SORT_KEYS", "Filter", "Page", "ResultsIndex"]

SORT_KEYS = ("op", "params", "dtype", "m", "n", "k", "kernel", "device", "origin", "time_ms")
"""What a list may be sorted by, besides `GAIN_KEYS`; with `-` before it, the other way round."""

Raw = tuple[Any, ...]
"""A row as the index keeps it: a plain tuple of texts and numbers is nothing that the garbage collector looks at again.

With fifty thousand objects that it does look at, it would stop all threads for longer than one may.
"""

_OP = Row._fields.index("op")
_MOST_SELECTIONS = 8
# So many are sorted, and asked whether they are wanted, in a few milliseconds.
_FEW = 2048
# So many rows are made in four milliseconds.
_SLICE = 512
MOST_MOVED = 128
"""Winners that are moved one by one when they change; of more, every order is made anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which winners are wanted; None is any. `q` is part of op, params or kernel, in any case of letters."""

    op: str | None = None
    dtype: str | None = None
    transposed: bool | None = None
    bias: bool | None = None
    device: str | None = None
    kernel: str | None = None
    origin: str | None = None
    m_min: int | None = None
    m_max: int | None = None
    n_min: int | None = None
    n_max: int | None = None
    k_min: int | None = None
    k_max: int | None = None
    pinned: bool | None = None
    q: str | None = None

    def test(self) -> Callable[[Raw], bool] | None:
        """Return what says whether a row is wanted; None when every row is."""
        tests: list[Callable[[Raw], bool]] = []
        for field in fields(self):
            wanted: Any = getattr(self, field.name)
            if wanted is not None and wanted != "":
                tests.append(_test(field.name, wanted))
        if not tests:
            return None
        return lambda row: all(test(row) for test in tests)


def _test(name: str, wanted: Any) -> Callable[[Raw], bool]:
    if name == "q":
        text = str(wanted).casefold()
        return lambda row: text in ",".join(row[_OP : _OP + 3]).casefold()
    name, _, end = name.partition("_")
    place = Row._fields.index(name)
    if end == "min":
        return lambda row: bool(row[place] >= wanted)
    if end == "max":
        return lambda row: bool(row[place] <= wanted)
    return lambda row: bool(row[place] == wanted)


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a list, and the cursor of what follows.

    Attributes
    ----------
    total : int
        How many winners are wanted.
    known : int
        How many there are.
    revision : int
        Of the winners.
    """

    rows: Sequence[Row]
    next: Cursor | None
    total: int
    known: int
    revision: int


def _none_known(signatures: Iterable[Signature]) -> Mapping[Signature, float]:
    del signatures
    return {}


class ResultsIndex:
    """All winners of one revision; immutable but for the orders and selections that it has been asked for.

    Parameters
    ----------
    revision : int
        Of the winners.
    recorded : iterable of Recorded
        All of them.
    before : ResultsIndex, optional
        Of an earlier revision: what did not change is taken from it.
    first_choices : callable, optional
        Returns the first choices' times of winners, in milliseconds, where they are known.
    """

    def __init__(
        self,
        revision: int,
        recorded: Iterable[Recorded],
        before: "ResultsIndex | None" = None,
        *,
        first_choices: FirstChoices = _none_known,
    ) -> None:
        self.revision = revision
        self._gains = GainOrders(first_choices)
        self._is_replaced = False
        if before is not None:
            before._is_replaced = True
        known: Mapping[tuple[str, str], Raw] = before._by_signature if before else {}
        self._by_signature: dict[tuple[str, str], Raw] = {}
        for each in paced(recorded, _SLICE):
            row = known.get(each[:2])
            is_known = row is not None and row[_OP : _OP + len(each)] == each
            self._by_signature[each[:2]] = row if row is not None and is_known else tuple(row_of(each))
        self._by_id: dict[str, Raw] = {row[0]: row for row in paced(self._by_signature.values())}
        self._orders: dict[str, list[Raw]] = {}
        self._selections: dict[tuple[Filter, str], list[Raw]] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __del__(self) -> None:
        # Whoever used it last: what is freed at once holds up the thread that multiplies. What an update leaves behind
        # is still in use, and freed in no time.
        if self._is_replaced and not sys.is_finalizing():
            self._orders.clear()
            self._selections.clear()
            deque(chain(emptied(self._by_id), emptied(self._by_signature)), maxlen=0)

    def __contains__(self, signature: tuple[str, str]) -> bool:
        return signature in self._by_signature

    def get(self, identity: str) -> Row | None:
        """Return the winner of an id."""
        row = self._by_id.get(identity)
        return None if row is None else Row._make(row)

    def updated(
        self, revision: int, changed: Iterable[tuple[str, str]], recorded: Iterable[Recorded]
    ) -> "ResultsIndex":
        """Return the index of a later revision: of the signatures that changed, `recorded` are those with a winner."""
        index = ResultsIndex(revision, (), first_choices=self._gains.first_choices)
        index._by_signature, index._by_id = dict(self._by_signature), dict(self._by_id)
        gone = [row for signature in changed if (row := index._by_signature.pop(signature, None)) is not None]
        come: list[Raw] = [tuple(row_of(each)) for each in recorded]
        for row in gone:
            del index._by_id[row[0]]
        for row in come:
            index._by_signature[row[_OP], row[_OP + 1]] = index._by_id[row[0]] = row
        if len(gone) + len(come) <= 2 * MOST_MOVED:
            # A copy, since another thread may add one.
            orders = list(self._orders.items())
            index._orders = {key: _moved(rows, _place_of(key), gone, come) for key, rows in orders}
        return index

    def has(self, wanted: Filter, sort: str) -> bool:
        """Return whether a page of a list takes no time: its rows were found before, or there are few winners."""
        key, is_any, is_small = sort.removeprefix("-"), wanted.test() is None, len(self) <= _FEW
        if key in GAIN_KEYS:
            # What the first choices took may be in a file.
            return self._gains.has(sort) and (is_any or is_small)
        return is_small or (key in self._orders if is_any else (wanted, key) in self._selections)

    def page(self, wanted: Filter, sort: str, limit: int, after: Cursor | None) -> Page:
        """Return up to `limit` rows behind a place; `sort` is a key, with `-` for the other way round."""
        key = sort.removeprefix("-")
        if key in GAIN_KEYS:
            return self._page_by_gain(wanted, sort, limit, after)
        rows, place = self._selection(wanted, key), _place_of(key)
        if sort.startswith("-"):
            end = bisect_left(rows, after, key=place) if after else len(rows)
            found, has_more = rows[max(0, end - limit) : end][::-1], end > limit
        else:
            begin = bisect_right(rows, after, key=place) if after else 0
            found, has_more = rows[begin : begin + limit], begin + limit < len(rows)
        following = place(found[-1]) if has_more else None
        return Page([Row._make(row) for row in found], following, len(rows), len(self), self.revision)

    def rows(self, wanted: Filter, sort: str = "op") -> Iterator[Row]:
        """Return all rows that are wanted, one by one."""
        if sort.removeprefix("-") in GAIN_KEYS:
            return (Row._make(self._by_id[identity]) for _, identity in self._by_gain(wanted, sort))
        rows = self._selection(wanted, sort.removeprefix("-"))
        return map(Row._make, reversed(rows) if sort.startswith("-") else rows)

    def _page_by_gain(self, wanted: Filter, sort: str, limit: int, after: Cursor | None) -> Page:
        places = self._by_gain(wanted, sort)
        begin = bisect_right(places, after) if after else 0
        found = places[begin : begin + limit]
        following = found[-1] if begin + limit < len(places) else None
        rows = [Row._make(self._by_id[identity]) for _, identity in found]
        return Page(rows, following, len(places), len(self), self.revision)

    def _by_gain(self, wanted: Filter, sort: str) -> list[Cursor]:
        places, is_wanted = self._gains.places(sort, self._by_id.values()), wanted.test()
        if is_wanted is None:
            return places
        return [place for place in paced(places) if is_wanted(self._by_id[place[1]])]

    def _selection(self, wanted: Filter, key: str) -> list[Raw]:
        rows = self._orders.get(key)
        if rows is None:
            rows = self._orders[key] = sorted_in_slices(list(self._by_id.values()), _place_of(key))
        is_wanted = wanted.test()
        if is_wanted is None:
            return rows
        found = self._selections.get((wanted, key))
        if found is None:
            found = [row for row in paced(rows) if is_wanted(row)]
            if len(self._selections) >= _MOST_SELECTIONS:
                self._selections.clear()
            self._selections[wanted, key] = found
        return found


def _place_of(key: str) -> Callable[[Raw], Cursor]:
    return itemgetter(Row._fields.index(key), 0)


def _moved(rows: list[Raw], place: Callable[[Raw], Cursor], gone: Iterable[Raw], come: Iterable[Raw]) -> list[Raw]:
    """Return an order without some rows and with others."""
    moved = list(rows)
    for row in gone:
        del moved[bisect_left(moved, place(row), key=place)]
    for row in come:
        insort(moved, row, key=place)
    return moved
