"""Products that come while their own thread measures: of a signal handler, a finaliser or a listener."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorplay.backends.base import Trial
from tensorplay.gemm import GemmProblem, signature_of
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.device_explanations import DeviceExplanations
from tensorplay.runtime.listeners import TUNING_STARTED
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)


class InterruptedBackend(ScriptedBackend):
    """A scripted device in whose trials something comes in between."""

    def __init__(self, **more: Any) -> None:
        super().__init__({FIRST: 1.0, FAST: 0.5, SLOW: 2.0}, **more)
        self.in_trial: Callable[[], object] = lambda: None
        self.open = 0

    @contextmanager
    def open_trial(self, problem: GemmProblem, *, rotating_bytes: int) -> Iterator[Trial]:
        self.open += 1
        assert self.open == 1, "a trial was opened inside another"
        with super().open_trial(problem, rotating_bytes=rotating_bytes) as trial:
            self.in_trial()
            yield trial
        self.open -= 1


@pytest.fixture
def backend() -> InterruptedBackend:
    return InterruptedBackend()


@pytest.fixture
def other(problem: GemmProblem) -> GemmProblem:
    return replace(problem, n=problem.n + 1)


def multiply(context: TuningContext, backend: ScriptedBackend, problem: GemmProblem) -> bool:
    """Multiply as an operation would, and return whether it would let later calls do the same unasked."""
    left = np.ones((problem.m, problem.k), np.float32)
    right = np.ones((problem.k, problem.n), np.float32)
    resolved = context.resolve(problem, backend)
    assert (resolved.run(left, right, None) == problem.k).all()
    return resolved.cacheable


@pytest.mark.parametrize("comes", ["by a signal", "by a listener"])
def test_such_a_product_runs_the_first_choice_and_a_later_one_is_measured(
    context: TuningContext, backend: InterruptedBackend, problem: GemmProblem, other: GemmProblem, comes: str
) -> None:
    kept: list[bool] = []

    def product(*_: object) -> None:
        kept.append(multiply(context, backend, other))

    def listener(event: str, detail: Mapping[str, object]) -> None:
        if event == TUNING_STARTED and detail["params"] == signature_of(problem).params:
            product()

    before = signal.signal(signal.SIGUSR1, product)
    try:
        if comes == "by a signal":
            backend.in_trial = lambda: os.kill(os.getpid(), signal.SIGUSR1)
        else:
            context.listeners.add(listener)
        multiply(context, backend, problem)
    finally:
        signal.signal(signal.SIGUSR1, before)
        backend.in_trial = lambda: None
    assert kept == [False]
    assert backend.runs == [FIRST, FAST]
    assert context.calls_of(*signature_of(other)) == {"first_choice": 1}
    assert context.explain(*signature_of(other))["not_measured"] is None
    assert context.get_untuned() == []
    assert multiply(context, backend, other)
    assert backend.runs[-1] == FAST
    assert context.stats()["measured"] == 2


def test_such_a_product_of_the_same_signature_is_no_different(
    context: TuningContext, backend: InterruptedBackend, problem: GemmProblem
) -> None:
    kept: list[bool] = []
    backend.in_trial = lambda: kept.append(multiply(context, backend, problem))
    assert multiply(context, backend, problem)
    assert kept == [False]
    assert backend.runs == [FIRST, FAST]
    assert context.stats()["measured"] == 1


def test_asking_to_tune_in_the_middle_of_a_measurement_says_no(
    context: TuningContext, backend: InterruptedBackend, problem: GemmProblem, other: GemmProblem
) -> None:
    told: list[bool] = []
    backend.in_trial = lambda: told.append(context.tune(other))
    assert context.tune(problem)
    assert told == [False]
    backend.in_trial = lambda: None
    assert context.tune(other)


def test_nothing_is_selected_in_the_middle_of_a_selection(
    make_context: Any, problem: GemmProblem, other: GemmProblem
) -> None:
    backend = InterruptedBackend(library=2)
    context = make_context({}, on=backend)
    kept: list[bool] = []
    backend.in_trial = lambda: kept.append(multiply(context, backend, other))
    multiply(context, backend, problem)
    backend.in_trial = lambda: None
    multiply(context, backend, other)
    assert kept == [False]
    assert backend.runs == [FIRST, FAST, FAST]


def test_a_winner_runs_whatever_becomes_of_its_explanation(
    context: TuningContext, backend: InterruptedBackend, problem: GemmProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> bool:
        raise MemoryError("no room")

    monkeypatch.setattr(DeviceExplanations, "record", failing)
    assert multiply(context, backend, problem)
    assert backend.runs == [FAST]
    assert context.stats()["unexplained"] == context.stats()["measured"] == 1


def test_an_explanation_that_a_file_has_no_room_for_is_counted(
    context: TuningContext, backend: InterruptedBackend, problem: GemmProblem, tmp_path: Path
) -> None:
    path = tmp_path / "tunableop_results0.explain.jsonl"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    multiply(context, backend, problem)
    assert backend.runs == [FAST]
    assert context.stats()["unexplained"] == 1
    assert context.explain(*signature_of(problem))["verdict"] == "winner"
    assert path.stat().st_size == 1 << 40
