import json
import logging
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tensorplay.errors import SettingWarning
from tensorplay.runtime.environment import SettingProblem
from tensorplay.runtime.setting import PREFIX, Setting
from tensorplay.runtime.settings import Settings, SettingState
from tensorplay.runtime.settings_table import SETTINGS

CASES: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "cases" / "settings.json").read_text())
BOOLEANS = [setting for setting in SETTINGS if setting.kind.name == "boolean"]
UNBOUNDED = [setting for setting in SETTINGS if setting.kind.name == "integer" and setting.name != "verbose"]


def made(environ: dict[str, str]) -> tuple[Settings, list[str]]:
    """Return the settings that the environment gives, and the warnings that this raised."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        settings = Settings(environ)
    assert all(warning.category is SettingWarning for warning in caught)
    return settings, [str(warning.message) for warning in caught]


def state_of(settings: Settings, name: str) -> SettingState:
    return next(state for state in settings.describe() if state.name == name)


def assert_taken(setting: Setting, text: str, value: object) -> None:
    settings, warned = made({setting.variable: text})
    assert warned == []
    assert settings.problems() == []
    assert settings.get(setting.name) == value
    assert type(settings.get(setting.name)) is type(value)
    assert state_of(settings, setting.name).origin == "environment"


def assert_ignored(setting: Setting, text: str) -> None:
    settings, warned = made({setting.variable: text})
    assert len(warned) == 1
    why = f"allowed: {setting.allowed}" if text else "it is empty, unset it for the default"
    assert warned[0].startswith(f"{setting.variable}={text!r} is ignored: {why}")
    assert f"{setting.name} stays {setting.default!r}" in warned[0]
    assert settings.get(setting.name) == setting.default
    assert state_of(settings, setting.name).origin == "default"
    assert [str(problem) for problem in settings.problems()] == warned


@pytest.mark.parametrize("setting", BOOLEANS, ids=lambda setting: setting.name)
@pytest.mark.parametrize(
    ("text", "value"),
    [(text, True) for text in CASES["booleans"]["on"]] + [(text, False) for text in CASES["booleans"]["off"]],
)
def test_boolean_words_are_read_in_any_case(setting: Setting, text: str, value: object) -> None:
    assert_taken(setting, text, value)


@pytest.mark.parametrize("setting", BOOLEANS, ids=lambda setting: setting.name)
@pytest.mark.parametrize(
    "text", [*CASES["booleans"]["ignored_with_warning"], "1 ", " on", "on\n", "t", "True,", "01", "-1", "\uff11"]
)
def test_other_boolean_texts_are_ignored_with_a_warning(setting: Setting, text: str) -> None:
    assert_ignored(setting, text)


@pytest.mark.parametrize("setting", UNBOUNDED, ids=lambda setting: setting.name)
@pytest.mark.parametrize(("text", "value"), CASES["integers"]["accepted"].items())
def test_integers_are_digits(setting: Setting, text: str, value: int) -> None:
    assert_taken(setting, text, value)


@pytest.mark.parametrize("setting", UNBOUNDED, ids=lambda setting: setting.name)
@pytest.mark.parametrize(
    "text",
    [
        *CASES["integers"]["ignored_with_warning"],
        *["+1", " 1", "1 ", "1\n", "1_000", "0x10", "\u0663", "1,000", "None", str(2**31)],
    ],
)
def test_other_integer_texts_are_ignored_with_a_warning(setting: Setting, text: str) -> None:
    assert_ignored(setting, text)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("verbose", "true", 1),
        ("verbose", "OFF", 0),
        ("verbose", "2", 2),
        ("verbose", "3", 3),
        ("verbose_filename", "out", "out"),
        ("filename", "/shared/results %d.csv", "/shared/results %d.csv"),
        ("filename", "\udcff.csv", "\udcff.csv"),
        ("numerical_check", "0", "off"),
        ("numerical_check", "1", "on"),
        ("numerical_check", "1e-5_1e-5", "1e-05_1e-05"),
        ("rotating_buffer_size", "1048576", 2**20),
        ("candidates", "Search", "search"),
        ("sources", "cublaslt,cublas", ("cublaslt", "cublas")),
        ("total_tuning_seconds", "1.5e2", 150.0),
        ("min_gain", "0", 0.0),
        ("min_gain", ".05", 0.05),
    ],
)
def test_the_other_kinds_are_read(name: str, text: str, value: object) -> None:
    setting = next(setting for setting in SETTINGS if setting.name == name)
    assert_taken(setting, text, value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("verbose", "4"),
        ("verbose", "yes"),
        ("verbose", ""),
        ("filename", ""),
        ("filename", "folder/"),
        ("sources", ""),
        ("sources", "numpy,,scipy"),
        ("numerical_check", "1e-5"),
        ("numerical_check", "0_0"),
        ("numerical_check", "1e-400_1"),
        ("rotating_buffer_size", "1048577"),
        ("candidates", "narrow"),
        ("mode", "later"),
        ("total_tuning_seconds", "inf"),
        ("total_tuning_seconds", "nan"),
        ("total_tuning_seconds", "1,5"),
        ("min_gain", "11"),
        ("min_gain", "1e"),
        ("min_gain", "1_0"),
    ],
)
def test_the_other_kinds_are_ignored_with_a_warning(name: str, text: str) -> None:
    setting = next(setting for setting in SETTINGS if setting.name == name)
    if setting.default == ():
        settings, warned = made({setting.variable: text})
        assert (settings.get(name), len(warned)) == ((), 1)
    else:
        assert_ignored(setting, text)


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("ENABLE", "did you mean TP_TUNABLEOP_ENABLED?"),
        ("enabled", "did you mean TP_TUNABLEOP_ENABLED?"),
        ("VEROBSE", "did you mean TP_TUNABLEOP_VERBOSE?"),
        ("MAX_TUNING_ITERATION", "did you mean TP_TUNABLEOP_MAX_TUNING_ITERATIONS?"),
        ("", "`tensorplay doctor` lists the settings"),
        ("ZZZ", "`tensorplay doctor` lists the settings"),
    ],
)
def test_an_unknown_variable_is_answered_with_the_nearest(variable: str, hint: str) -> None:
    settings, warned = made({PREFIX + variable: "1"})
    assert warned == [f"TP_TUNABLEOP_{variable}='1' is ignored: no such setting; {hint}"]
    assert settings.problems() == [SettingProblem(PREFIX + variable, "'1'", f"no such setting; {hint}")]


@pytest.mark.parametrize("variable", ["PYTORCH_TUNABLEOP_ENABLED", "tp_tunableop_enabled", "PATH", "TP_TUNABLEOP"])
def test_variables_that_are_not_ours_are_left_alone(variable: str) -> None:
    settings, warned = made({variable: "1"})
    assert (warned, settings.problems(), settings.enabled) == ([], [], False)


def test_hostile_names_and_texts_are_shown_short_and_escaped() -> None:
    environ = {PREFIX + "\x1b[31m\n" + "x" * 10_000: "\x1b]0;\n" * 10_000, PREFIX + "TUNING": "\r\u202e" + "y" * 10**6}
    settings, warned = made(environ)
    assert len(warned) == len(settings.problems()) == 2
    for text in warned:
        assert text.isprintable()
        assert len(text) < 1000


ITERATIONS, SAMPLES = "TP_TUNABLEOP_MAX_TUNING_ITERATIONS", "TP_TUNABLEOP_MAX_TUNING_SAMPLES"


@pytest.mark.parametrize(
    ("environ", "value", "ignored"),
    [
        ({ITERATIONS: "7"}, 7, []),
        ({ITERATIONS: "7", SAMPLES: "7"}, 7, []),
        ({ITERATIONS: "7", SAMPLES: "007"}, 7, []),
        (
            {ITERATIONS: "7", SAMPLES: "8"},
            8,
            [f"{ITERATIONS}='7' is ignored: {SAMPLES} wins; max_tuning_samples stays 8"],
        ),
        (
            {ITERATIONS: "7", SAMPLES: "x"},
            7,
            [f"{SAMPLES}='x' is ignored: allowed: an integer from 0 to 2147483647; max_tuning_samples stays 7"],
        ),
        (
            {ITERATIONS: "x", SAMPLES: "8"},
            8,
            [f"{ITERATIONS}='x' is ignored: allowed: an integer from 0 to 2147483647; max_tuning_samples stays 8"],
        ),
    ],
)
def test_the_main_name_wins_over_the_peers(environ: dict[str, str], value: int, ignored: list[str]) -> None:
    settings, warned = made(environ)
    assert settings.max_tuning_samples == value
    assert warned == ignored


def test_the_environment_is_read_once() -> None:
    environ = {PREFIX + "ENABLED": "1"}
    settings, _ = made(environ)
    environ[PREFIX + "ENABLED"] = "0"
    assert settings.enabled


def test_a_variable_that_vanishes_while_it_is_read_is_not_set() -> None:
    class Changing(dict[str, str]):
        def get(self, *_: object) -> Any:
            return None

    settings, warned = made(Changing({PREFIX + "ENABLED": "1"}))
    assert (settings.enabled, warned) == (False, [])


def test_the_real_environment_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + "ENABLED", "on")
    assert Settings(os.environ).enabled


def test_where_warnings_are_errors_the_settings_are_made_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tensorplay"):
        settings = Settings({PREFIX + "ENABLED": "2", PREFIX + "TUNING": "0"})
    assert not settings.tuning
    assert "TP_TUNABLEOP_ENABLED='2' is ignored" in caplog.text


texts = st.text(st.characters(exclude_characters="\0"), max_size=80) | st.sampled_from(
    ["1", "0", "on", "30", "1e-5_1e-5", "wide", "numpy", "0.5", "err"]
)
variables = st.sampled_from([variable for setting in SETTINGS for variable in setting.variables]) | st.text(
    st.characters(exclude_characters="\0="), max_size=30
).map(PREFIX.__add__)


def assert_value_or_one_warning_each(environ: dict[str, str]) -> None:
    settings, warned = made(environ)
    ignored = [problem.variable for problem in settings.problems()]
    assert len(warned) == len(ignored) <= len(environ)
    states = {state.name: state for state in settings.describe()}
    for setting in SETTINGS:
        state = states[setting.name]
        assert setting.check(state.value) == state.value
        given_here = [variable for variable in setting.variables if variable in environ]
        taken = [variable for variable in given_here if variable not in ignored]
        assert state.origin == ("environment" if taken else "default")
        assert taken or state.value == setting.default


@hypothesis_settings(max_examples=300, deadline=None)
@given(environ=st.dictionaries(variables, texts, max_size=6))
@example({PREFIX: ""})
def test_any_environment_gives_valid_values_and_one_warning_for_each_that_is_not(environ: dict[str, str]) -> None:
    assert_value_or_one_warning_each(environ)


@pytest.mark.nightly
@hypothesis_settings(max_examples=10_000, deadline=None)
@given(environ=st.dictionaries(variables, texts, max_size=6))
def test_ten_thousand_environments_give_valid_values_and_warnings(environ: dict[str, str]) -> None:
    assert_value_or_one_warning_each(environ)
