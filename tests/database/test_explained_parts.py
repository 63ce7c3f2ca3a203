"""The histogram and the numerical check in a line: given back as kept, and unknown where they do not fit."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.database.explained_parts import MOST_BINS, histogram_in, numerical_check_in
from tensorplay.database.explanation import explanation_of, format_explanation, parse_explanation
from tensorplay.gemm import Signature
from tensorplay.measure.histogram import histogram_of
from tensorplay.measure.report import CheckOutcome, NumericalCheck, SelectionReport, Verdict

SIGNATURE = Signature("GemmTunableOp_Float32", "taN_m16_n8_k8_bias0_dev0")
BUILD = "0123abcd"
TIMES = st.lists(st.floats(1e-9, 1e12), min_size=1, max_size=40)
counts = st.integers(0, 10**6)
checks = st.builds(
    NumericalCheck,
    st.sampled_from(CheckOutcome),
    st.text(max_size=80).map(lambda text: text.encode(errors="replace").decode()),
    *[st.none() | st.floats(0, 1e6)] * 4,
    counts,
    counts,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def told(**parts: Any) -> dict[str, Any]:
    report = SelectionReport(Verdict.WINNER, "k0", 0.5, 1.0, (), None, None, **parts)
    kept = explanation_of(SIGNATURE, BUILD, report.to_dict() | {"candidates": [{"kernel": "k0"}]})
    line = format_explanation(kept).encode()
    assert parse_explanation(line) == kept
    found: dict[str, Any] = json.loads(line)
    return found


@given(TIMES, TIMES)
def test_a_line_gives_back_the_histogram_of_a_report(first: list[float], winner: list[float]) -> None:
    # A number larger than any that is measured is unknown, as everywhere in a line.
    made = histogram_of(first, winner)
    assert told(histogram=made)["histogram"] == made.to_dict()


@given(checks)
def test_a_line_gives_back_the_numerical_check_of_a_report(check: NumericalCheck) -> None:
    assert told(numerical_check=check)["numerical_check"] == check.to_dict()


def test_a_line_of_an_earlier_version_knows_neither() -> None:
    line = told()
    del line["histogram"], line["numerical_check"]
    found = parse_explanation(json.dumps(line).encode())
    assert found.histogram is found.numerical_check is None
    assert found.winner == "k0"


@given(json_values, json_values)
def test_whatever_a_line_holds_in_their_place_costs_nothing_else(histogram: object, check: object) -> None:
    line = told() | {"histogram": histogram, "numerical_check": check}
    found = parse_explanation(json.dumps(line).replace("NaN", "1").replace("Infinity", "2").encode())
    assert found.winner == "k0"
    assert format_explanation(found)


GOOD = histogram_of([1.0, 2.0], [0.5, 0.6]).to_dict()


def with_side(**changes: object) -> dict[str, object]:
    side = GOOD["winner"]
    assert isinstance(side, dict)
    return GOOD | {"winner": side | changes}


@pytest.mark.parametrize(
    "value",
    [
        GOOD | {"low_ms": 9.0},
        GOOD | {"low_ms": -1.0},
        GOOD | {"high_ms": True},
        GOOD | {"high_ms": 1e300},
        GOOD | {"winner": None},
        with_side(counts=[1]),
        with_side(counts=[]),
        with_side(counts="1" * 16),
        with_side(counts=[-1] * 16),
        with_side(counts=[1.5] * 16),
        with_side(counts=[True] * 16),
        with_side(counts=[10**20] * 16),
        with_side(below=None),
        with_side(above="1"),
        {name: GOOD[name] for name in GOOD if name != "first_choice"},
    ],
)
def test_a_histogram_that_is_not_whole_is_unknown(value: object) -> None:
    assert histogram_in(value) is None


def test_a_histogram_may_have_another_number_of_bins_up_to_a_limit() -> None:
    for bins in (1, 8, MOST_BINS):
        made = histogram_of([1.0, 2.0], [0.5, 0.6], bins=bins).to_dict()
        assert histogram_in(made) == made
    assert histogram_in(histogram_of([1.0, 2.0], [0.5, 0.6], bins=MOST_BINS + 1).to_dict()) is None


def test_what_does_not_fit_in_a_check_is_unknown_and_no_text_is_long() -> None:
    found = numerical_check_in(
        {"outcome": "passed", "reason": "\ud800" + "x" * 999, "atol": -1, "rtol": "a", "wrong": 1.5}
    )
    assert found is not None
    assert (found["atol"], found["rtol"], found["compared"], found["wrong"]) == (None, None, 0, 0)
    assert str(found["reason"]).encode() and len(str(found["reason"])) == 160
    assert numerical_check_in({"outcome": "approved by a later version"}) is None
    assert numerical_check_in({"outcome": ["passed"]}) is None
