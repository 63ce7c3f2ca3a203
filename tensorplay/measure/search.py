"""The search: a walk from the best of what was offered to their neighbours, and on to the neighbours of those.

Its order is a guess from what was fast so far; what it finds is only worth a race. Everybody is compared with the
first choice, which is read again all the time, since clocks drift while it goes on.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from tensorplay.errors import LaunchError
from tensorplay.measure.frontier import OPEN_WITHIN, Frontier, Point, Waiting
from tensorplay.measure.report import SearchReport
from tensorplay.measure.sampler import Record, Sampler
from tensorplay.measure.search_memory import Knowledge
from tensorplay.measure.statistics import median
from tensorplay.measure.traits import traits_of
from tensorplay.typing import Pending

__all__ = ["KEPT", "PATIENCE", "READ_MS", "SEARCH_SHARE", "SETTLED", "WALK_SHARE", "Search", "widen"]

T = TypeVar("T")

SEARCH_SHARE = 0.5
"""Part of the deadline that screening and search may take: the race and the confirmation need the rest."""

WALK_SHARE = 0.95
"""Part of the search's seconds that the walk may take; in the rest the best are read again."""

READ_MS = 0.04
"""What one reading should cover, so that what surrounds a launch is small; four launches at most."""

PATIENCE = 256
"""After so many candidates without a gain, or twice as many as it took to the last one, the walk turns elsewhere."""

SETTLED = 48
"""So many of the best are read twice more: the lowest of many readings is low by luck as well."""

KEPT = 24
"""So many of these go on to the race, whose samples tell more: between launches that are not replayed lies up to a
microsecond and a half, more for one kernel than for another, which is a tenth of the time of the smallest."""

_BATCH = 12
_MOST_FOUND = 256
_REMEMBERED = 3
_MOST_LAUNCHES = 4
_PACES = 3
# As logs of ratios: what counts as a gain, and how far behind the best one may be to go on.
_GAIN, _NEAR = 0.003, 0.06
# What may lie between the launches of one kernel more than between those of another.
_BETWEEN_MS = 0.0005


@dataclass(frozen=True, slots=True, kw_only=True)
class Search(Generic[T]):
    """What a search goes by.

    Attributes
    ----------
    neighbours : callable
        Returns what is one step away from a candidate, each built and checked by the library, most promising first;
        `Pending` in the place of one that is still being made.
    passes : callable or None
        Runs a candidate once and returns whether its result is right; may raise `LaunchError`. None for no check.
    recall : callable
        Returns the candidate of a kernel id that was fast for an earlier product, None when it cannot run here.
    knowledge : Knowledge
        What earlier searches found, to which this one adds.
    seconds : float
        How long it may take; 0 for as long as there is somebody to look at.
    begun : float or None
        When these seconds began, by the deadline's clock: what was done since then counts. None for with the search.
    """

    neighbours: Callable[[T], Iterable[T | Pending]]
    passes: Callable[[T], bool] | None
    recall: Callable[[str], T | None]
    knowledge: Knowledge
    seconds: float
    begun: float | None = None


def widen(sampler: Sampler[T], plan: Search[T]) -> SearchReport:
    """Add the best candidates that are found to those of the sampler, which must have been screened.

    The seconds, and the sampler's deadline, are looked at before each reading, so that one launch at most goes beyond
    them. Readings count against the budget of the candidate, which the last launch of one at most exceeds; those of the
    first choice do not, since it is read for all of them.
    """
    walk = _Walk(sampler, plan)
    begin = sampler.deadline.now()
    is_complete = walk.go()
    found = walk.settled()
    sampler.records.extend(found)
    return SearchReport(
        checked=walk.checked,
        passed=walk.passed,
        timed=walk.timed,
        kept=len(found),
        seconds=sampler.deadline.now() - begin,
        is_complete=is_complete,
    )


