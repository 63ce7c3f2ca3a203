"""Planted faults are refused by a trial on the stand-in libraries, as the tests for a device have them."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "stand_in"
LIBRARIES = {"driver.c": "libcuda.so.1", "cublaslt.c": "libcublasLt.so.13", "cublas.c": "libcublas.so.13"}


def test_planted_faults_are_refused_on_the_stand_in(build_stand_in: Any, tmp_path: Path) -> None:
    build_stand_in(tmp_path, {FOLDER / file: name for file, name in LIBRARIES.items()})
    root = str(Path(__file__).resolve().parents[3])
    # What is compiled for the stand-in is no machine code, and must not be found by anybody else.
    folders = {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": root, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(FOLDER / "checking.py"), str(tmp_path)],
        env=os.environ | folders,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    passed = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert passed is not None and int(passed[1]) > 100, done.stdout[-500:]
