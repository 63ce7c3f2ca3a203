import ctypes
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tensorplay.backends.host import private_blas as module
from tensorplay.backends.host.fortran_blas import fortran_blas
from tensorplay.backends.host.library import numpy_blas
from tensorplay.backends.host.private_blas import private_blas
from tensorplay.errors import KernelUnavailableError


@pytest.mark.usefixtures("own_blas")
def test_each_thread_count_has_one_instance_of_its_own() -> None:
    instances = {threads: private_blas(numpy_blas(), threads) for threads in (1, 2, 3)}
    for threads, instance in instances.items():
        assert instance.control("openblas_get_num_threads")() == threads
        assert private_blas(numpy_blas(), threads) is instance
    assert len({instance.library._handle for instance in instances.values()}) == 3


@pytest.mark.parametrize(
    ("name", "threading"), [("mkl", "intel"), ("blis", "pthreads"), ("openblas", "openmp"), ("accelerate", "unknown")]
)
def test_only_openblas_with_its_own_threads_is_loaded_again(name: str, threading: str) -> None:
    with pytest.raises(KernelUnavailableError, match=f"not {name} with {threading}"):
        private_blas(replace(numpy_blas(), name=name, threading=threading), 1)


def test_a_library_without_a_file_is_not_loaded_again() -> None:
    with pytest.raises(KernelUnavailableError, match="needs OpenBLAS"):
        private_blas(replace(numpy_blas(), path=None), 1)


@pytest.mark.usefixtures("own_blas")
def test_a_system_without_files_in_memory_offers_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_images", {})
    monkeypatch.delattr(os, "memfd_create")
    with pytest.raises(KernelUnavailableError, match="only Linux has"):
        private_blas(numpy_blas(), 1)


@pytest.mark.usefixtures("own_blas")
def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "libopenblas.so"
    for contents in (b"", b"no library"):
        file.write_bytes(contents)
        with pytest.raises(KernelUnavailableError, match=r"libopenblas\.so cannot be loaded a second time"):
            private_blas(replace(numpy_blas(), path=file), 1)
    with pytest.raises(KernelUnavailableError, match="cannot be loaded a second time"):
        private_blas(replace(numpy_blas(), path=tmp_path / "missing.so"), 1)


@pytest.mark.usefixtures("own_blas")
def test_an_image_that_is_numpys_own_is_never_given_a_thread_count(monkeypatch: pytest.MonkeyPatch) -> None:
    path = numpy_blas().path
    own = ctypes.CDLL(str(path))
    monkeypatch.setattr(module, "_images", {})
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: own)
    before = fortran_blas(own)
    assert before is not None
    threads = before.control("openblas_get_num_threads")()
    with pytest.raises(KernelUnavailableError, match="set for it alone"):
        private_blas(numpy_blas(), threads + 1)
    assert before.control("openblas_get_num_threads")() == threads
