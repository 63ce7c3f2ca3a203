"""With the feature off: what the in-process selection chose runs ever after, and costs little memory."""

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.backends.base import Plan
from tensorplay.gemm import GemmProblem
from tensorplay.runtime import measuring
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST = scripted_kernel(1), scripted_kernel(2)
OF_NO_OTHER_TEST = 7919
Multiply = Callable[..., NDArray[np.float32]]


@pytest.fixture
def backend() -> ScriptedBackend:
    return ScriptedBackend({FIRST: 1.0, FAST: 0.5}, library=2)


@pytest.fixture
def off(make_context: Any) -> TuningContext:
    context: TuningContext = make_context({})
    return context


@pytest.fixture
def multiply(off: TuningContext, backend: ScriptedBackend) -> Multiply:
    """Multiplies as an operation does: by the plan that is kept for the layout, else by what the context says."""

    def run(problem: GemmProblem) -> NDArray[np.float32]:
        left = np.full((problem.m, problem.k), 0.1, np.float32)
        right = np.full((problem.k, problem.n), 0.3, np.float32)
        plans = off.plans
        resolved = plans.get(problem)
        if resolved is None:
            resolved = off.resolve(problem, backend)
            off.keep(plans, problem, resolved)
        product: NDArray[np.float32] = resolved.run(left, right, None)
        return product

    return run


def test_a_changed_setting_times_nothing_again(
    off: TuningContext, backend: ScriptedBackend, multiply: Multiply, problem: GemmProblem
) -> None:
    multiply(problem)
    off.change_setting("numerical_check", "off")
    multiply(problem)
    assert backend.runs == [FAST, FAST]
    assert len(backend.trials) == 1


def test_the_newest_selections_are_known_and_an_older_one_is_timed_again(
    backend: ScriptedBackend,
    off: TuningContext,
    multiply: Multiply,
    problem: GemmProblem,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measuring, "MOST_SELECTED", 3)
    shapes = [replace(problem, m=m) for m in range(1, 11)]
    for shape in shapes:
        multiply(shape)
    assert len(off._selected) == 3
    backend.trials.clear()
    off.plans = {}
    for shape in (shapes[9], shapes[0]):
        multiply(shape)
    assert backend.trials == [shapes[0]]
    assert set(backend.runs) == {FAST}


def test_no_plan_is_held_for_what_was_selected(off: TuningContext, multiply: Multiply, problem: GemmProblem) -> None:
    shapes = {replace(problem, m=m, k=OF_NO_OTHER_TEST) for m in range(1, 11)}
    for shape in shapes:
        multiply(shape)
    held = [each for each in gc.get_objects() if isinstance(each, Plan) and each.problem in shapes]
    assert {plan.problem for plan in held} == shapes
    del held
    off.plans = {}
    gc.collect()
    assert not [each for each in gc.get_objects() if isinstance(each, Plan) and each.problem in shapes]


def test_what_the_library_lists_no_more_is_not_run(
    off: TuningContext, backend: ScriptedBackend, multiply: Multiply, problem: GemmProblem
) -> None:
    multiply(problem)
    backend._scripts = {FIRST: 1.0, scripted_kernel(3): 0.5}
    off.plans = {}
    multiply(problem)
    assert backend.runs == [FAST, scripted_kernel(3)]


def test_under_a_capture_the_selection_of_the_eager_calls_before_runs_with_the_same_bits(
    off: TuningContext, backend: ScriptedBackend, multiply: Multiply, problem: GemmProblem
) -> None:
    eager = multiply(problem)
    backend.is_capture_live = True
    captured = multiply(problem)
    backend.is_capture_live = False
    assert backend.runs == [FAST, FAST]
    assert captured.tobytes() == eager.tobytes()
    assert multiply(problem).tobytes() == eager.tobytes()


def test_under_a_capture_after_a_changed_setting_the_first_choice_runs(
    off: TuningContext, backend: ScriptedBackend, multiply: Multiply, problem: GemmProblem
) -> None:
    multiply(problem)
    off.change_setting("numerical_check", "off")
    backend.is_capture_live = True
    multiply(problem)
    backend.is_capture_live = False
    multiply(problem)
    assert backend.runs == [FAST, FIRST, FAST]
