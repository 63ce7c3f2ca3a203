"""A call that another one interrupts, as a signal handler would, at a chosen line."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any


class Interruption:
    """Traces a call, and makes another one at a given line of it, counted in files of certain names."""

    def __init__(self, at: int, handler: Callable[[], object], files: frozenset[str]) -> None:
        self.lines = 0
        self._at = at
        self._handler = handler
        self._files = files

    def __call__(self, frame: FrameType, event: str, _argument: object) -> Any:
        if Path(frame.f_code.co_filename).name not in self._files:
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self._at:
                self._handler()
        return self

    def during(self, call: Callable[[], object]) -> None:
        """Make the call, interrupted."""
        sys.settrace(self)
        try:
            call()
        finally:
            sys.settrace(None)
