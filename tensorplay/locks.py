"""A lock that an interrupt cannot leave held, that its own thread may take again, and that a forked child can use.

The three go together. Python runs signal handlers between any two of its instructions: an exception raised there,
inside an `__enter__` that is written in Python, would leave the lock held for ever, and a handler that multiplies
would wait for itself. And only the thread that forks lives on in the child, where a lock that another thread held
would stay locked.
"""

import os
from _thread import RLock
from importlib import import_module
from types import ModuleType
from typing import Self
from weakref import WeakSet

__all__ = ["ForkSafeLock", "imported"]


class ForkSafeLock(RLock):  # type: ignore[misc]  # final to the type checker, a plain class to CPython
    """Held in a `with` statement by one thread at a time, which may take it again.

    `__enter__` and `__exit__` are the interpreter's own: nothing interrupts them half-way. What a lock guards must
    stay valid when a signal handler comes back to it on the same thread.
    """

    def __new__(cls) -> Self:
        """Make an open lock, and remember it for the children of forks."""
        lock = super().__new__(cls)
        _all.add(lock)
        return lock

    def is_held_here(self) -> bool:
        """Return whether the calling thread holds it."""
        return bool(self._is_owned())  # type: ignore[attr-defined]  # as `threading` asks its own


_all: WeakSet[ForkSafeLock] = WeakSet()


def _open_all_in_child() -> None:
    for lock in list(_all):
        # What the forking thread itself holds, it gives back in the child too. As `threading` does with its own.
        if not lock._is_owned():  # type: ignore[attr-defined]
            lock._at_fork_reinit()  # type: ignore[attr-defined]


_importing = ForkSafeLock()


def imported(name: str) -> ModuleType:
    """Return a module, imported if need be, while no other thread forks.

    A module that another thread is importing when a process forks can never be imported in the child: nobody is
    there to finish it. So whatever is imported in the middle of a product is imported here.
    """
    with _importing:
        return import_module(name)


os.register_at_fork(after_in_child=_open_all_in_child)
os.register_at_fork(before=_importing.acquire, after_in_parent=_importing.release, after_in_child=_importing.release)
