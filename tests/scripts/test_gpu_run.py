"""The script that runs the tests on a GPU: each file apart, behind the test that broke the context, within its time."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "gpu_run"
# Stands in for the interpreter: breaks the context once in the file that is named so.
PYTHON = """#!/bin/bash
echo "$TENSORPLAY_TESTS_AFTER $3" >>"$CALLS"
if [[ $3 == *test_values.py && -z $TENSORPLAY_TESTS_AFTER ]]; then
    echo "$3::test_that_broke_it" >"$TENSORPLAY_TESTS_BROKEN"
    echo "1 failed"
    exit 1
fi
echo "3 passed"
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[str, list[str]]]:
    """Runs the script's tests with the stand-in; returns what it said and the calls of the interpreter."""
    python, calls = tmp_path / "python", tmp_path / "calls"
    python.write_text(PYTHON)
    python.chmod(0o755)
    calls.touch()

    def started(**environment: str) -> tuple[str, list[str]]:
        told = {"PYTHON": str(python), "PARTS": "tests", "CALLS": str(calls)} | environment
        command = ("/bin/bash", str(SCRIPT), str(tmp_path / "logs"))
        done = subprocess.run(command, env=os.environ | told, capture_output=True, text=True, check=True)
        return done.stdout, calls.read_text().splitlines()

    return started


def test_every_file_runs_apart_and_goes_on_behind_what_broke_the_context(
    run: Callable[..., tuple[str, list[str]]],
) -> None:
    said, calls = run()
    files = sorted(f"tests/gpu/{path.name}" for path in (SCRIPT.parents[1] / "tests" / "gpu").glob("test_*.py"))
    assert sorted({call.split()[-1] for call in calls}) == files
    assert len(calls) == len(files) + 1
    assert "tests/gpu/test_values.py::test_that_broke_it tests/gpu/test_values.py" in calls
    assert "== tests/gpu/test_values.py (exit 1)\n1 failed\n== tests/gpu/test_values.py (exit 0)\n3 passed" in said


def test_only_the_files_that_are_named_run(run: Callable[..., tuple[str, list[str]]]) -> None:
    _, calls = run(FILES="tests/gpu/test_ops.py tests/gpu/test_devices.py")
    assert calls == [" tests/gpu/test_ops.py", " tests/gpu/test_devices.py"]


def test_nothing_begins_once_the_time_is_up(run: Callable[..., tuple[str, list[str]]]) -> None:
    said, calls = run(LIMIT="5", FILES="tests/gpu/test_ops.py tests/gpu/test_values.py")
    assert calls == []
    assert said.count("not run: the time is up") == 2
