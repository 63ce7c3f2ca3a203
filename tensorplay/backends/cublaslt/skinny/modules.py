"""Skinny kernels compiled and loaded: each once a process and device, and compiled once for all processes of a user."""

from functools import cache
from typing import Any

from tensorplay.backends.cublaslt.capture import is_any_capture_seen
from tensorplay.backends.cublaslt.compiling import code_of
from tensorplay.backends.cublaslt.device import current, device, relaxed_capture
from tensorplay.backends.cublaslt.library import driver
from tensorplay.backends.cublaslt.skinny.source_text import ENTRY_NAME
from tensorplay.backends.cublaslt.status import check
from tensorplay.errors import KernelUnavailableError, LaunchError
from tensorplay.locks import ForkSafeLock

__all__ = ["MOST_LOADED", "is_full", "is_loaded", "loaded_function", "most_shared_bytes"]

MOST_LOADED = 4096
"""Kernels kept loaded; a search of ever new shapes compiles no more of them."""

_functions: dict[tuple[int, str], Any] = {}
_loading = ForkSafeLock()


def is_loaded(ordinal: int, source: str) -> bool:
    """Return whether the function of a source is loaded on a device."""
    return (ordinal, source) in _functions


def is_full() -> bool:
    """Return whether no more kernels are loaded, so that there is no use in compiling any."""
    return len(_functions) >= MOST_LOADED


def loaded_function(ordinal: int, source: str) -> Any:
    """Return the function of a source on a device, loaded, so that its first launch may be under a capture.

    Raises
    ------
    KernelUnavailableError
        When it is not loaded yet and a capture is live, or it does not compile or load here.
    """
    function = _functions.get((ordinal, source))
    if function is not None:
        return function
    with _loading:
        function = _functions.get((ordinal, source))
        if function is None:
            function = _loaded(ordinal, source)
            _functions[ordinal, source] = function
        return function


@cache
def most_shared_bytes(ordinal: int) -> int:
    """Return the shared memory that a block of the loaded functions may have."""
    cuda = driver()
    most = cuda.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    handle = check(cuda.cuDeviceGet(ordinal), f"opening device {ordinal}")
    return int(check(cuda.cuDeviceGetAttribute(most, handle), f"asking device {ordinal} for its shared memory"))


def _loaded(ordinal: int, source: str) -> Any:
    if is_full():
        raise KernelUnavailableError(f"{MOST_LOADED} skinny kernels are loaded already; no more are")
    cuda = driver()
    with current(ordinal):
        if is_any_capture_seen(None):
            raise KernelUnavailableError(
                "a skinny kernel is not loaded yet and a graph capture is live; run the product once before capturing"
            )
        try:
            code = code_of(source, device(ordinal).capability)
            with relaxed_capture():
                module = check(cuda.cuModuleLoadData(code), "loading a skinny kernel")
                function = check(cuda.cuModuleGetFunction(module, ENTRY_NAME.encode()), "finding a skinny kernel")
                # Loads what the driver would else load at the first launch, which no capture allows.
                registers = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS
                check(cuda.cuFuncGetAttribute(registers, function), "loading a skinny kernel")
                shared = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                most = most_shared_bytes(ordinal)
                check(cuda.cuFuncSetAttribute(function, shared, most), "giving a skinny kernel its shared memory")
        except LaunchError as error:
            raise KernelUnavailableError(f"a skinny kernel is not to be had here: {error}") from error
    return function
