"""Measuring one problem through a backend: candidates in, a winner and its evidence out."""

import random
from dataclasses import dataclass

from tensorplay.backends.base import Backend, CandidateQuery, Plan, Trial
from tensorplay.database.record import Entry
from tensorplay.errors import LaunchError, MeasurementError
from tensorplay.gemm import DEFAULT, GemmProblem, signature_of
from tensorplay.measure.budget import Budget, Deadline
from tensorplay.measure.numerics import Tolerance, agree, default_tolerance
from tensorplay.measure.report import CandidateReport, SelectionReport
from tensorplay.measure.selection import choose

__all__ = ["Measurement", "TuningRules", "measure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningRules:
    """How a problem is measured, taken from the settings when the measurement starts.

    Attributes
    ----------
    query : CandidateQuery
        Which candidates take part.
    budget : Budget
        Ceilings for each of them.
    min_gain : float
        How much faster than the first choice a winner must be, as a share of its time.
    check : bool
        Whether results are compared before anything is timed.
    tolerance : Tolerance or None
        How far results may differ; None for what the data type and k allow.
    rotating_bytes : int
        The pool that operands rotate through.
    """

    query: CandidateQuery
    budget: Budget
    min_gain: float
    check: bool
    tolerance: Tolerance | None
    rotating_bytes: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """The winner of one problem: its entry, the plan that runs it, and how it was chosen."""

    entry: Entry
    plan: Plan
    report: SelectionReport


def measure(
    backend: Backend,
    problem: GemmProblem,
    rules: TuningRules,
    *,
    excluded: frozenset[str] = frozenset(),
    deadline: Deadline | None = None,
) -> Measurement:
    """Time the candidates of `problem` and return the winner, on scratch operands only.

    `excluded` are kernel ids that take no part, since they failed when they ran. Where the first choice cannot
    be timed, `Default` is the winner with the time 0.

    Raises
    ------
    LaunchError, MemoryError, OSError
        When the trial cannot be set up. Nothing was decided then.
    MeasurementError
        When the sources that were asked for offer nothing: the first choice alone is no result to keep.
    """
    signature = signature_of(problem)
    first = backend.first_choice(problem)
    with backend.open_trial(problem, rotating_bytes=rules.rotating_bytes) as trial:
        offered = [plan for plan in backend.candidates(problem, rules.query) if plan.kernel not in excluded]
        if rules.query.sources is not None and not offered:
            asked = ", ".join(sorted(rules.query.sources))
            raise MeasurementError(
                f"the sources {asked} offer no candidate here; those of this device are {', '.join(backend.sources)}"
            )
        candidates, failed = _agreeing(trial, first, offered, rules)
        try:
            selection = choose(
                candidates,
                trial.timer,
                budget=rules.budget,
                min_gain=rules.min_gain,
                deadline=deadline,
                # The order of launches changes from problem to problem, and is the same in every run of one.
                rng=random.Random("".join(signature)),  # noqa: S311 - an order, not a secret
                describe=lambda plan: plan.kernel,
            )
        except MeasurementError as error:
            report = SelectionReport.not_measured(first.kernel, str(error)).with_candidates(failed)
            return Measurement(Entry(*signature, DEFAULT, 0.0), first, report)
    report = selection.report.with_candidates(failed)
    return Measurement(Entry(*signature, selection.winner.kernel, selection.winner_ms), selection.winner, report)


def _agreeing(
    trial: Trial, first: Plan, offered: list[Plan], rules: TuningRules
) -> tuple[list[Plan], list[CandidateReport]]:
    """Return the candidates whose results agree with the first choice's, it leading, and reports of the others."""
    if not rules.check:
        return [first, *offered], []
    problem = first.problem
    allowed = rules.tolerance or default_tolerance(problem.dtype, problem.k)
    is_close = trial.closeness(first, atol=allowed.atol, rtol=allowed.rtol)
    expected = None if is_close else trial.output(first)
    agreeing, failed = [first], []
    for plan in offered:
        try:
            # Most results are close, and never leave the device where they can be compared there.
            if is_close and is_close(plan):
                agreeing.append(plan)
                continue
            found = trial.output(plan)
        except LaunchError as error:
            failed.append(CandidateReport.untimed(plan.kernel, f"does not launch: {error}"))
            continue
        if expected is None:
            expected = trial.output(first)
        agreement = agree(found, expected, trial.reference, dtype=problem.dtype, k=problem.k, tolerance=allowed)
        if agreement.ok:
            agreeing.append(plan)
        else:
            failed.append(CandidateReport.untimed(plan.kernel, f"wrong result: {agreement.reason}"))
    return agreeing, failed
