"""What building and checking candidates takes counts as well: a product never takes more than its time by it."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.gemm import GemmProblem
from tensorplay.gemm.problem import CPU
from tensorplay.measure import Budget, Deadline
from tensorplay.measure.report import Verdict
from tensorplay.runtime.tuner import TuningRules, measure
from tensorplay.testing import ManualClock, ScriptedBackend, scripted_kernel

KERNELS = [scripted_kernel(number) for number in range(1, 21)]
TIMES = dict.fromkeys(KERNELS, 0.01) | {KERNELS[9]: 0.005}
COMPILING_S = 0.25


class CompilingBackend(ScriptedBackend):
    """Takes its time for each candidate, as one that compiles them does."""

    def __init__(self, clock: ManualClock, **options: object) -> None:
        super().__init__(TIMES, **options)  # type: ignore[arg-type] # each takes its own type
        self.clock = clock
        self.built: list[str] = []

    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterator[Plan]:
        return self._compiled(super().candidates(problem, query))

    def neighbours(self, problem: GemmProblem, plan: Plan, query: CandidateQuery) -> Iterator[Plan]:
        return self._compiled(super().neighbours(problem, plan, query))

    def _compiled(self, plans: Iterable[Plan]) -> Iterator[Plan]:
        for plan in plans:
            self.clock.advance(COMPILING_S)
            self.built.append(plan.kernel)
            yield plan


def rules_of(breadth: str = "wide", seconds: float = 3.0) -> TuningRules:
    return TuningRules(
        query=CandidateQuery(breadth=breadth),
        budget=Budget(),
        min_gain=0.01,
        check=True,
        tolerance=None,
        rotating_bytes=0,
        search_seconds=seconds,
    )


@pytest.mark.parametrize(("seconds", "built"), [(0.1, 1), (1.0, 2), (4.0, 8), (60.0, 19)])
def test_candidates_are_built_for_half_of_what_a_process_has_left_and_one_more(
    problem: GemmProblem, seconds: float, built: int
) -> None:
    clock = ManualClock()
    backend = CompilingBackend(clock)
    found = measure(backend, problem, rules_of(), deadline=Deadline(clock, seconds))
    assert len(backend.built) == built
    assert clock() <= max(0.5 * seconds, COMPILING_S) + COMPILING_S
    assert (found.report.verdict is Verdict.WINNER) == (KERNELS[9] in backend.built)


def test_a_field_that_was_cut_short_is_no_proof_that_nobody_is_faster(problem: GemmProblem) -> None:
    clock = ManualClock()
    found = measure(CompilingBackend(clock), problem, rules_of(), deadline=Deadline(clock, 1.0))
    assert (found.report.verdict, found.entry.kernel) == (Verdict.INSUFFICIENT_BUDGET, KERNELS[0])


@pytest.mark.parametrize("seconds", [0.1, 1.0, 3.0])
def test_a_search_ends_when_its_seconds_since_the_first_candidate_do(problem: GemmProblem, seconds: float) -> None:
    clock = ManualClock()
    backend = CompilingBackend(clock, neighbours={KERNELS[1]: KERNELS[12:]})
    found = measure(backend, problem, rules_of("search", seconds), deadline=Deadline(clock))
    assert clock() <= seconds + COMPILING_S
    assert found.report.search is not None
    assert not found.report.search.is_complete


def test_half_of_the_seconds_of_a_search_are_left_to_the_search(problem: GemmProblem) -> None:
    clock = ManualClock()
    backend = CompilingBackend(clock, neighbours={KERNELS[1]: KERNELS[12:]})
    measure(backend, problem, rules_of("search", 3.0), deadline=Deadline(clock))
    assert [kernel in KERNELS[12:] for kernel in backend.built] == [False] * 6 + [True] * 6


def test_a_search_without_a_limit_builds_everything(problem: GemmProblem) -> None:
    clock = ManualClock()
    backend = CompilingBackend(clock, neighbours={KERNELS[9]: KERNELS[12:]})
    found = measure(backend, problem, rules_of("search", 0.0), deadline=Deadline(clock))
    assert set(backend.built) == set(KERNELS[1:])
    assert found.report.search is not None
    assert found.report.search.is_complete


@pytest.mark.parametrize("breadth", ["heuristic", "wide", "search"])
def test_nobody_is_run_who_could_not_be_confirmed(problem: GemmProblem, breadth: str) -> None:
    slow = dict.fromkeys(KERNELS[:4], 20.0) | {KERNELS[2]: 10.0}
    backend = ScriptedBackend(slow, device=CPU)
    found = measure(backend, replace(problem, device=CPU), rules_of(breadth))
    assert (found.entry.kernel, found.entry.time_ms) == (KERNELS[0], 20.0)
    assert found.report.verdict is Verdict.INSUFFICIENT_BUDGET
    reasons = {each.kernel: each.dropped for each in found.report.candidates}
    assert list(reasons) == KERNELS[:4]
    assert reasons.pop(KERNELS[0]) is None
    assert all(reason is not None and "max_tuning_duration_ms=30" in reason for reason in reasons.values())


def test_on_a_gpu_they_are_tried_all_the_same(problem: GemmProblem) -> None:
    backend = ScriptedBackend(dict.fromkeys(KERNELS[:4], 20.0) | {KERNELS[2]: 10.0})
    found = measure(backend, problem, rules_of())
    assert all(each.screened_ms is not None for each in found.report.candidates)


def test_a_larger_budget_measures_them(problem: GemmProblem) -> None:
    backend = ScriptedBackend(dict.fromkeys(KERNELS[:4], 20.0) | {KERNELS[2]: 10.0})
    found = measure(backend, problem, replace(rules_of(), budget=Budget(400)))
    assert (found.entry.kernel, found.report.verdict) == (KERNELS[2], Verdict.WINNER)
