"""The state of one file that the runtime would read or write, found without touching it."""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tensorplay.cli.comparison import undecided
from tensorplay.cli.tuning_file import FileKind, parse_tuning_file
from tensorplay.database.csv_text import BadLine
from tensorplay.database.record import Validator
from tensorplay.database.store import ResultsStore
from tensorplay.database.validators import ValidatorMismatch

__all__ = ["FileCheck", "check_log", "check_results", "check_untuned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCheck:
    """What was found.

    Attributes
    ----------
    role : str
        What the runtime uses the file for.
    problem : str
        Why it cannot be read; empty when it can, or is not there.
    writable : bool
        Whether lines could be added: to a file that is not there, by making it.
    kind : FileKind or None
        None where nothing was read.
    winners, untuned : int
        How many signatures it holds of either.
    undecided : int
        Winners that were never really compared; known of this build's.
    differences : sequence of ValidatorMismatch
        How its validators differ from this build's.
    """

    role: str
    path: str
    exists: bool
    readable: bool
    writable: bool
    problem: str = ""
    kind: FileKind | None = None
    winners: int = 0
    untuned: int = 0
    undecided: int = 0
    bad_lines: Sequence[BadLine] = ()
    differences: Sequence[ValidatorMismatch] = ()

    @property
    def is_ours(self) -> bool:
        """Return whether this build's runtime takes what the file holds; a file that is not there holds nothing."""
        return self.readable and not self.differences


def check_results(role: str, path: str, validators: Sequence[Validator]) -> FileCheck:
    """Return the state of a results file; `validators` are this build's."""
    # Asked of the store, whose word counts: it takes a file whose very first line was cut for a new one.
    return _check(role, path, ResultsStore(path, validators).load().mismatches)


def check_untuned(path: str) -> FileCheck:
    """Return the state of an untuned file."""
    return _check("untuned", path, ())


def check_log(path: str) -> FileCheck:
    """Return the state of a diagnostic log, which is only ever appended to."""
    file = Path(os.path.realpath(path))
    exists = os.path.lexists(path)
    writable = os.access(file, os.W_OK) if file.exists() else _has_room(file.parent)
    return FileCheck(role="diagnostics", path=path, exists=exists, readable=os.access(path, os.R_OK), writable=writable)


def _check(role: str, path: str, differences: Sequence[ValidatorMismatch]) -> FileCheck:
    data, problem = _read(path)
    file = None if data is None else parse_tuning_file(path, data)
    return FileCheck(
        role=role,
        path=path,
        exists=os.path.lexists(path),
        readable=file is not None,
        writable=_takes_lines(path),
        problem=problem,
        kind=file.kind if file else None,
        winners=len(file.winners) if file else 0,
        untuned=len(file.untuned) if file else 0,
        undecided=len(undecided(path, file.winners, file.validators)) if file and not differences else 0,
        bad_lines=file.bad_lines if file else (),
        differences=differences,
    )


def _takes_lines(path: str) -> bool:
    """Return whether lines could be added to the file, which needs its lock beside it."""
    file = Path(os.path.realpath(path))
    if file.exists() and not (file.is_file() and os.access(file, os.W_OK)):
        return False
    lock = Path(f"{file}.lock")
    return os.access(lock, os.W_OK) if file.exists() and lock.exists() else _has_room(file.parent)


def _has_room(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _read(path: str) -> tuple[bytes | None, str]:
    """Return the bytes, None when there are none, and then why: empty for a file that is not there."""
    try:
        # Opening a named pipe would wait for a writer, and reading a device might never end.
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return None, "it is not a regular file"
        return Path(path).read_bytes(), ""
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, error.strerror or str(error)
