"""Who wants to hear what the runtime does, and the names of what there is to hear."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from tensorplay.locks import ForkSafeLock
from tensorplay.runtime.notice import logger
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
"""A problem is about to be measured; told while other threads wait for their turn to measure."""
TUNED = "tuned"
"""A measurement ended, and its winner is recorded."""
TUNING_FAILED = "tuning_failed"
"""A measurement could not be finished, or decided nothing; what ran before runs on."""
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


class _Registration:
    __slots__ = ("has_failed", "listener")

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.has_failed = False


class _Waiting(threading.local):
    """What a thread is to tell when it has given its locks back, in order."""

    def __init__(self) -> None:
        self.events: deque[tuple[str, Mapping[str, object]]] = deque()


class Listeners:
    """The listeners of one context; true when there are any. Safe in any number of threads.

    A listener may take locks of its own, and wait for threads that hold them and ask the context something. So nobody
    is told anything while a lock is held that `defer_under` was given: what happens under it is told right after. But
    `tuning_started` is told by whoever has the turn to measure: its listener must not wait for one who waits for that.
    """

    __slots__ = ("_deferring", "_lock", "_registrations", "_waiting")

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._waiting = _Waiting()
        self._deferring: tuple[ForkSafeLock, ...] = ()
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

    def defer_under(self, lock: ForkSafeLock) -> None:
        """Let nothing be told by a thread that holds `lock`; whoever takes it does so inside of `afterwards`."""
        with self._lock:
            self._deferring += (lock,)

    @contextmanager
    def afterwards(self) -> Iterator[None]:
        """Tell at the end what had to wait for a lock; where one is still held, an outer `afterwards` tells it."""
        try:
            yield
        finally:
            if not self._is_deferring():
                self._tell_waiting()

    def tell(self, event: str, /, **detail: object) -> None:
        """Call each listener with the event, on this thread, with no lock held: now, or when they are given back.

        What a listener raises is logged, the first time, and dropped.
        """
        self.tell_under(None, event, **detail)

    def tell_under(self, lock: ForkSafeLock | None, event: str, /, **detail: object) -> None:
        """Do as `tell`, and wait for every lock but this one."""
        if not self._registrations:
            return
        # Asked of the locks, and not counted: no interrupt can make that wrong.
        self._waiting.events.append((event, MappingProxyType(detail)))
        if not self._is_deferring(lock):
            self._tell_waiting()

    def _is_deferring(self, but: ForkSafeLock | None = None) -> bool:
        return any(lock.is_held_here() for lock in self._deferring if lock is not but)

    def _tell_waiting(self) -> None:
        waiting = self._waiting.events
        while waiting:
            self._call_each(*waiting.popleft())

    def _call_each(self, event: str, facts: Mapping[str, object]) -> None:
        for registration in self._registrations:
            try:
                registration.listener(event, facts)
            except Exception:  # noqa: BLE001 - whatever it is, it must not reach the product that is running
                if not registration.has_failed:
                    registration.has_failed = True
                    logger.exception("a listener failed on %r; its further failures are not logged", event)
