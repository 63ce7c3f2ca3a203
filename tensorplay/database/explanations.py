"""The explanations of a results file: how each winner was chosen, in a file beside it, one line a signature.

It is evidence for people, and nothing is decided by it. So its size is bounded: where it would pass the limit, lines
that a newer one of the same signature replaces go first, with those that nothing can read, and then the oldest.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tensorplay.database.explanation import LONGEST_LINE, Explanation, format_explanation, parse_explanation
from tensorplay.database.line_file import LOCK_WAIT_S, LineFile, open_locked, read_settled, replace_file, resolved
from tensorplay.errors import RecordError
from tensorplay.gemm import Signature

__all__ = ["MOST_BYTES", "ExplanationLog", "FoundExplanations", "explanations_name", "parse_explanations"]

MOST_BYTES = 8 << 20
"""Size of a file of explanations: those of some hundred signatures with all their candidates at least."""

# What is left after the oldest lines went, so that not every line afterwards drops one.
_LEFT_SHARE = 0.75


class FoundExplanations(NamedTuple):
    """What a file says.

    Attributes
    ----------
    explanations : tuple of Explanation
        The last line of each build and signature, in the order of the lines.
    superseded : int
        Lines that a later one of the same build and signature replaces.
    bad_lines : int
        Lines that are no explanation.
    """

    explanations: tuple[Explanation, ...]
    superseded: int
    bad_lines: int


def explanations_name(results: str) -> str:
    """Return the file beside a results file that its explanations are kept in."""
    path = Path(results)
    return str(path.with_name(f"{path.name.removesuffix('.csv')}.explain.jsonl"))


def parse_explanations(data: bytes) -> FoundExplanations:
    """Return what the bytes of a file say; no content raises."""
    newest, superseded, bad = _newest(_lines(data))
    return FoundExplanations(tuple(explanation for explanation, _ in newest), superseded, bad)


class ExplanationLog:
    """All access to one file of explanations; any number of logs, threads and processes may share it.

    Parameters
    ----------
    path : str
        The file; `explanations_name` says where it belongs. A relative path is relative to the working directory of
        now.
    lock_wait_s : float
        How long a write waits for other writers before it raises `TimeoutError`.
    most_bytes : int
        What the file may hold.
    """

    def __init__(self, path: str, *, lock_wait_s: float = LOCK_WAIT_S, most_bytes: int = MOST_BYTES) -> None:
        self._path = str(Path(path).absolute())
        self._lock_wait_s = lock_wait_s
        self._most_bytes = most_bytes

    @property
    def path(self) -> str:
        """Return the file, as an absolute path."""
        return self._path

    def read(self) -> FoundExplanations:
        """Return what the file says, nothing when it is missing; `OSError` when it cannot be read."""
        return parse_explanations(self._data())

    def find(self, signature: Signature, build: str) -> Explanation | None:
        """Return the last explanation of a signature by that build, None without one; `OSError` as from `read`."""
        for line in reversed(_lines(self._data())):
            explanation = _said_of(line, signature, build)
            if explanation is not None:
                return explanation
        return None

    def record(self, explanation: Explanation) -> None:
        """Put an explanation at the end of the file.

        Raises
        ------
        OSError
            When it cannot be written: no folder, no permission, no space, a lock held too long. Nothing torn stays
            behind.
        RecordError
            When the line would be too long to be read.
        """
        line = format_explanation(explanation).encode()
        if len(line) > LONGEST_LINE:
            raise RecordError(f"an explanation of {len(line)} bytes; allowed: {LONGEST_LINE}")
        with open_locked(resolved(self._path), self._lock_wait_s) as file:
            size = file.status().st_size
            if size + len(line) > self._most_bytes:
                replace_file(file.path, self._compacted(file.read(), line))
                return
            file.append(file.mend(_last_line(file, size), _is_whole) + line)

    def forget(self, signature: Signature, build: str) -> bool:
        """Drop the explanations of a signature by that build; return whether there were any; `OSError` as above."""
        if self.find(signature, build) is None:
            return False
        with open_locked(resolved(self._path), self._lock_wait_s) as file:
            kept = [line for line in _lines(file.read()) if _said_of(line, signature, build) is None]
            replace_file(file.path, _joined(kept))
        return True

    def forget_all(self, build: str) -> bool:
        """Drop every explanation by that build; return whether there were any; `OSError` as above."""
        mark = build.encode()
        if mark not in self._data():
            return False
        with open_locked(resolved(self._path), self._lock_wait_s) as file:
            lines = _lines(file.read())
            kept = [line for line in lines if mark not in line or not _is_by(line, build)]
            replace_file(file.path, _joined(kept))
        return len(kept) < len(lines)

    def _data(self) -> bytes:
        try:
            data, _ = read_settled(resolved(self._path))
        except FileNotFoundError:
            return b""
        return data

    def _compacted(self, data: bytes, line: bytes) -> bytes:
        newest, _, _ = _newest([*_lines(data), line.rstrip(b"\n")])
        kept = [each for _, each in newest]
        total = sum(map(len, kept)) + len(kept)
        if total > self._most_bytes:
            while len(kept) > 1 and total > self._most_bytes * _LEFT_SHARE:
                total -= len(kept.pop(0)) + 1
        return _joined(kept)


def _lines(data: bytes) -> list[bytes]:
    return [line for line in data.split(b"\n") if line.strip()]


def _joined(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _newest(lines: Iterable[bytes]) -> tuple[list[tuple[Explanation, bytes]], int, int]:
    """Return the last explanation of each build and signature with its line, and how many others there were."""
    newest: dict[tuple[str, Signature], tuple[Explanation, bytes]] = {}
    superseded = bad = 0
    for line in lines:
        try:
            explanation = parse_explanation(line)
        except RecordError:
            bad += 1
            continue
        # Taken out first, so that it moves to the end.
        superseded += newest.pop((explanation.build, explanation.signature), None) is not None
        newest[explanation.build, explanation.signature] = explanation, line
    return list(newest.values()), superseded, bad


def _said_of(line: bytes, signature: Signature, build: str) -> Explanation | None:
    """Return the explanation in a line if it is of that signature and build; others are not even parsed."""
    if signature.params.encode() not in line:
        return None
    try:
        explanation = parse_explanation(line)
    except RecordError:
        return None
    return explanation if (explanation.signature, explanation.build) == (signature, build) else None


def _is_by(line: bytes, build: str) -> bool:
    try:
        return parse_explanation(line).build == build
    except RecordError:
        return False


def _last_line(file: LineFile, size: int) -> bytes:
    """Return at least the last line, if it lacks its end; else nothing."""
    if not size or file.read(size - 1) == b"\n":
        return b""
    tail = file.read(max(size - LONGEST_LINE - 1, 0))
    return tail if b"\n" in tail else file.read()


def _is_whole(last_line: bytes) -> bool:
    try:
        parse_explanation(last_line)
    except RecordError:
        return False
    return True
