import enum
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tensorplay.errors import SettingError
from tensorplay.runtime.numerical_check import tolerances
from tensorplay.runtime.setting import Setting, nearest, shown
from tensorplay.runtime.setting_kind import SettingValue, integer
from tensorplay.runtime.settings_table import SETTINGS, setting_of

LARGEST = 2**31 - 1


class Level(enum.IntEnum):
    TWO = 2


@pytest.mark.parametrize(
    ("name", "given_value", "kept"),
    [
        ("enabled", True, True),
        ("tuning", False, False),
        ("verbose", True, 1),
        ("verbose", False, 0),
        ("verbose", 3, 3),
        ("verbose", Level.TWO, 2),
        ("max_tuning_duration_ms", 0, 0),
        ("max_tuning_duration_ms", LARGEST, LARGEST),
        ("max_tuning_samples", np.int64(7), 7),
        ("max_tuning_samples", np.uint8(7), 7),
        ("workspace_mib", 2**20, 2**20),
        ("rotating_buffer_size", None, None),
        ("rotating_buffer_size", 0, 0),
        ("filename", "", ""),
        ("filename", "a/b.csv", "a/b.csv"),
        ("filename", Path("a") / "b.csv", "a/b.csv"),
        ("filename", np.str_("b.csv"), "b.csv"),
        ("verbose_filename", "out", "out"),
        ("candidates", "search", "search"),
        ("sources", "", ()),
        ("sources", "numpy,scipy", ("numpy", "scipy")),
        ("sources", "NumPy, scipy ,numpy", ("numpy", "scipy")),
        ("sources", ["scipy", "numpy", "scipy"], ("scipy", "numpy")),
        ("sources", {"scipy", "numpy"}, ("numpy", "scipy")),
        ("total_tuning_seconds", 2, 2.0),
        ("total_tuning_seconds", Fraction(1, 2), 0.5),
        ("min_gain", np.float32(0.5), 0.5),
        ("min_gain", -0.0, 0.0),
        ("numerical_check", True, "on"),
        ("numerical_check", False, "off"),
        ("numerical_check", "OFF", "off"),
        ("numerical_check", "1e-5_1e-4", "1e-05_0.0001"),
        ("numerical_check", (1e-5, np.float64(1e-4)), "1e-05_0.0001"),
        ("numerical_check", (1, 2), "1.0_2.0"),
    ],
)
def test_a_callers_value_is_kept_in_one_form(name: str, given_value: object, kept: SettingValue) -> None:
    value = setting_of(name).check(given_value)
    assert value == kept
    assert type(value) is type(kept)
    assert setting_of(name).check(value) == value


@pytest.mark.parametrize(
    ("name", "given_value"),
    [
        *[("enabled", value) for value in (1, 0, "1", "true", None, np.True_)],
        *[("verbose", value) for value in (-1, 4, 1.0, "1", None)],
        *[
            ("max_tuning_samples", value)
            for value in (-1, True, 3.5, 30.0, "30", None, LARGEST + 1, 10**5000, float("nan"), np.float64(3), [3])
        ],
        *[("rotating_buffer_size", value) for value in (-1, False, 2**20 + 1, "off")],
        *[("filename", value) for value in (None, 3, b"a.csv", "a\0.csv", "folder/", ".", "a/..", "/")],
        ("verbose_filename", ""),
        *[("candidates", value) for value in ("", "WIDE", "narrow", None, 1)],
        ("mode", "later"),
        *[
            ("sources", value)
            for value in ("numpy,", ",", "num py", "numpy;scipy", "a\n", "\u212a", ["Numpy"], [1], None, 3, "numpi")
        ],
        *[
            ("total_tuning_seconds", value)
            for value in (-1, -1e-300, float("nan"), float("inf"), 10**400, True, "1", None, 1j, Fraction(10**400))
        ],
        ("min_gain", 10.5),
        *[
            ("numerical_check", value)
            for value in (None, 1, "", "yes", "1e-5", "0_1", "1_0", "1e-5_", "-1_1", "1e999_1", "nan_1", "inf_inf")
        ],
        *[("numerical_check", value) for value in ((1e-5,), (1, 2, 3), (0.0, 1.0), (True, 1), ("1", "1"), [1, 1])],
    ],
    ids=shown,
)
def test_a_callers_value_that_is_not_allowed_is_refused_with_what_is(name: str, given_value: object) -> None:
    setting = setting_of(name)
    with pytest.raises(SettingError) as caught:
        setting.check(given_value)
    assert str(caught.value) == f"{name} was given {shown(given_value)}; allowed: {setting.allowed}"
    assert isinstance(caught.value, ValueError)


def test_own_tolerances_are_numbers_and_words_have_none() -> None:
    assert tolerances("on") is None
    assert tolerances("off") is None
    assert tolerances(str(setting_of("numerical_check").check("1e-5_.25"))) == (1e-5, 0.25)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
@hypothesis_settings(max_examples=100, deadline=None)
@given(
    value=st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=4)
    | st.lists(st.text(max_size=3), max_size=3)
    | st.tuples(st.floats(), st.floats())
)
def test_any_value_is_kept_or_refused_with_a_setting_error(setting: Setting, value: object) -> None:
    try:
        kept = setting.check(value)
    except SettingError as error:
        said = str(error)
        assert said.isprintable()
        assert len(said) < 1000
    else:
        assert setting.check(kept) == kept
        assert hash(kept) is not None


@pytest.mark.parametrize("default", [None, "30", -1, True])
def test_a_setting_whose_default_is_not_allowed_cannot_be_declared(default: SettingValue) -> None:
    with pytest.raises(SettingError, match="limit"):
        Setting(name="limit", kind=integer(), default=default, help="A limit.")


def test_a_setting_whose_default_would_be_kept_otherwise_cannot_be_declared() -> None:
    with pytest.raises(SettingError, match=r"the default of limit is 3; it would be kept as 3\.0"):
        Setting(name="limit", kind=setting_of("min_gain").kind, default=3, help="A limit.")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\x1b[31m\n", r"'a\x1b[31m\n'"),
        ("x" * 61, "'" + "x" * 57 + "...'"),
        ("\u202etxt", r"'\u202etxt'"),
        (10**5000, "an integer of 16610 bits"),
        (-1, "-1"),
        (None, "None"),
        (("a", "b"), "'a,b'"),
        ([10**5000], "a value of type list"),
    ],
    ids=shown,
)
def test_what_was_given_is_shown_short_and_on_one_line(value: object, text: str) -> None:
    assert shown(value) == text


def test_the_nearest_name_is_found_however_long_the_slip_is() -> None:
    assert nearest("enabeld", ["tuning", "enabled"]) == "enabled"
    assert nearest("zzz", ["tuning", "enabled"]) is None
    assert nearest("e" * 10_000_000, ["tuning", "enabled"]) is None
