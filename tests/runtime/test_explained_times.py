"""A file of explanations is read where it grew, and anew when it is another."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tensorplay.database.explanation import explanation_of, format_explanation
from tensorplay.gemm import Signature
from tensorplay.runtime.explained_times import ExplainedTimes

OP, PARAMS = "GemmTunableOp_Float32", "taN_m{}_n3_k5_bias0_dev0"


def line(m: int, time_ms: float, build: str = "build1") -> str:
    report: dict[str, object] = {"verdict": "w", "winner": "Default", "candidates": []}
    report |= {"winner_ms": time_ms, "first_choice_ms": 2 * time_ms}
    return format_explanation(explanation_of(Signature(OP, PARAMS.format(m)), build, report))


def first_choices(times: ExplainedTimes, path: Path) -> dict[str, float | None]:
    return {signature.params: time.first_choice_ms for signature, time in times.of(str(path)).items()}


def test_lines_that_come_are_read_and_a_line_that_is_not_whole_waits(tmp_path: Path) -> None:
    path, times = tmp_path / "x.jsonl", ExplainedTimes("build1")
    assert first_choices(times, path) == {}
    path.write_text(line(1, 1.0) + line(2, 1.0, build="build2"), encoding="utf-8")
    assert first_choices(times, path) == {PARAMS.format(1): 2.0}
    before = times.of(str(path))
    with path.open("a", encoding="utf-8") as file:
        file.write(line(3, 3.0) + line(4, 4.0)[:20])
    assert first_choices(times, path) == {PARAMS.format(1): 2.0, PARAMS.format(3): 6.0}
    assert len(before) == 1
    with path.open("a", encoding="utf-8") as file:
        file.write(line(4, 4.0)[20:] + line(1, 5.0))
    assert first_choices(times, path) == {PARAMS.format(1): 10.0, PARAMS.format(3): 6.0, PARAMS.format(4): 8.0}


def test_a_file_that_was_replaced_or_cut_is_read_anew(tmp_path: Path) -> None:
    path, times = tmp_path / "x.jsonl", ExplainedTimes("build1")
    path.write_text(line(1, 1.0) * 3, encoding="utf-8")
    assert first_choices(times, path) == {PARAMS.format(1): 2.0}
    other = tmp_path / "y"
    other.write_text(line(2, 1.0) * 9, encoding="utf-8")
    other.replace(path)
    assert first_choices(times, path) == {PARAMS.format(2): 2.0}
    path.write_text(line(3, 1.0), encoding="utf-8")
    assert first_choices(times, path) == {PARAMS.format(3): 2.0}
    path.unlink()
    assert first_choices(times, path) == {}


@given(st.lists(st.binary(max_size=30), max_size=6))
def test_no_content_raises(tmp_path_factory: object, parts: list[bytes]) -> None:
    import pytest

    assert isinstance(tmp_path_factory, pytest.TempPathFactory)
    path, times = tmp_path_factory.mktemp("t") / "x", ExplainedTimes("build1")
    for part in parts:
        with path.open("ab") as file:
            file.write(part + b"build1\n")
        assert times.of(str(path)) == {}
