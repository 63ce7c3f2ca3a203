"""The extensions in C: built where a compiler was, and left out without a word where none was."""

import sys
from importlib import import_module
from typing import Any

__all__ = ["extension"]


def extension(name: str, *, needs_lock: bool = True) -> Any | None:
    """Return a module of ours in C by its full name, None where it was not built for this interpreter.

    None, too, where Python runs without its global lock and the module leans on it: importing one that does would put
    it back for the whole program.
    """
    is_locked = getattr(sys, "_is_gil_enabled", lambda: True)
    if needs_lock and not is_locked():
        return None
    try:
        return import_module(name)
    except ImportError:
        return None
