"""The untuned log: the signatures that ran without a winner, each once, over threads, processes and reruns."""

import os
from pathlib import Path

from tensorplay.database.csv_text import ParsedUntuned, format_untuned_line, parse_untuned
from tensorplay.database.line_file import LOCK_WAIT_S, LineFile, open_locked, read_settled, resolved
from tensorplay.database.record import check_signature
from tensorplay.gemm import Signature

__all__ = ["UntunedLog"]


class UntunedLog:
    """All access to one untuned file; any number of logs, threads and processes may share it.

    Parameters
    ----------
    path : str
        The file. A relative path is relative to the working directory of now.
    lock_wait_s : float
        How long a write waits for other writers before it raises `TimeoutError`.
    """

    def __init__(self, path: str, *, lock_wait_s: float = LOCK_WAIT_S) -> None:
        self._path = str(Path(path).absolute())
        self._lock_wait_s = lock_wait_s
        # What the file held up to byte `_end`, and which device and inode it was.
        self._seen: set[Signature] = set()
        self._identity = (-1, -1)
        self._end = 0

    @property
    def path(self) -> str:
        """Return the file, as an absolute path."""
        return self._path

    def record(self, signature: Signature) -> bool:
        """Put a signature into the file unless it is there; return whether this call did.

        Raises
        ------
        OSError
            When it cannot be written: no folder, no permission, no space, a lock held too long.
        RecordError
            When it is no signature.
        """
        check_signature(signature)
        if signature in self._seen:
            return False
        with open_locked(resolved(self._path), self._lock_wait_s) as file:
            tail = self._catch_up(file)
            if signature in self._seen:
                return False
            file.append(file.mend(tail, _is_whole) + format_untuned_line(signature).encode())
            self._end = file.status().st_size
            self._seen.add(signature)
        return True

    def read(self) -> ParsedUntuned:
        """Return what the file says, nothing when it is missing; `OSError` when it cannot be read."""
        try:
            data, _ = read_settled(resolved(self._path))
        except FileNotFoundError:
            return parse_untuned(b"")
        parsed = parse_untuned(data)
        return parsed._replace(bad_lines=tuple(line._replace(path=self._path) for line in parsed.bad_lines))

    def _catch_up(self, file: LineFile) -> bytes:
        """Learn what others appended since the last look, and return it; everything when the file is another."""
        status = file.status()
        start = max(self._end - 1, 0)
        tail = file.read(start)
        if not self._is_continued(status, tail):
            self._seen, self._identity, start = set(), (status.st_dev, status.st_ino), 0
            tail = file.read()
        self._seen.update(parse_untuned(tail).signatures)
        self._end = start + len(tail)
        return tail

    def _is_continued(self, status: os.stat_result, tail: bytes) -> bool:
        # The tail starts at the line end that we knew: an edited, torn or shorter file has something else there.
        same_file = (status.st_dev, status.st_ino) == self._identity
        return same_file and (self._end == 0 or tail.startswith(b"\n"))


def _is_whole(last_line: bytes) -> bool:
    return not parse_untuned(last_line).bad_lines
