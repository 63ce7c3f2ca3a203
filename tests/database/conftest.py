"""What the tests of the database share: one build, a file of it, and another build."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tensorplay.database.record import Entry, Validator
from tensorplay.database.store import ResultsStore

VALIDATORS = (
    Validator("TP_TUNABLEOP_FORMAT", "1"),
    Validator("HOST_CPU", "A Processor, 2 cores"),
    Validator("HOST_BLAS", "openblas 0.3"),
)


@pytest.fixture
def validators() -> tuple[Validator, ...]:
    return VALIDATORS


@pytest.fixture
def other_validators() -> tuple[Validator, ...]:
    return (*VALIDATORS[:2], Validator("HOST_BLAS", "openblas 0.4"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tunableop_resultscpu.csv"


@pytest.fixture
def store(path: Path) -> ResultsStore:
    return ResultsStore(str(path), VALIDATORS)


@pytest.fixture
def other_store(path: Path, other_validators: tuple[Validator, ...]) -> ResultsStore:
    return ResultsStore(str(path), other_validators)


@pytest.fixture
def header() -> str:
    return "".join(f"Validator,{name},{value}\n" for name, value in VALIDATORS)


@pytest.fixture
def make_entry() -> Callable[..., Entry]:
    def make(m: int, kernel: str = "Default", time_ms: float = 0.5) -> Entry:
        return Entry("GemmTunableOp_Float32", f"taN_m{m}_n8_k8_bias0_devcpu", kernel, time_ms)

    return make


@pytest.fixture
def run_script() -> Callable[..., str]:
    """Run a script in a fresh interpreter, with VALIDATORS and entry(m) defined; return what it prints."""

    def run(script: str, *arguments: object) -> str:
        done = subprocess.run(
            [sys.executable, "-c", PRELUDE + script, *map(str, arguments)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def start_script() -> Callable[..., subprocess.Popen[str]]:
    """Start a script in a fresh interpreter, with VALIDATORS and entry(m) defined, and pipes to talk to it."""

    def start(script: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PRELUDE + script, *map(str, arguments)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    return start


PRELUDE = f"""
import os, sys
from tensorplay.database.record import Entry, Validator
from tensorplay.database.store import ResultsStore
VALIDATORS = {VALIDATORS!r}
def entry(m, kernel="Default"):
    return Entry("GemmTunableOp_Float32", f"taN_m{{m}}_n8_k8_bias0_devcpu", kernel, 0.5)
"""
