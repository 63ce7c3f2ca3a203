"""The check of a candidate's result against the first choice's, before anything is timed."""

import math
from typing import Any

from numpy.typing import NDArray

from tensorplay.backends.base import Plan, Trial
from tensorplay.errors import LaunchError
from tensorplay.measure.numerics import Agreement, Tolerance, agree
from tensorplay.measure.report import CheckOutcome, NumericalCheck

__all__ = ["ResultCheck"]

_ON_DEVICE = "within the tolerance of the first choice's, compared on the device"


class ResultCheck:
    """Compares results on the operands of one trial; `LaunchError` from making it when the first choice does not run.

    Parameters
    ----------
    trial : Trial
        Where plans are run.
    first : Plan
        The first choice.
    tolerance : Tolerance
        How far results may differ.
    """

    def __init__(self, trial: Trial, first: Plan, tolerance: Tolerance) -> None:
        self._trial = trial
        self._first = first
        self._tolerance = tolerance
        self._is_close = trial.closeness(first, atol=tolerance.atol, rtol=tolerance.rtol)
        self._expected: NDArray[Any] | None = None if self._is_close else trial.output(first)
        # Of those that passed; None for one that was compared on the device.
        self._passed: dict[str, Agreement | None] = {}
        self._wrong: set[str] = set()

    def why_not(self, plan: Plan) -> str | None:
        """Return why the plan takes no part, None when it launches and its result is right."""
        try:
            # Most results are close, and never leave the device where they can be compared there.
            if self._is_close is not None and self._is_close(plan):
                self._passed.setdefault(plan.kernel, None)
                return None
            found = self._trial.output(plan)
        except LaunchError as error:
            return f"does not launch: {error}"
        agreement = self._agreement(plan, found)
        return None if agreement.ok else f"wrong result: {agreement.reason}"

    def is_surely_right(self, plan: Plan) -> bool:
        """Return whether the result is right, as far as that can be told soon; raises `LaunchError`.

        Where results are compared on the device, that decides: a search has others to look at, and a comparison on the
        host, of a result that is likely to be wrong, takes longer than dozens of them.
        """
        if self._is_close is not None:
            is_close = self._is_close(plan)
            if is_close:
                self._passed.setdefault(plan.kernel, None)
            else:
                self._wrong.add(plan.kernel)
            return is_close
        return self._agreement(plan, self._trial.output(plan)).ok

    def report_on(self, kernel: str) -> NumericalCheck:
        """Return what was found of a kernel that passed, or of the first choice."""
        found = self._passed.get(kernel)
        if kernel == self._first.kernel:
            outcome, reason = CheckOutcome.REFERENCE, "the first choice, which the others are compared with"
        elif kernel in self._passed:
            outcome, reason = CheckOutcome.PASSED, found.reason if found else _ON_DEVICE
        else:
            return NumericalCheck.off()
        return NumericalCheck(
            outcome=outcome,
            reason=reason,
            max_abs_error=_finite(found.max_abs_error) if found else None,
            max_rel_error=_finite(found.max_rel_error) if found else None,
            atol=_finite(self._tolerance.atol),
            rtol=_finite(self._tolerance.rtol),
            compared=len(self._passed.keys() | self._wrong),
            wrong=len(self._wrong),
        )

    def _agreement(self, plan: Plan, found: NDArray[Any]) -> Agreement:
        if self._expected is None:
            self._expected = self._trial.output(self._first)
        problem = plan.problem
        agreement = agree(
            found, self._expected, self._trial.reference, dtype=problem.dtype, k=problem.k, tolerance=self._tolerance
        )
        if agreement.ok:
            self._passed[plan.kernel] = agreement
        else:
            self._wrong.add(plan.kernel)
        return agreement


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
