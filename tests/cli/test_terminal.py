import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tensorplay.database.explanation import explanation_of, format_explanation
from tensorplay.gemm import Signature

OP = "GemmTunableOp_Float32"


def on_a_terminal(*arguments: str, stream: str, **environ: str) -> tuple[str, str]:
    """Return what the command writes to a terminal that is its `stream`, and to the other stream."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "tensorplay", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs if stream == "stdout" else subprocess.PIPE,
        stderr=theirs if stream == "stderr" else subprocess.PIPE,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"} | environ,
    ) as process:
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
        os.close(ours)
        other = process.stderr if stream == "stdout" else process.stdout
        assert other is not None
        piped = other.read()
    assert process.returncode == 0, piped
    return shown.decode(), piped.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        # Linux says EIO when the last writer has gone.
        return b""


@pytest.fixture
def results(tmp_path: Path) -> str:
    path = tmp_path / "results.csv"
    path.write_text("".join(f"{OP},taN_m{m}_n8_k8_bias0_devcpu,Default,0.5\n" for m in range(1, 61)))
    return str(path)


def test_a_bar_shows_on_a_terminal_and_standard_output_stays_plain(tmp_path: Path) -> None:
    shown, piped = on_a_terminal(
        *("bench", "--directory", str(tmp_path), "--shape", "float32:2x3x4", "--repeats", "1", "--iterations", "1"),
        stream="stderr",
        TP_TUNABLEOP_MAX_TUNING_SAMPLES="3",
    )
    assert "\x1b[" in shown
    assert "━" in shown
    for mode in ("default", "tune", "replay"):
        assert f"float32:2x3x4 {mode}" in shown
    assert "3/3" in shown
    assert "\x1b" not in piped
    assert "1 of 1 shape replayed" in piped


def test_a_table_is_drawn_on_a_terminal_and_limited(results: str) -> None:
    shown, complaint = on_a_terminal("show", results, stream="stdout")
    assert complaint == ""
    assert "─" in shown
    assert shown.count("float32") == 50
    assert "10 more rows left out; --limit 0 shows all" in shown


def test_a_bar_shows_while_a_large_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    path.write_text("".join(f"{OP},taN_m{m}_n8_k8_bias0_devcpu,Default,0.5\n" for m in range(1, 20_001)))
    shown, table = on_a_terminal("show", str(path), "--limit", "3", stream="stderr")
    assert "reading" in shown
    assert "20000/20000" in shown
    assert table.count(OP) == 3


def test_nothing_is_drawn_and_nothing_left_out_in_a_pipe(results: str) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "tensorplay", "show", results],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"FORCE_COLOR": "1"},
    )
    assert "\x1b" not in shown.stdout
    assert "─" not in shown.stdout
    assert shown.stdout.count(OP) == 60


def test_no_colour_is_written_to_a_terminal_that_wants_none(results: str) -> None:
    shown, _ = on_a_terminal("show", results, stream="stdout", NO_COLOR="1", TERM="dumb")
    assert "\x1b" not in shown
    assert shown.count("float32") == 50


def test_brackets_in_a_cell_are_no_markup_on_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "untuned.csv"
    path.write_text(f"{OP},taN_m1_n8_k8_bias0_devcpu\n[red]x[/red]\x1b[2J\n")
    shown, _ = on_a_terminal("show", str(path), stream="stdout")
    assert "[red]x[/red]\\x1b[2J" in shown
    assert "\x1b[2J" not in shown


def test_candidates_have_drawn_bars_on_a_terminal_and_plain_ones_where_it_has_no_letters_for_them(
    tmp_path: Path,
) -> None:
    report: dict[str, object] = {
        "verdict": "winner",
        "winner": "host_scipy",
        "candidates": [{"kernel": "host_numpy", "median_ms": 1.0}, {"kernel": "host_scipy", "median_ms": 0.55}],
    }
    path = tmp_path / "a.explain.jsonl"
    line = format_explanation(explanation_of(Signature(OP, "taN_m1_n8_k8_bias0_devcpu"), "0123abcd", report))
    path.write_text(line)
    shown, _ = on_a_terminal("explain", str(path), "*", stream="stdout", PYTHONIOENCODING="utf-8")
    assert "\N{FULL BLOCK}" * 16 in shown
    assert "\N{FULL BLOCK}" * 8 + "\N{LEFT THREE QUARTERS BLOCK}" in shown
    plain, _ = on_a_terminal("explain", str(path), "*", stream="stdout", PYTHONIOENCODING="latin-1")
    assert "#" * 16 in plain


def test_what_is_copied_stays_whole_on_a_narrow_terminal(tmp_path: Path) -> None:
    kernel = "lt_id7_tile12_stages3_splitk0_red0_swizzle0_custom0_inner1_cluster1"
    params = "taN_m16_n64_k16_bias0_dev0"
    results = tmp_path / "a.csv"
    results.write_text(f"{OP},{params},{kernel},0.5\n")
    report: dict[str, object] = {
        "verdict": "winner",
        "winner": kernel,
        "candidates": [{"kernel": "lt_first", "median_ms": 1.0}, {"kernel": kernel, "median_ms": 0.5}],
    }
    line = format_explanation(explanation_of(Signature(OP, params), "0123abcd", report))
    (tmp_path / "a.explain.jsonl").write_text(line)
    for arguments in (("show", str(results)), ("explain", str(results)), ("explain", str(results), "*")):
        shown, _ = on_a_terminal(*arguments, stream="stdout", COLUMNS="80")
        assert kernel in shown
        assert all(len(line) <= 80 for line in shown.splitlines() if "time" in line and ": " not in line)
    roomy, _ = on_a_terminal("explain", str(results), stream="stdout", COLUMNS="160")
    assert "float32" in roomy
    assert OP not in roomy
