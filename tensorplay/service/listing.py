"""The list of winners: filtered, sorted and paged from a snapshot that is made once for each revision.

Sorting fifty thousand rows takes longer than a page may, so each order is made once and kept until something changes;
a page is then found by bisection. Nothing here holds a lock of the runtime.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

from tensorplay.runtime.archive import Recorded
from tensorplay.service.cursor import Cursor
from tensorplay.service.row import Row, row_of

__all__ = ["SORT_KEYS", "Filter", "Page", "ResultsIndex"]

SORT_KEYS = ("op", "params", "dtype", "m", "n", "k", "kernel", "device", "origin", "time_ms")
"""What a list may be sorted by; with `-` before it, the other way round."""


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
    q: str | None = None

    def test(self) -> Callable[[Row], bool] | None:
        """Return what says whether a row is wanted; None when every row is."""
        tests: list[Callable[[Row], bool]] = []
        for field in fields(self):
            wanted: Any = getattr(self, field.name)
            if wanted is not None and wanted != "":
                tests.append(_test(field.name, wanted))
        if not tests:
            return None
        return lambda row: all(test(row) for test in tests)


def _test(name: str, wanted: Any) -> Callable[[Row], bool]:
    if name == "q":
        text = str(wanted).casefold()
        return lambda row: text in f"{row.op},{row.params},{row.kernel}".casefold()
    size, _, end = name.partition("_")
    if end == "min":
        return lambda row: bool(getattr(row, size) >= wanted)
    if end == "max":
        return lambda row: bool(getattr(row, size) <= wanted)
    return lambda row: bool(getattr(row, name) == wanted)


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a list, the cursor of what follows, and how many rows there are in all."""

    rows: Sequence[Row]
    next: Cursor | None
    total: int


class ResultsIndex:
    """All winners of one revision; immutable but for the orders that it has been asked for."""

    def __init__(self, revision: int, recorded: Sequence[Recorded], before: "ResultsIndex | None" = None) -> None:
        self.revision = revision
        known: dict[Recorded, Row] = before._by_recorded if before else {}
        self._by_recorded: dict[Recorded, Row] = {each: known.get(each) or row_of(each) for each in recorded}
        self._by_id = {row.id: row for row in self._by_recorded.values()}
        self._orders: dict[str, tuple[list[tuple[Any, str]], list[Row]]] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, identity: str) -> Row | None:
        """Return the winner of an id."""
        return self._by_id.get(identity)

    def page(self, wanted: Filter, sort: str, limit: int, after: Cursor | None) -> Page:
        """Return up to `limit` rows behind a place; `sort` is one of `SORT_KEYS`, with `-` for the other way round."""
        keys, rows = self._order(sort.removeprefix("-"))
        is_wanted = wanted.test()
        total = len(rows) if is_wanted is None else sum(map(is_wanted, rows))
        found = list(islice(self._behind(keys, rows, sort, is_wanted, after), limit + 1))
        if len(found) <= limit:
            return Page(found, None, total)
        last = found[limit - 1]
        return Page(found[:limit], (getattr(last, sort.removeprefix("-")), last.id), total)

    def rows(self, wanted: Filter, sort: str = "op") -> Iterator[Row]:
        """Return all rows that are wanted, one by one."""
        keys, rows = self._order(sort.removeprefix("-"))
        return self._behind(keys, rows, sort, wanted.test(), None)

    @staticmethod
    def _behind(
        keys: list[tuple[Any, str]],
        rows: list[Row],
        sort: str,
        is_wanted: Callable[[Row], bool] | None,
        after: Cursor | None,
    ) -> Iterator[Row]:
        places: range
        if sort.startswith("-"):
            places = range((bisect_left(keys, after) if after else len(rows)) - 1, -1, -1)
        else:
            places = range(bisect_right(keys, after) if after else 0, len(rows))
        chosen = (rows[place] for place in places)
        return chosen if is_wanted is None else filter(is_wanted, chosen)

    def _order(self, key: str) -> tuple[list[tuple[Any, str]], list[Row]]:
        known = self._orders.get(key)
        if known is None:
            rows = sorted(self._by_id.values(), key=lambda row: (getattr(row, key), row.id))
            known = self._orders[key] = ([(getattr(row, key), row.id) for row in rows], rows)
        return known
