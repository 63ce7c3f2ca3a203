import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tensorplay.measure.report import CandidateReport, Confirmation, SelectionReport, Verdict
from tensorplay.runtime.listeners import (
    EVENTS,
    FALLBACK,
    FILE,
    HEALED,
    PINNED,
    REJECTED,
    SETTING,
    TUNED,
    TUNING_FAILED,
)
from tensorplay.runtime.settings import Settings
from tensorplay.runtime.verbose import LINE_PREFIX, VerboseLog


@pytest.fixture
def settings() -> Settings:
    return Settings({"TP_TUNABLEOP_VERBOSE": "1"})


@pytest.fixture
def log(settings: Settings) -> Iterator[VerboseLog]:
    log = VerboseLog(settings)
    yield log
    log.close()


def report(verdict: Verdict) -> SelectionReport:
    candidates = (
        CandidateReport("host_numpy", 3, 2.0, 1.5, 2.5, 2.25, None),
        CandidateReport.untimed("host_scipy", "wrong\nresult"),
    )
    confirmation = Confirmation(8, first_choice_ms=2.1, winner_ms=2.0, gain=0.05, gain_low=0.04, gain_high=0.06)
    return SelectionReport(verdict, "host_numpy", 2.0, 2.1, candidates, confirmation)


def quoted(text: str) -> str:
    return f'"{text}"' if " " in text else text


def test_a_line_is_the_prefix_the_event_and_its_facts(log: VerboseLog, capsys: pytest.CaptureFixture[str]) -> None:
    log(
        REJECTED,
        {"params": "taN_m1", "time_ms": 0.03312345, "reason": "too much workspace", "count": 3, "path": Path("a")},
    )
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        '[tensorplay.tunable] rejected params=taN_m1 time_ms=0.0331234 reason="too much workspace" count=3 path=a\n'
    )


@pytest.mark.parametrize(
    ("level", "told"),
    [
        (0, set()),
        (1, {SETTING, FILE, REJECTED, HEALED, PINNED, FALLBACK, TUNING_FAILED}),
        (2, set(EVENTS)),
        (3, set(EVENTS) | {"an_event_of_tomorrow"}),
    ],
)
def test_each_level_lets_its_events_through(
    settings: Settings, log: VerboseLog, level: int, told: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    settings.set("verbose", level)
    for event in [*EVENTS, "an_event_of_tomorrow"]:
        log(event, {})
    written = capsys.readouterr().err.splitlines()
    assert {line.removeprefix(LINE_PREFIX + " ") for line in written} == told
    assert len(written) == len(told)


@pytest.mark.parametrize(
    ("verdict", "gain"), [(Verdict.WINNER, "0.05"), (Verdict.WITHIN_NOISE, "0"), (Verdict.FIRST_CHOICE, "0")]
)
def test_the_end_of_a_tuning_is_told_with_its_verdict_and_gain(
    settings: Settings, log: VerboseLog, verdict: Verdict, gain: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.set("verbose", 2)
    log(TUNED, {"params": "taN_m1", "report": report(verdict)})
    assert (
        capsys.readouterr().err == f"[tensorplay.tunable] tuned params=taN_m1 verdict={quoted(verdict)} gain={gain}\n"
    )


def test_at_level_three_every_candidate_is_a_line(
    settings: Settings, log: VerboseLog, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.set("verbose", 3)
    log(TUNED, {"params": "taN_m1", "report": report(Verdict.WINNER)})
    assert capsys.readouterr().err.splitlines()[1:] == [
        (
            "[tensorplay.tunable] candidate params=taN_m1 kernel=host_numpy samples=3 median_ms=2 quartile_low_ms=1.5 "
            "quartile_high_ms=2.5 screened_ms=2.25"
        ),
        "[tensorplay.tunable] candidate params=taN_m1 kernel=host_scipy samples=0 dropped=wrong\\nresult",
    ]


def test_out_is_standard_output_as_it_is_when_the_line_is_written(
    settings: Settings, log: VerboseLog, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.set("verbose_filename", "out")
    log(FILE, {"path": "a"})
    assert capsys.readouterr() == ("[tensorplay.tunable] file path=a\n", "")
    later = io.StringIO()
    monkeypatch.setattr(sys, "stdout", later)
    log(FILE, {"path": "b"})
    assert later.getvalue() == "[tensorplay.tunable] file path=b\n"


class Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise ValueError(f"closed, so {text!r} is lost")


class Broken(io.StringIO):
    def flush(self) -> None:
        raise BrokenPipeError


@pytest.mark.parametrize("stream", [None, Closed(), Broken()])
def test_a_missing_or_broken_stream_is_nobodys_error(
    log: VerboseLog, stream: io.StringIO | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    log(FILE, {"path": "a"})


def test_a_stream_that_cannot_spell_a_letter_gets_an_escape(
    settings: Settings, log: VerboseLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    settings.set("verbose_filename", "out")
    log(FILE, {"path": "é"})
    assert raw.getvalue() == b"[tensorplay.tunable] file path=\\xe9\n"


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        ("a\nb", r"a\nb"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\u202e", r"\u202e"),
        ("\udcff", r"\udcff"),
        ("a\\nb", r"a\\nb"),
        ('say "x"', r'"say \"x\""'),
        ("", '""'),
        ("a=b", '"a=b"'),
        (True, "True"),
        (None, "None"),
        (float("nan"), "nan"),
        ("x" * 400, "x" * 300 + "..."),
    ],
)
def test_a_fact_is_one_printable_word_or_quoted(
    log: VerboseLog, capsys: pytest.CaptureFixture[str], fact: object, text: str
) -> None:
    log(FILE, {"fact": fact})
    assert capsys.readouterr().err == f"[tensorplay.tunable] file fact={text}\n"


@hypothesis_settings(max_examples=300, deadline=None)
@given(event=st.text(max_size=20), detail=st.dictionaries(st.text(max_size=20), st.text() | st.floats(), max_size=4))
def test_whatever_happens_is_one_printable_line(event: str, detail: dict[str, object]) -> None:
    log = VerboseLog(Settings({"TP_TUNABLEOP_VERBOSE": "3"}))
    written = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", written)
        log(event, detail)
    line = written.getvalue()
    assert line.startswith(LINE_PREFIX + " ")
    assert line.endswith("\n")
    assert line[:-1].isprintable()


class CountedStream(io.StringIO):
    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []

    def write(self, text: str) -> int:
        self.writes.append(text)
        return super().write(text)


def test_a_line_is_one_write(log: VerboseLog, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = CountedStream()
    monkeypatch.setattr(sys, "stderr", stream)
    log(FILE, {"path": "a", "size": 3})
    assert stream.writes == ["[tensorplay.tunable] file path=a size=3\n"]


def test_it_hears_settings_change_through_the_settings_themselves(
    settings: Settings, log: VerboseLog, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.on_change(lambda name, old, new: log(SETTING, {"name": name, "old": old, "new": new}))
    with settings.scope(enabled=True):
        log(TUNED, {"gain": 1.5})
    assert capsys.readouterr().err.splitlines() == [
        "[tensorplay.tunable] setting name=enabled old=False new=True",
        "[tensorplay.tunable] setting name=enabled old=True new=False",
    ]
