"""What a call runs once its problem has been looked up."""

from collections.abc import Callable
from dataclasses import dataclass

from tensorplay.backends.base import Plan, Run
from tensorplay.gemm import Signature
from tensorplay.runtime.counters import Tally

__all__ = ["Resolved"]


@dataclass(frozen=True, slots=True, eq=False)
class Resolved:
    """A plan, ready to run, with where its calls are counted.

    Attributes
    ----------
    run : callable
        The plan's own `run`, one attribute closer.
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
