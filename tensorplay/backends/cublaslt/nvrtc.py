"""Kernels of our own: CUDA C++ compiled for the device at first use, and launched through the driver."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from tensorplay.backends.cublaslt.device import current, device, relaxed_capture
from tensorplay.backends.cublaslt.library import driver, nvrtc
from tensorplay.backends.cublaslt.status import check, check_compiler
from tensorplay.errors import LaunchError

__all__ = ["Kernel", "compile_source", "kernel"]


class Kernel:
    """One function of a loaded module; the device's context must be current when it is launched.

    Parameters
    ----------
    function : CUfunction
        What the driver launches.
    name : str
        For errors.
    parameters : sequence of ctypes types
        Of its arguments, in order.
    """

    __slots__ = ("_function", "_launch", "_name", "_parameters")

    def __init__(self, function: Any, name: str, parameters: Sequence[Any]) -> None:
        self._function = function
        self._name = name
        self._parameters = tuple(parameters)
        self._launch = driver().cuLaunchKernel

    def launch(self, grid: tuple[int, int, int], block: tuple[int, int, int], stream: int, *arguments: Any) -> None:
        """Enqueue the kernel; raises `LaunchError` when the driver refuses. The driver copies the arguments."""
        result = self._launch(self._function, *grid, *block, 0, stream, (arguments, self._parameters), 0)
        if int(result[0]) != 0:
            check(result, f"launching {self._name}")


@cache
def kernel(ordinal: int, source: str, name: str, parameters: tuple[Any, ...]) -> Kernel:
    """Return a function of the source on a device, compiled and loaded at the first call and kept.

    Raises
    ------
    LaunchError
        When it does not compile; the message has the compiler's log.
    """
    module = _module(ordinal, source)
    function = check(driver().cuModuleGetFunction(module, name.encode()), f"finding the kernel {name}")
    return Kernel(function, name, parameters)


@cache
def compile_source(source: str, capability: tuple[int, int]) -> bytes:
    """Return machine code for a compute capability; needs no device."""
    compiler = nvrtc()
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
def _module(ordinal: int, source: str) -> Any:
    code = compile_source(source, device(ordinal).capability)
    with current(ordinal), relaxed_capture():
        return check(driver().cuModuleLoadData(code), "loading kernels of TensorPlay's")


def _log(program: Any) -> str:
    compiler = nvrtc()
    size = check_compiler(compiler.nvrtcGetProgramLogSize(program), "asking for the compiler's log")
    log: bytes = b" " * size
    check_compiler(compiler.nvrtcGetProgramLog(program, log), "asking for the compiler's log")
    return log.rstrip(b"\0 ").decode(errors="replace")
