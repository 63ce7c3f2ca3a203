"""Grouped products: several products of different sizes, one after another on one stream."""

from collections.abc import Sequence
from typing import Any

from tensorplay.backends.base import Plan
from tensorplay.errors import ShapeError

__all__ = ["run_group"]


def run_group(
    plans: Sequence[Plan],
    lefts: Sequence[int],
    rights: Sequence[int],
    outs: Sequence[int],
    *,
    alpha: Any = 1.0,
    beta: Any = 0.0,
    stream: int = 0,
) -> list[int]:
    """Enqueue each plan on its operands and return the results; with `beta`, each adds to its own output.

    A loop: the library's grouped call wants lists of addresses in device memory, which to write costs more than
    the launches that it saves, and could not be done under a graph capture.

    Raises
    ------
    ShapeError
        When the numbers of plans and operands differ.
    LaunchError
        When the library refuses one; those before it are enqueued.
    """
    if not len(plans) == len(lefts) == len(rights) == len(outs):
        raise ShapeError(
            f"a group has as many operands as products; given: {len(plans)} products, "
            f"{len(lefts)} left, {len(rights)} right operands and {len(outs)} results"
        )
    members = zip(plans, lefts, rights, outs, strict=True)
    return [plan.run(left, right, out, 0, 0, alpha, beta, stream) for plan, left, right, out in members]
