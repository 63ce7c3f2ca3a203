"""A watched backend gives on what is still being made, leaves out killers alone, and says what runs and is lost."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tensorplay.backends.base import Backend, CandidateQuery, Plan, Trial
from tensorplay.distributed.guarded_backend import GuardedBackend
from tensorplay.distributed.message import NOTHING, Request, Running
from tensorplay.errors import KernelUnavailableError, LaunchError
from tensorplay.gemm import GemmProblem, Signature, dtype_of_name, signature_of
from tensorplay.measure import Budget
from tensorplay.runtime.tuner import TuningRules, measure
from tensorplay.testing import ScriptedBackend, scripted_kernel
from tensorplay.typing import Pending

FIRST, FAIR, NEAR, FAR, SLOW = (scripted_kernel(number) for number in range(1, 6))
TIMES = {FIRST: 1.0, FAIR: 0.9, NEAR: 0.8, FAR: 0.7, SLOW: 2.0}
STEPS = {FAIR: [NEAR, SLOW], NEAR: [FAR, SLOW]}
RULES = TuningRules(
    query=CandidateQuery(breadth="search"),
    budget=Budget(),
    min_gain=0.01,
    check=True,
    tolerance=None,
    rotating_bytes=0,
    search_seconds=30.0,
)


class Making(ScriptedBackend):
    """Makes each neighbour while somebody waits, or asks for the third time."""

    waits = 0

    def neighbours(  # type: ignore[override] # those of a script are there at once
        self, problem: GemmProblem, plan: Plan, query: CandidateQuery
    ) -> Iterator[Plan | Pending]:
        for each in super().neighbours(problem, plan, query):
            before = self.waits
            for _ in range(3):
                if self.waits == before:
                    yield Pending(self._wait)
            yield each

    def _wait(self, _seconds: float) -> None:
        self.waits += 1


def posed(m: int = 8) -> GemmProblem:
    dtype = dtype_of_name("float32")
    assert dtype is not None
    return GemmProblem(dtype=dtype, m=m, n=8, k=7, device="0")


def guarded(backend: Backend, *killers: tuple[Signature, str]) -> GuardedBackend:
    def lost(running: Running, error: Exception) -> None:
        raise AssertionError(f"{running}: {error}")

    return GuardedBackend(backend, killers=frozenset(killers), announce=lambda _: None, lost=lost)


@pytest.mark.parametrize("is_guarded", [False, True])
def test_a_search_finds_what_has_to_be_made(is_guarded: bool) -> None:
    backend = Making(TIMES, neighbours=STEPS)
    found = measure(guarded(backend) if is_guarded else backend, posed(), RULES)
    assert found.entry.kernel == FAR
    assert backend.waits > 0
    assert found.report.search is not None
    assert found.report.search.checked == 3
    assert measure(backend, posed(), RULES, excluded=frozenset({FAR})).entry.kernel == NEAR


def test_a_killer_of_a_signature_takes_no_part_there_and_others_do() -> None:
    backend = Making(TIMES, neighbours=STEPS)
    watched = guarded(backend, (signature_of(posed()), FAR), (signature_of(posed(9)), FAIR))
    assert measure(watched, posed(), RULES).entry.kernel == NEAR
    assert FAIR not in {plan.kernel for plan in watched.candidates(posed(9), RULES.query)}
    assert FAIR in {plan.kernel for plan in watched.candidates(posed(), RULES.query)}
    with pytest.raises(KernelUnavailableError, match="took down"):
        watched.rebuild(posed(), FAR)
    assert watched.rebuild(posed(9), FAR).kernel == FAR


def test_a_first_choice_that_once_killed_runs_as_without_tuning() -> None:
    watched = guarded(ScriptedBackend(TIMES), (signature_of(posed()), FIRST), (signature_of(posed()), FAR))
    assert watched.rebuild(posed(), FIRST).kernel == FIRST
    with pytest.raises(KernelUnavailableError):
        watched.rebuild(posed(), FAR)


def test_killers_of_a_request_are_left_out_too() -> None:
    watched = guarded(ScriptedBackend(TIMES))
    watched.prepare(Request(signature=signature_of(posed()), killers=(FAR,)), deterministic=False)
    assert measure(watched, posed(), RULES).entry.kernel == NEAR


class Told:
    """A watched backend, what it announced, and after what it was found lost."""

    def __init__(self, backend: Backend, *, apart: bool = False, deterministic: bool = False) -> None:
        self.heard: list[Running] = []
        self.lost: list[Running] = []
        self.backend = GuardedBackend(
            backend,
            killers=frozenset(),
            announce=self.heard.append,
            lost=lambda running, _error: self.lost.append(running),
        )
        self.backend.prepare(Request(signature=signature_of(posed()), apart=apart), deterministic=deterministic)

    @property
    def announced(self) -> list[Running]:
        return [running for running in self.heard if running != NOTHING]

    def sample(self, *kernels: str) -> None:
        with self.backend.open_trial(posed(), rotating_bytes=0) as trial:
            trial.timer.sample([self.backend.rebuild(posed(), kernel) for kernel in kernels])


class Breaking(ScriptedBackend):
    """Whose named kernel raises when it is sampled, alone or not."""

    breaks = ""

    @contextmanager
    def open_trial(self, problem: GemmProblem, *, rotating_bytes: int) -> Iterator[Trial]:
        with super().open_trial(problem, rotating_bytes=rotating_bytes) as trial:
            timer, sample = trial.timer, trial.timer.sample

            def breaking(order: list[Plan]) -> object:
                if any(plan.kernel == self.breaks for plan in order):
                    raise LaunchError("fails by script")
                return sample(order)

            timer.sample = breaking  # type: ignore[method-assign, assignment] # one call of a script fails
            yield trial


def test_who_runs_together_is_announced_together_and_nobody_of_them_is_the_culprit() -> None:
    told = Told(ScriptedBackend(TIMES))
    told.sample(FIRST, FAR)
    told.sample(FAR)
    told.sample(FIRST)
    assert told.announced == [Running((FIRST, FAR)), Running((FAR,), culprit=FAR), Running((FIRST,))]


def test_after_a_trial_nothing_runs_whether_or_not_it_failed() -> None:
    backend = Breaking(TIMES)
    told = Told(backend)
    told.sample(FIRST)
    assert told.heard == [Running((FIRST,)), NOTHING]
    backend.breaks = FAR
    with pytest.raises(LaunchError):
        told.sample(FAR)
    assert told.heard[-1] == NOTHING


def test_kernels_apart_are_announced_and_sampled_one_at_a_time() -> None:
    told = Told(ScriptedBackend(TIMES), apart=True)
    told.sample(FIRST, FAR)
    assert told.announced == [Running((FIRST,)), Running((FAR,), culprit=FAR)]


def test_a_group_that_fails_on_a_living_device_loses_nothing_and_on_a_lost_one_is_told_as_a_group() -> None:
    backend = Breaking(TIMES)
    backend.breaks = FAR
    told = Told(backend)
    with pytest.raises(LaunchError):
        told.sample(NEAR, FIRST, FAR)
    assert told.lost == []
    backend.broken.add(FIRST)
    with pytest.raises(LaunchError):
        told.sample(NEAR, FIRST, FAR)
    assert told.lost[0] == Running((NEAR, FIRST, FAR))


def test_what_others_are_compared_with_is_no_culprit_where_sums_must_keep_their_order() -> None:
    backend = ScriptedBackend(TIMES)
    backend.unordered.add(FIRST)
    told = Told(backend, deterministic=True)
    told.sample(FAIR)
    told.sample(FIRST)
    assert told.announced == [Running((FAIR,)), Running((FIRST,), culprit=FIRST)]


def test_a_trial_that_cannot_be_opened_is_told_and_blames_nobody() -> None:
    backend = ScriptedBackend(TIMES)
    backend.trial_error = LaunchError("no context")
    told = Told(backend)
    with pytest.raises(LaunchError):
        told.sample(FIRST)
    assert told.lost == [NOTHING]


def test_what_fails_in_a_trial_without_running_a_kernel_loses_nothing() -> None:
    told = Told(ScriptedBackend(TIMES))
    with pytest.raises(LaunchError), told.backend.open_trial(posed(), rotating_bytes=0):
        raise LaunchError("the library's heuristic failed")
    assert told.lost == []
