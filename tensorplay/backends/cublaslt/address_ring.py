"""Which lists of addresses lie where in memory of a fixed size, the oldest giving way to new ones. Pure."""

from collections import OrderedDict
from typing import NamedTuple

__all__ = ["AddressRing", "Addresses"]

Addresses = tuple[int, ...]


class _Span(NamedTuple):
    """From one place to before another, in addresses."""

    first: int
    last: int


class AddressRing:
    """The places of lists of addresses: each is laid after the one before, and from the beginning again at the end.

    A list is found again until its place is needed. Not safe in several threads at once.

    Parameters
    ----------
    capacity : int
        How many addresses there is room for.
    """

    __slots__ = ("_capacity", "_next", "_spans")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._next = 0
        # In the order in which they were laid, and so in which they are overtaken.
        self._spans: OrderedDict[Addresses, _Span] = OrderedDict()

    def find(self, addresses: Addresses) -> int | None:
        """Return where a list lies, None when it lies nowhere any more."""
        span = self._spans.get(addresses)
        return None if span is None else span.first

    def make_room(self, count: int) -> int:
        """Return where so many addresses may be written; what lies there is forgotten.

        Raises
        ------
        ValueError
            When there is not so much room in all.
        """
        if not 0 < count <= self._capacity:
            raise ValueError(f"a list of {count} addresses does not fit; allowed: 1 to {self._capacity}")
        if self._next + count > self._capacity:
            self._forget(_Span(self._next, self._capacity))
            self._next = 0
        self._forget(_Span(self._next, self._next + count))
        return self._next

    def lay(self, addresses: Addresses) -> None:
        """Remember that a list was written where `make_room` for it has just said."""
        self._spans[addresses] = _Span(self._next, self._next + len(addresses))
        self._next += len(addresses)

    def _forget(self, needed: _Span) -> None:
        """Forget the oldest lists as long as they lie in the way."""
        while self._spans:
            oldest = next(iter(self._spans.values()))
            if oldest.last <= needed.first or oldest.first >= needed.last:
                return
            self._spans.popitem(last=False)
