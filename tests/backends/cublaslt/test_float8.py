"""Products of FP8 from problem to launch, on a library that knows the rules for them and computes on the host."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
LIBRARIES = {
    HERE / "stand_in" / "driver.c": "libcuda.so.1",
    HERE / "float8" / "cublaslt.c": "libcublasLt.so.13",
    HERE / "stand_in" / "cublas.c": "libcublas.so.13",
}


def test_types_scales_and_addends_reach_the_library_by_its_rules(build_stand_in: Any, tmp_path: Path) -> None:
    pytest.importorskip("ml_dtypes")
    build_stand_in(tmp_path, LIBRARIES)
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
