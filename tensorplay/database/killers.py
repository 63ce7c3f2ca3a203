"""The killers of a results file: kernels that took the process which measured them down, so that none tries again.

A line is `op,params,kernel,how`, in a file of its own beside the results, so that a results file stays what any
reader of results expects.
"""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from tensorplay.database.line_file import LOCK_WAIT_S, open_locked, read_settled, resolved
from tensorplay.errors import RecordError
from tensorplay.gemm import Signature
from tensorplay.gemm.kernel_id import is_kernel_id
from tensorplay.gemm.signature import is_signature

__all__ = ["Death", "Killer", "KillerLog", "killers_name", "parse_killers"]


class Death(StrEnum):
    """How the process ended that ran a kernel."""

    DIED = "died"
    """It was gone at once, by a signal or an exit."""
    HUNG = "hung"
    """It said nothing any more, and was ended."""
    POISONED = "poisoned"
    """It lived, but nothing ran on its device any more."""


class Killer(NamedTuple):
    """A kernel that must not run for a signature, and what it did."""

    op: str
    params: str
    kernel: str
    death: Death

    @property
    def signature(self) -> Signature:
        """Return the key of the problem."""
        return Signature(self.op, self.params)


def killers_name(results: str) -> str:
    """Return the file beside a results file that its killers are kept in."""
    path = Path(results)
    return str(path.with_name(f"{path.name.removesuffix('.csv')}.killers.csv"))


def parse_killers(data: bytes) -> tuple[Killer, ...]:
    """Return the killers that the lines name, each once; lines that name none are passed over."""
    return tuple(dict.fromkeys(_killers(data)))


def _killers(data: bytes) -> Iterable[Killer]:
    for line in data.removeprefix(b"\xef\xbb\xbf").splitlines():
        try:
            op, params, kernel, death = line.decode("ascii").split(",")
            found = Death(death)
        except ValueError:
            continue
        if is_signature(op, params) and is_kernel_id(kernel):
            yield Killer(op, params, kernel, found)


class KillerLog:
    """All access to one file of killers; any number of logs, threads and processes may share it.

    Parameters
    ----------
    path : str
        The file; `killers_name` says where it belongs. A relative path is relative to the working directory of now.
    lock_wait_s : float
        How long a write waits for other writers before it raises `TimeoutError`.
    """

    def __init__(self, path: str, *, lock_wait_s: float = LOCK_WAIT_S) -> None:
        self._path = str(Path(path).absolute())
        self._lock_wait_s = lock_wait_s

    @property
    def path(self) -> str:
        """Return the file, as an absolute path."""
        return self._path

    def read(self) -> tuple[Killer, ...]:
        """Return the killers in the file, none when it is missing; `OSError` when it cannot be read."""
        try:
            data, _ = read_settled(resolved(self._path))
        except FileNotFoundError:
            return ()
        return parse_killers(data)

    def record(self, killer: Killer) -> bool:
        """Put a killer into the file unless it is there; return whether this call did.

        Raises
        ------
        OSError
            When it cannot be written.
        RecordError
            When signature or kernel are none.
        """
        if not (is_signature(killer.op, killer.params) and is_kernel_id(killer.kernel)):
            raise RecordError(f"{tuple(killer)} is no killer; allowed: op and params of a signature, and a kernel id")
        with open_locked(resolved(self._path), self._lock_wait_s) as file:
            tail = file.read()
            if killer in parse_killers(tail):
                return False
            file.append(file.mend(tail, lambda last: bool(parse_killers(last))) + ",".join(killer).encode() + b"\n")
        return True
