"""The queue of what is measured in the background, and the one thread that works on it.

The thread is a daemon, is started when something is queued, and ends when nothing is left. A forked child starts anew
with an empty queue; at the interpreter's exit the thread is asked to end, and waited for, but not for long.
"""

import atexit
import os
import threading
import time
from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet

from tensorplay.gemm import Signature
from tensorplay.locks import ForkSafeLock
from tensorplay.runtime.notice import logger

__all__ = ["MOST_WAITING", "Background", "Placed", "Task"]

MOST_WAITING = 4096
"""Signatures that wait; further ones run the first choice, as with tuning off, until there is room."""

# How often an idle moment is looked for, and what part of the time looking may take.
_PAUSE_S = 0.01
_LOOKING_SHARE = 20
_ENDING_S = 2.0


class Task(Protocol):
    """One signature to measure."""

    signature: Signature
    device: str
    is_cancelled: bool


T = TypeVar("T", bound=Task)


class Placed(Enum):
    """What became of a task that was to be queued."""

    NEW = "new"
    KNOWN = "known"
    REFUSED = "refused"


class Background(Generic[T]):
    """Tasks, each signature once, in the order they came; safe in any number of threads and in signal handlers.

    Parameters
    ----------
    measure : callable
        Measures a task on the thread; returns False for one that is to be measured later again.
    is_time : callable
        Says whether the device of a task may be measured on now.
    failed : callable, optional
        Told of a task that is let go since measuring it, or asking about its device, raised: it may be queued anew.
    forked : callable, optional
        Called in a forked child, where what waited in the parent waits no more.
    most : int
        Tasks that may wait.
    """

    def __init__(
        self,
        measure: Callable[[T], bool],
        is_time: Callable[[T], bool],
        *,
        failed: Callable[[T, Exception], None] | None = None,
        forked: Callable[[], None] | None = None,
        most: int = MOST_WAITING,
    ) -> None:
        self._measure = measure
        self._is_time = is_time
        self._failed = failed
        self._forked = forked
        self._most = most
        self._is_ended = False
        self._has_failed = False
        self._start_anew()
        _all.add(self)

    @property
    def waiting(self) -> int:
        """How many signatures wait."""
        return len(self._waiting)

    @property
    def measuring(self) -> Signature | None:
        """What is being measured now."""
        task = self._measuring
        return None if task is None else task.signature

    def state(self, signature: Signature) -> str | None:
        """Return `queued`, `measuring`, or None."""
        if self.measuring == signature:
            return "measuring"
        return "queued" if signature in self._waiting else None

    def put(self, task: T) -> Placed:
        """Queue a task whose signature neither waits nor is being measured; refused are those without room."""
        with self._lock:
            if self.state(task.signature) is not None:
                return Placed.KNOWN
            if self._is_ended or len(self._waiting) >= self._most:
                return Placed.REFUSED
            self._waiting[task.signature] = task
            # One that was interrupted while it started never ran.
            if (self._thread is None or not self._thread.is_alive()) and not self._start_thread():
                del self._waiting[task.signature]
                return Placed.REFUSED
            return Placed.NEW

    def remove(self, signature: Signature) -> None:
        """Let a signature wait no longer; what is being measured goes on."""
        with self._lock:
            self._waiting.pop(signature, None)
            self._changed.notify_all()

    def clear(self) -> None:
        """Let nothing wait any longer, and call off what is being measured."""
        with self._lock:
            self._waiting.clear()
            if self._measuring is not None:
                self._measuring.is_cancelled = True
            self._changed.notify_all()

    def drain(self, timeout_s: float | None = None) -> bool:
        """Wait until nothing waits and nothing is being measured; return whether that came within the time.

        False at once on the thread itself, in a listener that it calls.
        """
        with self._lock:
            if threading.current_thread() is self._thread:
                return False
            # The interpreter refuses longer waits than that, which is some centuries.
            bound = None if timeout_s is None else min(max(timeout_s, 0.0), threading.TIMEOUT_MAX)
            return self._changed.wait_for(self._is_drained, bound)

    def end(self, wait_s: float = _ENDING_S) -> None:
        """Call everything off for good, and wait a while for the thread to notice."""
        with self._lock:
            self._is_ended = True
            self.clear()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(wait_s)

    def _start_anew(self) -> None:
        """Forget everything: in a new object, and in a forked child, where no thread works on it."""
        self._lock = ForkSafeLock()
        self._changed = threading.Condition(self._lock)
        self._waiting: dict[Signature, T] = {}
        self._measuring: T | None = None
        self._is_telling = False
        self._thread: threading.Thread | None = None

    def _start_thread(self) -> bool:
        thread = threading.Thread(target=self._work, name="tensorplay-background", daemon=True)
        self._thread = thread
        try:
            thread.start()
        except RuntimeError as error:
            # No more threads, or the interpreter is about to exit.
            self._thread = None
            if not self._has_failed:
                self._has_failed = True
                logger.warning("nothing is measured in the background: %s", error)
            return False
        return True

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    self._changed.notify_all()
                    return
                heads: dict[str, T] = {}
                for task in list(self._waiting.values()):
                    heads.setdefault(task.device, task)
            began = time.monotonic()
            ready = next(filter(self._is_ready, heads.values()), None)
            with self._lock:
                if ready is None:
                    self._changed.wait(max(_PAUSE_S, _LOOKING_SHARE * (time.monotonic() - began)))
                    continue
                self._measuring = taken = self._waiting.pop(ready.signature, None)
            if taken is not None:
                self._measure_one(taken)

    def _measure_one(self, task: T) -> None:
        is_done = True
        try:
            is_done = self._measure(task)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other tasks are not to suffer from it
            logger.exception("measuring %s in the background failed", task.signature.params)
            self._let_go(task, error)
        finally:
            with self._lock:
                self._measuring = None
                if not (is_done or task.is_cancelled or self._is_ended):
                    self._waiting.setdefault(task.signature, task)
                self._changed.notify_all()

    def _is_ready(self, task: T) -> bool:
        try:
            return self._is_time(task)
        except Exception as error:  # noqa: BLE001 - as above
            logger.exception("whether device %s is idle could not be found out", task.device)
            # It would be the same at the next look, and the next.
            self._let_go(task, error)
            return False

    def _let_go(self, task: T, error: Exception) -> None:
        """Let a task that failed be queued anew by whoever calls from now on, and wait no longer; tell so."""
        with self._lock:
            # First that, so that a call that is made anew is not told that it is being measured.
            self._measuring = None
            self._waiting.pop(task.signature, None)
            self._is_telling = True
        try:
            # With no lock held: it tells listeners.
            if self._failed is not None:
                self._failed(task, error)
        finally:
            with self._lock:
                self._is_telling = False
                self._changed.notify_all()

    def _is_drained(self) -> bool:
        return not self._waiting and self._measuring is None and not self._is_telling


_all: WeakSet[Background[Any]] = WeakSet()


def _start_all_anew() -> None:
    for background in list(_all):
        background._start_anew()
        if background._forked is not None:
            background._forked()


def _end_all() -> None:
    for background in list(_all):
        background.end()


os.register_at_fork(after_in_child=_start_all_anew)
atexit.register(_end_all)
