"""Long work in short parts: the thread that multiplies gets its turn between them.

Whoever holds the interpreter's lock keeps it for all of a long sort, and for 5 ms of anything else. So nothing here is
sorted as a whole, and there is a pause after every part, in which a thread that waits goes on at once.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any, TypeVar

__all__ = ["in_slices", "paced", "sorted_in_slices"]

T = TypeVar("T")

_SLICE = 2048
_PAUSE_S = 5e-5


def in_slices(items: Iterable[T], size: int = _SLICE) -> Iterator[list[T]]:
    """Yield the items in parts, with a pause before each but the first."""
    iterator, is_first = iter(items), True
    while part := list(islice(iterator, size)):
        if not is_first:
            time.sleep(_PAUSE_S)
        is_first = False
        yield part


def paced(items: Iterable[T]) -> Iterator[T]:
    """Yield the items one by one, with a pause now and then; no more than one of them is held."""
    for number, item in enumerate(items, 1):
        yield item
        if not number % _SLICE:
            time.sleep(_PAUSE_S)


def sorted_in_slices(items: Sequence[T], key: Callable[[T], Any]) -> list[T]:
    """Return the items sorted, as `sorted` does."""
    runs = [sorted(part, key=key) for part in in_slices(items)]
    if len(runs) < 2:
        return runs[0] if runs else []
    return list(paced(merge(*runs, key=key)))
