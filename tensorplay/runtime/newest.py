"""Dictionaries that must not grow for ever: what came last stays."""

from collections import OrderedDict
from contextlib import suppress
from typing import TypeVar

__all__ = ["keep_newest"]

K = TypeVar("K")
V = TypeVar("V")


def keep_newest(entries: OrderedDict[K, V], most: int) -> None:
    """Drop the oldest entries beyond `most`; whoever shares them with other threads holds their lock."""
    while len(entries) > most:
        # A signal handler on this thread may have emptied them since they were counted.
        with suppress(KeyError):
            entries.popitem(last=False)
