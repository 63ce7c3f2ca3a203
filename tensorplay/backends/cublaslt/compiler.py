"""Machine code of kernels of our own: NVRTC's, from CUDA C++, or what it made for an earlier process.

The compiler takes some 80 milliseconds even for the smallest kernel, and a program would wait for them.
"""

import os
from functools import cache, lru_cache
from threading import get_ident
from typing import Any

from tensorplay.backends.cublaslt.cubin_cache import CubinCache, cache_folder
from tensorplay.backends.cublaslt.library import nvrtc
from tensorplay.backends.cublaslt.status import check_compiler
from tensorplay.errors import KernelUnavailableError, LaunchError

__all__ = ["compile_source", "kernel_files", "machine_code"]

# Threads that have used the compiler, and those that had when this process was forked. Its locks, which a thread takes
# once more when it ends, may stay locked in the child for ever.
_users: set[int] = set()
_left_behind: set[int] = set()

# A search compiles thousands, each some 30 KiB and most of them for one device: the files keep them.
_MOST_KEPT = 64


def machine_code(source: str, capability: tuple[int, int], files: CubinCache) -> bytes:
    """Return a source's machine code, from the files or compiled and put there; needs no device.

    Raises
    ------
    KernelUnavailableError
        When there is no compiler, or a fork has left it locked. `LaunchError` when it refuses.
    """
    parts = (source, f"sm_{capability[0]}{capability[1]}", _compiler_version())
    code = files.read(*parts)
    if code is None:
        code = compile_source(source, capability)
        files.write(code, *parts)
    return code


@lru_cache(_MOST_KEPT)
def compile_source(source: str, capability: tuple[int, int]) -> bytes:
    """Return machine code for a compute capability; needs no device; raises as `machine_code` does."""
    compiler = _compiler()
    try:
        created = compiler.nvrtcCreateProgram(source.encode(), b"tensorplay.cu", 0, None, None)
    except RuntimeError as error:
        raise LaunchError(f"the run-time compiler cannot be loaded: {error}") from error
    program = check_compiler(created, "creating a program")
    try:
        options = [f"--gpu-architecture=sm_{capability[0]}{capability[1]}".encode(), b"--std=c++17"]
        compiled = compiler.nvrtcCompileProgram(program, len(options), options)
        if int(compiled[0]) != 0:
            raise LaunchError(f"a kernel of TensorPlay's does not compile: {_log(program)}")
        size = check_compiler(compiler.nvrtcGetCUBINSize(program), "asking for machine code")
        # The bindings write into the bytes, of which nobody else can have a reference.
        code: bytes = b" " * size
        check_compiler(compiler.nvrtcGetCUBIN(program, code), "taking machine code")
        return code
    finally:
        compiler.nvrtcDestroyProgram(program)


@cache
def kernel_files() -> CubinCache:
    """Return the files of the user's folder for kernels, which all processes of the user share."""
    return CubinCache(cache_folder(os.environ))


def _compiler() -> Any:
    if _left_behind:
        raise KernelUnavailableError(
            "this process was forked from one whose threads compiled kernels, which may leave the compiler locked; "
            "start processes that use a device by spawn or forkserver"
        )
    _users.add(get_ident())
    return nvrtc()


@cache
def _compiler_version() -> str:
    compiler = _compiler()
    try:
        major, minor = check_compiler(compiler.nvrtcVersion(), "asking the compiler for its version")[0:2]
    except RuntimeError as error:
        raise KernelUnavailableError(f"the run-time compiler cannot be loaded: {error}") from error
    return f"{major}.{minor}"


def _log(program: Any) -> str:
    compiler = nvrtc()
    size = check_compiler(compiler.nvrtcGetProgramLogSize(program), "asking for the compiler's log")
    log: bytes = b" " * size
    check_compiler(compiler.nvrtcGetProgramLog(program, log), "asking for the compiler's log")
    return log.rstrip(b"\0 ").decode(errors="replace")


def _after_fork() -> None:
    _left_behind.update(_users - {get_ident()})


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
