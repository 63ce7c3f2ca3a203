"""What the times say of the choice between one call and a loop. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from harness.spread import Spread, ratio_of_medians

from grouped.cell import Cell
from tensorplay.backends.cublaslt.grouped_limits import UNIFORM_IS_BATCHED, is_worthwhile
from tensorplay.backends.cublaslt.member import Member

__all__ = ["Outcome", "outcome_of", "suggested_limits"]

_TINY = Member(transpose_left=False, transpose_right=False, m=1, n=1, k=1, ld_left=1, ld_right=1, ld_out=1)

SLACK = 1.02
"""One call may take this much more than a loop and count as not slower: what repeats of a cell differ by."""


class Outcome(NamedTuple):
    """One cell's times, in microseconds, and what was chosen.

    Attributes
    ----------
    at_once : str
        The kind of call that `grouped_mm` makes of such a group: `grouped` or `batched`.
    is_chosen : bool
        Whether it makes one by the limits as they are.
    gain : Spread
        The loop's time over that call's.
    """

    cell: Cell
    at_once: str
    is_chosen: bool
    gain: Spread
    medians: dict[str, float]
    host: dict[str, float]

    @property
    def chosen_over_loop(self) -> float:
        """Return the loop's time over that of what is chosen: 1 where that is the loop."""
        return self.gain.median if self.is_chosen else 1.0

    @property
    def is_missed(self) -> bool:
        """Return whether the loop is chosen although one call is faster beyond doubt."""
        return not self.is_chosen and self.gain.low is not None and self.gain.low > SLACK


def outcome_of(
    cell: Cell, total: dict[str, Sequence[float]], host: dict[str, float], medians: dict[str, float]
) -> Outcome:
    """Return what a contest says."""
    at_once = "batched" if UNIFORM_IS_BATCHED and "batched" in total else "grouped"
    gain = ratio_of_medians(total["loop"], total[at_once])
    return Outcome(cell, at_once, is_worthwhile(cell.dtype, cell.members), gain, medians, host)


def suggested_limits(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """Return for each type the largest m * n * k up to which one call was nowhere slower than a loop, 0 for none.

    Only groups of so many products count as the limits ask for.
    """
    counted = [outcome for outcome in outcomes if is_worthwhile(outcome.cell.dtype, [_TINY] * outcome.cell.products)]
    limits: dict[str, int] = {}
    for dtype in sorted({outcome.cell.dtype for outcome in counted}):
        sizes = {
            is_slow: [
                outcome.cell.multiplications
                for outcome in counted
                if outcome.cell.dtype == dtype and (outcome.gain.median < 1 / SLACK) is is_slow
            ]
            for is_slow in (False, True)
        }
        first_slow = min(sizes[True], default=None)
        limits[dtype] = max((size for size in sizes[False] if first_slow is None or size < first_slow), default=0)
    return limits
