"""The public functions act on the process's context, with the seeds' defaults and refusals."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tensorplay.tunable
from tensorplay.cuda import tunable
from tensorplay.errors import SettingError
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context
from tensorplay.runtime.steering import Steering


@pytest.fixture(autouse=True)
def context(tmp_path: Path) -> Iterator[TuningContext]:
    with use_context(TuningContext(environ={}, directory=tmp_path)) as context:
        yield context
        context.close()


def test_defaults_are_the_seed_s() -> None:
    assert not tunable.is_enabled()
    assert tunable.tuning_is_enabled()
    assert not tunable.record_untuned_is_enabled()
    assert not tunable.is_verbose()
    assert tunable.get_max_tuning_duration() == 30
    assert tunable.get_max_tuning_samples() == 100
    assert tunable.get_filename() == ""
    assert tunable.get_results() == []


@pytest.mark.parametrize(
    ("switch_on", "switch_off", "is_on"),
    [
        (tunable.enable, tunable.disable, tunable.is_enabled),
        (tunable.tuning_enable, tunable.tuning_disable, tunable.tuning_is_enabled),
        (tunable.record_untuned_enable, tunable.record_untuned_disable, tunable.record_untuned_is_enabled),
    ],
)
def test_each_switch_is_turned_on_and_off_both_ways(switch_on: Any, switch_off: Any, is_on: Any) -> None:
    switch_on()
    assert is_on()
    switch_off()
    assert not is_on()
    switch_on(True)
    assert is_on()
    switch_on(False)
    assert not is_on()
    switch_on(val=True)
    assert is_on()


def test_the_feature_works_without_cuda() -> None:
    tunable.enable()
    assert tunable.is_enabled()


@pytest.mark.parametrize(("given", "verbose"), [(True, True), (False, False), (0, False), (1, True), (3, True)])
def test_verbosity_is_a_boolean_or_a_level(given: Any, verbose: bool) -> None:
    tunable.set_verbose(0)
    tunable.set_verbose(given)
    assert tunable.is_verbose() is verbose
    tunable.set_verbose(0)


@pytest.mark.parametrize(
    ("set_to", "get"),
    [
        (tunable.set_max_tuning_duration, tunable.get_max_tuning_duration),
        (tunable.set_max_tuning_samples, tunable.get_max_tuning_samples),
        (tunable.set_max_tuning_iterations, tunable.get_max_tuning_iterations),
    ],
)
class TestABudget:
    def test_reads_back_and_zero_lifts_it(self, set_to: Any, get: Any) -> None:
        for value in (7, 0, 100_000):
            set_to(value)
            assert get() == value

    @pytest.mark.parametrize("wrong", [-1, 1.5, "30", None, True, 10**30, float("nan")])
    def test_that_is_negative_or_no_integer_is_refused_and_changes_nothing(
        self, set_to: Any, get: Any, wrong: Any
    ) -> None:
        before = get()
        with pytest.raises(ValueError, match="allowed") as caught:
            set_to(wrong)
        assert isinstance(caught.value, SettingError)
        assert get() == before


def test_the_peer_s_iterations_are_our_samples() -> None:
    tunable.set_max_tuning_iterations(12)
    assert tunable.get_max_tuning_samples() == 12


def test_numerical_check_tolerances_are_both_given_or_neither() -> None:
    def value() -> Any:
        return {state.name: state.value for state in tunable.settings()}["numerical_check"]

    assert value() == "on"
    tunable.set_numerical_check_tolerances(False)
    assert value() == "off"
    tunable.set_numerical_check_tolerances(True, 1e-3, 1e-2)
    assert value() == "0.001_0.01"
    tunable.set_numerical_check_tolerances(True)
    assert value() == "on"
    for wrong in ((True, 1e-3, None), (True, None, 1e-3), (True, -1.0, 1.0), (True, 0.0, 0.0)):
        with pytest.raises(ValueError, match=r"allowed|both"):
            tunable.set_numerical_check_tolerances(*wrong)


def _changed_until_an_error() -> None:
    with tunable.configure(enabled=True, max_tuning_samples=3):
        assert tunable.is_enabled()
        assert _state()["max_tuning_samples"] == (3, "api")
        raise ZeroDivisionError


def _state() -> dict[str, tuple[object, str]]:
    return {row.name: (row.value, row.origin) for row in tunable.settings()}


def test_configure_restores_value_and_origin_also_after_an_error() -> None:
    before = _state()
    with pytest.raises(ZeroDivisionError):
        _changed_until_an_error()
    assert _state() == before
    with pytest.raises(SettingError, match="max_tuning_samples"):
        tunable.configure(max_tuning_sample=3)


def test_settings_say_value_origin_and_variable() -> None:
    tunable.set_max_tuning_samples(5)
    row = next(row for row in tunable.settings() if row.name == "max_tuning_samples")
    assert (row.value, row.origin, row.variable) == (5, "api", "TP_TUNABLEOP_MAX_TUNING_SAMPLES")


def test_stats_name_each_reason_from_the_start() -> None:
    assert set(tunable.stats()) == {
        "replayed",
        "measured",
        "queued",
        "first_choice",
        "selected_in_process",
        "untuned",
        "pinned",
        "rejected",
        "fallback",
        "unexplained",
        "waiting",
        "measuring",
    }


@pytest.mark.parametrize("name", tunable.__all__)
def test_each_function_is_a_method_of_the_context_with_the_same_arguments(name: str) -> None:
    function = getattr(tunable, name)
    assert function.__doc__
    assert getattr(tensorplay.tunable, name) is function
    if name == "get_tuning_context":
        return
    method = getattr(TuningContext, name)
    assert str(inspect.signature(function)) == str(inspect.signature(method)).replace("(self, ", "(").replace(
        "(self)", "()"
    )


def test_the_context_has_no_public_operation_that_the_module_lacks() -> None:
    inner = {"resolve", "keep", "fixed", "recover", "backend", "close"}
    # What the service shows and steers a context by.
    inner |= {"recorded", "results_revision", "results_files", "validators_of", "calls_of", "change_setting", "tune"}
    inner |= {"each_recorded"}
    inner |= {name for name in vars(Steering) if not name.startswith("_")}
    methods = {name for name, _ in inspect.getmembers(TuningContext, inspect.isfunction) if not name.startswith("_")}
    assert methods - inner == set(tunable.__all__) - {"get_tuning_context"}
