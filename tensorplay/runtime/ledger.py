"""What one process has met and learned: counts, pins, untuned signatures, rejections, measurements' reports."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from tensorplay.gemm import Signature
from tensorplay.locks import ForkSafeLock
from tensorplay.measure.report import SelectionReport
from tensorplay.runtime import listeners as events
from tensorplay.runtime.counters import Counters
from tensorplay.runtime.listeners import Listeners
from tensorplay.runtime.newest import keep_newest
from tensorplay.runtime.rejections import Rejections
from tensorplay.runtime.resolution import Reason

__all__ = ["Evidence", "Ledger"]

# Reports are evidence for people; a workload whose shapes never repeat keeps the newest.
MOST_REPORTS = 4096
# Beyond that, what is untuned is still logged to the file, but neither counted nor listed.
MOST_UNTUNED = 1 << 16
# Of signatures that are not measured the newest are known; an older one is tried, or found too expensive, once more.
MOST_UNMEASURABLE = 1 << 16


class Evidence(NamedTuple):
    """How a winner was chosen: what was measured, the clocks in MHz right after it, and whether a stale one went."""

    report: SelectionReport
    clocks: Mapping[str, int] | None = None
    has_healed: bool = False

    def to_dict(self) -> dict[str, object]:
        """Return it as plain JSON values; no candidate is left out."""
        return {**self.report.to_dict(), "left_out": 0, "clocks": dict(self.clocks) if self.clocks else None}


class Ledger:
    """Facts of this process that no file holds; safe in any number of threads. Tells the listeners what is new."""

    def __init__(self, listeners: Listeners) -> None:
        self.counters = Counters()
        self.rejections = Rejections()
        self._listeners = listeners
        self._lock = ForkSafeLock()
        # Not bounded: what a graph has captured must run the same for as long as the graph may be replayed. Each is
        # smaller than what the graph itself keeps of that product.
        self._pinned: dict[Signature, str] = {}
        self._untuned: dict[Signature, None] = {}
        self._unmeasurable: OrderedDict[Signature, str] = OrderedDict()
        self._failures: dict[type[Exception], int] = {}
        self._broken_off: OrderedDict[Signature, int] = OrderedDict()
        self._evidence: OrderedDict[Signature, Evidence] = OrderedDict()

    def pin(self, signature: Signature, why: str) -> None:
        """Keep the first choice for a signature until `unpin`."""
        with self._lock:
            new = signature not in self._pinned
            self._pinned.setdefault(signature, why)
        if new:
            self._count(Reason.PINNED, events.PINNED, signature, reason=why)

    def pinned(self, signature: Signature) -> str | None:
        """Return why a signature is pinned, None when it is not."""
        return self._pinned.get(signature)

    def unpin(self) -> int:
        """Drop every pin; return how many there were."""
        with self._lock:
            count = len(self._pinned)
            self._pinned.clear()
        return count

    def note_untuned(self, signature: Signature) -> None:
        """Remember that a signature ran without a winner."""
        with self._lock:
            new = signature not in self._untuned and len(self._untuned) < MOST_UNTUNED
            if new:
                self._untuned[signature] = None
        if new:
            self._count(Reason.UNTUNED, events.UNTUNED, signature)

    def untuned(self) -> list[Signature]:
        """Return the signatures that ran without a winner, in the order met."""
        with self._lock:
            return list(self._untuned)

    def forget_untuned(self, signature: Signature | None = None) -> int:
        """Take a signature off the list of untuned ones, or all; return how many that were."""
        with self._lock:
            if signature is not None:
                return int(self._untuned.pop(signature, signature) is None)
            count = len(self._untuned)
            self._untuned.clear()
        return count

    def reject(self, signature: Signature, kernel: str, reason: str) -> None:
        """Remember that a recorded winner did not run."""
        if self.rejections.add(signature, kernel, reason):
            self._count(Reason.REJECTED, events.REJECTED, signature, kernel=kernel, reason=reason)

    def give_up(self, signature: Signature, why: str) -> None:
        """Remember that measuring a signature failed, so that it is not tried on every call."""
        with self._lock:
            self._unmeasurable[signature] = why
            keep_newest(self._unmeasurable, MOST_UNMEASURABLE)

    def count_failure(self, error: Exception) -> int:
        """Count a call that could not be decided; return how many there were with an error of that class."""
        with self._lock:
            count = self._failures[type(error)] = self._failures.get(type(error), 0) + 1
        return count

    def break_off(self, signature: Signature) -> int:
        """Count a measurement that ended in a way nobody foresaw; return how many have since one ended well."""
        with self._lock:
            count = self._broken_off[signature] = self._broken_off.get(signature, 0) + 1
            keep_newest(self._broken_off, MOST_UNMEASURABLE)
        return count

    def not_measurable(self, signature: Signature) -> str | None:
        """Return why a signature is not measured, None when it can be."""
        return self._unmeasurable.get(signature)

    def try_again(self) -> None:
        """Let every signature be measured again: a setting that may have been the reason has changed."""
        with self._lock:
            self._unmeasurable.clear()
            self._broken_off.clear()

    def forget(self, signature: Signature, kernel: str | None = None) -> None:
        """Forget what was learned against a signature; against one kernel of it when that is named."""
        with self._lock:
            self._unmeasurable.pop(signature, None)
            self._broken_off.pop(signature, None)
            self._evidence.pop(signature, None)
        for failed in self.rejections.failed(signature):
            if kernel in {None, failed}:
                self.rejections.forgive(signature, failed)

    def note_queued(self, signature: Signature) -> None:
        """Count a signature that is to be measured in the background."""
        self._count(Reason.QUEUED, events.QUEUED, signature)

    def keep_evidence(self, signature: Signature, evidence: Evidence) -> None:
        """Keep how a winner was chosen."""
        with self._lock:
            self._evidence[signature] = evidence
            keep_newest(self._evidence, MOST_REPORTS)
            self._broken_off.pop(signature, None)
        self.counters.count(Reason.MEASURED)

    def evidence(self, signature: Signature) -> Evidence | None:
        """Return how a winner was chosen, None when this process did not choose it."""
        return self._evidence.get(signature)

    def _count(self, counted: Reason, event: str, signature: Signature, **detail: object) -> None:
        self.counters.count(counted)
        self._listeners.tell(event, op=signature.op, params=signature.params, **detail)
