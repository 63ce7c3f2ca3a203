import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tensorplay.cli.bench_process import BenchMode, worker_environment
from tensorplay.cli.main import main
from tensorplay.database.csv_text import parse_results

CSV = "tunableop_resultscpu.csv"
SMALL = ("--shape", "float64:3x5x40:T:bias")
QUICK = ("--repeats", "1", "--iterations", "2")


FEW = {"TP_TUNABLEOP_MAX_TUNING_SAMPLES": "5", "TP_TUNABLEOP_MAX_TUNING_DURATION_MS": "2"}


def bench(directory: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tensorplay", "bench", "--directory", str(directory), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | FEW | environ,
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Return a folder where a shape was tuned, and what the benchmark said of it."""
    directory = tmp_path_factory.mktemp("bench") / "made" / "here"
    ended = bench(directory, *SMALL, "--repeats", "2", "--iterations", "2", "--json")
    assert ended.returncode == 0, ended.stderr
    return directory, json.loads(ended.stdout)


def test_a_shape_is_tuned_and_replayed_without_measuring(demo: tuple[Path, dict[str, Any]]) -> None:
    directory, found = demo
    assert found["ok"] is True
    (shape,) = found["shapes"]
    assert shape["outcome"] == "replayed"
    assert shape["measured_in_replay"] == 0 < shape["replayed_calls"]
    written = parse_results((directory / CSV).read_bytes())
    assert not written.bad_lines
    (entry,) = written.entries
    assert [entry.op, entry.params] == shape["winner"]["signature"]
    assert entry.kernel == shape["winner"]["kernel"]


def test_json_has_times_with_spreads_winners_gains_and_what_to_set(demo: tuple[Path, dict[str, Any]]) -> None:
    directory, found = demo
    assert set(found) == {
        *("format", "tensorplay", "device", "results_file", "environment", "repeats", "iterations", "ok", "shapes"),
    }
    assert (found["format"], found["repeats"], found["iterations"]) == (1, 2, 2)
    assert found["results_file"] == str(directory / CSV)
    assert found["environment"] == {
        "TP_TUNABLEOP_ENABLED": "1",
        "TP_TUNABLEOP_FILENAME": str(directory / "tunableop_results.csv"),
    }
    (shape,) = found["shapes"]
    assert set(shape) == {
        *("shape", "dtype", "m", "n", "k", "transposed", "bias", "outcome", "problems", "skipped"),
        *("default", "replay", "tuning_ms", "winner", "gain", "replayed_calls", "measured_in_replay"),
    }
    assert (shape["dtype"], shape["m"], shape["n"], shape["k"]) == ("float64", 3, 5, 40)
    assert shape["transposed"] is shape["bias"] is True
    for spread in (
        *(shape[mode][name] for mode in ("default", "replay") for name in ("first_call_ms", "steady_ms")),
        shape["tuning_ms"],
        shape["gain"]["paired"],
    ):
        assert set(spread) == {"median", "low", "high"}
        assert 0 < spread["low"] <= spread["median"] <= spread["high"]
    assert set(shape["winner"]) == {"signature", "kernel", "time_ms", "verdict"}
    assert shape["gain"]["between_processes"] > 0


def test_winners_that_are_there_are_kept_and_the_text_says_where_and_what_next(
    demo: tuple[Path, dict[str, Any]],
) -> None:
    directory, found = demo
    before = (directory / CSV).read_bytes()
    ended = bench(directory, *SMALL, *QUICK)
    assert ended.returncode == 0
    assert (directory / CSV).read_bytes() == before
    assert "\x1b" not in ended.stdout + ended.stderr
    assert ended.stderr.startswith("1 of 1  float64:3x5x40:T:bias: replayed, ")
    lines = ended.stdout.splitlines()
    assert lines[1].split()[:2] == ["float64:3x5x40:T:bias", "default"]
    assert lines[2].split() == [found["shapes"][0]["winner"]["kernel"], "tuning", "kept"]
    assert lines[3].split()[0] == "replay"
    assert lines[-5:] == [
        "replay measured nothing: 1 of 1 shape replayed",
        f"winners: {directory / CSV}",
        "to replay them in a program of your own:",
        "  export TP_TUNABLEOP_ENABLED=1",
        f"  export TP_TUNABLEOP_FILENAME={directory / 'tunableop_results.csv'}",
    ]


def test_a_fresh_start_moves_the_old_file_aside_and_measures_again(tmp_path: Path) -> None:
    (tmp_path / CSV).write_text("Validator,OTHER,x\n")
    ended = bench(tmp_path, "--shape", "float32:2x2x2", *QUICK, "--fresh", "--json")
    assert ended.returncode == 0
    assert (tmp_path / f"{CSV}.old").read_text() == "Validator,OTHER,x\n"
    found = json.loads(ended.stdout)
    assert found["results_file"] == str(tmp_path / CSV)
    assert found["shapes"][0]["tuning_ms"] is not None


def test_a_file_of_another_build_is_left_alone_and_the_sibling_is_named(tmp_path: Path) -> None:
    (tmp_path / CSV).write_text("Validator,OTHER,x\n")
    ended = bench(tmp_path, "--shape", "float32:2x2x2", *QUICK, "--json")
    assert ended.returncode == 0
    assert (tmp_path / CSV).read_text() == "Validator,OTHER,x\n"
    sibling = Path(json.loads(ended.stdout)["results_file"])
    assert sibling.parent == tmp_path
    assert sibling.name != CSV
    assert parse_results(sibling.read_bytes()).entries
    assert "written by another build" in ended.stderr


def test_diagnostics_of_the_workers_go_to_standard_error_and_not_into_the_json(tmp_path: Path) -> None:
    noisy = {"TP_TUNABLEOP_VERBOSE": "3", "TP_TUNABLEOP_VERBOSE_FILENAME": "out", "TP_TUNABLEOP_NONSENSE": "1"}
    ended = bench(tmp_path, "--shape", "float32:2x2x2", *QUICK, "--json", **noisy)
    assert json.loads(ended.stdout)["ok"] is True
    assert "[tensorplay.tunable]" in ended.stderr
    assert ended.stderr.count("TP_TUNABLEOP_NONSENSE") == 1


def test_shapes_come_from_a_file_and_what_cannot_run_here_is_skipped(tmp_path: Path) -> None:
    shapes = tmp_path / "shapes.json"
    shapes.write_text(json.dumps({"shapes": [["tf32", 2, 3, 4, False], ["float16", 2, 3, 4, False]]}))
    ended = bench(tmp_path, "--shapes", str(shapes), *QUICK)
    assert ended.returncode == 0
    assert "tf32:2x3x4:T was skipped: NumPy has no tf32 arrays here" in ended.stdout
    assert "float16:2x3x4:T was not tuned: its kind is not tuned by default" in ended.stdout
    assert "replay measured nothing: 0 of 2 shapes replayed" in ended.stdout


# A library that is wrong, or crashes: Python runs `sitecustomize` before everything else.
FAULTY = """
import os, numpy
right = numpy.matmul
def matmul(*operands, **options):
    result = right(*operands, **options)
    {fault}
    return result
numpy.matmul = matmul
"""


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("result += 1", "failed: wrong values in the default process: 16 of 16 elements are wrong"),
        ("os.abort()", "failed: default: the process was ended by signal 6"),
        ("raise TypeError('no such loop')", "failed: default: the process ended with code 1: TypeError: no such loop"),
    ],
)
def test_wrong_values_and_crashes_fail_loudly_and_name_the_shape(tmp_path: Path, fault: str, said: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(FAULTY.format(fault=fault))
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    ended = bench(tmp_path, "--shape", "float32:4x4x4", *QUICK, PYTHONPATH=path)
    assert ended.returncode == 1
    line = next(line for line in ended.stdout.splitlines() if said in line)
    assert line.startswith("float32:4x4x4 failed: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--shape", "float32:4x4"],
        ["--shapes", "missing.json"],
        ["--repeats", "0"],
        ["--iterations", "x"],
    ],
)
def test_a_wrong_command_line_is_a_usage_error(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, ["bench", *arguments]).exit_code == 2


def test_a_directory_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(main, ["bench", "--directory", str(tmp_path / "file" / "below")])
    assert result.exit_code == 1
    assert str(tmp_path / "file") in result.stderr


def test_the_default_process_sees_none_of_our_variables_and_the_others_what_they_need() -> None:
    kept = {"PATH": "/bin", "TP_TUNABLEOP_MIN_GAIN": "1"}
    environ = kept | {"TP_TUNABLEOP_ENABLED": "0", "TP_TUNABLEOP_FILENAME": "mine"}
    assert worker_environment(BenchMode.DEFAULT, "/d/r.csv", environ) == {"PATH": "/bin"}
    strict = {"TP_TUNABLEOP_DETERMINISTIC": "1"}
    assert worker_environment(BenchMode.DEFAULT, "/d/r.csv", environ | strict) == {"PATH": "/bin"} | strict
    tune = worker_environment(BenchMode.TUNE, "/d/r.csv", environ)
    assert tune == kept | {
        "TP_TUNABLEOP_ENABLED": "1",
        "TP_TUNABLEOP_MODE": "blocking",
        "TP_TUNABLEOP_TUNING": "1",
        "TP_TUNABLEOP_FILENAME": "/d/r.csv",
    }
    assert worker_environment(BenchMode.REPLAY, "/d/r.csv", environ) == tune | {"TP_TUNABLEOP_TUNING": "0"}
