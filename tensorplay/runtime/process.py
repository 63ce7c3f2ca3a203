"""The one context of a process, made when it is first touched."""

import atexit
from collections.abc import Iterator
from contextlib import contextmanager

from tensorplay.locks import ForkSafeLock
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.first_context import context_made

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
    made: TuningContext | None = None
    if state.context is None:
        with _making:
            if state.context is None:
                made = TuningContext()
                atexit.register(made.close)
                state.context = made
    if made is not None:
        # With no lock held: whoever is told may ask for the context too.
        context_made(made.settings())
    return state.context


@contextmanager
def use_context(context: TuningContext) -> Iterator[TuningContext]:
    """Let every product of the process use `context` for a while, as tests do with one made by hand."""
    before, state.context = state.context, context
    try:
        yield context
    finally:
        state.context = before
