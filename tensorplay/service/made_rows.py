"""Rows in great number, as the garbage collector need not look at them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar, overload

__all__ = ["MadeRows"]

R = TypeVar("R")
T = TypeVar("T")


class MadeRows(Sequence[T], Generic[R, T]):
    """A sequence that keeps plain tuples, as `Entries` does, and makes a row of one only when it is asked for it.

    Parameters
    ----------
    plain : sequence
        Tuples of texts and numbers, or of such tuples.
    make : callable
        Returns the row of one.
    """

    def __init__(self, plain: Sequence[R], make: Callable[[R], T]) -> None:
        self._plain = plain
        self._make = make

    def __len__(self) -> int:
        return len(self._plain)

    def __iter__(self) -> Iterator[T]:
        """Give every row in turn."""
        return map(self._make, self._plain)

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...

    def __getitem__(self, place: int | slice) -> T | Sequence[T]:
        """Give the row in a place, or those in some places."""
        if isinstance(place, slice):
            return list(map(self._make, self._plain[place]))
        return self._make(self._plain[place])
