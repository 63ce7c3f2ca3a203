"""The worker that the CUDA image runs, on a device."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tensorplay.database.csv_text import parse_results

WORKER = Path(__file__).parents[2] / "docker" / "worker.py"


def test_it_multiplies_and_records_on_the_device_and_ends_when_it_is_told(tmp_path: Path) -> None:
    pytest.importorskip("fastapi", exc_type=ImportError)
    command = [sys.executable, str(WORKER), "--port", "0", "--device", "cuda", "--pause", "0"]
    environ = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_MAX_TUNING_DURATION_MS": "2"}
    results = tmp_path / "tunableop_results0.csv"
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        # Three layers, three sizes of batch.
        while not results.is_file() or len(parse_results(results.read_text(encoding="utf-8")).entries) < 9:
            assert process.poll() is None, process.communicate()
            time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, errors) == (0, "")
    assert "http://127.0.0.1:" in output
