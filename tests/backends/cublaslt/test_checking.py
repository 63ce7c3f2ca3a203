"""Planted faults are refused by a trial on the stand-in libraries, as the tests for a device have them."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest

FOLDER = Path(__file__).parent / "stand_in"
LIBRARIES = {"driver.c": "libcuda.so.1", "cublaslt.c": "libcublasLt.so.13", "cublas.c": "libcublas.so.13"}


def test_planted_faults_are_refused_on_the_stand_in(tmp_path: Path) -> None:
    compiler = which("gcc")
    if find_spec("nvmath") is None or find_spec("cuda") is None or find_spec("torch") is not None or compiler is None:
        pytest.skip("needs nvmath-python, cuda-bindings and gcc, and no torch, which brings the real libraries along")
    for source, name in LIBRARIES.items():
        options = ["-O2", "-w", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", str(tmp_path / name)]
        subprocess.run([compiler, *options, str(FOLDER / source), "-lm", "-ldl"], check=True)
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
