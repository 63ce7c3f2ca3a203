import threading
from typing import get_args

import numpy as np
import pytest

from tensorplay.errors import SettingError
from tensorplay.runtime.setting_kind import SettingValue
from tensorplay.runtime.settings import Origin, Settings, SettingState
from tensorplay.runtime.settings_table import SETTINGS


@pytest.fixture
def settings() -> Settings:
    return Settings({"TP_TUNABLEOP_TUNING": "0"})


def state_of(settings: Settings, name: str) -> SettingState:
    return next(state for state in settings.describe() if state.name == name)


def test_untouched_settings_have_their_defaults() -> None:
    settings = Settings({})
    for setting, state in zip(SETTINGS, settings.describe(), strict=True):
        assert settings.get(setting.name) == setting.default
        assert state == (
            setting.name,
            setting.default,
            "default",
            setting.variable,
            setting.default,
            setting.help,
            setting.allowed,
            setting.device,
        )


def test_a_call_overrides_the_environment_in_either_direction(settings: Settings) -> None:
    assert (settings.tuning, state_of(settings, "tuning").origin) == (False, "environment")
    settings.set("tuning", value=True)
    assert (settings.tuning, state_of(settings, "tuning").origin) == (True, "api")
    settings.set("tuning", value=False, origin="rest")
    assert (settings.tuning, state_of(settings, "tuning").origin) == (False, "rest")


def test_setting_the_same_value_again_still_makes_it_the_callers(settings: Settings) -> None:
    settings.set("enabled", value=False)
    assert state_of(settings, "enabled").origin == "api"


@pytest.mark.parametrize("origin", get_args(Origin))
def test_each_origin_is_kept(settings: Settings, origin: Origin) -> None:
    settings.set("verbose", 2, origin=origin)
    assert state_of(settings, "verbose").origin == settings.origin("verbose") == origin


def test_values_are_kept_as_plain_python(settings: Settings) -> None:
    settings.set("max_tuning_samples", np.int64(5))
    assert type(settings.max_tuning_samples) is int
    settings.set("verbose", value=True)
    assert type(settings.verbose) is int


def test_a_refused_value_changes_nothing(settings: Settings) -> None:
    before = settings.describe()
    with pytest.raises(
        SettingError, match="max_tuning_duration_ms was given -1; allowed: an integer from 0 to 2147483647"
    ):
        settings.set("max_tuning_duration_ms", -1)
    assert settings.describe() == before


def test_an_unknown_name_is_refused_with_the_nearest(settings: Settings) -> None:
    with pytest.raises(SettingError, match=r"did you mean filename\?"):
        settings.set("file_name", "x")
    with pytest.raises(SettingError, match=r"did you mean filename\?"):
        settings.get("file_name")
    with pytest.raises(SettingError):
        settings.get("_lock")


def test_an_attribute_cannot_be_assigned_past_the_check(settings: Settings) -> None:
    with pytest.raises(AttributeError, match=r"set\('enabled', \.\.\.\)"):
        settings.enabled = True
    assert not settings.enabled


def test_reading_an_attribute_is_a_plain_look_up(settings: Settings) -> None:
    assert vars(settings)["enabled"] is False
    assert "__getattribute__" not in vars(Settings)
    assert not hasattr(Settings, "enabled")


def test_each_change_of_a_value_is_told_with_old_and_new(settings: Settings) -> None:
    heard: list[tuple[str, SettingValue, SettingValue]] = []
    stop = settings.on_change(lambda name, old, new: heard.append((name, old, new)))
    settings.set("verbose", 2)
    settings.set("verbose", 2, origin="rest")
    settings.set("filename", "a.csv")
    stop()
    settings.set("verbose", 0)
    assert heard == [("verbose", 0, 2), ("filename", "", "a.csv")]


def test_who_hears_of_a_change_reads_the_new_value_and_may_change_more(settings: Settings) -> None:
    read: list[bool] = []

    def follow(name: str, old: SettingValue, new: SettingValue) -> None:
        if name == "enabled":
            read.append(settings.enabled)
            settings.set("verbose", 1)

    settings.on_change(follow)
    settings.set("enabled", value=True)
    assert read == [True]
    assert settings.verbose == 1


def test_another_thread_can_change_settings_while_a_change_is_told(settings: Settings) -> None:
    def change_elsewhere(name: str, old: SettingValue, new: SettingValue) -> None:
        if name == "enabled":
            thread = threading.Thread(target=settings.set, args=("verbose", 3))
            thread.start()
            thread.join(30)
            assert not thread.is_alive()

    settings.on_change(change_elsewhere)
    settings.set("enabled", value=True)
    assert settings.verbose == 3


def test_a_failing_callback_does_not_undo_the_change(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []

    def fail(name: str, old: SettingValue, new: SettingValue) -> None:
        raise ZeroDivisionError

    settings.on_change(fail)
    settings.on_change(lambda *change: heard.append(change[0]))
    settings.set("enabled", value=True)
    assert settings.enabled
    assert heard == ["enabled"]
    assert "ZeroDivisionError" in caplog.text


def test_what_is_described_cannot_change_the_settings(settings: Settings) -> None:
    settings.describe().clear()
    settings.problems().append(settings.problems())  # type: ignore[arg-type]  # what a careless caller may do
    assert len(settings.describe()) == len(SETTINGS)
    assert settings.problems() == []
