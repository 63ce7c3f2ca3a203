"""What the memory knows and a results file does not say yet: winners to be put there, lines to be taken out."""

import os
from collections.abc import Iterable
from itertools import chain
from weakref import WeakSet

from tensorplay.database.known import NOTHING_KNOWN, Known
from tensorplay.database.record import Entry
from tensorplay.database.store import ResultsStore
from tensorplay.gemm import Signature

__all__ = ["Unwritten"]


class Unwritten:
    """Changes that wait to be written; whoever uses it holds the lock of the results.

    Every method leaves it valid when a signal handler comes back to it on the same thread: what the handler adds while
    a file is being written is written right after that. In a forked child it is empty: what the parent has not written
    yet, the parent writes, and a child that did so too might undo what others have recorded since.
    """

    def __init__(self) -> None:
        self._entries: dict[Signature, Entry] = {}
        self._stale: set[Signature] = set()
        # Plain tuples, as in `Entries`: a person may drop all winners at once.
        self._dropped: set[tuple[str, str]] = set()
        _all.add(self)

    def __bool__(self) -> bool:
        return bool(self._entries or self._stale or self._dropped)

    @property
    def drops(self) -> bool:
        """Return whether winners that were dropped from memory are still to be dropped from files."""
        return bool(self._dropped)

    def add(self, entry: Entry) -> None:
        """Let a winner be written."""
        self._entries[entry.signature] = entry

    def supersede(self, signature: Signature) -> None:
        """Let the line that a winner replaces not stay behind."""
        self._stale.add(signature)

    def drop(self, signatures: Iterable[tuple[str, str]]) -> None:
        """Let winners be written no more, and be taken out of the files."""
        for op, params in signatures:
            self._entries.pop(Signature(op, params), None)
            self._dropped.add((op, params))

    def discard(self, signature: Signature) -> None:
        """Let a winner be written no more: a file says another one, which counts."""
        self._entries.pop(signature, None)

    def forget_drops(self) -> None:
        """Let files keep their lines: they are not the files that these were to be taken out of."""
        self._stale.clear()
        self._dropped.clear()

    def is_dropped(self, signature: Signature) -> bool:
        """Return whether what a file says of a signature does not count any more."""
        return signature in self._dropped

    def write(self, store: ResultsStore) -> None:
        """Write all, also what comes meanwhile; `OSError` as from the store, and what was not written then stays."""
        while self:
            if self._stale or self._dropped:
                self._rewrite(store, ())
            else:
                for entry in list(self._entries.values()):
                    # A signal handler may have written it, or forked meanwhile.
                    if self._entries.get(entry.signature) is entry:
                        store.append(entry)
                        self._note_written((entry,))

    def write_with(self, store: ResultsStore, entries: Iterable[Entry], known: Known = NOTHING_KNOWN) -> None:
        """Write all and further winners, in one rewriting of the file, which knows better about what it said itself."""
        self._rewrite(store, entries, known)
        self.write(store)

    def _rewrite(self, store: ResultsStore, entries: Iterable[Entry], known: Known = NOTHING_KNOWN) -> None:
        waiting, stale, dropped = tuple(self._entries.values()), tuple(self._stale), tuple(self._dropped)
        store.rewrite(chain(entries, waiting), drop=dropped, known=known)
        self._note_written(waiting)
        self._stale.difference_update(stale)
        self._dropped.difference_update(dropped)

    def _note_written(self, entries: Iterable[Entry]) -> None:
        # A signal handler on this thread may have written it, or a newer one, meanwhile. And what has been written
        # must not be so again at the end, when another process may have replaced it.
        for entry in entries:
            if self._entries.get(entry.signature) is entry:
                del self._entries[entry.signature]

    def _clear(self) -> None:
        self._entries.clear()
        self._stale.clear()
        self._dropped.clear()


_all: WeakSet[Unwritten] = WeakSet()


def _clear_all_in_child() -> None:
    for unwritten in list(_all):
        unwritten._clear()


os.register_at_fork(after_in_child=_clear_all_in_child)
