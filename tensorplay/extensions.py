"""The extensions in C: built where a compiler was, and left out where none was; `tensorplay doctor` tells which."""

import sys
from importlib import import_module
from typing import Any

__all__ = ["EXTENSIONS", "extension"]

EXTENSIONS = {
    "tensorplay.ops._layout_key": False,
    "tensorplay.ops.device._direct": True,
    "tensorplay.backends.cublaslt._launch": True,
}
"""All of them by full name, and whether each leans on Python's global lock."""


def extension(name: str) -> Any | None:
    """Return one of `EXTENSIONS`, None where it was not built for this interpreter.

    None, too, where Python runs without its global lock and the module leans on it: importing one that does would put
    it back for the whole program.
    """
    is_locked = getattr(sys, "_is_gil_enabled", lambda: True)
    if EXTENSIONS[name] and not is_locked():
        return None
    try:
        return import_module(name)
    except ImportError:
        return None
