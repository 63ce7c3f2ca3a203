"""Whether this machine has a CUDA device and what it takes to use it, found out without touching the device.

Asking the driver would start it, which takes a tenth of a second and forbids CUDA in children forked later. So only
files and the environment are looked at. Whether the device really works is asked of the driver, later.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

__all__ = ["is_cuda_present"]

# Linux, its subsystem on Windows, and boards whose GPU is part of the chip.
_DEVICES = ("nvidia[0-9]*", "dxg", "nvgpu", "nvhost-gpu")
_PACKAGES = ("cuda", "nvmath")


def is_cuda_present(environ: Mapping[str, str], devices: Path = Path("/dev")) -> bool:
    """Return whether a device is visible and the packages that drive it are installed; imports none of them.

    `environ` may hide devices by `CUDA_VISIBLE_DEVICES`; `devices` is the folder where the system lists them.
    """
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    # The list ends before its first entry that is no device, as the driver reads it.
    if visible is not None and (not visible.strip() or visible.strip().startswith("-")):
        return False
    if not any(any(devices.glob(pattern)) for pattern in _DEVICES):
        return False
    return all(_is_installed(name) for name in _PACKAGES)


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False
