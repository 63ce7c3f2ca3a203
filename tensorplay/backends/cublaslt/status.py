"""What the driver and the libraries answer, as results or as our errors in their words."""

from typing import Any

from tensorplay.backends.cublaslt.library import cublaslt, driver, nvrtc
from tensorplay.errors import LaunchError

__all__ = ["NOT_SUPPORTED", "check", "check_compiler", "explain", "library_error", "reason_of", "value_of"]

NOT_SUPPORTED = 15
"""cuBLAS's status for what it has no kernel for."""

_OUT_OF_MEMORY = 2
# After one of these the context is gone: illegal address, launch timeout, assertion, hardware fault, illegal
# instruction, misaligned address, invalid address space, invalid program counter, launch failure.
_STICKY = frozenset({700, 702, 709, 710, 714, 715, 716, 717, 718, 719})
_STICKY_WORDS = "this breaks the CUDA context: nothing runs on the device until the process is started anew"


def explain(status: Any) -> str:
    """Return the driver's name and description of its status."""
    number = int(status)
    words = []
    for ask in (driver().cuGetErrorName, driver().cuGetErrorString):
        error, text = ask(driver().CUresult(number))
        if int(error) == 0 and text:
            words.append(text.decode(errors="replace"))
    named = ", ".join(words) or f"status {number}"
    return f"{named}; {_STICKY_WORDS}" if number in _STICKY else named


def value_of(result: tuple[Any, ...]) -> Any:
    """Return what a driver call returned beside its status: None, one value, or a tuple."""
    if len(result) == 2:
        return result[1]
    return result[1:] or None


def check(result: tuple[Any, ...], doing: str) -> Any:
    """Return the value of a driver call.

    Raises
    ------
    LaunchError
        When it failed; `doing` says what was tried. `MemoryError` when the device's memory is full.
    """
    status = int(result[0])
    if status == 0:
        return value_of(result)
    if status == _OUT_OF_MEMORY:
        raise MemoryError(f"{doing}: the device is out of memory")
    raise LaunchError(f"{doing} failed: {explain(status)}")


def check_compiler(result: tuple[Any, ...], doing: str) -> Any:
    """Return the value of a call of the run-time compiler; `LaunchError` when it failed."""
    status = int(result[0])
    if status == 0:
        return value_of(result)
    compiler = nvrtc()
    words = compiler.nvrtcGetErrorString(compiler.nvrtcResult(status))[1]
    raise LaunchError(f"{doing} failed: {words.decode(errors='replace') if words else status}")


def library_error() -> type[Exception]:
    """Return the class that cuBLASLt's bindings raise; it has a `status`."""
    error: type[Exception] = cublaslt().cuBLASLtError
    return error


def reason_of(error: Exception) -> str:
    """Return a cuBLAS error in the library's words, without the advice about logging."""
    return str(error).split(" You can set CUBLASLT_LOG_LEVEL")[0].rstrip(".")
