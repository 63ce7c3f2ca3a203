"""Kernels of our own: CUDA C++ loaded onto the device at first use, and launched through the driver."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from tensorplay.backends.cublaslt.compiling import code_of
from tensorplay.backends.cublaslt.device import current, device, relaxed_capture
from tensorplay.backends.cublaslt.library import driver
from tensorplay.backends.cublaslt.status import check
from tensorplay.errors import KernelUnavailableError, LaunchError

__all__ = ["Kernel", "kernel"]


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
        When there is no compiler, or it does not compile; the message has the compiler's log.
    """
    module = _module(ordinal, source)
    function = check(driver().cuModuleGetFunction(module, name.encode()), f"finding the kernel {name}")
    return Kernel(function, name, parameters)


@cache
def _module(ordinal: int, source: str) -> Any:
    try:
        code = code_of(source, device(ordinal).capability)
    except KernelUnavailableError as error:
        raise LaunchError(str(error)) from error
    with current(ordinal), relaxed_capture():
        return check(driver().cuModuleLoadData(code), "loading kernels of TensorPlay's")
