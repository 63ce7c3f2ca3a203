"""`tensorplay tune` where winners cannot be written: what it says, and how it ends."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from filelock import FileLock

from tensorplay.cli.main import main
from tensorplay.database.csv_text import parse_results

OP = "GemmTunableOp_Float32"
LINES = [f"{OP},taN_m{m}_n40_k16_bias0_devcpu\n" for m in (8, 24)]
TUNE = [sys.executable, "-m", "tensorplay", "tune", "untuned.csv", "--results", "mine.csv"]
RESULTS = "minecpu.csv"


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("FILENAME", "CANDIDATES", "FAMILIES"):
        monkeypatch.delenv(f"TP_TUNABLEOP_{name}", raising=False)
    monkeypatch.setenv("TP_TUNABLEOP_MAX_TUNING_SAMPLES", "9")
    Path("untuned.csv").write_text("".join(LINES), encoding="utf-8")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["tune", "untuned.csv", *arguments])


def on_a_full_disk(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run it where no file may be as large as the results file is, which has no winner yet."""
    Path(RESULTS).write_text("# a comment\n" * 1000, encoding="utf-8")
    # What Python compiles would be cut too, and left for whoever imports it next.
    command = f"ulimit -f 1; export PYTHONDONTWRITEBYTECODE=1; exec {shlex.join([*TUNE, *arguments])}"
    return subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=120, check=False)


def test_a_full_disk_is_a_failure_that_names_the_file(tmp_path: Path) -> None:
    done = on_a_full_disk()
    place = tmp_path / RESULTS
    assert done.returncode == 1, done.stderr
    assert f"measured, not written: {place}: " in done.stderr
    assert "2 of 2 signatures measured" in done.stdout
    assert "2 winners could not be written" in done.stdout
    assert done.stdout.splitlines()[-1] == f"winners: nowhere, since they could not be written to {place}"
    as_json = on_a_full_disk("--json")
    assert as_json.returncode == 1
    for outcome in json.loads(as_json.stdout):
        assert (outcome["measured"], outcome["results"]) == (True, None)
        assert outcome["problem"].startswith(f"measured, not written: {place}: ")


def test_what_another_process_kept_from_the_file_for_a_while_is_no_failure_in_the_end() -> None:
    lock = FileLock(f"{RESULTS}.lock")
    with subprocess.Popen(TUNE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        with lock:
            first = process.stderr.readline()
        told = process.stdout.read()
    assert "measured, not written" in first
    assert "another process has held the lock" in first
    assert process.returncode == 0, told
    assert "could not be written" not in told.partition("warning:")[0]
    assert told.splitlines()[-1] == f"winners: {Path(RESULTS).absolute()}"
    assert len(parse_results(Path(RESULTS).read_bytes()).entries) == 2


def test_nothing_is_measured_where_a_winner_could_not_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TP_TUNABLEOP_FILENAME", "elsewhere/mine.csv")
    Path("link.csv").symlink_to("nowhere/mine.csv")
    os.mkfifo("pipecpu.csv")
    for arguments, place, reason in (
        (("--results", "nowhere/mine.csv"), "nowhere/minecpu.csv", "there is no such folder"),
        (("--results", "untuned.csv/mine.csv"), "untuned.csv/minecpu.csv", "there is no such folder"),
        ((), "elsewhere/minecpu.csv", "there is no such folder"),
        (("--results", "pipe.csv"), "pipecpu.csv", "it is no regular file"),
    ):
        result = run(*arguments)
        assert result.exit_code == 1
        assert f"winners could not be written to {Path(place).absolute()}: {reason}" in result.stderr
        assert result.stdout == ""


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "it is empty"),
        *((name, "names no file") for name in ("folder/", "..", ".", "/")),
        *((name, "no regular file") for name in ("/dev/null", "/dev/full", "there")),
        ("a" * 300, "File name too long"),
    ],
)
def test_a_name_that_can_be_no_file_is_a_usage_error(name: str, reason: str) -> None:
    Path("there").mkdir()
    result = run("--results", name)
    assert (result.exit_code, "--results" in result.stderr, reason in result.stderr) == (2, True, True), result.stderr
    assert sorted(path.name for path in Path().iterdir()) == ["there", "untuned.csv"]


@pytest.mark.parametrize("seconds", ["nan", "-nan", "inf", "0"])
def test_what_is_no_time_to_wait_is_a_usage_error(seconds: str) -> None:
    result = run("--stall-seconds", seconds)
    assert (result.exit_code, "--stall-seconds" in result.stderr) == (2, True)
