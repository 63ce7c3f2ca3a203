import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tensorplay.database.csv_text import parse_results

CSV = "tunableop_resultscpu.csv"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield a benchmark that has finished its first shape, and has many more to go."""
    shapes = [word for size in range(2, 60) for word in ("--shape", f"float32:{size}x4x4")]
    process = subprocess.Popen(
        [sys.executable, "-m", "tensorplay", "bench", "--directory", str(tmp_path), "--repeats", "1", *shapes],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TP_TUNABLEOP_MAX_TUNING_SAMPLES": "5", "TP_TUNABLEOP_MAX_TUNING_DURATION_MS": "2"},
    )
    with process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("1 of 58  float32:2x4x4: replayed")
        yield process
        process.kill()


def workers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return the benchmark's children, once there is one."""
    parent = psutil.Process(process.pid)
    children: list[psutil.Process] = []
    while not children:
        children = parent.children(recursive=True)
    return children


def test_ctrl_c_ends_the_workers_keeps_what_was_tuned_and_shows_it(
    running: subprocess.Popen[str], tmp_path: Path
) -> None:
    children = workers(running)
    running.send_signal(signal.SIGINT)
    output, complaint = running.communicate(timeout=20)
    assert running.returncode == 130
    assert psutil.wait_procs(children, timeout=5)[1] == []
    assert f"interrupted; what was tuned stays in {tmp_path / CSV}" in complaint
    assert "Traceback" not in complaint
    assert output.splitlines()[1].startswith("float32:2x4x4")
    written = parse_results((tmp_path / CSV).read_bytes())
    assert written.entries
    assert not written.bad_lines


def test_workers_end_with_a_benchmark_that_was_killed(running: subprocess.Popen[str]) -> None:
    children = workers(running)
    running.kill()
    assert psutil.wait_procs(children, timeout=20)[1] == []
