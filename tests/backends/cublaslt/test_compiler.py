"""Kernels of our own are compiled once for a machine: another process reads what the first one kept."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tensorplay.backends.cublaslt import compiler, spin
from tensorplay.backends.cublaslt.compiler import machine_code
from tensorplay.backends.cublaslt.cubin_cache import CubinCache
from tensorplay.errors import KernelUnavailableError, LaunchError

CAPABILITY = (9, 0)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Sources in the order in which a compiler in the place of the real one, which needs no package, got them."""
    sources: list[str] = []

    def compile_source(source: str, capability: tuple[int, int]) -> bytes:
        sources.append(source)
        if "broken" in source:
            raise LaunchError("it does not compile")
        return f"{source} for {capability}".encode()

    monkeypatch.setattr(compiler, "compile_source", compile_source)
    monkeypatch.setattr(compiler, "_compiler_version", lambda: "13.0")
    return sources


def test_a_source_is_compiled_once_and_read_from_then_on(compiled: list[str], tmp_path: Path) -> None:
    codes = [machine_code("one", CAPABILITY, CubinCache(tmp_path)) for _ in range(3)]
    assert codes == [b"one for (9, 0)"] * 3
    assert compiled == ["one"]


def test_another_device_or_compiler_needs_code_of_its_own(
    compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = CubinCache(tmp_path)
    assert machine_code("one", (8, 0), files) == b"one for (8, 0)"
    assert machine_code("one", CAPABILITY, files) == b"one for (9, 0)"
    monkeypatch.setattr(compiler, "_compiler_version", lambda: "13.1")
    machine_code("one", CAPABILITY, files)
    assert compiled == ["one"] * 3


def test_a_file_that_was_changed_is_compiled_anew(compiled: list[str], tmp_path: Path) -> None:
    machine_code("one", CAPABILITY, CubinCache(tmp_path))
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert machine_code("one", CAPABILITY, CubinCache(tmp_path)) == b"one for (9, 0)"
    assert compiled == ["one"] * 2


def test_what_does_not_compile_is_not_kept(compiled: list[str], tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(LaunchError, match="does not compile"):
            machine_code("broken", CAPABILITY, CubinCache(tmp_path))
    assert compiled == ["broken"] * 2
    assert not list(tmp_path.iterdir())


def test_the_real_compiler_makes_what_is_kept(tmp_path: Path) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    try:
        code = machine_code(spin.SOURCE, CAPABILITY, CubinCache(tmp_path))
    except KernelUnavailableError as error:
        pytest.skip(str(error))
    assert code.startswith(b"\x7fELF")
    (file,) = tmp_path.iterdir()
    assert file.read_bytes().endswith(code)


FORKED = """
import os, threading
from contextlib import suppress
from tensorplay.backends.cublaslt import compiler, spin
from tensorplay.errors import KernelUnavailableError

def compile_it():
    with suppress(KernelUnavailableError):
        compiler.compile_source(spin.SOURCE, (9, 0))

thread = threading.Thread(target=compile_it)
thread.start()
thread.join()
child = os.fork()
if child:
    raise SystemExit(os.waitpid(child, 0)[1])
try:
    compiler.compile_source("another", (9, 0))
except KernelUnavailableError as error:
    os._exit(0 if "forked" in str(error) else 1)
os._exit(2)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_says_so_and_waits_for_no_lock_of_its_parent_s_compiling_threads() -> None:
    assert subprocess.run([sys.executable, "-c", FORKED], timeout=60, check=False).returncode == 0
