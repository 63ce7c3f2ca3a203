"""What fails in a way that nobody foresaw costs that call only, and is tried again, but not for ever."""

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tensorplay.errors import LaunchError, TensorPlayWarning
from tensorplay.gemm import GemmProblem, signature_of
from tensorplay.runtime import ledger
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST = scripted_kernel(1), scripted_kernel(2)


class FailingBackend(ScriptedBackend):
    """A scripted device that fails so many times where nothing is expected to."""

    def __init__(self) -> None:
        super().__init__({FIRST: 1.0, FAST: 0.5})
        self.clock_errors: list[Exception] = []
        self.capture_errors: list[Exception] = []

    def clocks(self, device: str) -> dict[str, int] | None:
        if self.clock_errors:
            raise self.clock_errors.pop()
        return super().clocks(device)

    def is_capturing(self, stream: int | None, device: str | None = None) -> bool:
        if self.capture_errors:
            raise self.capture_errors.pop()
        return super().is_capturing(stream, device)


@pytest.fixture
def backend() -> FailingBackend:
    return FailingBackend()


def multiply(context: TuningContext, backend: FailingBackend, problem: GemmProblem) -> None:
    """Multiply as an operation does."""
    left = np.ones((problem.m, problem.k), np.float32)
    right = np.ones((problem.k, problem.n), np.float32)
    plans = context.plans
    resolved = plans.get("key")
    if resolved is None:
        resolved = context.resolve(problem, backend)
        context.keep(plans, "key", resolved)
    else:
        resolved.tally.calls += 1
    assert (resolved.run(left, right, None) == problem.k).all()


def failures(caplog: pytest.LogCaptureFixture) -> list[int]:
    """Return which failures of their kind were logged, and forget them."""
    found = [each.args[1] for each in caplog.records if each.module == "context" and isinstance(each.args, tuple)]
    caplog.clear()
    return [each for each in found if isinstance(each, int)]


def test_a_failure_that_passes_does_not_last(
    context: TuningContext, backend: FailingBackend, problem: GemmProblem, caplog: pytest.LogCaptureFixture
) -> None:
    backend.clock_errors = [MemoryError("for a moment")]
    for _ in range(3):
        multiply(context, backend, problem)
    assert backend.runs == [FIRST, FAST, FAST]
    assert [row[2] for row in context.get_results()] == [FAST]
    stats = context.stats()
    assert (stats["first_choice"], stats["measured"], stats["replayed"]) == (1, 1, 1)
    assert context.explain(*signature_of(problem))["not_measured"] is None
    assert failures(caplog) == [1]


def test_what_breaks_off_every_time_is_given_up_so_that_not_every_call_measures(
    context: TuningContext, backend: FailingBackend, problem: GemmProblem, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []
    context.listeners.add(lambda event, _: told.append(event))
    backend.clock_errors = [MemoryError("no room")] * 9
    for _ in range(2):
        multiply(context, backend, problem)
    with pytest.warns(TensorPlayWarning, match="no room"):
        multiply(context, backend, problem)
    for _ in range(2):
        multiply(context, backend, problem)
    assert backend.runs == [FIRST] * 5
    assert len(backend.trials) == told.count("tuning_failed") == 3
    assert context.explain(*signature_of(problem))["not_measured"] == "no room"
    assert context.get_untuned() == [signature_of(problem)]
    assert failures(caplog) == [1, 2]
    backend.clock_errors.clear()
    context.tuning_enable()
    context.set_max_tuning_samples(50)
    multiply(context, backend, problem)
    assert backend.runs[-1] == FAST


def test_a_failure_of_every_call_is_counted_each_time_and_logged_ever_more_seldom(
    context: TuningContext, backend: FailingBackend, problem: GemmProblem, caplog: pytest.LogCaptureFixture
) -> None:
    backend.capture_errors = [LaunchError("lost")] * 100
    backend.capture_errors[50] = MemoryError("another kind")
    for _ in range(100):
        multiply(context, backend, problem)
    assert backend.runs == [FIRST] * 100
    assert context.stats()["first_choice"] == 100
    assert sorted(failures(caplog)) == [1, 1, 2, 4, 8, 16, 32, 64]
    multiply(context, backend, problem)
    assert backend.runs[-1] == FAST


def test_the_log_says_what_failed_and_which_product_ran_the_first_choice(
    context: TuningContext, backend: FailingBackend, problem: GemmProblem, caplog: pytest.LogCaptureFixture
) -> None:
    backend.capture_errors = [LaunchError("lost")]
    with caplog.at_level(logging.ERROR, "tensorplay"):
        multiply(context, backend, problem)
    assert "the first choice runs (failure 1 of its kind)" in caplog.text
    assert "LaunchError: lost" in caplog.text
    caplog.clear()


def test_tuning_by_hand_raises_what_nobody_foresaw(
    context: TuningContext, backend: FailingBackend, problem: GemmProblem
) -> None:
    backend.clock_errors = [MemoryError("no room")]
    with pytest.raises(MemoryError, match="no room"):
        context.tune(problem)
    assert context.tune(problem)


def test_the_budget_of_the_process_is_spent_for_any_number_of_signatures(
    make_context: Any, backend: FailingBackend, problem: GemmProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "MOST_UNMEASURABLE", 2)
    context = make_context({"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_TOTAL_TUNING_SECONDS": "1"})
    context._spent_seconds = 1.0
    shapes = [replace(problem, m=m) for m in range(1, 6)]
    for shape in [*shapes, *shapes]:
        assert context.resolve(shape, backend).plan.kernel == FIRST
    assert backend.trials == []
    assert len(context._ledger._unmeasurable) == 2
    assert "1 s of tuning" in str(context.explain(*signature_of(shapes[-1]))["not_measured"])
