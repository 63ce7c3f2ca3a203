"""One explanation: what is kept of a report, and what a line gives back, whatever it holds."""

import json
import math
from contextlib import suppress
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.database.explanation import (
    LONGEST_LINE,
    MOST_TIMED,
    MOST_UNTIMED,
    Explanation,
    explanation_of,
    format_explanation,
    parse_explanation,
)
from tensorplay.errors import RecordError
from tensorplay.gemm import Signature

SIGNATURE = Signature("GemmTunableOp_Float32", "taN_m16_n8_k8_bias0_dev0")
BUILD = "0123abcd"
CONFIRMATION = {
    "pairs": 9, "first_choice_ms": 1.0, "winner_ms": 0.5, "gain": 1.0, "gain_low": 0.9, "gain_high": 1.1, "margin": 0.0,
}  # fmt: skip


def candidate(kernel: str, median_ms: float | None = None, **more: object) -> dict[str, object]:
    times = {"median_ms": median_ms, "quartile_low_ms": None, "quartile_high_ms": None, "screened_ms": None}
    return {"kernel": kernel, "samples": 0 if median_ms is None else 9, "dropped": None} | times | more


def report(*candidates: dict[str, object], winner: str = "k0", **more: object) -> dict[str, object]:
    known = {"verdict": "winner", "winner": winner, "winner_ms": 0.5, "first_choice_ms": 1.0, "confirmation": None}
    return known | {"candidates": list(candidates) or [candidate("k0", 1.0)]} | more


def explained(given: dict[str, object], clocks: dict[str, int] | None = None) -> Explanation:
    return explanation_of(SIGNATURE, BUILD, given, clocks)


def line_of(**changes: object) -> bytes:
    return json.dumps(explained(report()).to_dict() | changes).encode()


facts = st.dictionaries(
    st.text(max_size=8), st.none() | st.booleans() | st.integers() | st.floats() | st.text(), max_size=5
)
reports = st.builds(
    lambda candidates, verdict, winner, times, confirmation, search: {
        "verdict": verdict,
        "winner": winner,
        "winner_ms": times[0],
        "first_choice_ms": times[1],
        "candidates": [{"kernel": f"k{place}"} | each for place, each in enumerate(candidates)],
        "confirmation": confirmation,
        "search": search,
    },
    st.lists(facts.map(lambda found: {k: v for k, v in found.items() if k != "kernel"}), max_size=4),
    st.text(min_size=1, max_size=40),
    st.text(min_size=1, max_size=40),
    st.tuples(*[st.none() | st.floats(min_value=0)] * 2),
    st.none() | facts,
    st.none() | facts,
)
clocks = st.none() | st.dictionaries(st.text(max_size=8), st.integers(0, 10**6), max_size=3)
signatures = st.integers(1, 10**9).map(lambda m: Signature("GemmTunableOp_Float32", f"taN_m{m}_n8_k8_bias0_dev0"))


@given(signatures, reports, clocks)
def test_a_line_gives_back_what_was_kept(
    signature: Signature, report: dict[str, object], clocks: dict[str, int] | None
) -> None:
    kept = explanation_of(signature, BUILD, report, clocks)
    line = format_explanation(kept)
    assert line.isascii()
    assert line.count("\n") == 1
    assert line.endswith("\n")
    assert parse_explanation(line.encode()) == kept
    assert kept.signature == signature


@given(reports)
def test_a_line_is_json_to_the_letter_without_what_json_has_no_word_for(report: dict[str, object]) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    found = json.loads(format_explanation(explained(report)), parse_constant=refuse)
    assert list(found) == [field.name for field in fields(Explanation)]


@given(st.binary(max_size=300))
def test_foreign_bytes_are_an_explanation_or_a_record_error(data: bytes) -> None:
    with suppress(RecordError):
        assert isinstance(parse_explanation(data), Explanation)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from([field.name for field in fields(Explanation)]), json_values)
