"""What happened, counted by reason and by signature."""

from collections import Counter

from tensorplay.gemm import Signature
from tensorplay.locks import ForkSafeLock
from tensorplay.runtime.resolution import Reason

__all__ = ["Counters", "Tally"]


# Beyond that, calls are counted by reason alone: a workload whose shapes never repeat must not grow for ever.
MOST_TALLIES = 1 << 16


class Tally:
    """Calls of one signature for one reason.

    The hot path writes `tally.calls += 1` without a lock. Between its load and its store there is no call and no
    backward jump, the only places where the interpreter switches threads, so no count is lost.
    """

    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls = 0


class Counters:
    """Counts of calls, kept in tallies, and of events; safe in any number of threads."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._tallies: dict[tuple[Signature | None, Reason], Tally] = {}
        self._events = dict.fromkeys(Reason, 0)

    def tally(self, signature: Signature | None, reason: Reason) -> Tally:
        """Return the tally of a signature and reason; None stands for all products that have no signature."""
        with self._lock:
            known = self._tallies.get((signature, reason))
            if known is not None:
                return known
            if len(self._tallies) >= MOST_TALLIES:
                signature = None
            return self._tallies.setdefault((signature, reason), Tally())

    def count(self, reason: Reason) -> None:
        """Count one event."""
        with self._lock:
            self._events[reason] += 1

    def totals(self) -> dict[str, int]:
        """Return the count of every reason, also of those that never occurred."""
        with self._lock:
            totals = {reason.value: self._events[reason] for reason in Reason}
            # Of a copy, here and below: a signal handler that multiplies takes this lock again, and adds tallies.
            for (_, reason), tally in self._tallies.copy().items():
                totals[reason.value] += tally.calls
        return totals

    def calls_made(self) -> int:
        """Return how many calls there were in all, for whoever waits until there are no more."""
        with self._lock:
            return sum(tally.calls for tally in list(self._tallies.values()))

    def calls(self, signature: Signature) -> dict[str, int]:
        """Return how often one signature was called, by reason."""
        with self._lock:
            found = [(reason, self._tallies.get((signature, reason))) for reason in Reason]
        return {reason.value: tally.calls for reason, tally in found if tally is not None and tally.calls}

    def calls_without_winner(self) -> dict[Signature, int]:
        """Return how often each signature ran what no recorded winner had decided."""
        with self._lock:
            tallies = self._tallies.copy()
        calls: Counter[Signature] = Counter()
        for (owner, reason), tally in tallies.items():
            if owner is not None and reason is not Reason.REPLAYED:
                calls[owner] += tally.calls
        return dict(calls)
