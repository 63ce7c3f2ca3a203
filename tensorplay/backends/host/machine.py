"""Facts about this machine: its processor, usable cores, caches and free memory."""

import os
import platform
from functools import cache
from pathlib import Path

__all__ = ["cpu_model", "free_memory_bytes", "private_cache_bytes", "usable_cpus"]

_CPU_INFO = Path("/proc/cpuinfo")
_CPU_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_MEMORY_INFO = Path("/proc/meminfo")
_CONTROL_GROUP = Path("/sys/fs/cgroup")

# What a core of the last ten years has, where the system does not say.
_USUAL_CACHE_BYTES = 1 << 20
# Enough for one set of operands of a large product, where the system does not say.
_USUAL_FREE_BYTES = 4 << 30

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@cache
def cpu_model(cpu_info: Path = _CPU_INFO) -> str:
    """Return the processor's name in words; on Arm, where Linux has none, its implementer and part numbers."""
    fields = _fields(cpu_info)
    if name := fields.get("model name"):
        return " ".join(name.split())
    if part := fields.get("CPU part"):
        return f"{platform.machine()} implementer {fields.get('CPU implementer', 'unknown')} part {part}"
    return " ".join((platform.processor() or platform.machine() or "unknown processor").split())


def usable_cpus() -> int:
    """Return how many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def private_cache_bytes(caches: Path = _CPU_CACHES) -> int:
    """Return the size of a core's last cache of its own, the second level."""
    for cache_folder in sorted(caches.glob("index*")):
        if _text(cache_folder / "level") == "2":
            size = _text(cache_folder / "size")
            digits = size.rstrip("KMG")
            if digits.isascii() and digits.isdecimal():
                return int(digits) * _UNITS.get(size[-1], 1) or _USUAL_CACHE_BYTES
    return _USUAL_CACHE_BYTES


def free_memory_bytes(memory_info: Path = _MEMORY_INFO, control_group: Path = _CONTROL_GROUP) -> int:
    """Return how much memory can be taken before the system, or this container's limit, is short of it."""
    available = _fields(memory_info).get("MemAvailable", "").removesuffix("kB").strip()
    free = int(available) << 10 if available.isdecimal() else _USUAL_FREE_BYTES
    limit, used = _text(control_group / "memory.max"), _text(control_group / "memory.current")
    if limit.isdecimal() and used.isdecimal():
        return max(0, min(free, int(limit) - int(used)))
    return free


def _fields(path: Path) -> dict[str, str]:
    """Return the `name: value` lines of a file, the first of each name; empty when it cannot be read."""
    found: dict[str, str] = {}
    for line in _text(path).splitlines():
        name, _, value = line.partition(":")
        found.setdefault(name.strip(), value.strip())
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
