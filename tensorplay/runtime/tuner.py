"""Measuring one problem through a backend: candidates in, a winner and its evidence out."""

import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tensorplay.backends.base import Backend, CandidateQuery, Plan
from tensorplay.database.record import Entry
from tensorplay.errors import KernelUnavailableError, MeasurementError
from tensorplay.gemm import DEFAULT, GemmProblem, signature_of
from tensorplay.measure.budget import Budget, Deadline
from tensorplay.measure.numerics import Tolerance, problem_tolerance
from tensorplay.measure.report import CandidateReport, SelectionReport
from tensorplay.measure.search import Search
from tensorplay.measure.search_memory import SearchMemory
from tensorplay.measure.selection import choose
from tensorplay.runtime.result_check import ResultCheck

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
    search_seconds : float
        How long a search for neighbours may take, where the query asks for one; 0 for as long as there are any.
    """

    query: CandidateQuery
    budget: Budget
    min_gain: float
    check: bool
    tolerance: Tolerance | None
    rotating_bytes: int
    search_seconds: float = 3.0


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
    memory: SearchMemory | None = None,
) -> Measurement:
    """Time the candidates of `problem` and return the winner, on scratch operands only.

    `excluded` are kernel ids that take no part, since they failed when they ran. `memory` is what earlier searches
    learnt, to which this one adds. Where the first choice cannot be timed, `Default` is the winner with the time 0.

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
        check = ResultCheck(trial, first, rules.tolerance or problem_tolerance(problem)) if rules.check else None
        candidates, failed = _agreeing(check, first, offered)
        search = None
        if rules.query.breadth == "search":
            search = _search(backend, first, rules, check, excluded=excluded, memory=memory)
        try:
            selection = choose(
                candidates,
                trial.timer,
                budget=rules.budget,
                min_gain=rules.min_gain,
                deadline=deadline or Deadline(time.monotonic),
                # The order of launches changes from problem to problem, and is the same in every run of one.
                rng=random.Random("".join(signature)),  # noqa: S311 - an order, not a secret
                describe=lambda plan: plan.kernel,
                search=search,
            )
        except MeasurementError as error:
            report = SelectionReport.not_measured(first.kernel, str(error)).with_candidates(failed)
            return Measurement(Entry(*signature, DEFAULT, 0.0), first, report)
    report = selection.report.with_candidates(failed)
    return Measurement(Entry(*signature, selection.winner.kernel, selection.winner_ms), selection.winner, report)


def _agreeing(check: ResultCheck | None, first: Plan, offered: list[Plan]) -> tuple[list[Plan], list[CandidateReport]]:
    """Return the candidates whose results agree with the first choice's, it leading, and reports of the others."""
    if check is None:
        return [first, *offered], []
    agreeing, failed = [first], []
    for plan in offered:
        reason = check.why_not(plan)
        if reason is None:
            agreeing.append(plan)
        else:
            failed.append(CandidateReport.untimed(plan.kernel, reason))
    return agreeing, failed


def _search(
    backend: Backend,
    first: Plan,
    rules: TuningRules,
    check: ResultCheck | None,
    *,
    excluded: frozenset[str],
    memory: SearchMemory | None,
) -> Search[Plan]:
    problem, query = first.problem, rules.query
    # One that has learnt nothing yet is empty, and so false.
    learnt = SearchMemory() if memory is None else memory

    def neighbours(plan: Plan) -> Iterable[Plan]:
        return (each for each in backend.neighbours(problem, plan, query) if each.kernel not in excluded)

    def recall(kernel: str) -> Plan | None:
        if kernel in excluded:
            return None
        try:
            plan = backend.rebuild(problem, kernel)
        except KernelUnavailableError:
            return None
        return plan if plan.workspace_bytes <= query.workspace_bytes else None

    return Search(
        neighbours=neighbours,
        passes=check.is_surely_right if check else None,
        recall=recall,
        knowledge=learnt.of(_kind(backend, problem, query)),
        seconds=rules.search_seconds,
    )


def _kind(backend: Backend, problem: GemmProblem, query: CandidateQuery) -> tuple[object, ...]:
    """Return what products have in common of which the same kernels run, and are fast for the same reasons."""
    plain = replace(
        problem,
        m=1,
        n=1,
        k=1,
        batch=min(problem.batch, 2),
        ld_left=None,
        ld_right=None,
        ld_out=None,
        stride_left=None,
        stride_right=None,
        stride_out=None,
        workspace_mib=None,
    )
    return backend.name, plain, query.sources, query.deterministic
