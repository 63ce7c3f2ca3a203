"""The whole backend, from problem to plan, trial, timer and measurement, on libraries that compute on the host.

The stand-ins multiply column-major as cuBLASLt is documented to, so a swapped operand, a wrong leading dimension or
a forgotten stride shows as a wrong value here, long before a device is at hand.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "stand_in"
LIBRARIES = {"driver.c": "libcuda.so.1", "cublaslt.c": "libcublasLt.so.13", "cublas.c": "libcublas.so.13"}


@pytest.fixture
def libraries(build_stand_in: Callable[..., Path], tmp_path: Path) -> Path:
    """Return a folder that holds the stand-ins, built."""
    return build_stand_in(tmp_path, {FOLDER / file: name for file, name in LIBRARIES.items()})


def checked(script: str, libraries: Path, **further: str) -> None:
    """Run a script on the stand-ins, in a process of its own."""
    root = str(Path(__file__).resolve().parents[3])
    # What is compiled for the stand-in is no machine code, and must not be found by anybody else.
    folders = {"LD_LIBRARY_PATH": str(libraries), "PYTHONPATH": root, "XDG_CACHE_HOME": str(libraries)}
    done = subprocess.run(
        [sys.executable, str(FOLDER / script), str(libraries)],
        env=os.environ | folders | further,
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    assert done.stdout.strip() == "checked", done.stderr


def test_products_offers_measurement_and_refusals_are_right_on_the_stand_in(libraries: Path) -> None:
    checked("check.py", libraries)


def test_a_product_in_the_middle_of_another_harms_neither(libraries: Path) -> None:
    checked("interruptions.py", libraries)


def test_two_devices_share_nothing_and_each_is_used_where_it_is(libraries: Path) -> None:
    checked("devices.py", libraries, FAKE_DEVICES="2")
