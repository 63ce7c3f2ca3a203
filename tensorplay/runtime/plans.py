"""The plans that a context has ready: what operands resolved to, by their layout.

A plain dictionary, since a hit on the host looks one up in it, and that of a class of ours takes longer.
"""

from collections.abc import Mapping
from typing import Any

from tensorplay.runtime.resolved import Resolved, concerns

__all__ = ["TABLE", "Plans", "plan_count", "resolved_items", "without"]

Plans = dict[Any, Resolved]

TABLE = "table"
"""Where a hot path in C keeps what it found there, in a table of its own that goes with the plans."""


def plan_count(plans: Mapping[Any, Any]) -> int:
    """Return how many there are, the table left out."""
    return len(plans) - (TABLE in plans)


def resolved_items(plans: Plans) -> list[tuple[Any, Resolved]]:
    """Return the plans with their keys, the table left out, as they are now: other threads may add some."""
    return [(key, each) for key, each in list(plans.items()) if key != TABLE]


def without(plans: Plans, signature: Any) -> Plans:
    """Return those that do not concern a signature, without the table, where there may be others."""
    return {key: each for key, each in resolved_items(plans) if not concerns(each, signature)}
