"""Products of FP8 from problem to launch, on a library that knows the rules for them and computes on the host."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest

HERE = Path(__file__).parent
LIBRARIES = {
    HERE / "stand_in" / "driver.c": "libcuda.so.1",
    HERE / "float8" / "cublaslt.c": "libcublasLt.so.13",
    HERE / "stand_in" / "cublas.c": "libcublas.so.13",
}


def test_types_scales_and_addends_reach_the_library_by_its_rules(tmp_path: Path) -> None:
    compiler = which("gcc")
    for module, package in (("nvmath", "nvmath-python"), ("cuda", "cuda-bindings"), ("ml_dtypes", "ml_dtypes")):
        if find_spec(module) is None:
            pytest.skip(f"{package} is not installed")
    if find_spec("torch") is not None:
        pytest.skip("torch would bring the real libraries along")
    if compiler is None:
        pytest.skip("there is no gcc")
    for source, name in LIBRARIES.items():
        options = ["-O2", "-w", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", str(tmp_path / name)]
        subprocess.run([compiler, *options, str(source), "-lm", "-ldl"], check=True)
    root = str(Path(__file__).resolve().parents[3])
    done = subprocess.run(
        [sys.executable, str(HERE / "float8" / "check.py"), str(tmp_path)],
        env=os.environ | {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    assert done.stdout.strip() == "checked", done.stderr