class _Walk(Generic[T]):
    def __init__(self, sampler: Sampler[T], plan: Search[T]) -> None:
        self.checked = self.passed = self.timed = 0
        self._sampler = sampler
        self._plan = plan
        self._deadline = sampler.deadline.within(_left(plan, sampler.deadline.now()), SEARCH_SHARE)
        self._effects = plan.knowledge.effects
        self._effects.fade()
        self._paces: deque[float] = deque(maxlen=_PACES)
        self._launches = max(1, min(_MOST_LAUNCHES, math.ceil(READ_MS / sampler.first.readings[-1])))
        self._frontier = Frontier(
            plan.neighbours,
            sampler.describe,
            self._effects,
            (record.kernel for record in sampler.records),
            self._deadline,
        )
        self._offered: list[tuple[float, str]] = []
        self._found: list[tuple[float, Record[T]]] = []
        self._best = 0.0
        self._last_gain = 0

    def go(self) -> bool:
        """Walk until time is over or nothing promising is left; return whether it was the latter."""
        self._start()
        while batch := self._frontier.take(_BATCH, self._is_over):
            self._read_pace()
            for waiting in batch:
                if self._is_over():
                    return False
                self._visit(waiting)
            if self.timed - self._last_gain > max(PATIENCE, 2 * self._last_gain):
                self._frontier.spread()
                self._last_gain = self.timed
        return not self._is_over()

    def settled(self) -> list[Record[T]]:
        """Return the best of what was found, after reading them again, in the order of their scores."""
        contestants = [record for _, record in sorted(self._found, key=lambda each: each[0])[:SETTLED]]
        scores = {record: [score] for score, record in self._found if record in set(contestants)}
        for _ in range(2):
            for place, record in enumerate(self._sampler.shuffled(contestants)):
                if self._deadline.has_passed():
                    break
                if place % _BATCH == 0:
                    self._read_pace()
                score = self._score(record, record.estimate_ms)
                if score is not None:
                    scores[record].append(score)
        standing = {record: median(scores[record]) for record in contestants if record.dropped is None}
        best = min((self._best, *standing.values()))
        ranked = sorted(standing, key=lambda record: standing[record])
        near = _NEAR + _BETWEEN_MS / self._sampler.first.estimate_ms
        kept = [record for record in ranked[:KEPT] if standing[record] - best <= near]
        fast = [*self._offered, *((standing[record], record.kernel) for record in kept)]
        self._plan.knowledge.remember(kernel for _, kernel in sorted(fast)[:_REMEMBERED])
        return kept

    def _start(self) -> None:
        first_ms = self._sampler.first.readings[-1]
        for record in self._sampler.survivors:
            score = math.log(record.readings[-1] / first_ms)
            self._best = min(self._best, score)
            self._offered.append((score, record.kernel))
            self._frontier.open(Point(record.candidate, record.kernel, traits_of(record.kernel), score))
        for kernel in self._plan.knowledge.kernels:
            if self._is_over():
                return
            candidate = self._plan.recall(kernel)
            if candidate is not None:
                self._frontier.offer(candidate)

    def _visit(self, waiting: Waiting[T]) -> None:
        record, begin = self._sampler.enter(waiting.candidate), self._deadline.now()
        if not self._is_right(waiting.candidate) or self._is_over():
            return
        self._sampler.warm_up(record, is_proven=self._plan.passes is not None)
        # It has run once meanwhile, so one launch takes no longer than that.
        score = self._score(record, (self._deadline.now() - begin) * 1000.0) if record.dropped is None else None
        if score is None:
            return
        self.timed += 1
        if waiting.parent is not None:
            self._effects.learn(waiting.parent.traits, waiting.traits, score - waiting.parent.score)
        self._frontier.open(Point(waiting.candidate, waiting.kernel, waiting.traits, score))
        self._keep(score, record)
        if score < self._best - _GAIN:
            self._last_gain = self.timed
        self._best = min(self._best, score)

    def _keep(self, score: float, record: Record[T]) -> None:
        self._found.append((score, record))
        if len(self._found) > _MOST_FOUND:
            self._found = sorted(self._found, key=lambda each: each[0])[:SETTLED]

    def _is_right(self, candidate: T) -> bool:
        self.checked += 1
        if self._plan.passes is not None:
            try:
                if not self._plan.passes(candidate):
                    return False
            except LaunchError:
                return False
        self.passed += 1
        return True

    def _score(self, record: Record[T], estimate_ms: float) -> float | None:
        """Read the record; return the log of its ratio to the first choice, None when it was not read.

        One launch must take no longer than the estimate. Where that is much more than what it took, since a kernel was
        loaded meanwhile, whoever is near is read again, with as many launches as others have.
        """
        score, launches = None, 0
        while (fitting := self._affordable(record, estimate_ms)) > launches:
            self._sampler.read(record, fitting)
            if record.dropped is not None:
                return None
            score, launches, estimate_ms = self._last_score(record), fitting, record.readings[-1]
            if score > OPEN_WITHIN:
                break
        return score

    def _last_score(self, record: Record[T]) -> float:
        return math.log(record.readings[-1] / median(self._paces))

    def _affordable(self, record: Record[T], estimate_ms: float) -> int:
        """Return how many launches a reading may have, 0 for none."""
        if self._deadline.has_passed():
            return 0
        return min(record.allowance.remaining_before_reserve(estimate_ms), self._fitting(estimate_ms))

    def _read_pace(self) -> None:
        if not self._deadline.has_passed():
            self._paces.append(self._sampler.pace(self._fitting(self._sampler.first.estimate_ms)))

    def _fitting(self, estimate_ms: float) -> int:
        """Return how many launches a reading should have, so that at most the last crosses the deadline."""
        left_ms = self._deadline.remaining_seconds() * 1000.0
        if math.isinf(left_ms) or estimate_ms * self._launches <= left_ms:
            return self._launches
        return max(1, math.ceil(left_ms / estimate_ms))

    def _is_over(self) -> bool:
        return self._deadline.has_passed(WALK_SHARE)


def _left(plan: Search[T], now: float) -> float:
    """Return what is left of the seconds of a search."""
    if not plan.seconds:
        return math.inf
    return plan.seconds - (0.0 if plan.begun is None else now - plan.begun)
