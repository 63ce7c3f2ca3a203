"""Winners in great number, as the garbage collector need not look at them."""

from collections.abc import Iterable, Iterator
from typing import SupportsIndex, overload

from tensorplay.database.record import Entry

__all__ = ["Entries", "Raw"]

Raw = tuple[str, str, str, float]
"""An `Entry`, or the same as a plain tuple."""


class Entries(list[Entry]):
    """A list of winners that keeps plain tuples, and gives an `Entry` for each only when it is asked for it.

    The collector looks at every object of a class, and stops all threads meanwhile: fifty thousand fresh entries make
    it look at the whole process, for a tenth of a second. Plain tuples of texts and numbers it lets be.
    """

    def __init__(self, entries: Iterable[Raw] = ()) -> None:
        super().__init__(map(tuple, entries))  # type: ignore[arg-type] # plain, see above

    def append(self, entry: Raw) -> None:
        """Add a winner at the end."""
        super().append(tuple(entry))  # type: ignore[arg-type] # as above

    def __iter__(self) -> Iterator[Entry]:
        """Give every winner in turn."""
        return map(Entry._make, super().__iter__())

    @overload
    def __getitem__(self, place: SupportsIndex) -> Entry: ...

    @overload
    def __getitem__(self, place: slice) -> "Entries": ...

    def __getitem__(self, place: SupportsIndex | slice) -> "Entry | Entries":
        """Give the winner in a place, or those in some places."""
        if isinstance(place, slice):
            return Entries(super().__getitem__(place))
        return Entry._make(super().__getitem__(place))
