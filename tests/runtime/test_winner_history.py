"""What a signature's winner was before is remembered, within bounds, and read from files of explanations."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tensorplay.database.explanation import explanation_of, format_explanation
from tensorplay.database.record import Entry
from tensorplay.gemm import Signature
from tensorplay.runtime.winner_history import MOST_PASTS, MOST_SIGNATURES, WinnerHistory, pasts_of_file

OP, PARAMS = "GemmTunableOp_Float32", "taN_m4_n3_k5_bias0_dev0"
SIGNATURE = Signature(OP, PARAMS)


def entry(time_ms: float, params: str = PARAMS) -> Entry:
    return Entry(OP, params, "Default", time_ms)


def line(time_ms: float, build: str = "b", params: str = PARAMS) -> str:
    report = {"verdict": "winner", "winner": "Default", "winner_ms": time_ms, "candidates": []}
    return format_explanation(explanation_of(Signature(OP, params), build, report))


def test_the_first_change_brings_what_was_read_before() -> None:
    history = WinnerHistory(now=iter(["start", "later", "last"]).__next__)
    assert [past[:4] for past in history.of(SIGNATURE, entry(1.0))] == [("start", "Default", 1.0, "file")]
    assert history.of(SIGNATURE, None) == []
    history.note(entry(2.0), "healed", entry(1.0))
    history.note(entry(0.0), "override", entry(2.0))
    told = [(past.time, past.time_ms, past.origin) for past in history.of(SIGNATURE, entry(0.0))]
    assert told == [("start", 1.0, "file"), ("later", 2.0, "healed"), ("last", 0.0, "override")]


def test_a_history_is_bounded_and_the_newest_stays() -> None:
    history = WinnerHistory()
    for number in range(MOST_PASTS + 5):
        history.note(entry(float(number)), "override", None)
    times = [past.time_ms for past in history.of(SIGNATURE, None)]
    assert (len(times), times[-1]) == (MOST_PASTS, MOST_PASTS + 4)
    for number in range(MOST_SIGNATURES):
        history.note(entry(1.0, f"p{number}"), "override", None)
    assert history.of(SIGNATURE, None) == []


def test_a_file_tells_what_this_build_measured(tmp_path: Path) -> None:
    path = tmp_path / "r.explain.jsonl"
    lines = [line(1.0), line(9.0, build="other"), f"nonsense {PARAMS}\n", line(8.0, params=f"{PARAMS}_ws64"), line(2.0)]
    path.write_text("".join(lines), encoding="utf-8")
    found = pasts_of_file(str(path), SIGNATURE, "b")
    assert {(past.time, past.origin) for past in found} == {(None, "measured")}
    assert [past.time_ms for past in found] == [1.0, 2.0]
    assert pasts_of_file(str(tmp_path), SIGNATURE, "b") == pasts_of_file("a\0b", SIGNATURE, "b") == []


@given(st.binary(max_size=200))
def test_no_file_of_explanations_raises(tmp_path_factory: object, data: bytes) -> None:
    import pytest

    assert isinstance(tmp_path_factory, pytest.TempPathFactory)
    path = tmp_path_factory.mktemp("h") / "x"
    path.write_bytes(data + b"\n" + PARAMS.encode() + data)
    assert pasts_of_file(str(path), SIGNATURE, "b") == []
