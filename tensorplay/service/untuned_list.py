"""The signatures that have no winner, as a list that is paged: the most called first."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tensorplay.gemm import Signature
from tensorplay.runtime.slices import paced, sorted_in_slices
from tensorplay.service.cursor import Cursor
from tensorplay.service.identity import result_id
from tensorplay.service.made_rows import MadeRows

__all__ = ["UntunedRow", "page_of", "untuned_rows"]

_Raw = tuple[str, str, int]


class UntunedRow(NamedTuple):
    """One signature that ran without a winner."""

    op: str
    params: str
    calls: int

    @property
    def id(self) -> str:
        """Return the id of the signature."""
        return result_id(self.op, self.params)

    @property
    def signature(self) -> Signature:
        """Return the key of its problem."""
        return Signature(self.op, self.params)


def untuned_rows(signatures: Iterable[tuple[str, str]], calls: Mapping[Signature, int]) -> Sequence[UntunedRow]:
    """Return the rows of a list, the most called first."""
    rows = [(op, params, calls.get(Signature(op, params), 0)) for op, params in paced(signatures)]
    return MadeRows(sorted_in_slices(rows, _place), UntunedRow._make)


def page_of(rows: Sequence[UntunedRow], limit: int, after: Cursor | None) -> tuple[Sequence[UntunedRow], Cursor | None]:
    """Return up to `limit` rows behind a place in a list, and the place where it goes on."""
    begin = 0
    if after is not None:
        calls, signature = after
        op, _, params = signature.partition(",")
        begin = bisect_right(rows, (-int(calls), op, params), key=_place)
    found = rows[begin : begin + limit]
    if begin + limit >= len(rows):
        return found, None
    return found, (found[-1].calls, f"{found[-1].op},{found[-1].params}")


def _place(row: _Raw) -> tuple[int, str, str]:
    op, params, calls = row
    return -calls, op, params
