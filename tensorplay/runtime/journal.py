"""Which winners changed since some moment, so that who shows them need not read all of them again."""

from collections import deque
from contextlib import suppress

from tensorplay.gemm import Signature
from tensorplay.locks import ForkSafeLock

__all__ = ["MOST_CHANGES", "Journal"]

MOST_CHANGES = 4096
"""Changes that are remembered one by one; who is further behind has to read everything."""


class Journal:
    """Numbered changes of the winners of one context; safe in any number of threads.

    A change is noted after it was made: who reads the revision first, and winners then, misses none.
    """

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._revision = 0
        # Changes up to this revision are not known one by one.
        self._known_from = 0
        self._changes: deque[tuple[int, Signature]] = deque()

    @property
    def revision(self) -> int:
        """Return a number that grows with each change."""
        return self._revision

    def note(self, signature: Signature) -> None:
        """Count a change of one winner: added, replaced, dropped, pinned or unpinned."""
        with self._lock:
            self._revision += 1
            self._changes.append((self._revision, signature))
            if len(self._changes) > MOST_CHANGES:
                # A signal handler on this thread may have noted many since they were counted.
                with suppress(IndexError):
                    dropped, _ = self._changes.popleft()
                    if dropped > self._known_from:  # noqa: PLR1730 - a handler may raise it during a call
                        self._known_from = dropped

    def note_many(self) -> None:
        """Count a change of any number of winners at once."""
        with self._lock:
            self._revision += 1
            self._known_from = self._revision
            self._changes.clear()

    def since(self, revision: int) -> frozenset[Signature] | None:
        """Return the signatures that changed behind a revision; None when that is not known any more."""
        with self._lock:
            # Copied, and that before the bound is read: a signal handler on this thread may note more at any time.
            changes = list(self._changes)
            if revision < self._known_from:
                return None
            return frozenset(signature for number, signature in changes if number > revision)
