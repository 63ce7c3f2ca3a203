"""The place of a process among those that a launcher started together on this host."""

import hashlib
import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["LONGEST_JOB", "Placement", "number_of", "placement_of"]

LONGEST_JOB = 40
"""Letters of a job's name, so that the address of a socket in its folder stays short enough."""

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")


class Placement(NamedTuple):
    """One process among those of a job on this host.

    Attributes
    ----------
    job : str
        The same for all processes that were started together; letters, digits, `-` and `_` alone.
    local_rank : int
        Its number on this host; 0 is the one that people and programs talk to.
    rank : int
        Its number on all hosts.
    local_size : int or None
        How many there are on this host, when the launcher says so.
    """

    job: str
    local_rank: int
    rank: int
    local_size: int | None = None

    @property
    def is_first(self) -> bool:
        """Return whether this is the process that answers for all of them on this host."""
        return self.local_rank == 0


class _Launcher(NamedTuple):
    local_rank: str
    rank: str
    local_size: str


_LAUNCHERS = (
    _Launcher("LOCAL_RANK", "RANK", "LOCAL_WORLD_SIZE"),
    _Launcher("SLURM_LOCALID", "SLURM_PROCID", "SLURM_NTASKS_PER_NODE"),
    _Launcher("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
)


def placement_of(environ: Mapping[str, str], parent: int) -> Placement | None:
    """Return the place that the variables of torchrun, SLURM or Open MPI tell, None when none of them started this.

    Parameters
    ----------
    environ : mapping
        The environment.
    parent : int
        The process that started this one: it names the job when no variable does.
    """
    for launcher in _LAUNCHERS:
        local_rank = number_of(environ, launcher.local_rank)
        if local_rank is not None:
            rank = number_of(environ, launcher.rank)
            return Placement(
                job=_job(environ, parent),
                local_rank=local_rank,
                rank=local_rank if rank is None else rank,
                local_size=number_of(environ, launcher.local_size),
            )
    return None


def number_of(environ: Mapping[str, str], *names: str) -> int | None:
    """Return the first of some variables that holds a number of at most nine digits, None when none does."""
    for name in names:
        text = environ.get(name, "")
        if text.isascii() and text.isdigit() and len(text) < 10:
            return int(text)
    return None


def _job(environ: Mapping[str, str], parent: int) -> str:
    run = environ.get("TORCHELASTIC_RUN_ID", "")
    # What torchrun says when it was given no name: all its jobs on this host would be one.
    if run and run != "none":
        return _clean(run)
    if slurm := environ.get("SLURM_JOB_ID", ""):
        step = environ.get("SLURM_STEP_ID", "")
        return _clean(f"{slurm}-{step}" if step else slurm)
    if namespace := environ.get("PMIX_NAMESPACE", ""):
        return _clean(namespace)
    return f"parent-{parent}"


def _clean(name: str) -> str:
    """Return a name that is safe as that of a folder; two names never become the same."""
    clean = _FOREIGN.sub("_", name)
    if clean == name and len(name) <= LONGEST_JOB:
        return name
    digest = hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:16]
    return f"{clean[: LONGEST_JOB - 17]}-{digest}"
