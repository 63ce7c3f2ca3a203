"""What a process has learnt from earlier searches, kept small: which settings were fast, and which kernels won."""

from collections.abc import Hashable, Iterable

from tensorplay.locks import ForkSafeLock
from tensorplay.measure.effects import Effects

__all__ = ["MOST_KERNELS", "MOST_KINDS", "Knowledge", "SearchMemory"]

MOST_KINDS = 32
"""Kinds of product that are remembered; the one that was searched longest ago goes first."""

MOST_KERNELS = 24
"""Fast kernels of one kind that are remembered; the one that was fast longest ago goes first."""


class Knowledge:
    """What is known of one kind of product."""

    __slots__ = ("_kernels", "effects")

    def __init__(self) -> None:
        self.effects = Effects()
        self._kernels: dict[str, None] = {}

    @property
    def kernels(self) -> list[str]:
        """Return kernel ids that were among the fastest, the latest first."""
        return list(reversed(self._kernels))

    def remember(self, kernels: Iterable[str]) -> None:
        """Keep kernel ids of one product, best first."""
        for kernel in reversed(list(kernels)):
            self._kernels.pop(kernel, None)
            self._kernels[kernel] = None
        while len(self._kernels) > MOST_KERNELS:
            del self._kernels[next(iter(self._kernels))]


class SearchMemory:
    """The knowledge of a process, by kind of product; may be asked by any number of threads.

    What it gives is used by one search at a time.
    """

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._kinds: dict[Hashable, Knowledge] = {}

    def __len__(self) -> int:
        return len(self._kinds)

    def of(self, kind: Hashable) -> Knowledge:
        """Return what is known of a kind, which is nothing at first."""
        with self._lock:
            knowledge = self._kinds.pop(kind, None) or Knowledge()
            self._kinds[kind] = knowledge
            while len(self._kinds) > MOST_KINDS:
                del self._kinds[next(iter(self._kinds))]
            return knowledge
