"""Libraries that compute on the host, with the calls that groups and arrays need beside those of `test_stand_in`."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest

FOLDER = Path(__file__).parent / "stand_in"
LIBRARIES = {
    "grouped_driver.c": "libcuda.so.1",
    "cublaslt.c": "libcublasLt.so.13",
    "grouped_cublas.c": "libcublas.so.13",
}
# Touching memory that was given back ends the process, and says where it was.
PYTHON = (sys.executable, "-X", "faulthandler")


BuildStandIn = Callable[..., Path]


@pytest.fixture(scope="session")
def build_stand_in() -> BuildStandIn:
    """Return what builds libraries of C sources into a folder; skips where they could not be used."""
    compiler = which("gcc")
    for module, package in (("nvmath", "nvmath-python"), ("cuda", "cuda-bindings")):
        if find_spec(module) is None:
            pytest.skip(f"{package} is not installed")
    if find_spec("torch") is not None:
        pytest.skip("torch would bring the real libraries along")
    if compiler is None:
        pytest.skip("there is no gcc")

    def build(folder: Path, libraries: Mapping[Path, str]) -> Path:
        for source, name in libraries.items():
            options = ["-O2", "-w", "-shared", "-fPIC", f"-I{FOLDER}", f"-Wl,-soname,{name}", "-o", str(folder / name)]
            subprocess.run([compiler, *options, str(source), "-lm", "-ldl"], check=True)
        return folder

    return build


@pytest.fixture(scope="session")
def extended_stand_in(build_stand_in: BuildStandIn, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that holds the libraries, built."""
    return build_stand_in(
        tmp_path_factory.mktemp("stand_in"), {FOLDER / file: name for file, name in LIBRARIES.items()}
    )


@pytest.fixture
def run_on_stand_in(extended_stand_in: Path) -> Callable[..., None]:
    """Return what runs a script of the folder `stand_in` in a process of its own, which must say nothing wrong."""

    def run(script: str, *arguments: str) -> None:
        root = str(Path(__file__).resolve().parents[3])
        # What is compiled for the stand-in is no machine code, and must not be found by anybody else.
        here = str(extended_stand_in)
        folders = {"LD_LIBRARY_PATH": here, "PYTHONPATH": root, "XDG_CACHE_HOME": here}
        done = subprocess.run(
            [*PYTHON, str(FOLDER / script), here, *arguments],
            env=os.environ | folders,
            capture_output=True,
            text=True,
            timeout=55,
            check=False,
        )
        assert (done.returncode, done.stdout.strip(), done.stderr.strip()) == (0, "checked", "")

    return run
