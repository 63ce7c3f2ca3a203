"""Recorded winners that no longer run, each with its reason, once per process."""

import time
from collections import OrderedDict
from typing import NamedTuple

from tensorplay.gemm import Signature
from tensorplay.locks import ForkSafeLock
from tensorplay.runtime.newest import keep_newest
from tensorplay.typing import Clock

__all__ = ["MOST_REJECTIONS", "Meetings", "Rejection", "Rejections"]

MOST_REJECTIONS = 1 << 16
"""Beyond that, rejected winners are neither counted nor listed, and the oldest kernels that failed are tried again."""


class Rejection(NamedTuple):
    """A recorded winner that did not run, and why; `healed` names what was measured in its place, if anything."""

    op: str
    params: str
    kernel: str
    reason: str
    healed: str | None = None


class Meetings(NamedTuple):
    """How often a rejected winner was met, and when first and last, in seconds since 1970.

    It is met whenever its product is decided anew, and not by every call.
    """

    times: int
    first: float
    last: float


class Rejections:
    """The rejections of one process, in the order they were met; safe in any number of threads.

    Parameters
    ----------
    clock : callable
        Seconds since 1970.
    """

    def __init__(self, clock: Clock = time.time) -> None:
        self._clock = clock
        self._lock = ForkSafeLock()
        self._met: dict[tuple[Signature, str], Rejection] = {}
        # By signature, since each product that has a winner asks.
        self._failed: OrderedDict[Signature, dict[str, None]] = OrderedDict()
        self._meetings: dict[tuple[Signature, str], Meetings] = {}

    def add(self, signature: Signature, kernel: str, reason: str) -> bool:
        """Remember one; return whether it is new in this process."""
        key = (signature, kernel)
        now = self._clock()
        with self._lock:
            known = self._met.get(key)
            if known is None and len(self._met) >= MOST_REJECTIONS:
                return False
            before = self._meetings.get(key, Meetings(0, now, now))
            self._meetings[key] = Meetings(before.times + 1, before.first, now)
            if known is not None and known.healed is None:
                return False
            self._met[key] = Rejection(*signature, kernel, reason)
            return True

    def fail(self, signature: Signature, kernel: str) -> None:
        """Remember that a kernel builds for a signature but failed when it ran: it is stale from now on."""
        with self._lock:
            self._failed.setdefault(signature, {})[kernel] = None
            keep_newest(self._failed, MOST_REJECTIONS)

    def failed(self, signature: Signature) -> frozenset[str]:
        """Return the kernels that failed when they ran for a signature."""
        return frozenset(self._failed.get(signature, ()))

    def heal(self, signature: Signature, kernel: str, *, winner: str) -> None:
        """Note the kernel that took a rejected one's place."""
        with self._lock:
            known = self._met.get((signature, kernel))
            if known is not None:
                self._met[signature, kernel] = known._replace(healed=winner)

    def is_open(self, signature: Signature, kernel: str) -> bool:
        """Return whether a kernel was rejected, and nothing was measured in its place since."""
        known = self._met.get((signature, kernel))
        return known is not None and known.healed is None

    def forgive(self, signature: Signature, kernel: str) -> None:
        """Let a kernel be tried again: a person asked for it."""
        with self._lock:
            self._failed.get(signature, {}).pop(kernel, None)

    def of(self, signature: Signature) -> list[Rejection]:
        """Return those of one signature, oldest first."""
        with self._lock:
            # Of a copy: a signal handler that multiplies takes this lock again, and meets others.
            return [each for each in list(self._met.values()) if (each.op, each.params) == signature]

    def meetings(self, signature: Signature, kernel: str) -> Meetings | None:
        """Return how often one was met, and when; None when it was not."""
        return self._meetings.get((signature, kernel))

    def clear(self) -> int:
        """Drop the list, and not what is known of kernels that failed; return how many there were."""
        with self._lock:
            count = len(self._met)
            self._met.clear()
            self._meetings.clear()
        return count

    def listed(self) -> list[Rejection]:
        """Return all, oldest first."""
        with self._lock:
            return list(self._met.values())
