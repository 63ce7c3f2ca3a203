import inspect
import re

import pytest

from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.host.backend import HostBackend
from tensorplay.errors import SettingError
from tensorplay.measure.judgement import FEWEST_PAIRS, FEWEST_SEPARATED, SEPARATED_SHARE
from tensorplay.runtime.setting import PREFIX, Setting
from tensorplay.runtime.settings import Settings
from tensorplay.runtime.settings_table import SETTINGS, setting_of

each_setting = pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)


def test_no_two_settings_share_a_name_or_a_variable() -> None:
    names = [setting.name for setting in SETTINGS]
    variables = [variable for setting in SETTINGS for variable in setting.variables]
    assert len(set(names)) == len(names)
    assert len(set(variables)) == len(variables)


def test_the_seven_variables_of_the_first_documentation_have_its_defaults() -> None:
    defaults = {setting.variable.removeprefix(PREFIX): setting.default for setting in SETTINGS}
    assert {name: defaults[name] for name in ("ENABLED", "TUNING", "RECORD_UNTUNED", "VERBOSE", "FILENAME")} == {
        "ENABLED": False,
        "TUNING": True,
        "RECORD_UNTUNED": False,
        "VERBOSE": 0,
        "FILENAME": "",
    }
    assert (defaults["MAX_TUNING_DURATION_MS"], defaults["MAX_TUNING_SAMPLES"]) == (30, 100)


def test_the_peers_names_are_read_under_our_prefix() -> None:
    assert setting_of("max_tuning_samples").variables[1] == "TP_TUNABLEOP_MAX_TUNING_ITERATIONS"
    assert setting_of("max_warmup_samples").variables[1] == "TP_TUNABLEOP_MAX_WARMUP_ITERATIONS"


def test_the_sources_that_may_be_named_are_those_of_the_backends() -> None:
    theirs = [*HostBackend.sources, *CublasLtBackend.sources]
    assert setting_of("sources").check(theirs) == tuple(theirs)
    with pytest.raises(SettingError, match=f"'numpy,nonsense'; allowed: .* of {', '.join(theirs)}; empty for all"):
        setting_of("sources").check("numpy,nonsense")


@each_setting
def test_a_default_passes_its_own_check(setting: Setting) -> None:
    assert setting.check(setting.default) == setting.default


@each_setting
def test_a_setting_says_everything_that_a_page_needs(setting: Setting) -> None:
    assert re.fullmatch(r"[a-z][a-z_]*[a-z]", setting.name)
    assert re.fullmatch(r"TP_TUNABLEOP_[A-Z_]+", setting.variable)
    assert setting.help.endswith(".")
    assert setting.help.count(". ") <= 1
    assert setting.allowed
    assert setting.device in {"all", "cuda"}
    assert "\n" not in setting.help + setting.allowed


@each_setting
def test_a_unit_in_the_name_is_spelled_out_in_the_help(setting: Setting) -> None:
    units = {"_ms": "milliseconds", "_mib": "MiB", "_seconds": "in seconds", "buffer_size": "MiB"}
    for suffix, unit in units.items():
        if setting.name.endswith(suffix):
            assert unit in setting.help


@each_setting
def test_each_choice_is_allowed_and_named(setting: Setting) -> None:
    for word in setting.kind.choices:
        assert setting.check(word) == word
        assert setting.parse(word.upper()) == word
        assert word in setting.allowed


@each_setting
def test_the_bound_of_a_number_is_allowed_and_the_next_is_not(setting: Setting) -> None:
    largest = setting.kind.largest
    if largest is not None:
        assert setting.check(largest) == largest
        assert f"{largest:.17g}" in setting.allowed
        with pytest.raises(SettingError):
            setting.check(largest + 1)


def test_the_live_settings_are_exactly_the_table() -> None:
    declared = [name for name in inspect.get_annotations(Settings) if not name.startswith("_")]
    assert declared == [setting.name for setting in SETTINGS]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(SettingError, match=r"'max_tuning_sample' is no setting; did you mean max_tuning_samples\?"):
        setting_of("max_tuning_sample")


def test_a_name_like_no_other_is_answered_with_all() -> None:
    with pytest.raises(SettingError, match=r"'zzz' is no setting; allowed: enabled, tuning, .*, deterministic"):
        setting_of("zzz")


def test_the_help_of_min_gain_says_when_half_of_it_is_enough() -> None:
    assert SEPARATED_SHARE == 0.5
    assert range(FEWEST_SEPARATED, FEWEST_PAIRS) == range(5, 7)
    assert "Half of it is enough where the budget allows five or six pairs" in setting_of("min_gain").help
