"""What a call runs once its problem has been looked up."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorplay.backends.base import Plan, Run
from tensorplay.gemm import Signature
from tensorplay.runtime.counters import Tally

__all__ = ["Resolved", "concerns", "stream_of", "unless_capturing"]

# Of a plan's operands on a device: left, right, out, c, bias, alpha, beta, stream, and what a backend adds.
_STREAM = 7


@dataclass(frozen=True, slots=True, eq=False)
class Resolved:
    """A plan, ready to run, with where its calls are counted.

    Attributes
    ----------
    run : callable
        The plan's own `run`, one attribute closer; `unless_capturing` of it where the decision is not settled.
    tally : Tally
        Counts the calls.
    signature : Signature or None
        None for a product of no tunable family.
    plan : Plan or None
        What `run` belongs to; None for a product of no tunable family.
    first_choice : callable or None
        Makes the plan to fall back to when `run` fails; None when `run` is the first choice already. A call, since
        asking a library for its first choice costs what replaying a winner saves.
    cacheable : bool
        Whether the same operands may run this again without asking.
    """

    run: Run
    tally: Tally
    signature: Signature | None = None
    plan: Plan | None = None
    first_choice: Callable[[], Plan] | None = None
    cacheable: bool = True


def concerns(resolved: Resolved, signature: Signature) -> bool:
    """Return whether it is of a signature, or leads to one that is: some operations chain what they resolved."""
    link: Any = resolved
    while link is not None:
        if link.signature == signature:
            return True
        link = getattr(link, "next", None)
    return False


def stream_of(operands: tuple[Any, ...]) -> int | None:
    """Return the stream that a plan's operands name, None where they name none, as on the host."""
    return operands[_STREAM] if len(operands) > _STREAM else None


def unless_capturing(
    run: Run,
    is_capturing: Callable[[int | None], bool],
    anew: Run,
    note: Callable[[int | None], object] | None = None,
) -> Run:
    """Return what calls `run`, but `anew` for a call under a graph capture; both take the same operands.

    Parameters
    ----------
    run : callable
        What runs while nothing is captured; its operands name the stream as `stream_of` finds it.
    is_capturing : callable
        Says whether a capture is live on a stream.
    anew : callable
        Decides the call afresh.
    note : callable, optional
        Told the stream after each run.
    """

    def guarded(*operands: Any) -> Any:
        if is_capturing(stream_of(operands)):
            return anew(*operands)
        return run(*operands)

    if note is None:
        return guarded
    tell = note

    def noted(*operands: Any) -> Any:
        stream = stream_of(operands)
        if is_capturing(stream):
            return anew(*operands)
        result = run(*operands)
        tell(stream)
        return result

    return noted
