"""The glance: whether the first choice is so slow that no candidate could be confirmed against it.

A confirmation needs five pairs. Where five launches of the first choice do not fit into the budget, to check, warm
up and read every candidate takes seconds, and changes nothing.
"""

import math
from typing import TypeVar

from tensorplay.errors import LaunchError, MeasurementError
from tensorplay.measure.budget import Budget, Deadline
from tensorplay.measure.judgement import FEWEST_SEPARATED
from tensorplay.measure.report import CandidateReport, SelectionReport, Verdict
from tensorplay.measure.screening import SECOND_LIMIT
from tensorplay.measure.statistics import median, quartiles
from tensorplay.typing import Timer

__all__ = ["GLANCES", "glance", "report_slow", "why_out_of_reach"]

T = TypeVar("T")

GLANCES = 3
"""So many launches in a row must be too slow: a single one may have been interrupted."""


def glance(first: T, timer: Timer[T], budget: Budget, deadline: Deadline) -> list[float] | None:
    """Return what launches of the first choice take in milliseconds, where five pairs surely do not fit; else None.

    The launches count against no budget, as those of the warm-up; the first that is fast enough ends it. Who is
    slower than what fits by less than drift and cold clocks account for is measured as ever.
    """
    if not budget.max_duration_ms:
        return None
    limit_ms = SECOND_LIMIT * budget.max_duration_ms / FEWEST_SEPARATED
    readings: list[float] = []
    try:
        timer.warm_up(first)
        while len(readings) < GLANCES:
            if deadline.has_passed():
                return None
            readings.append(timer.screen(first, 1))
            if not limit_ms < readings[-1] < math.inf:
                return None
    except (LaunchError, MeasurementError):
        # The measurement itself says so, and what becomes of it.
        return None
    return readings


def why_out_of_reach(readings: list[float], budget: Budget) -> str:
    """Return why a candidate was not measured against a first choice of these readings."""
    return (
        f"not measured: max_tuning_duration_ms={budget.max_duration_ms} holds fewer than {FEWEST_SEPARATED} pairs with "
        f"the first choice ({median(readings):.3g} ms a launch)"
    )


def report_slow(kernel: str, readings: list[float], *, others: int) -> SelectionReport:
    """Return the report of a first choice that `others` candidates could not be compared with."""
    low, high = quartiles(readings)
    typical_ms = median(readings)
    own = CandidateReport(kernel, len(readings), typical_ms, low, high, readings[-1], None)
    verdict = Verdict.INSUFFICIENT_BUDGET if others else Verdict.ALONE
    return SelectionReport(verdict, kernel, typical_ms, typical_ms, (own,))
