"""Each rule of the suite catches a backend that breaks it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from threading import Lock
from time import sleep
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.backends.base import Backend, CandidateQuery, Plan, Trial
from tensorplay.backends.host.backend import HostBackend
from tensorplay.backends.host.trial import HostTrial
from tensorplay.database.record import Validator
from tensorplay.gemm import GemmProblem, dtype_of_word
from tensorplay.testing.backend_suite import BackendSuite

PROBLEM = GemmProblem(dtype=dtype_of_word("Float32"), m=20, n=30, k=40)
HEAVY_PROBLEM = GemmProblem(dtype=dtype_of_word("Float32"), m=300, n=300, k=300)
KEPT: list[Any] = []
_turns = count()


def suite_of(made: Backend, *problems: GemmProblem, construction: str = "pass") -> BackendSuite:
    class Suite(BackendSuite):
        def backend(self) -> Backend:
            return made

        def problems(self) -> Sequence[GemmProblem]:
            return problems or (PROBLEM,)

    Suite.construction = construction
    return Suite()


def changed(plan: Plan, run: Callable[..., Any]) -> Plan:
    return replace(plan, run=run)


class RunsOtherwise(HostBackend):
    """Every candidate runs `run_otherwise` after NumPy."""

    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterator[Plan]:
        for plan in super().candidates(problem, query):
            yield changed(plan, self.run_otherwise)

    def run_otherwise(self, left: NDArray[Any], right: NDArray[Any], out: NDArray[Any]) -> NDArray[Any]:
        raise AssertionError("not reached")


class LeavesAnElement(RunsOtherwise):
    def run_otherwise(self, left: NDArray[Any], right: NDArray[Any], out: NDArray[Any]) -> NDArray[Any]:
        out[:-1] = left[:-1] @ right
        return out


class ChangesFromRunToRun(RunsOtherwise):
    def run_otherwise(self, left: NDArray[Any], right: NDArray[Any], out: NDArray[Any]) -> NDArray[Any]:
        np.matmul(left, right, out)
        out += np.float32(1e-6 * next(_turns))
        return out


class ReadsNothingElse(RunsOtherwise):
    """Right, but says nothing of its scratch memory."""

    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterator[Plan]:
        return iter([Plan(problem, "host_numpy_swap1", np.matmul, workspace_bytes=1 << 20)])


class RepeatsCandidates(HostBackend):
    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterator[Plan]:
        yield from super().candidates(problem, query)
        yield from super().candidates(problem, query)


class OffersItsFirstChoice(HostBackend):
    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterator[Plan]:
        yield self.first_choice(problem)


class NarrowSearch(HostBackend):
    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterator[Plan]:
        return iter(()) if query.breadth == "search" else super().candidates(problem, query)


class IgnoresSources(HostBackend):
    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterator[Plan]:
        return super().candidates(problem, replace(query, sources=None))


class RebuildsAnother(HostBackend):
    def rebuild(self, problem: GemmProblem, kernel: str) -> Plan:
        return changed(super().rebuild(problem, kernel), lambda left, right, out: np.negative(left @ right, out))


class RebuildsAnything(HostBackend):
    def rebuild(self, problem: GemmProblem, kernel: str) -> Plan:
        return replace(self.first_choice(problem), kernel=kernel)


class ForgetsItsFirstChoice(HostBackend):
    def first_choice(self, problem: GemmProblem) -> Plan:
        return replace(super().first_choice(problem), problem=replace(problem, m=problem.m + 1))


class ChoosesAnotherFirst(HostBackend):
    def library_choices(self, problem: GemmProblem) -> Sequence[Plan]:
        return [*self.candidates(problem, CandidateQuery()), self.first_choice(problem)]


class ChangesItsFacts(HostBackend):
    def validators(self, device: str) -> tuple[Validator, ...]:
        return (Validator("NUMBER", str(next(_turns))),)


class NamesAFactTwice(HostBackend):
    def validators(self, device: str) -> tuple[Validator, ...]:
        return super().validators(device) * 2


class TunesNothing(HostBackend):
    def is_tunable(self, problem: GemmProblem, families: str) -> bool:
        return families == "plan"


class KeepsItsOperands(HostBackend):
    @contextmanager
    def open_trial(self, problem: GemmProblem, *, rotating_bytes: int) -> Iterator[Trial]:
        trial = HostTrial(problem, sets=4)
        KEPT.append(trial)
        yield trial


class ReusesItsResult(HostBackend):
    @contextmanager
    def open_trial(self, problem: GemmProblem, *, rotating_bytes: int) -> Iterator[Trial]:
        with super().open_trial(problem, rotating_bytes=rotating_bytes) as trial:
            right = trial.output(self.first_choice(problem))
            trial.output = lambda plan: right  # type: ignore[method-assign]  # noqa: ARG005 - the fault
            yield trial


class LosesAPlace(HostBackend):
    @contextmanager
    def open_trial(self, problem: GemmProblem, *, rotating_bytes: int) -> Iterator[Trial]:
        with super().open_trial(problem, rotating_bytes=rotating_bytes) as trial:
            sample = trial.timer.sample
            trial.timer.sample = lambda order: sample(order)[:-1]  # type: ignore[method-assign]  # the fault
            yield trial


class HidesFailures(HostBackend):
    @contextmanager
    def open_trial(self, problem: GemmProblem, *, rotating_bytes: int) -> Iterator[Trial]:
        with super().open_trial(problem, rotating_bytes=rotating_bytes) as trial:
            trial.timer.warm_up = self.do_nothing  # type: ignore[method-assign]  # the fault
            yield trial

    def do_nothing(self, candidate: Plan) -> None:
        pass


class AlwaysCapturing(HostBackend):
    def is_capturing(self, stream: int | None, device: str | None = None) -> bool:
        return True


class SharesScratchMemory(HostBackend):
    """Right alone, wrong beside itself: who begins while others run gets something of theirs."""

    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterable[Plan]:  # type: ignore[override]
        running, lock = [0], Lock()

        def run(left: NDArray[Any], right: NDArray[Any], out: NDArray[Any]) -> NDArray[Any]:
            with lock:
                running[0] += 1
                shared = running[0]
            sleep(0.01)
            out[...] = shared * (left @ right)
            with lock:
                running[0] -= 1
            return out

        return [Plan(problem, "host_numpy_outer1", run)]


class PromisesNothing(HostBackend):
    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterator[Plan]:
        for plan in super().candidates(problem, query):
            yield replace(plan, is_deterministic=False)


FAULTS: list[tuple[str, Backend]] = [
    ("test_validators_are_facts_that_a_file_can_hold", ChangesItsFacts()),
    ("test_validators_are_facts_that_a_file_can_hold", NamesAFactTwice()),
    ("test_the_plan_family_is_part_of_all", TunesNothing()),
    ("test_every_valid_problem_has_a_first_choice_that_rebuilds", ForgetsItsFirstChoice()),
    ("test_the_library_chooses_its_first_choice_first", ChoosesAnotherFirst()),
    ("test_candidates_differ_and_a_file_can_hold_them", RepeatsCandidates()),
    ("test_a_wider_breadth_offers_all_of_a_narrower_one", NarrowSearch()),
    ("test_a_wider_breadth_offers_all_of_a_narrower_one", OffersItsFirstChoice()),
    ("test_candidates_come_from_the_sources_that_take_part", IgnoresSources()),
    ("test_candidates_stay_below_the_ceiling_of_scratch_memory", ReadsNothingElse()),
    ("test_every_plan_computes_the_whole_product", LeavesAnElement()),
    ("test_a_trial_finds_out_a_plan_that_computes_nothing", ReusesItsResult()),
    ("test_rebuilding_a_plan_gives_the_same_bits", RebuildsAnother()),
    ("test_deterministic_candidates_repeat_their_bits", ChangesFromRunToRun()),
    ("test_deterministic_candidates_repeat_their_bits", PromisesNothing()),
    ("test_a_plan_runs_in_several_threads_at_once", SharesScratchMemory()),
    ("test_an_unknown_kernel_is_refused_with_a_reason", RebuildsAnything()),
    ("test_a_trial_times_plans_in_the_places_asked_for", LosesAPlace()),
    ("test_a_plan_that_fails_is_a_launch_error", HidesFailures()),
    ("test_asking_for_a_capture_takes_nothing", AlwaysCapturing()),
]


@pytest.mark.parametrize(("rule", "broken"), FAULTS, ids=[f"{rule}-{type(broken).__name__}" for rule, broken in FAULTS])
def test_the_suite_catches(rule: str, broken: Backend) -> None:
    with pytest.raises(AssertionError):
        getattr(suite_of(broken), rule)()


def test_the_suite_catches_a_trial_that_keeps_its_memory() -> None:
    try:
        with pytest.raises(AssertionError, match="keeps"):
            suite_of(KeepsItsOperands(), HEAVY_PROBLEM).test_a_closed_trial_has_given_back_its_memory()
    finally:
        KEPT.clear()


def test_the_suite_catches_heavy_imports_and_constructions_that_fail() -> None:
    with pytest.raises(AssertionError, match="scipy"):
        suite_of(HostBackend(), construction="import scipy").test_making_it_imports_nothing_heavy()
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        suite_of(HostBackend(), construction="1 / 0").test_making_it_imports_nothing_heavy()


def test_every_rule_is_passed_by_a_backend_that_breaks_none() -> None:
    suite = suite_of(HostBackend())
    rules = [name for name in dir(BackendSuite) if name.startswith("test_")]
    assert len(rules) == len({rule for rule, _ in FAULTS}) + 3
    for rule in rules:
        getattr(suite, rule)()
