"""The check of a candidate's result against the first choice's, before anything is timed."""

from typing import Any

from numpy.typing import NDArray

from tensorplay.backends.base import Plan, Trial
from tensorplay.errors import LaunchError
from tensorplay.measure.numerics import Tolerance, agree

__all__ = ["ResultCheck"]


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

    def why_not(self, plan: Plan) -> str | None:
        """Return why the plan takes no part, None when it launches and its result is right."""
        try:
            # Most results are close, and never leave the device where they can be compared there.
            if self._is_close is not None and self._is_close(plan):
                return None
            found = self._trial.output(plan)
        except LaunchError as error:
            return f"does not launch: {error}"
        agreement = self._agreement(plan, found)
        return None if agreement is None else f"wrong result: {agreement}"

    def is_surely_right(self, plan: Plan) -> bool:
        """Return whether the result is right, as far as that can be told soon; raises `LaunchError`.

        Where results are compared on the device, that decides: a search has others to look at, and a comparison on the
        host, of a result that is likely to be wrong, takes longer than dozens of them.
        """
        if self._is_close is not None:
            return self._is_close(plan)
        return self._agreement(plan, self._trial.output(plan)) is None

    def _agreement(self, plan: Plan, found: NDArray[Any]) -> str | None:
        if self._expected is None:
            self._expected = self._trial.output(self._first)
        problem = plan.problem
        agreement = agree(
            found, self._expected, self._trial.reference, dtype=problem.dtype, k=problem.k, tolerance=self._tolerance
        )
        return None if agreement.ok else agreement.reason
