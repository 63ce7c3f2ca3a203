"""Who wants to hear what the runtime does, and the names of what there is to hear."""

import logging
from collections.abc import Callable
from types import MappingProxyType

from tensorplay.locks import ForkSafeLock
from tensorplay.typing import Listener

__all__ = [
    "EVENTS",
    "FALLBACK",
    "FILE",
    "HEALED",
    "PINNED",
    "QUEUED",
    "REJECTED",
    "SETTING",
    "TUNED",
    "TUNING_FAILED",
    "TUNING_STARTED",
    "UNTUNED",
    "WINNER",
    "Listeners",
]

QUEUED = "queued"
"""A problem waits to be measured in the background; the first choice runs meanwhile."""
TUNING_STARTED = "tuning_started"
"""A problem is about to be measured."""
TUNED = "tuned"
"""A measurement ended, and its winner is recorded."""
TUNING_FAILED = "tuning_failed"
"""A measurement could not be finished; the first choice runs."""
HEALED = "healed"
"""A stale entry was replaced by a fresh winner."""
REJECTED = "rejected"
"""A recorded winner does not run any more, with the reason."""
PINNED = "pinned"
"""A signature runs the first choice for the rest of the process, since a graph capture saw it first."""
UNTUNED = "untuned"
"""A signature ran without a recorded winner, for the first time."""
FALLBACK = "fallback"
"""A kernel failed when it was launched, and the first choice ran for that call."""
WINNER = "winner"
"""A person pinned, unpinned, overrode or forgot a winner, went back to an earlier one, or cleared a list."""
SETTING = "setting"
"""A setting changed its value."""
FILE = "file"
"""A file was read, written or refused."""

EVENTS = (
    QUEUED,
    TUNING_STARTED,
    TUNED,
    TUNING_FAILED,
    HEALED,
    REJECTED,
    PINNED,
    UNTUNED,
    FALLBACK,
    WINNER,
    SETTING,
    FILE,
)

_logger = logging.getLogger("tensorplay")


class _Registration:
    __slots__ = ("has_failed", "listener")

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.has_failed = False


class Listeners:
    """The listeners of one context; true when there are any. Safe in any number of threads."""

    __slots__ = ("_lock", "_registrations")

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        # Replaced and never changed, so that `tell` needs no lock.
        self._registrations: tuple[_Registration, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._registrations)

    def add(self, listener: Listener) -> Callable[[], None]:
        """Let `listener` hear every later event; return what ends that, which may be called again in vain."""
        added = _Registration(listener)
        with self._lock:
            self._registrations += (added,)

        def remove() -> None:
            with self._lock:
                self._registrations = tuple(kept for kept in self._registrations if kept is not added)

        return remove

    def tell(self, event: str, /, **detail: object) -> None:
        """Call each listener with the event, on this thread, with no lock held.

        What a listener raises is logged, the first time, and dropped.
        """
        registrations = self._registrations
        if not registrations:
            return
        facts = MappingProxyType(detail)
        for registration in registrations:
            try:
                registration.listener(event, facts)
            except Exception:  # whatever it is, it must not reach the product that is running
                if not registration.has_failed:
                    registration.has_failed = True
                    _logger.exception("a listener failed on %r; its further failures are not logged", event)
