"""What a figure was measured on: enough to judge it, nothing that says whose machine it was."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

import tensorplay

__all__ = ["metadata"]

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("scipy", "mkl", "filelock", "threadpoolctl")


def metadata() -> dict[str, object]:
    """Return date, machine, versions, commit and load of now, as plain values for JSON."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "cpu": _cpu_model(),
            "cores": len(os.sched_getaffinity(0)),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "blas": _blas(),
            "tensorplay": tensorplay.__version__,
            **_installed(_PACKAGES),
        },
        "commit": _commit(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _blas() -> list[str]:
    """Return each BLAS of this process with its version and threads; where it lies is left out."""
    from threadpoolctl import threadpool_info

    return [
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')} {pool['num_threads']} threads"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]


def _installed(packages: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _commit() -> str | None:
    """Return the short commit, with a mark where the tree differs from it; None outside a checkout."""
    # `git` by name: it stands where the machine keeps it.
    command = ("git", "-C", str(_ROOT), "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*")
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()
