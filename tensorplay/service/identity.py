"""Names that stay the same over restarts: ids of results, and what tells one process from another."""

import getpass
import hashlib
import os
import re
import secrets
import socket
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from tensorplay.service.placement import number_of
from tensorplay.service.shown_text import encodable
from tensorplay.version import __version__

__all__ = ["ID_PATTERN", "Instance", "device_of", "instance_of", "result_id", "shape_id", "without_device"]

ID_PATTERN = r"^[0-9a-f]{16}$"
"""What an id looks like; everything else is unknown."""

_DEVICE = re.compile(r"_dev([^_]+)")


class Instance(NamedTuple):
    """One process, as people tell it from others."""

    id: str
    pid: int
    user: str
    host: str
    command: str
    rank: int | None
    local_rank: int | None
    world_size: int | None
    version: str
    python: str
    started_at: str


def result_id(op: str, params: str) -> str:
    """Return the id of a signature: safe in a URL, and the same wherever and whenever it is computed."""
    return hashlib.sha256(f"{op},{params}".encode()).hexdigest()[:16]


def shape_id(op: str, params: str) -> str:
    """Return the id of a signature without its device, to compare devices and ranks by."""
    return result_id(op, without_device(params))


def device_of(params: str) -> str:
    """Return the device of a signature's params; `?` where they name none."""
    match = _DEVICE.search(params)
    return match[1] if match else "?"


def without_device(params: str) -> str:
    """Return the params of a signature without its device."""
    return _DEVICE.sub("", params, count=1)


def instance_of(environ: Mapping[str, str]) -> Instance:
    """Return what this process is; the id is new in each."""
    return Instance(
        id=secrets.token_hex(8),
        pid=os.getpid(),
        user=encodable(_user()),
        host=encodable(socket.gethostname()),
        # Arguments may hold secrets.
        command=encodable(os.path.basename(sys.argv[0] or sys.executable)),  # noqa: PTH119 - a text, not a path
        rank=number_of(environ, "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"),
        local_rank=number_of(environ, "LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"),
        world_size=number_of(environ, "WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"),
        version=__version__,
        python=".".join(map(str, sys.version_info[:3])),
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
