"""The backends of this process: each is imported and made at its first use, once."""

import os
from importlib import import_module
from threading import Lock

from tensorplay.backends.base import Backend
from tensorplay.errors import TensorPlayError

__all__ = ["NAMES", "backend", "default_backend"]

# Module and class of each, the default first.
_PATHS = {"host": ("tensorplay.backends.host.backend", "HostBackend")}

NAMES = tuple(_PATHS)
"""Names that `backend` knows."""

_made: dict[str, Backend] = {}
_lock = Lock()


def backend(name: str) -> Backend:
    """Return the process's backend of that name; any number of threads may ask.

    Raises
    ------
    TensorPlayError
        When there is no such backend; the message lists those there are.
    """
    made = _made.get(name)
    if made is not None:
        return made
    if name not in _PATHS:
        raise TensorPlayError(f"backend {name!r} is unknown; known: {', '.join(NAMES)}")
    with _lock:
        if name not in _made:
            module, maker = _PATHS[name]
            _made[name] = getattr(import_module(module), maker)()
        return _made[name]


def default_backend() -> Backend:
    """Return the backend of this machine's best device."""
    return backend(NAMES[0])


def _renew_lock() -> None:
    """Replace the lock in a forked child, where the thread that may have held it does not exist."""
    global _lock  # noqa: PLW0603 - a lock cannot be made free by another thread than its holder's
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
