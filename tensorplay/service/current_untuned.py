"""The signatures without a winner as they are now, with their calls, and when each was first and last called."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from tensorplay.locks import ForkSafeLock
from tensorplay.service.current_index import CurrentIndex
from tensorplay.service.last_calls import LastCalls
from tensorplay.service.untuned_list import UntunedRow, untuned_rows
from tensorplay.service.watched import WatchedContext
from tensorplay.service.worker import Worker

__all__ = ["MOST_FIRSTS", "CurrentUntuned"]

MOST_FIRSTS = 1 << 16
"""Signatures of which it is known when they first ran without a winner."""

# How long a list that counts calls is shown as it was; calls are counted without telling anybody.
_FRESH_S = 1.0


class _Taken(NamedTuple):
    """The signatures without a winner as they were at one moment."""

    rows: Sequence[UntunedRow]
    revision: int
    time: float


class CurrentUntuned:
    """The signatures of one context that ran without a winner; safe in any number of threads.

    Parameters
    ----------
    context : WatchedContext
        Whose signatures they are.
    winners : CurrentIndex
        The winners of the same context.
    worker : Worker
        Whose thread makes the list.
    revision : callable
        Returns a number that grows whenever the list of the context changes.
    now : callable
        Returns the time as text.
    """

    def __init__(
        self,
        context: WatchedContext,
        winners: CurrentIndex,
        worker: Worker,
        revision: Callable[[], int],
        now: Callable[[], str],
    ) -> None:
        self._context = context
        self._winners = winners
        self._worker = worker
        self._revision_here = revision
        self._now = now
        self._lock = ForkSafeLock()
        self._taken = _Taken((), -1, 0.0)
        # In the order that they came: a plain dictionary walks over all that it has dropped to find its first.
        self._firsts = OrderedDict[tuple[str, str], str]()
        self._last_calls = LastCalls(context.calls_by_signature(), {})

    def note(self, op: str, params: str, when: str) -> None:
        """Note that a signature ran without a winner; only its first time counts."""
        with self._lock:
            self._firsts.setdefault((op, params), when)
            if len(self._firsts) > MOST_FIRSTS:
                self._firsts.popitem(last=False)

    def first_seen(self, op: str, params: str) -> str | None:
        """Return when a signature first ran without a winner; None for what did before this was made."""
        return self._firsts.get((op, params))

    def last_seen(self, op: str, params: str) -> str | None:
        """Return when a list last found more calls of a signature than before; None for none since this was made."""
        return self._last_calls.times.get((op, params))

    def now(self) -> Sequence[UntunedRow]:
        """Return the signatures that have no winner yet, the most called first, made on the caller's thread.

        Calls may be those of a moment ago.
        """
        return self._made(self._revision(), time.monotonic())

    async def get(self) -> Sequence[UntunedRow]:
        """Return what `now` returns, without holding up the loop."""
        revision, asked = self._revision(), time.monotonic()
        if self._is_fresh(revision, asked):
            return self._taken.rows
        return await self._worker.compute(partial(self._made, revision, asked))

    def _revision(self) -> int:
        return self._context.results_revision() + self._revision_here()

    def _is_fresh(self, revision: int, asked: float) -> bool:
        """Return whether the list was made after that revision, and not long before it was asked for."""
        return self._taken.revision >= revision and asked - self._taken.time <= _FRESH_S

    def _made(self, wanted: int, asked: float) -> Sequence[UntunedRow]:
        if not self._is_fresh(wanted, asked):
            here = self._revision_here()
            index = self._winners.now()
            without = [each for each in self._context.get_untuned() if each not in index]
            calls = self._context.calls_by_signature() if without else {}
            if without:
                self._last_calls = self._last_calls.after(without, calls, self._firsts, self._now())
            self._taken = _Taken(untuned_rows(without, calls), index.revision + here, time.monotonic())
        return self._taken.rows
