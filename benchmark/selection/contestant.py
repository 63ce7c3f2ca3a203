"""What a contestant offers: calls that enqueue the product, or a clock of its own, and what it took to get there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.cuda_shapes import CudaOperands

__all__ = ["GRAPH", "Call", "Ready", "Unavailable", "nothing", "relative_error", "tolerance_of"]

Call = Callable[[], object]

GRAPH = "graph"
"""How most are timed: a captured graph, replayed by turns with the others'."""

# The largest share by which a result as a whole may be off: a product with a wrong layout is off by more than 1.
_TOLERANCES = {"float64": 1e-12, "float32": 1e-5, "tf32": 5e-3, "float16": 5e-3, "bfloat16": 2e-2}


class Unavailable(Exception):  # noqa: N818 - not a failure: the contestant has no such product, or is not installed
    """The contestant takes no part in a shape; the message is the reason."""


def nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A contestant made ready for the sets of operands of one shape.

    Attributes
    ----------
    calls : sequence of callable
        One for each set; each enqueues its product on torch's current stream. Empty where there is a clock.
    clock : callable or None
        Returns the microseconds of one product, for a contestant that nobody else can capture.
    method : str
        How it is timed.
    detail : str
        What was chosen: a kernel id where there is one.
    seconds : float
        What choosing took.
    result : callable or None
        Returns what was computed from the first set; None for the first set's own `out`.
    close : callable
        Gives back what is not needed any more.
    facts : dict
        More about it, as plain values.
    """

    calls: Sequence[Call] = ()
    clock: Callable[[], float] | None = None
    method: str = GRAPH
    detail: str = ""
    seconds: float = 0.0
    result: Callable[[], Any] | None = None
    close: Callable[[], None] = nothing
    facts: dict[str, object] = field(default_factory=dict)


def tolerance_of(dtype: str) -> float:
    """Return the relative error up to which a result counts as a product of that data type."""
    return _TOLERANCES[dtype]


def relative_error(found: Any, operands: CudaOperands) -> float:
    """Return how far a result is from the product in float64, as a whole: norms of the difference and of the product.

    Large results are compared in their first rows.
    """
    rows = max(1, min(found.shape[0], (1 << 27) // found.shape[1]))
    exact = operands.left[:rows].double() @ operands.right.double().T
    if operands.bias is not None:
        exact += operands.bias.double()
    difference = found[:rows].double() - exact
    return float(difference.norm() / exact.norm())
