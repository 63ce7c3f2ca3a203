import _ctypes
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tensorplay.backends.host import library as module
from tensorplay.backends.host.backend import HostBackend
from tensorplay.backends.host.library import Blas, blas_behind, current_threads, numpy_blas, thread_limit
from tensorplay.backends.host.machine import usable_cpus
from tensorplay.database.record import check_validators


def test_numpys_blas_is_the_one_that_its_wheel_or_system_brought() -> None:
    blas = numpy_blas()
    if blas.path is None:
        pytest.skip("NumPy's BLAS is no library of its own here")
    assert blas.path.is_file()
    assert blas.version != "unknown"
    assert blas.threads >= 1


def test_numpys_blas_is_found_though_scipys_is_loaded_first() -> None:
    pytest.importorskip("scipy")
    code = """
import scipy.linalg.blas, scipy.linalg._fblas as fblas
from tensorplay.backends.host.library import blas_behind, numpy_blas
print(numpy_blas().path)
print(blas_behind(fblas.__file__).path)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    numpys, scipys = done.stdout.split()
    assert numpys == str(numpy_blas().path)
    folder = Path(np.__file__).parent.parent / "numpy.libs"
    if folder.is_dir():
        assert Path(numpys).resolve().parent == folder.resolve()
        assert scipys != numpys


def test_an_extension_without_blas_has_none_behind_it() -> None:
    assert blas_behind(str(_ctypes.__file__)) is None
    assert blas_behind("/nowhere/missing.so") is None


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"Build Dependencies": {"blas": {"name": "accelerate", "version": "3.9"}}}, Blas("accelerate", "3.9")),
        ({"Build Dependencies": {"blas": {"name": "auto", "version": ""}}}, Blas("auto", "unknown")),
        ({"Build Dependencies": {"blas": None}}, Blas("unknown", "unknown")),
        ({}, Blas("unknown", "unknown")),
        (None, Blas("unknown", "unknown")),
    ],
)
def test_numpys_build_tells_what_the_library_cannot(config: Mapping[str, object] | None, expected: Blas) -> None:
    assert module._built_with(config) == expected


def test_threads_are_limited_by_processors_and_by_what_numpy_was_set_to(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= thread_limit() <= usable_cpus()
    monkeypatch.setattr(module, "usable_cpus", lambda: 8)
    monkeypatch.setattr(module, "numpy_blas", lambda: Blas("openblas", "1", threads=3))
    assert thread_limit() == 3
    monkeypatch.setattr(module, "usable_cpus", lambda: 2)
    assert thread_limit() == 2


@pytest.mark.usefixtures("own_blas")
def test_the_current_thread_count_follows_a_limit() -> None:
    import threadpoolctl

    ask = current_threads()
    assert ask is not None
    before = ask()
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        assert ask() == 1
    assert ask() == before


def test_validators_name_processor_and_library_with_what_their_speed_depends_on() -> None:
    facts = dict(check_validators(HostBackend().validators("cpu")))
    assert facts["HOST_CPU"].endswith(f", {usable_cpus()} cores")
    assert f" {numpy_blas().threads} threads, numpy {np.__version__}" in facts["HOST_BLAS"]
    assert facts["HOST_BLAS"].startswith(f"{numpy_blas().name} {numpy_blas().version} ")
    assert set(facts) == {"HOST_CPU", "HOST_BLAS"}
