"""Which file said the winners that this process only read: when that one is rewritten, its own lines count more."""

from collections.abc import Container, Iterable
from contextlib import suppress
from typing import NamedTuple

from tensorplay.database.entries import Entries
from tensorplay.database.filename import sibling_name
from tensorplay.database.known import NOTHING_KNOWN, Known
from tensorplay.database.line_file import resolved

__all__ = ["Parts", "Sources"]


class Parts(NamedTuple):
    """Winners in memory, as a file is to take them: those that count more than it, and those that it said itself."""

    entries: Entries
    known: Known


class Sources:
    """The configured file that each winner was read from last; whoever uses it holds the lock of the results.

    Names that lead to one file by symbolic links are one source.

    Parameters
    ----------
    build : str
        Digest of the validators, which names siblings.
    """

    def __init__(self, build: str) -> None:
        self._build = build
        # What is not noted one by one is of the first file that was read: every start may read a hundred thousand.
        self._first: str | None = None
        # Plain tuples, as in `Entries`.
        self._others: dict[tuple[str, str], str] = {}
        self._files: set[str] = set()

    def begin(self, path: str, files: Iterable[str]) -> str:
        """Note that winners of a configured file are about to be taken, from these files; return its source."""
        source, read = _real(path), [_real(file) for file in files]
        if read and self._first is None:
            self._first = source
        self._files.update(read)
        return source

    def is_first(self, source: str) -> bool:
        """Return whether winners of a source need not be noted, since it was read before all others."""
        return source == self._first

    def note(self, signature: tuple[str, str], source: str) -> None:
        """Note the source that a winner was read from."""
        if source == self._first:
            self._others.pop(signature, None)
        else:
            self._others[signature] = source

    def forget(self, signature: tuple[str, str]) -> None:
        """Forget where the winner of a signature was read, which is in memory no more."""
        self._others.pop(signature, None)

    def forget_all(self) -> None:
        """Forget where winners were read; none is in memory any more."""
        self._others.clear()

    def parts(self, entries: Entries, path: str, own: Container[tuple[str, str]]) -> Parts:
        """Return winners as a configured file is to take them; `own` are not as any file said them."""
        # A sibling may have been read under its own name.
        sources = frozenset(map(_real, (path, sibling_name(path, self._build))))
        files = sources & self._files
        if not files:
            return Parts(entries, NOTHING_KNOWN)
        given, known = Entries(), Entries()
        for entry in entries:
            signature = entry[:2]
            is_known = signature not in own and self._others.get(signature, self._first) in sources
            (known if is_known else given).append(entry)
        return Parts(given, Known(known, files))


def _real(path: str) -> str:
    with suppress(OSError):
        return resolved(path)
    return path
