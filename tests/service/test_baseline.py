"""What settings go back to: what they were before anybody changed them, as far as that is known."""

import pytest

from tensorplay.errors import SettingError
from tensorplay.runtime.settings import Settings
from tensorplay.service.baseline import Baseline


def test_what_nobody_has_changed_yet_is_kept_whatever_the_environment_says_now() -> None:
    settings = Settings({"TP_TUNABLEOP_MIN_GAIN": "0.25"})
    baseline = Baseline(settings.describe(), {"TP_TUNABLEOP_MIN_GAIN": "0.5", "TP_TUNABLEOP_TUNING": "0"})
    settings.set("min_gain", 0.75)
    assert baseline.of("min_gain") == (0.25, "environment")
    assert baseline.of("tuning") == (True, "default")


def test_of_what_was_changed_before_the_environment_says_it_else_the_default() -> None:
    settings = Settings({"TP_TUNABLEOP_MIN_GAIN": "0.25"})
    for name, value in (("min_gain", 0.75), ("workspace_mib", 8)):
        settings.set(name, value)
    environ = {"TP_TUNABLEOP_MIN_GAIN": "0.25", "TP_TUNABLEOP_WORKSPACE_MIB": "no number"}
    baseline = Baseline(settings.describe(), environ)
    assert baseline.of("min_gain") == (0.25, "environment")
    assert baseline.of("workspace_mib") == (32, "default")


def test_what_is_no_setting_goes_back_to_nothing() -> None:
    with pytest.raises(SettingError, match="is no setting"):
        Baseline(Settings({}).describe(), {}).of("nothing")
