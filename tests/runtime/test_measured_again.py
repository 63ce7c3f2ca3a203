"""Measuring again what has a winner, in a running process: it is replaced by what was decided, and by nothing less."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tensorplay.gemm import GemmProblem, signature_of
from tensorplay.measure.report import Verdict
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST = scripted_kernel(1), scripted_kernel(2)
MakeContext = Callable[..., TuningContext]


def kernels(context: TuningContext) -> list[str]:
    return [kernel for _, _, kernel, _ in context.get_results()]


def test_a_decided_winner_stays_where_measuring_again_decides_nothing_and_that_is_told(
    make_context: MakeContext, call: Any, problem: GemmProblem, backend: ScriptedBackend
) -> None:
    context = make_context()
    call(context)
    before = context.explain(*signature_of(problem))
    told: list[tuple[str, object]] = []
    context.listeners.add(lambda event, detail: told.append((event, detail.get("reason"))))
    context.change_setting("max_tuning_samples", 2)
    assert context.measure_beside(problem, again=True) is Verdict.INSUFFICIENT_BUDGET
    assert len(backend.trials) == 2
    assert kernels(context) == [FAST]
    assert context.explain(*signature_of(problem)) == before
    assert told[-1] == ("tuning_failed", "the earlier winner stays, nothing was decided now: insufficient budget")
    call(context)
    assert backend.runs[-1] == FAST
    context.change_setting("max_tuning_samples", 100)
    assert context.measure_beside(problem, again=True) is True


def test_an_undecided_winner_is_replaced_by_what_is_as_undecided(
    make_context: MakeContext, call: Any, problem: GemmProblem, backend: ScriptedBackend
) -> None:
    context = make_context()
    context.change_setting("max_tuning_samples", 2)
    call(context)
    assert context.measure_beside(problem, again=True) is True
    assert len(backend.trials) == 2
    assert kernels(context) == [FIRST]


@pytest.mark.filterwarnings("ignore:how winners were chosen")
def test_an_undecided_winner_is_replaced_also_where_its_explanation_could_not_be_written(
    make_context: MakeContext, call: Any, problem: GemmProblem, tmp_path: Path
) -> None:
    context = make_context()
    (tmp_path / "tunableop_results0.explain.jsonl").mkdir()
    context.change_setting("max_tuning_samples", 2)
    call(context)
    assert context.stats()["unexplained"] == 1
    assert context.measure_beside(problem, again=True) is True


def test_a_winner_that_runs_again_stays_where_the_background_decides_nothing(
    make_context: MakeContext, call: Any, problem: GemmProblem, backend: ScriptedBackend, monkeypatch: Any
) -> None:
    context = make_context()
    call(context)
    backend.unavailable[FAST] = "gone"
    context.change_setting("mode", "background")
    is_held = [True]
    monkeypatch.setattr(context.background, "_is_time", lambda _: not is_held[0])
    context.reresolve()
    call(context)
    assert backend.runs[-1] == FIRST
    del backend.unavailable[FAST]
    context.change_setting("max_tuning_samples", 2)
    is_held[0] = False
    assert context.drain(20)
    context.close()
    assert len(backend.trials) == 2
    assert kernels(context) == [FAST]
