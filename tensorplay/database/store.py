"""The results file of one device: read at start, appended to for each winner, rewritten on demand.

The configured file is this build's when its validators say so. Another build's is left byte for byte as it is,
and a sibling is used, whose name carries a digest of our validators; both are read. Which of the two is written
is decided again under the lock of each write, since others may have put another file in its place.
"""

import errno
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import NamedTuple

from tensorplay.database.csv_text import (
    VALIDATOR_START,
    BadLine,
    ParsedResults,
    format_entry,
    format_results,
    parse_results,
)
from tensorplay.database.entries import Entries, Raw
from tensorplay.database.filename import sibling_name
from tensorplay.database.known import NOTHING_KNOWN, Known
from tensorplay.database.line_file import (
    LOCK_WAIT_S,
    FileTooLargeError,
    LineFile,
    keep_rejected,
    open_locked,
    read_settled,
    replace_file,
    resolved,
)
from tensorplay.database.record import Entry, Validator, check_entry, check_validators
from tensorplay.database.results import Results
from tensorplay.database.validators import ValidatorMismatch, compare, digest

__all__ = ["LoadReport", "ResultsStore"]

_HEAD = 4096
_Keys = frozenset[tuple[str, str]]


class LoadReport(NamedTuple):
    """What a load found.

    Attributes
    ----------
    path : str
        The configured file.
    entries : list of Entry
        One for each signature, of the configured file and the sibling; the file that is written has the last word.
    bad_lines : tuple of BadLine
        Lines of files of this build that could not be read, each with its file.
    mismatches : tuple of ValidatorMismatch
        How the configured file differs from this build.
    refused : bool
        Whether it was left unread for that.
    missing : bool
        Whether there is no configured file.
    files : tuple of str
        The files whose entries were taken.
    problems : tuple of str
        What kept a file from being read, or its lines from being trusted, in words.
    """

    path: str
    entries: Entries
    bad_lines: tuple[BadLine, ...]
    mismatches: tuple[ValidatorMismatch, ...]
    refused: bool
    missing: bool
    files: tuple[str, ...]
    problems: tuple[str, ...]


class _Look(NamedTuple):
    """One file as a load found it; no `parsed` when it is missing, refused or unreadable."""

    path: str
    parsed: ParsedResults | None = None
    mismatches: tuple[ValidatorMismatch, ...] = ()
    problem: str = ""

    @property
    def is_ours(self) -> bool:
        return not (self.mismatches or self.problem)


class _Verified(NamedTuple):
    """A file as it was when we last knew it to be ours."""

    device: int
    inode: int
    size: int
    changed_ns: int
    head: bytes


