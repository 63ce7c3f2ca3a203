"""The clocks of a device, where NVIDIA's management library can be asked for them."""

from functools import cache
from typing import Any

from tensorplay.backends.cublaslt.device import device_count
from tensorplay.backends.cublaslt.library import driver
from tensorplay.backends.cublaslt.status import check
from tensorplay.errors import KernelUnavailableError, LaunchError
from tensorplay.locks import imported

__all__ = ["clocks"]

_BUS_ID_LENGTH = 32
# As `nvmlClockType_t` numbers them.
_KINDS = {"graphics": 0, "sm": 1, "memory": 2}


def clocks(ordinal: int) -> dict[str, int] | None:
    """Return the current clocks of a device in MHz, None where they cannot be read; raises nothing.

    The library comes with the driver, and its bindings with newer versions of cuda-bindings.
    """
    library = _library()
    if library is None:
        return None
    try:
        handle = _handle(ordinal)
        return {name: int(library.device_get_clock_info(handle, kind)) for name, kind in _KINDS.items()}
    except (library.NvmlError, AttributeError, KernelUnavailableError, LaunchError):
        return None


@cache
def _library() -> Any:
    """Return the bindings, started; None where there are none, or no such library."""
    try:
        library = imported("cuda.bindings.nvml")
    except (ImportError, OSError, RuntimeError):
        return None
    try:
        library.init_v2()
    except (library.NvmlError, AttributeError, OSError, RuntimeError):
        return None
    return library


@cache
def _handle(ordinal: int) -> Any:
    """Return the library's handle of a device, found by its bus: it does not number them as CUDA does."""
    device_count()
    cuda = driver()
    number = check(cuda.cuDeviceGet(ordinal), f"opening device {ordinal}")
    bus = check(cuda.cuDeviceGetPCIBusId(_BUS_ID_LENGTH, number), f"asking for the bus of device {ordinal}")
    return _library().device_get_handle_by_pci_bus_id_v2(bus.split(b"\0")[0].decode())
