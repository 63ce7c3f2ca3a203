"""`candidates=search` through the tuner: neighbours are found, checked, remembered, and obey what the query says."""

from collections.abc import Iterable

import pytest

from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.errors import MeasurementError
from tensorplay.gemm import GemmProblem
from tensorplay.measure import Budget, SearchMemory
from tensorplay.measure.report import Verdict
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.rules import tuning_rules
from tensorplay.runtime.settings import Settings
from tensorplay.runtime.tuner import TuningRules, measure
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAIR, NEAR, FAR, SLOW = (scripted_kernel(number) for number in range(1, 6))
TIMES = {FIRST: 1.0, FAIR: 0.9, NEAR: 0.8, FAR: 0.7, SLOW: 2.0}
STEPS = {FAIR: [NEAR, SLOW], NEAR: [FAR, SLOW]}


def rules_of(breadth: str = "search", *, check: bool = True, **query: object) -> TuningRules:
    return TuningRules(
        query=CandidateQuery(breadth=breadth, **query),  # type: ignore[arg-type] # each field takes its own type
        budget=Budget(),
        min_gain=0.01,
        check=check,
        tolerance=None,
        rotating_bytes=0,
        search_seconds=30.0,
    )


@pytest.fixture
def backend() -> ScriptedBackend:
    """A device whose fastest kernel is two steps away from what it offers."""
    return ScriptedBackend(TIMES, neighbours=STEPS)


def test_a_search_finds_what_is_two_steps_away(backend: ScriptedBackend, problem: GemmProblem) -> None:
    found = measure(backend, problem, rules_of())
    assert (found.entry.kernel, found.report.verdict) == (FAR, Verdict.WINNER)
    assert found.report.search is not None
    assert (found.report.search.checked, found.report.search.timed) == (3, 3)


@pytest.mark.parametrize("breadth", ["heuristic", "wide"])
def test_nothing_else_asks_for_neighbours(backend: ScriptedBackend, problem: GemmProblem, breadth: str) -> None:
    found = measure(backend, problem, rules_of(breadth))
    assert found.entry.kernel == FAIR
    assert found.report.search is None


def test_a_neighbour_with_a_wrong_result_is_neither_timed_nor_a_way_to_others(
    backend: ScriptedBackend, problem: GemmProblem
) -> None:
    backend.wrong = {NEAR}
    found = measure(backend, problem, rules_of())
    assert found.entry.kernel == FAIR
    assert found.report.search is not None
    assert (found.report.search.checked, found.report.search.passed) == (2, 1)


def test_without_a_numerical_check_it_is_taken(backend: ScriptedBackend, problem: GemmProblem) -> None:
    backend.wrong = {FAR}
    assert measure(backend, problem, rules_of(check=False)).entry.kernel == FAR


def test_a_neighbour_that_failed_before_is_left_out(backend: ScriptedBackend, problem: GemmProblem) -> None:
    assert measure(backend, problem, rules_of(), excluded=frozenset({FAR})).entry.kernel == NEAR


def test_a_neighbour_that_does_not_launch_is_passed_over(backend: ScriptedBackend, problem: GemmProblem) -> None:
    backend.broken = {NEAR}
    assert measure(backend, problem, rules_of()).entry.kernel == FAIR


def test_sources_that_take_no_part_are_not_searched(backend: ScriptedBackend, problem: GemmProblem) -> None:
    with pytest.raises(MeasurementError, match="offer no candidate"):
        measure(backend, problem, rules_of(sources=frozenset({"others"})))


class Forgetful(ScriptedBackend):
    """Knows no neighbours any more, but rebuilds what they are."""

    def neighbours(self, problem: GemmProblem, plan: Plan, query: CandidateQuery) -> Iterable[Plan]:
        return ()


def test_what_won_for_another_size_is_tried_at_once(backend: ScriptedBackend, problem: GemmProblem) -> None:
    memory = SearchMemory()
    measure(backend, problem, rules_of(), memory=memory)
    other = GemmProblem(dtype=problem.dtype, m=9, n=8, k=7, device="0")
    forgetful = Forgetful(TIMES, neighbours=STEPS)
    assert measure(forgetful, other, rules_of(), memory=memory).entry.kernel == FAR
    assert measure(forgetful, other, rules_of(), memory=SearchMemory()).entry.kernel == FAIR


@pytest.mark.parametrize(
    ("change", "deterministic", "excluded"),
    [
        ({"transpose_right": True}, False, ()),
        ({}, True, ()),
        ({}, False, (FAR,)),
    ],
)
def test_what_won_for_another_kind_or_is_not_allowed_is_not(
    backend: ScriptedBackend,
    problem: GemmProblem,
    change: dict[str, bool],
    deterministic: bool,
    excluded: tuple[str, ...],
) -> None:
    memory = SearchMemory()
    measure(backend, problem, rules_of(), memory=memory)
    other = GemmProblem(dtype=problem.dtype, m=9, n=8, k=7, device="0", **change)  # type: ignore[arg-type] # flags only
    found = measure(
        Forgetful(TIMES, neighbours=STEPS),
        other,
        rules_of(deterministic=deterministic),
        excluded=frozenset(excluded),
        memory=memory,
    )
    assert found.entry.kernel != FAR


def test_what_needs_more_scratch_memory_than_allowed_is_not_taken_out_of_memory(
    backend: ScriptedBackend, problem: GemmProblem
) -> None:
    class Hungry(Forgetful):
        def rebuild(self, problem: GemmProblem, kernel: str) -> Plan:
            plan = super().rebuild(problem, kernel)
            return Plan(problem, kernel, plan.run, workspace_bytes=1 << 20)

    memory = SearchMemory()
    measure(backend, problem, rules_of(), memory=memory)
    hungry = Hungry(TIMES, neighbours=STEPS)
    assert measure(hungry, problem, rules_of(workspace_bytes=1 << 10), memory=memory).entry.kernel == FAIR


def test_a_kernel_that_no_longer_rebuilds_is_forgotten_in_silence(
    backend: ScriptedBackend, problem: GemmProblem
) -> None:
    memory = SearchMemory()
    measure(backend, problem, rules_of(), memory=memory)
    backend.unavailable = {FAR: "gone", NEAR: "gone"}
    assert measure(backend, problem, rules_of(), memory=memory).entry.kernel == FAIR


def test_the_setting_bounds_the_search(backend: ScriptedBackend, problem: GemmProblem) -> None:
    settings = Settings({"TP_TUNABLEOP_CANDIDATES": "search", "TP_TUNABLEOP_MAX_SEARCH_SECONDS": "1.5"})
    rules = tuning_rules(settings, backend, problem)
    assert (rules.query.breadth, rules.search_seconds) == ("search", 1.5)
    assert tuning_rules(Settings({}), backend, problem).search_seconds == 3.0


def test_a_context_searches_records_and_explains(
    backend: ScriptedBackend, problem: GemmProblem, tmp_path: object
) -> None:
    context = TuningContext(
        environ={"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_CANDIDATES": "search"},
        directory=str(tmp_path),
        backends={"0": backend},
    )
    context.resolve(problem, backend)
    (op, params, kernel, _), *_ = context.get_results()
    assert kernel == FAR
    search = context.explain(op, params)["search"]
    assert isinstance(search, dict)
    assert search["checked"] == 3
