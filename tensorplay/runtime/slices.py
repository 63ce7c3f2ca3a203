"""Long work in short parts: the thread that multiplies gets its turn between them.

Whoever holds the interpreter's lock keeps it for all of a long sort, and for 5 ms of anything else. So nothing here is
sorted or freed as a whole, and there is a pause after every part, in which a thread that waits goes on at once.
"""

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any, TypeVar

__all__ = ["emptied", "in_slices", "paced", "sorted_in_slices"]

K = TypeVar("K")
T = TypeVar("T")

_SLICE = 2048
_PAUSE_S = 5e-5


def in_slices(items: Iterable[T], size: int = _SLICE) -> Iterator[list[T]]:
    """Yield the items in parts, with a pause before each but the first."""
    iterator, is_first = iter(items), True
    while part := list(islice(iterator, size)):
        if not is_first:
            _give_way()
        is_first = False
        yield part


def paced(items: Iterable[T], size: int = _SLICE) -> Iterator[T]:
    """Yield the items one by one, with a pause now and then; no more than one of them is held."""
    for number, item in enumerate(items, 1):
        yield item
        if not number % size:
            _give_way()


def emptied(items: dict[K, T], size: int = _SLICE) -> Iterator[list[T]]:
    """Yield what a dictionary holds in parts, the last first, and take it out, with a pause after each.

    What is thrown away as a whole is freed as a whole: fifty thousand winners, for a twentieth of a second.
    """
    while items:
        yield [items.popitem()[1] for _ in range(min(size, len(items)))]
        _give_way()


def sorted_in_slices(items: Sequence[T], key: Callable[[T], Any]) -> list[T]:
    """Return the items sorted, as `sorted` does."""
    runs = [sorted(part, key=key) for part in in_slices(items)]
    if len(runs) < 2:
        return runs[0] if runs else []
    return list(paced(merge(*runs, key=key)))


def _give_way() -> None:
    """Let another thread run, and the garbage collector look at no more than what a part has made.

    It counts no tuple that takes the place of one that was thrown away, so that it may have let a hundred thousand
    gather before it looks at all of them, for a fortieth of a second.
    """
    # No threshold is another way to switch it off: then it would look at all that was ever made.
    if gc.isenabled() and gc.get_threshold()[0]:
        gc.collect(0)
    time.sleep(_PAUSE_S)
