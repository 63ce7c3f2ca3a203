"""The device a figure was measured on: driver, libraries, clocks."""

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any

from tensorplay.backends.cublaslt.device import device
from tensorplay.backends.cublaslt.library import available, library_identity, library_version

__all__ = ["clocks", "libraries", "parse_query", "reason_for_no_device", "system_name"]

_PACKAGES = ("torch", "nvmath-python", "cuda-bindings", "cuda-pathfinder", "nvidia-cublas")
_QUERIED = {
    "name": "name",
    "driver": "driver_version",
    "sm_mhz": "clocks.sm",
    "sm_mhz_most": "clocks.max.sm",
    "memory_mhz": "clocks.mem",
    "temperature_c": "temperature.gpu",
    "power_w": "power.draw",
    "power_limit_w": "power.limit",
}


def reason_for_no_device() -> str | None:
    """Return why nothing can be measured here, None when it can; imports nothing heavy."""
    reason = available()
    if reason is None and find_spec("torch") is None:
        return "torch, which holds the operands, is not installed"
    return reason


def libraries() -> dict[str, object]:
    """Return the loaded cuBLASLt and the packages around it; imports them, so call it in a process of its own."""
    here = device(0)
    return {
        "device": here.name,
        "capability": ".".join(map(str, here.capability)),
        "l2_mib": here.l2_bytes >> 20,
        "multiprocessors": here.multiprocessors,
        "cublaslt_version": library_version(),
        "cublaslt_library": library_identity(),
        "packages": {name: found for name in _PACKAGES if (found := _version(name)) is not None},
    }


def clocks() -> dict[str, object]:
    """Return name, driver, clocks, temperature and power of device 0 as of now; empty where nothing tells."""
    name = system_name(os.environ)
    try:
        return _by_nvml(import_module("pynvml"), name)
    except ImportError:
        return _by_command(name)
    except Exception as error:  # noqa: BLE001 - of NVML's own kind, and no reason to lose the figures
        sys.stderr.write(f"NVML does not answer: {error}\n")
        return _by_command(name)


def system_name(environ: Mapping[str, str]) -> str:
    """Return what the system calls device 0 of this process, a number or a UUID: it counts hidden ones too."""
    return environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip() or "0"


def _by_nvml(nvml: Any, device_name: str) -> dict[str, object]:
    nvml.nvmlInit()
    try:
        handle = (
            nvml.nvmlDeviceGetHandleByIndex(int(device_name))
            if device_name.isdecimal()
            else nvml.nvmlDeviceGetHandleByUUID(device_name)
        )
        return {
            "name": _text(nvml.nvmlDeviceGetName(handle)),
            "driver": _text(nvml.nvmlSystemGetDriverVersion()),
            "sm_mhz": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
            "sm_mhz_most": nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM),
            "memory_mhz": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
            "temperature_c": nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
            "power_w": nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
            "power_limit_w": nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000,
        }
    finally:
        nvml.nvmlShutdown()


def _by_command(device_name: str) -> dict[str, object]:
    query = f"--query-gpu={','.join(_QUERIED.values())}"
    command = ("nvidia-smi", f"--id={device_name}", query, "--format=csv,noheader,nounits")
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return {}
    return parse_query(found.stdout)


def parse_query(text: str) -> dict[str, object]:
    """Return what `nvidia-smi` answered to the query: numbers where they are some."""
    values = [value.strip() for value in text.strip().splitlines()[0].split(",")] if text.strip() else []
    if len(values) != len(_QUERIED):
        return {}
    return {
        name: _number(value) if name not in {"name", "driver"} else value
        for name, value in zip(_QUERIED, values, strict=True)
    }


def _number(value: str) -> object:
    try:
        return float(value)
    except ValueError:
        return value


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
