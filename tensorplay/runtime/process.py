"""The one context of a process, made when it is first touched."""

import atexit
from collections.abc import Iterator
from contextlib import contextmanager

from tensorplay.locks import ForkSafeLock
from tensorplay.runtime.context import TuningContext

__all__ = ["get_tuning_context", "state", "use_context"]


class _State:
    """Where the hot path finds the context: one attribute, no call."""

    __slots__ = ("context",)

    def __init__(self) -> None:
        self.context: TuningContext | None = None


state = _State()
_making = ForkSafeLock()


def get_tuning_context() -> TuningContext:
    """Return this process's context; the environment is read when it is first asked for, and never again."""
    if state.context is None:
        with _making:
            if state.context is None:
                context = TuningContext()
                atexit.register(context.close)
                state.context = context
    return state.context


@contextmanager
def use_context(context: TuningContext) -> Iterator[TuningContext]:
    """Let every product of the process use `context` for a while, as tests do with one made by hand."""
    before, state.context = state.context, context
    try:
        yield context
    finally:
        state.context = before