def test_a_field_of_another_type_never_gets_through(name: str, value: object) -> None:
    try:
        found = parse_explanation(line_of(**{name: value}))
    except RecordError:
        return
    assert isinstance(found.verdict, str)
    assert isinstance(found.left_out, int)
    for number in (found.winner_ms, found.first_choice_ms):
        assert number is None or (math.isfinite(number) and number >= 0)
    for each in (*found.candidates, found.confirmation or {}, found.search or {}):
        assert all(fact is None or isinstance(fact, str | int | float) for fact in each.values())
    assert all(isinstance(each["kernel"], str) for each in found.candidates)
    assert format_explanation(found)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a":' * 50_000, "not JSON"),
        (b"[1]", "holds a list"),
        (b"\xff\xfe", "not JSON"),
        (b"7", "holds a int"),
        (b"1" * 5000, "not JSON"),
        (b"{}", "candidates are a NoneType"),
        (b" " * (LONGEST_LINE + 1), "allowed: 262144"),
        (line_of().replace(b"0.5", b"NaN"), "NaN is no number"),
        (line_of().replace(b"0.5", b"-Infinity"), "-Infinity is no number"),
        (line_of().replace(b"0.5", b"1e999"), "winner_ms is no number"),
        (line_of().replace(b"0.5", b"-1"), "winner_ms is no number"),
        (line_of().replace(b"0.5", b"9" * 400), "winner_ms is no number"),
        (line_of(params="taN_m1\n"), "no signature"),
        (line_of(params="x" * 1000), "params is no short text"),
        (line_of(candidates="k0"), "candidates are a str"),
        (line_of(candidates=[{"kernel": 7}]), "a candidate has no kernel"),
        (line_of(candidates=[{"kernel": ""}]), "a candidate is no object of facts"),
        (line_of(candidates=[{"kernel": "k", "samples": [1]}]), "'samples' of a candidate"),
        (line_of(candidates=[["kernel"]]), "a candidate is no object of facts"),
        (line_of(confirmation=[]), "the confirmation is no object"),
        (line_of(clocks={"sm": 1.5}), "clocks"),
        (line_of(clocks={"sm": True}), "clocks"),
    ],
)
def test_a_line_that_is_none_is_refused_with_the_reason(text: bytes, reason: str) -> None:
    with pytest.raises(RecordError, match=reason.replace("[", r"\[")):
        parse_explanation(text)


def test_fields_of_a_later_version_are_passed_over() -> None:
    assert parse_explanation(line_of(mood="good", more={"deep": [1]})) == explained(report())


def test_hostile_text_stays_one_line_and_is_cut() -> None:
    hostile = 'a\r\n\x00\x85\u2028"\\,\ud800' + "x" * 10_000
    kept = explained(report(candidate("k0", 1.0, dropped=hostile)))
    dropped = kept.candidates[0]["dropped"]
    assert isinstance(dropped, str)
    assert dropped.startswith('a\r\n\x00\x85\u2028"\\,?x')
    assert len(dropped) == 160
    line = format_explanation(kept).encode()
    assert line.splitlines() == [line[:-1]]
    assert parse_explanation(line) == kept


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, 1e300])
def test_numbers_that_mean_nothing_are_kept_as_unknown(value: float) -> None:
    search = {"checked": 9, "seconds": value}
    kept = explained(report(candidate("k0", value), search=search, confirmation=CONFIRMATION | {"gain_low": value}))
    assert kept.search == {"checked": 9, "seconds": None}
    assert kept.confirmation is None
    kept = explained(report(candidate("k0", value), winner_ms=value))
    assert (kept.winner_ms, kept.candidates[0]["median_ms"]) == (None, None)


UNKNOWN = {
    "samples": 0, "median_ms": None, "quartile_low_ms": None, "quartile_high_ms": None, "screened_ms": None,
    "dropped": None,
}  # fmt: skip


