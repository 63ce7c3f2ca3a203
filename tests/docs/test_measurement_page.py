"""The page of measuring gives the constants and verdicts that the code has."""

import re
from collections.abc import Callable
from importlib import import_module

from tensorplay.backends.host import timer, trial
from tensorplay.cuda import tunable
from tensorplay.measure.confirmation import FUTILITY_LOOKS, RESERVED_SAMPLES
from tensorplay.measure.judgement import FEWEST_PAIRS, PAIRS_FOR_BLOCKS
from tensorplay.measure.report import Verdict
from tensorplay.measure.search import KEPT, PATIENCE, SETTLED
from tensorplay.runtime.settings_table import setting_of

Docs = Callable[[str], str]
Rows = Callable[..., list[list[str]]]

_WORDS = {7: "Seven", 8: "eight", 40: "forty"}


def test_every_constant_has_the_value_that_the_page_says(docs: Docs, rows: Rows) -> None:
    for name, value, module in rows(docs("measurement.md"), "Constant", "Value", "Where"):
        assert getattr(import_module(f"tensorplay.measure.{module}"), name.strip("`")) == float(value), name


def test_the_numbers_in_the_text_are_those_of_the_code(docs: Docs) -> None:
    text = docs("measurement.md")
    assert f"{_WORDS[FEWEST_PAIRS]} pairs are" in text
    assert f"{_WORDS[RESERVED_SAMPLES]} samples, are kept" in text
    assert "after {}, {} or {} pairs".format(*FUTILITY_LOOKS) in text
    assert f"From {_WORDS[PAIRS_FOR_BLOCKS]} pairs on" in text
    for name in ("max_tuning_duration_ms", "max_tuning_samples", "max_search_seconds"):
        assert f"`{name}` ({float(str(setting_of(name).default)):g})" in text
    assert f"After {PATIENCE} candidates" in text
    assert f"The {SETTLED} best are read" in text
    assert f"{KEPT} best of these go on" in text
    assert f"must show {float(str(setting_of('min_gain').default)):.0%}".replace("%", " %") in text


def test_the_numbers_of_the_host_are_those_of_the_code(docs: Docs) -> None:
    text = docs("measurement.md")
    assert f"as many launches as take {timer._SAMPLE_NS // 1000} us" in text
    assert {4: "a quarter of the free memory"}[trial._MEMORY_SHARE] in text


def test_every_verdict_has_a_row(docs: Docs, rows: Rows) -> None:
    listed = [row[0].strip("`") for row in rows(docs("measurement.md"), "Verdict", "Means", "Recorded")]
    assert listed == [verdict.value for verdict in Verdict]


def test_no_other_setting_is_named_than_there_is(docs: Docs) -> None:
    named = set(re.findall(r"`((?:max|total|min|numerical|rotating)_\w+)`", docs("measurement.md")))
    assert named
    assert {name for name in named if setting_of(name).name != name} == set()
    assert callable(tunable.explain)
