import json

from tensorplay.measure.histogram import SampleHistogram, Spread
from tensorplay.measure.report import (
    CandidateReport,
    CheckOutcome,
    Confirmation,
    NumericalCheck,
    SearchReport,
    SelectionReport,
    Verdict,
)

CONFIRMATION = Confirmation(7, 1.1, 1.0, 0.1, 0.09, 0.11, 0.02)
REPORT = SelectionReport(
    verdict=Verdict.WINNER,
    winner="fast",
    winner_ms=1.0,
    first_choice_ms=1.1,
    candidates=(
        CandidateReport("first", 7, 1.1, 1.0, 1.2, 1.15, "confirmation: beaten"),
        CandidateReport("fast", 7, 1.0, 0.9, 1.05, 1.0, None),
    ),
    confirmation=CONFIRMATION,
    search=SearchReport(checked=40, passed=30, timed=29, kept=8, seconds=0.5, is_complete=True),
    histogram=SampleHistogram(1.0, 1.2, Spread((0, 7), 0, 1), Spread((6, 1), 1, 0)),
    numerical_check=NumericalCheck(CheckOutcome.PASSED, "close", 1e-6, None, 1e-4, 1e-5, 40, 10),
)


def test_a_report_becomes_plain_json_with_all_its_fields() -> None:
    assert json.loads(json.dumps(REPORT.to_dict())) == {
        "verdict": "winner",
        "winner": "fast",
        "winner_ms": 1.0,
        "first_choice_ms": 1.1,
        "candidates": [
            {
                "kernel": "first",
                "samples": 7,
                "median_ms": 1.1,
                "quartile_low_ms": 1.0,
                "quartile_high_ms": 1.2,
                "screened_ms": 1.15,
                "dropped": "confirmation: beaten",
            },
            {
                "kernel": "fast",
                "samples": 7,
                "median_ms": 1.0,
                "quartile_low_ms": 0.9,
                "quartile_high_ms": 1.05,
                "screened_ms": 1.0,
                "dropped": None,
            },
        ],
        "confirmation": {
            "pairs": 7,
            "first_choice_ms": 1.1,
            "winner_ms": 1.0,
            "gain": 0.1,
            "gain_low": 0.09,
            "gain_high": 0.11,
            "margin": 0.02,
        },
        "search": {
            "checked": 40,
            "passed": 30,
            "timed": 29,
            "kept": 8,
            "seconds": 0.5,
            "is_complete": True,
        },
        "histogram": {
            "low_ms": 1.0,
            "high_ms": 1.2,
            "first_choice": {"counts": [0, 7], "below": 0, "above": 1},
            "winner": {"counts": [6, 1], "below": 1, "above": 0},
        },
        "numerical_check": {
            "outcome": "passed",
            "reason": "close",
            "max_abs_error": 1e-6,
            "max_rel_error": None,
            "atol": 1e-4,
            "rtol": 1e-5,
            "compared": 40,
            "wrong": 10,
        },
    }


def test_the_verdict_is_a_plain_string_in_json() -> None:
    assert type(REPORT.to_dict()["verdict"]) is str


def test_candidates_that_failed_before_are_appended() -> None:
    failed = CandidateReport.untimed("wrong", "wrong result: 3 elements are off")
    report = REPORT.with_candidates([failed])
    assert report.candidates == (*REPORT.candidates, failed)
    assert (failed.samples, failed.median_ms, failed.screened_ms) == (0, None, None)
    assert len(REPORT.candidates) == 2


def test_a_measurement_that_failed_reports_the_first_choice_and_why() -> None:
    report = SelectionReport.not_measured("first", "cannot run")
    assert report.to_dict() == {
        "verdict": "not measured",
        "winner": "first",
        "winner_ms": None,
        "first_choice_ms": None,
        "candidates": [CandidateReport.untimed("first", "cannot run").to_dict()],
        "confirmation": None,
        "search": None,
        "histogram": None,
        "numerical_check": None,
    }
