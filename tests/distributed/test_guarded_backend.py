"""A watched backend gives on what is still being made, and leaves out killers alone."""

from collections.abc import Iterator

import pytest

from tensorplay.backends.base import Backend, CandidateQuery, Plan
from tensorplay.distributed.guarded_backend import GuardedBackend
from tensorplay.errors import KernelUnavailableError
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
    def lost(kernel: str, error: Exception) -> None:
        raise AssertionError(f"{kernel}: {error}")

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
