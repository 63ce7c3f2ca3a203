"""Kernels that took down a process of the offline tuner: known here too, so that no other process meets that end."""

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from tensorplay.database.killers import KillerLog, killers_name
from tensorplay.errors import ResultsFileWarning
from tensorplay.gemm import Signature
from tensorplay.locks import ForkSafeLock
from tensorplay.runtime.notice import warn

__all__ = ["KnownKillers"]

# What changes with a file: when it was written, its size, and which it is.
_Stamp = tuple[int, int, int]


class _Read(NamedTuple):
    stamp: _Stamp | None
    kernels: dict[Signature, frozenset[str]]


class KnownKillers:
    """The killers beside results files, each file read once and again when it changes; safe in any number of threads.

    Nothing is raised for what a disk does: a file that cannot be read is warned of once, and names nothing.
    """

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._files: dict[str, _Read] = {}

    def of(self, results: str, signature: Signature) -> frozenset[str]:
        """Return the kernels that must not run for a signature, as far as was read; opens its file once only.

        Parameters
        ----------
        results : str
            The results file beside which they are kept.
        signature : Signature
            Of the product.
        """
        known = self._files.get(results)
        return (self.look_again(results) if known is None else known.kernels).get(signature, frozenset())

    def look_again(self, results: str) -> dict[Signature, frozenset[str]]:
        """Return all of a file's, reading it unless it is as it was; asking that takes some microseconds."""
        path = killers_name(results)
        with self._lock:
            known, stamp = self._files.get(results), _stamp(path)
            if known is None or known.stamp != stamp:
                known = self._files[results] = _Read(stamp, {} if stamp is None else _kernels(path))
            return known.kernels


def _stamp(path: str) -> _Stamp | None:
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _kernels(path: str) -> dict[Signature, frozenset[str]]:
    found: defaultdict[Signature, set[str]] = defaultdict(set)
    try:
        for killer in KillerLog(path).read():
            found[killer.signature].add(killer.kernel)
    except OSError as error:
        warn(f"cannot read the killers in {path!r}: {error}", ResultsFileWarning)
    return {signature: frozenset(kernels) for signature, kernels in found.items()}
