"""The list of winners as it is now: at hand while little changed, else made on a thread of its own.

Whoever asks waits for it without holding up the loop, on which the streams go on meanwhile. One index is made at a
time, and is for all who had asked before that began.
"""

from collections.abc import Iterator
from functools import partial

from tensorplay.locks import ForkSafeLock
from tensorplay.service.cursor import Cursor
from tensorplay.service.listing import MOST_MOVED, Filter, Page, ResultsIndex
from tensorplay.service.row import Row
from tensorplay.service.watched import WatchedContext
from tensorplay.service.worker import Worker

__all__ = ["CurrentIndex"]


class CurrentIndex:
    """The winners of one context; safe in any number of threads.

    Parameters
    ----------
    context : WatchedContext
        Whose winners they are.
    worker : Worker
        Whose thread makes what takes long.
    """

    def __init__(self, context: WatchedContext, worker: Worker) -> None:
        self._context = context
        self._worker = worker
        self._lock = ForkSafeLock()
        self._known = ResultsIndex(-1, (), first_choices=context.first_choices)

    def now(self) -> ResultsIndex:
        """Return all winners, made on the caller's thread however long that takes."""
        return self._made(self._context.results_revision())

    async def get(self) -> ResultsIndex:
        """Return all winners, of the revision of this moment or a later one."""
        index = self._at_hand()
        if index is None:
            index = await self._worker.compute(partial(self._made, self._context.results_revision()))
        return index

    async def page(self, wanted: Filter, sort: str, limit: int, after: Cursor | None) -> Page:
        """Return what `ResultsIndex.page` returns of all winners."""
        index = self._at_hand()
        if index is None or not index.has(wanted, sort):
            revision = self._context.results_revision()
            return await self._worker.compute(lambda: self._made(revision).page(wanted, sort, limit, after))
        return index.page(wanted, sort, limit, after)

    async def rows(self, wanted: Filter, sort: str = "op") -> Iterator[Row]:
        """Return what `ResultsIndex.rows` returns of all winners."""
        index = self._at_hand()
        if index is None or not index.has(wanted, sort):
            revision = self._context.results_revision()
            return await self._worker.compute(lambda: self._made(revision).rows(wanted, sort))
        return index.rows(wanted, sort)

    def _at_hand(self) -> ResultsIndex | None:
        """Return all winners when they are known but for a few that changed, which takes no time."""
        revision, known = self._context.results_revision(), self._known
        return known if known.revision >= revision else self._updated(known, revision, most=MOST_MOVED)

    def _made(self, wanted: int) -> ResultsIndex:
        """Return all winners, of a revision or a later one."""
        known = self._known
        if known.revision >= wanted:
            return known
        revision = self._context.results_revision()
        updated = self._updated(known, revision)
        if updated is not None:
            return updated
        index = ResultsIndex(revision, self._context.each_recorded(), known, first_choices=self._context.first_choices)
        return self._kept(index)

    def _updated(self, known: ResultsIndex, revision: int, *, most: int | None = None) -> ResultsIndex | None:
        """Return the winners as they have become; None where more than `most` changed, or it is not known which."""
        changed = self._context.changed_since(known.revision) if known.revision >= 0 else None
        if changed is None or (most is not None and len(changed) > most):
            return None
        return self._kept(known.updated(revision, changed, self._context.recorded_of(changed)))

    def _kept(self, index: ResultsIndex) -> ResultsIndex:
        with self._lock:
            if index.revision >= self._known.revision:
                self._known = index
        return index
