"""A lock that a forked child can go on using.

Only the thread that forks lives on in the child. A plain lock that another thread held at that moment would stay
locked there for ever, and the child's first product would wait for it.
"""

import os
import threading
from types import TracebackType
from weakref import WeakSet

__all__ = ["ForkSafeLock"]


class ForkSafeLock:
    """Held in a `with` statement, by one thread at a time; opened in a forked child unless its own thread held it.

    Parameters
    ----------
    reentrant : bool
        Whether the thread that holds it may take it again.
    """

    __slots__ = ("__weakref__", "_depth", "_lock", "_owner", "_reentrant")

    def __init__(self, *, reentrant: bool = False) -> None:
        self._reentrant = reentrant
        self._owner = 0
        self._depth = 0
        self._lock: threading.Lock | threading.RLock
        self._open()
        _all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()
        self._owner = threading.get_ident()
        self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Cleared first: while another thread takes the lock, it must not look like ours.
        self._depth -= 1
        if self._depth == 0:
            self._owner = 0
        self._lock.release()

    def _open(self) -> None:
        self._lock = threading.RLock() if self._reentrant else threading.Lock()

    def _open_in_child(self) -> None:
        # The forking thread keeps its identity. Its `with` ends in the child too, and must find what it took.
        if self._owner != threading.get_ident():
            self._depth = 0
            self._open()


_all: WeakSet[ForkSafeLock] = WeakSet()


def _open_all_in_child() -> None:
    for lock in list(_all):
        lock._open_in_child()


os.register_at_fork(after_in_child=_open_all_in_child)
