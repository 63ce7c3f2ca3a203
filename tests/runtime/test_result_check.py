"""The check of results: on the device where that is possible, else on the host, once for the first choice."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.backends.base import Plan, Trial
from tensorplay.errors import LaunchError
from tensorplay.gemm import GemmProblem
from tensorplay.measure.numerics import Tolerance
from tensorplay.measure.report import CheckOutcome
from tensorplay.runtime.result_check import ResultCheck

TOLERANCE = Tolerance(1e-3, 1e-3)


class Told(Trial):
    """Returns what each kernel is told to; compares on the device if told so."""

    def __init__(self, results: dict[str, float], *, on_device: bool) -> None:
        self.results = results
        self.on_device = on_device
        self.outputs: list[str] = []
        self.compared: list[str] = []

    def output(self, plan: Plan) -> NDArray[Any]:
        self.outputs.append(plan.kernel)
        return np.full((2, 2), self._result(plan))

    def reference(self) -> NDArray[Any]:
        return np.full((2, 2), 1.0)

    def closeness(self, first: Plan, *, atol: float, rtol: float) -> Callable[[Plan], bool] | None:
        def is_close(plan: Plan) -> bool:
            self.compared.append(plan.kernel)
            return abs(self._result(plan) - self.results[first.kernel]) <= atol

        return is_close if self.on_device else None

    def _result(self, plan: Plan) -> float:
        if plan.kernel not in self.results:
            raise LaunchError("refused")
        return self.results[plan.kernel]


@pytest.fixture
def plan(problem: GemmProblem) -> Callable[[str], Plan]:
    return lambda kernel: Plan(problem, kernel, lambda *_: None)


Make = Callable[[str], Plan]


@pytest.mark.parametrize("on_device", [True, False])
def test_who_agrees_passes_and_who_does_not_is_told_why(plan: Make, on_device: bool) -> None:
    trial = Told({"first": 1.0, "same": 1.0, "close": 1.0005, "wrong": 3.0}, on_device=on_device)
    check = ResultCheck(trial, plan("first"), TOLERANCE)
    assert check.why_not(plan("same")) is check.why_not(plan("close")) is None
    assert str(check.why_not(plan("wrong"))).startswith("wrong result: ")
    assert check.why_not(plan("broken")) == "does not launch: refused"
    assert [check.is_surely_right(plan(kernel)) for kernel in ("same", "close", "wrong")] == [True, True, False]
    with pytest.raises(LaunchError):
        check.is_surely_right(plan("broken"))


def test_what_is_close_on_the_device_never_leaves_it(plan: Make) -> None:
    trial = Told({"first": 1.0, "same": 1.0}, on_device=True)
    check = ResultCheck(trial, plan("first"), TOLERANCE)
    assert check.why_not(plan("same")) is None
    assert check.is_surely_right(plan("same"))
    assert (trial.outputs, trial.compared) == ([], ["same", "same"])


def test_a_search_does_not_look_at_the_host_for_what_is_not_close(plan: Make) -> None:
    # More exact than the first choice: a candidate that was offered passes, one of thousands is not worth it.
    trial = Told({"first": 1.5, "exact": 1.0}, on_device=True)
    check = ResultCheck(trial, plan("first"), TOLERANCE)
    assert not check.is_surely_right(plan("exact"))
    assert trial.outputs == []


def test_the_first_choices_result_is_brought_once(plan: Make) -> None:
    trial = Told({"first": 1.0, "a": 2.0, "b": 2.0}, on_device=True)
    check = ResultCheck(trial, plan("first"), TOLERANCE)
    check.why_not(plan("a"))
    check.why_not(plan("b"))
    assert trial.outputs == ["a", "first", "b"]


def test_a_first_choice_that_does_not_run_is_no_check_at_all(plan: Make) -> None:
    with pytest.raises(LaunchError):
        ResultCheck(Told({}, on_device=False), plan("first"), TOLERANCE)


def test_what_passed_is_told_with_its_errors_and_the_bound_where_the_host_compared_it(plan: Make) -> None:
    trial = Told({"first": 1.0, "same": 1.0, "close": 1.0005, "wrong": 3.0}, on_device=False)
    check = ResultCheck(trial, plan("first"), TOLERANCE)
    for kernel in ("same", "close", "wrong", "close", "broken"):
        check.why_not(plan(kernel))
    found = check.report_on("close")
    assert (found.outcome, found.compared, found.wrong) == (CheckOutcome.PASSED, 3, 1)
    assert found.max_abs_error == pytest.approx(0.0005) == found.max_rel_error
    assert (found.atol, found.rtol) == (1e-3, 1e-3)
    assert check.report_on("same").max_abs_error == 0.0
    assert check.report_on("first").outcome is CheckOutcome.REFERENCE


def test_what_the_device_compared_has_a_bound_and_no_error(plan: Make) -> None:
    trial = Told({"first": 1.0, "same": 1.0, "searched": 1.0, "wrong": 3.0}, on_device=True)
    check = ResultCheck(trial, plan("first"), TOLERANCE)
    check.why_not(plan("same"))
    check.is_surely_right(plan("searched"))
    check.is_surely_right(plan("wrong"))
    for kernel in ("same", "searched"):
        found = check.report_on(kernel)
        assert (found.outcome, found.max_abs_error, found.max_rel_error) == (CheckOutcome.PASSED, None, None)
        assert "device" in found.reason
        assert (found.atol, found.compared, found.wrong) == (1e-3, 3, 1)


def test_an_error_of_what_should_be_nothing_has_no_relative_size(plan: Make) -> None:
    check = ResultCheck(Told({"first": 0.0, "close": 0.0005}, on_device=False), plan("first"), TOLERANCE)
    check.why_not(plan("close"))
    assert check.report_on("close").max_rel_error is None


def test_what_was_never_compared_is_not_said_to_have_passed(plan: Make) -> None:
    check = ResultCheck(Told({"first": 1.0}, on_device=True), plan("first"), TOLERANCE)
    assert check.report_on("unknown").outcome is CheckOutcome.OFF