class ResultsStore:
    """All access to one configured results file; any number of stores, threads and processes may share it.

    Parameters
    ----------
    path : str
        The configured file. Relative paths are relative to the working directory of now.
    validators : sequence of Validator
        This build's, in the order that a new file gets; `RecordError` when no file could hold them.
    lock_wait_s : float
        How long a write waits for other writers before it raises `TimeoutError`.
    """

    def __init__(self, path: str, validators: Sequence[Validator], *, lock_wait_s: float = LOCK_WAIT_S) -> None:
        self._validators = check_validators(validators)
        self._header = format_results(self._validators, ()).encode()
        self._main = str(Path(path).absolute())
        self._sibling = sibling_name(self._main, digest(self._validators))
        self._lock_wait_s = lock_wait_s
        self._uses_sibling = False
        self._verified: dict[str, _Verified] = {}

    @property
    def target(self) -> str:
        """Return the file that new winners go to, as far as is known."""
        return self._sibling if self._uses_sibling else self._main

    def load(self) -> LoadReport:
        """Read the configured file and the sibling; nothing raises, nothing is written."""
        main, sibling = self._look(self._main), self._look(self._sibling)
        self._uses_sibling = not main.is_ours or (main.parsed is not None and not os.access(self._main, os.W_OK))
        looks = (main, sibling) if self._uses_sibling else (sibling, main)
        newest = Results()
        bad_lines: list[BadLine] = []
        for path, parsed in ((look.path, look.parsed) for look in looks):
            if parsed is not None:
                newest.merge(parsed.entries, overwrite=True)
                bad_lines += (line._replace(path=path) for line in parsed.bad_lines)
        problems = [look.problem for look in (main, sibling) if look.problem]
        if sibling.mismatches:
            differing = "; ".join(map(str, sibling.mismatches))
            problems.append(
                f"{sibling.path!r} has our name but another build's validators, and is not read: {differing}"
            )
        return LoadReport(
            path=self._main,
            entries=newest.unsorted(),
            bad_lines=tuple(bad_lines),
            mismatches=main.mismatches,
            refused=bool(main.mismatches),
            missing=main.parsed is None and main.is_ours,
            files=tuple(look.path for look in looks if look.parsed is not None),
            problems=tuple(problems),
        )

    def append(self, entry: Entry) -> None:
        """Put a winner on disk; when this returns, it is there.

        Raises
        ------
        OSError
            When it is not: no folder, no permission, no space, a lock held too long. Nothing torn stays behind.
        RecordError
            When no file could hold the entry.
        """
        line = format_entry(check_entry(entry)).encode()
        self._write(lambda file: self._append(file, line))

    def rewrite(
        self, entries: Iterable[Entry], *, drop: Collection[tuple[str, str]] = (), known: Known = NOTHING_KNOWN
    ) -> None:
        """Replace the file by a sorted one with these entries, and those that others put there meanwhile.

        Lines that could not be read are moved to the rejected lines; comments stay, at the top.

        Parameters
        ----------
        entries : iterable of Entry
            They count more than the file's.
        drop : collection of Signature
            What the file holds of these is left out, in the configured file and the sibling.
        known : Known
            They count less than the file's, and are put there only when a file that said them is gone as a whole.

        Raises
        ------
        OSError
            When it could not be done; the file is then as before.
        RecordError
            When no file could hold one of the entries.
        """
        given = Entries(map(check_entry, entries))
        dropped = frozenset(drop)
        self._write(lambda file: self._replace(file, given, dropped, known))
        other = self._main if self._uses_sibling else self._sibling
        if dropped and self._holds(other, dropped):
            with self._open(other) as file:
                self._replace(file, (), dropped, NOTHING_KNOWN)

    def _look(self, path: str) -> _Look:
        try:
            real = resolved(path)
            data, status = read_settled(real)
        except FileNotFoundError:
            return _Look(path)
        except OSError as error:
            return _Look(path, problem=f"{path!r} cannot be read: {error}")
        parsed = self._parse(data)
        if mismatches := self._differences(parsed):
            return _Look(path, mismatches=mismatches)
        if parsed.validators:
            # No time of change: others may have written since, so the first write looks at what they added.
            self._verified[real] = _Verified(status.st_dev, status.st_ino, len(data), -1, data[:_HEAD])
        return _Look(path, parsed)

    def _parse(self, data: bytes) -> ParsedResults:
        # A writer that was killed at its very first line leaves the beginning of our own header: a new file.
        return parse_results(b"" if self._is_torn_header(data) else data)

    def _is_torn_header(self, data: bytes) -> bool:
        return len(data) < len(self._header) and self._header.startswith(data)

    def _differences(self, parsed: ParsedResults) -> tuple[ValidatorMismatch, ...]:
        return () if parsed.is_blank else compare(self._validators, parsed.validators)

    def _holds(self, path: str, signatures: _Keys) -> bool:
        parsed = self._look(path).parsed
        return parsed is not None and any(entry[:2] in signatures for entry in parsed.entries)

    def _write(self, action: Callable[[LineFile], bool]) -> None:
        """Let the action write the configured file, or the sibling when that one is not ours to write."""
        if not self._uses_sibling:
            # Where the folder is the obstacle and not the file, the sibling meets it too, and raises.
            with suppress(PermissionError, IsADirectoryError, FileTooLargeError), self._open(self._main) as file:
                if action(file):
                    return
        with self._open(self._sibling) as file:
            if not action(file):
                message = "the file holds another build's validators; remove it, or set another results file"
                raise OSError(errno.EEXIST, message, self._sibling)
        self._uses_sibling = True

    def _open(self, path: str) -> AbstractContextManager[LineFile]:
        return open_locked(resolved(path), self._lock_wait_s)

    def _append(self, file: LineFile, line: bytes) -> bool:
        tail, header = self._tail_since_verified(file), b""
        if tail is None:
            tail = file.read()
            if self._is_torn_header(tail):
                tail, header = b"", self._header[len(tail) :]
            elif self._differences(parsed := parse_results(tail)):
                return False
            elif parsed.is_blank:
                header = self._header
        file.append(file.mend(tail, _is_whole) + header + line)
        self._remember(file.path, file.status(), file.read(0, _HEAD))
        return True

    def _replace(self, file: LineFile, given: Iterable[Entry], dropped: _Keys, known: Known) -> bool:
        data = file.read()
        parsed = self._parse(data)
        if self._differences(parsed):
            return False
        # Plain tuples, as in `Entries`.
        kept: dict[tuple[str, str], Raw] = {entry[:2]: entry[:] for entry in parsed.entries if entry[:2] not in dropped}
        if known.entries and any(self._is_gone(path, file.path, parsed) for path in known.files):
            kept = {entry[:2]: entry[:] for entry in map(check_entry, known.entries)} | kept
        kept.update((entry[:2], entry[:]) for entry in given)
        text = format_results(self._validators, kept.values(), parsed.comments).encode()
        if text != data:
            keep_rejected(file.path, (line.raw for line in parsed.bad_lines))
            self._remember(file.path, replace_file(file.path, text), text[:_HEAD])
        return True

    def _is_gone(self, path: str, written: str, parsed: ParsedResults) -> bool:
        """Return whether a file is missing, blank or no longer ours, as far as that is seen from the written one."""
        now = parsed if path == written else self._look(path).parsed
        return now is None or now.is_blank

    def _remember(self, path: str, status: os.stat_result, head: bytes) -> None:
        self._verified[path] = _Verified(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, head)

    def _tail_since_verified(self, file: LineFile) -> bytes | None:
        """Return what was appended since we knew the file to be ours; None when it must be verified anew."""
        before, now = self._verified.get(file.path), file.status()
        if before is None or (now.st_dev, now.st_ino) != (before.device, before.inode):
            return None
        if (now.st_size, now.st_mtime_ns) == (before.size, before.changed_ns):
            return b""
        # Somebody wrote: one of us at the end, or an editor anywhere. The tail starts at the line end we knew.
        tail = file.read(before.size - 1)
        if file.read(0, len(before.head)) != before.head or not tail.startswith(b"\n") or VALIDATOR_START in tail:
            return None
        return tail


def _is_whole(last_line: bytes) -> bool:
    return not parse_results(last_line).bad_lines
