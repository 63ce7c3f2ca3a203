"""Measuring one problem through a backend: candidates in, a winner and its evidence out."""

import math
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from tensorplay.backends.base import Backend, CandidateQuery, Plan
from tensorplay.database.record import Entry
from tensorplay.errors import KernelUnavailableError, MeasurementError
from tensorplay.gemm import DEFAULT, GemmProblem, signature_of
from tensorplay.gemm.problem import CPU
from tensorplay.measure.budget import Budget, Deadline
from tensorplay.measure.glance import glance, report_slow, why_out_of_reach
from tensorplay.measure.numerics import Tolerance, problem_tolerance
from tensorplay.measure.report import CandidateReport, NumericalCheck, SelectionReport, Verdict
from tensorplay.measure.search import SEARCH_SHARE, Search
from tensorplay.measure.search_memory import SearchMemory
from tensorplay.measure.selection import choose
from tensorplay.runtime.result_check import ResultCheck
from tensorplay.typing import Pending

__all__ = ["Measurement", "TuningRules", "measure"]

_NOBODY_ELSE = frozenset({Verdict.ALONE, Verdict.FIRST_CHOICE})


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
        How long a product may take until its search is over, where the query asks for one; 0 for no limit.
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

    What building, compiling, loading and checking candidates takes counts as well: it may use half of the deadline,
    and half of the seconds of a search, which begin with the first. Where the query is deterministic, so is what the
    others are compared with, if there is any such kernel.

    `excluded` are kernel ids that take no part, since they failed when they ran, or took down a process. `memory` is
    what earlier searches learnt, to which this one adds. Where the first choice of a host is so slow that the budget
    holds too few pairs to confirm anybody, nobody else is run. Where it cannot be timed, `Default` is the winner with
    the time 0.

    Raises
    ------
    LaunchError, MemoryError, OSError
        When the trial cannot be set up. Nothing was decided then.
    MeasurementError
        When the sources that were asked for offer nothing: the first choice alone is no result to keep.
    """
    signature = signature_of(problem)
    deadline = deadline or Deadline(time.monotonic)
    first = backend.deterministic_choice(problem) if rules.query.deterministic else backend.first_choice(problem)
    with backend.open_trial(problem, rotating_bytes=rules.rotating_bytes) as trial:
        begun = deadline.now()
        # On a GPU all candidates together take less than a second to try, and are tried.
        readings = glance(first, trial.timer, rules.budget, deadline) if problem.device == CPU else None
        if readings is not None:
            return _unmatched(backend, first, rules, readings, excluded=excluded, deadline=deadline)
        check = ResultCheck(trial, first, rules.tolerance or problem_tolerance(problem)) if rules.check else None
        search, gathering = None, deadline
        if rules.query.breadth == "search":
            gathering = deadline.within(rules.search_seconds or math.inf)
            search = _search(backend, first, rules, check, excluded=excluded, memory=memory, begun=begun)
        why_not = check.why_not if check else _nothing_against
        field = _gathered(backend, first, rules, why_not, excluded=excluded, deadline=gathering)
        try:
            selection = choose(
                [first, *field.agreeing],
                trial.timer,
                budget=rules.budget,
                min_gain=rules.min_gain,
                deadline=deadline,
                # The order of launches changes from problem to problem, and is the same in every run of one.
                rng=random.Random("".join(signature)),  # noqa: S311 - an order, not a secret
                describe=lambda plan: plan.kernel,
                search=search,
            )
        except MeasurementError as error:
            report = SelectionReport.not_measured(first.kernel, str(error)).with_candidates(field.failed)
            return Measurement(Entry(*signature, DEFAULT, 0.0), first, report)
    winner = selection.winner.kernel
    report = replace(
        selection.report.with_candidates(field.failed),
        numerical_check=check.report_on(winner) if check else NumericalCheck.off(),
    )
    if field.is_cut_short and report.verdict in _NOBODY_ELSE:
        report = replace(report, verdict=Verdict.INSUFFICIENT_BUDGET)
    return Measurement(Entry(*signature, winner, selection.winner_ms), selection.winner, report)


class _Field(NamedTuple):
    """Candidates whose results agree with the first choice's, reports of the others, and whether time ran out."""

    agreeing: list[Plan]
    failed: list[CandidateReport]
    is_cut_short: bool


def _gathered(
    backend: Backend,
    first: Plan,
    rules: TuningRules,
    why_not: Callable[[Plan], str | None],
    *,
    excluded: frozenset[str],
    deadline: Deadline,
) -> _Field:
    """Return who takes part beside the first choice: one at least, then as many as there is time for."""
    field = _Field([], [], is_cut_short=False)
    for plan in backend.candidates(first.problem, rules.query):
        if plan.kernel in excluded or plan.kernel == first.kernel:
            continue
        reason = why_not(plan)
        if reason is None:
            field.agreeing.append(plan)
        else:
            field.failed.append(CandidateReport.untimed(plan.kernel, reason))
        if deadline.has_passed(SEARCH_SHARE):
            return field._replace(is_cut_short=True)
    if rules.query.sources is not None and not field.agreeing and not field.failed:
        asked = ", ".join(sorted(rules.query.sources))
        raise MeasurementError(
            f"the sources {asked} offer no candidate here; those of this device are {', '.join(backend.sources)}"
        )
    return field


def _nothing_against(_plan: Plan) -> None:
    """Let a plan take part whose result nobody compares."""


def _unmatched(
    backend: Backend,
    first: Plan,
    rules: TuningRules,
    readings: list[float],
    *,
    excluded: frozenset[str],
    deadline: Deadline,
) -> Measurement:
    """Return the first choice, too slow for the budget to compare anybody with it, and whom that leaves out."""
    reason = why_out_of_reach(readings, rules.budget)
    left_out = _gathered(backend, first, rules, lambda _plan: reason, excluded=excluded, deadline=deadline).failed
    report = report_slow(first.kernel, readings, others=len(left_out))
    entry = Entry(*signature_of(first.problem), first.kernel, report.winner_ms or 0.0)
    return Measurement(entry, first, report.with_candidates(left_out))


def _search(
    backend: Backend,
    first: Plan,
    rules: TuningRules,
    check: ResultCheck | None,
    *,
    excluded: frozenset[str],
    memory: SearchMemory | None,
    begun: float,
) -> Search[Plan]:
    problem, query = first.problem, rules.query
    # One that has learnt nothing yet is empty, and so false.
    learnt = SearchMemory() if memory is None else memory

    def neighbours(plan: Plan) -> Iterable[Plan | Pending]:
        found = backend.neighbours(problem, plan, query)
        return (each for each in found if isinstance(each, Pending) or each.kernel not in excluded)

    def recall(kernel: str) -> Plan | None:
        if kernel in excluded:
            return None
        try:
            plan = backend.rebuild(problem, kernel)
        except KernelUnavailableError:
            return None
        is_allowed = plan.is_deterministic or not query.deterministic
        return plan if is_allowed and plan.workspace_bytes <= query.workspace_bytes else None

    return Search(
        neighbours=neighbours,
        passes=check.is_surely_right if check else None,
        recall=recall,
        knowledge=learnt.of(_kind(backend, problem, query)),
        seconds=rules.search_seconds,
        begun=begun,
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