@pytest.mark.parametrize(
    "foreign",
    [
        {}, {"median_ms": "fast"}, {"median_ms": -5}, {"samples": "9"}, {"samples": -1}, {"samples": True},
        {"quartile_low_ms": True}, {"dropped": 7}, {"samples": 1.5, "screened_ms": "x"},
    ],
)  # fmt: skip
def test_what_is_missing_of_a_candidate_or_does_not_fit_is_not_known(foreign: dict[str, object]) -> None:
    (found,) = parse_explanation(line_of(candidates=[{"kernel": "k", **foreign}])).candidates
    assert found == {"kernel": "k", **UNKNOWN}


def test_what_is_known_of_a_candidate_stays_with_what_a_later_version_says() -> None:
    given = candidate("k0", 1.0, mood="good", screened_ms=2)
    assert parse_explanation(line_of(candidates=[given])).candidates == (given,)


@pytest.mark.parametrize(
    "foreign", [{"gain": "x"}, {"pairs": 1.5}, {"pairs": -1}, {"winner_ms": None}, {"margin": True}]
)
def test_a_confirmation_that_cannot_be_shown_is_none(foreign: dict[str, object]) -> None:
    assert parse_explanation(line_of(confirmation=CONFIRMATION)).confirmation == CONFIRMATION
    assert parse_explanation(line_of(confirmation=CONFIRMATION | foreign)).confirmation is None
    assert parse_explanation(line_of(confirmation={"a": 1})).confirmation is None
    without = {name: value for name, value in CONFIRMATION.items() if name != "margin"}
    assert parse_explanation(line_of(confirmation=without)).confirmation == without | {"margin": 0.0}


def test_halves_of_surrogate_pairs_are_no_text() -> None:
    found = parse_explanation(line_of(verdict="\ud800", candidates=[{"kernel": "\udc00"}]))
    assert (found.verdict, found.candidates[0]["kernel"]) == ("?", "?")


class TestTheCandidatesThatALineHasRoomFor:
    def test_are_all_where_there_are_few(self) -> None:
        few = [candidate(f"k{place}", 1.0 + place) for place in range(MOST_TIMED)]
        assert list(explained(report(*few)).candidates) == few
        assert explained(report(*few)).left_out == 0

    def test_are_first_choice_winner_the_fastest_and_some_untimed_in_their_order(self) -> None:
        timed = [candidate(f"k{place}", 1000.0 - place) for place in range(500)]
        untimed = [candidate(f"u{place}", dropped="wrong result") for place in range(100)]
        kept = explained(report(*timed, *untimed, winner="k3"))
        names = [each["kernel"] for each in kept.candidates]
        fastest = [f"k{place}" for place in range(500 - MOST_TIMED, 500)]
        assert names == ["k0", "k3", *fastest, *(f"u{place}" for place in range(MOST_UNTIMED))]
        assert kept.left_out == 600 - len(names)

    def test_are_ordered_by_the_screening_where_nothing_better_is_known(self) -> None:
        many = [candidate(f"k{place}", screened_ms=500.0 - place) for place in range(200)]
        names = [each["kernel"] for each in explained(report(*many)).candidates]
        assert names == ["k0", *(f"k{place}" for place in range(200 - MOST_TIMED, 200))]

    def test_make_a_line_that_can_be_read_again(self) -> None:
        many: list[Any] = [candidate("\u4e00" * 160, 1.0, dropped="\u4e00" * 500) for _ in range(1000)]
        line = format_explanation(explained(report(*many)))
        assert len(line) <= LONGEST_LINE
        assert parse_explanation(line.encode()).left_out == 1000 - MOST_TIMED


@pytest.mark.parametrize("changes", [{"candidates": None}, {"candidates": [1]}, {"verdict": None}, {"winner": ""}])
def test_a_report_that_lacks_something_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(RecordError):
        explained(report() | changes)


def test_what_is_no_signature_is_refused() -> None:
    with pytest.raises(RecordError, match="no signature"):
        explanation_of(Signature("op", "params"), BUILD, report())
