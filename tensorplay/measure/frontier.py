"""The frontier of a search: who waits to be timed, and whose neighbours are still to be asked for."""

import heapq
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

from tensorplay.errors import LaunchError
from tensorplay.measure.budget import Deadline
from tensorplay.measure.effects import Effects
from tensorplay.measure.traits import Traits, traits_of
from tensorplay.typing import Pending

__all__ = ["MOST_WAITING", "OPEN_WITHIN", "Frontier", "Point", "Waiting"]

T = TypeVar("T")

MOST_WAITING = 512
"""Candidates that wait at once; of more, the least promising are let go."""

OPEN_WITHIN = 0.25
"""Whoever is behind the best by more has no neighbours that are worth asking for."""

_POOL = 96
"""Candidates that are always to choose from: of fewer, the most promising promises little."""

_SLICE = 16
"""Neighbours that one point is asked for before it is somebody else's turn."""

_SLICE_SECONDS = 0.03
"""A slice ends sooner where it takes longer: neighbours may have to be compiled."""

_SLICE_COST = 0.02
"""By so much a point falls behind with each slice: those that were not asked yet catch up."""

_RANK_COST = 2e-5
"""By so much a neighbour falls behind with each place in its point's own order."""


@dataclass(frozen=True, slots=True, eq=False)
class Point(Generic[T]):
    """A candidate whose time is known: the log of its ratio to the first choice's."""

    candidate: T
    kernel: str
    traits: Traits
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class Waiting(Generic[T]):
    """A candidate that was not timed yet, and the point that it was reached from; None for one out of memory."""

    candidate: T
    kernel: str
    traits: Traits
    parent: Point[T] | None
    rank: int


# A point with its key, the lower the sooner, and a number that tells equal keys apart; its neighbours that are still to
# come, None before it was asked; how many came.
_Asked = tuple[float, int, Point[T], Iterator[T | Pending] | None, int]


class Frontier(Generic[T]):
    """Gives out candidates, most promising first, each once.

    Points are asked for their neighbours best first, in slices, so that a good one is not held up by all
    neighbours of a slightly better one.

    Parameters
    ----------
    neighbours : callable
        Returns what is one step away from a candidate, lazily, most promising first; where `Pending` comes, others are
        asked, and it is asked again at the next `take`.
    describe : callable
        Returns a candidate's kernel id.
    effects : Effects
        What is known of settings.
    known : iterable of str
        Kernel ids that are not given out.
    deadline : Deadline
        Its clock says how long asking takes.
    """

    def __init__(
        self,
        neighbours: Callable[[T], Iterable[T | Pending]],
        describe: Callable[[T], str],
        effects: Effects,
        known: Iterable[str],
        deadline: Deadline,
    ) -> None:
        self._neighbours = neighbours
        self._describe = describe
        self._effects = effects
        self._seen = set(known)
        self._deadline = deadline
        self._waiting: list[Waiting[T]] = []
        self._open: list[_Asked[T]] = []
        self._pending: list[_Asked[T]] = []
        self._wait: Callable[[float], object] = _nothing
        self._numbers = count()
        self._best = math.inf

    def open(self, point: Point[T]) -> None:
        """Let the point's neighbours be asked for, when its turn comes."""
        self._best = min(self._best, point.score)
        if point.score - self._best <= OPEN_WITHIN:
            heapq.heappush(self._open, (point.score, next(self._numbers), point, None, 0))

    def offer(self, candidate: T, parent: Point[T] | None = None, rank: int = 0) -> bool:
        """Let the candidate wait, unless it was seen before; return whether it was new."""
        kernel = self._describe(candidate)
        if kernel in self._seen:
            return False
        self._seen.add(kernel)
        self._waiting.append(Waiting(candidate, kernel, traits_of(kernel), parent, rank))
        return True

    def spread(self) -> None:
        """Let those be asked next that were asked for the fewest neighbours so far, the best of them first."""
        self._reopen()
        self._open = [(point.score + rank, number, point, asked, rank) for _, number, point, asked, rank in self._open]
        heapq.heapify(self._open)

    def take(self, size: int, is_over: Callable[[], bool]) -> list[Waiting[T]]:
        """Return up to `size` candidates, most promising first; none when nothing is left, or time is over."""
        self._reopen()
        if len(self._waiting) < _POOL:
            while self._open and not is_over() and not self._ask(is_over):
                continue
        while len(self._waiting) < size and not is_over():
            if self._open:
                self._ask(is_over)
            elif self._waiting or not self._pending:
                break
            else:
                self._wait(self._deadline.remaining_seconds())
                self._reopen()
        ranked = heapq.nsmallest(MOST_WAITING, self._waiting, key=self._expected)
        taken, self._waiting = ranked[:size], ranked[size:]
        return taken

    def _ask(self, is_over: Callable[[], bool]) -> bool:
        """Ask the point whose turn it is for a slice of its neighbours; return whether there were any."""
        key, number, point, iterator, rank = heapq.heappop(self._open)
        if point.score - self._best > OPEN_WITHIN:
            return False
        iterator = iter(self._neighbours(point.candidate)) if iterator is None else iterator
        found, end = 0, self._deadline.now() + _SLICE_SECONDS
        try:
            for candidate in iterator:
                if isinstance(candidate, Pending):
                    self._wait = candidate.wait
                    self._pending.append((key + _SLICE_COST * found / _SLICE, number, point, iterator, rank))
                    return found > 0
                rank += 1
                found += self.offer(candidate, point, rank)
                if found == _SLICE or is_over() or self._deadline.now() > end:
                    heapq.heappush(self._open, (key + _SLICE_COST, number, point, iterator, rank))
                    return True
        except LaunchError:
            # The library no longer answers for it; what it offered so far stands.
            return found > 0
        return found > 0

    def _reopen(self) -> None:
        for asked in self._pending:
            heapq.heappush(self._open, asked)
        self._pending.clear()

    def _expected(self, waiting: Waiting[T]) -> float:
        if waiting.parent is None:
            return -math.inf
        expected = self._effects.expected(waiting.parent.traits, waiting.traits)
        return waiting.parent.score + expected + _RANK_COST * waiting.rank


def _nothing(_seconds: float) -> None:
    return
