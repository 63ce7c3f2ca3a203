"""The winners of one device: in memory for every call, and on disk as soon as they are recorded."""

import time
from collections.abc import Callable, Iterable, Sequence

from tensorplay.database.csv_text import is_same_as_text
from tensorplay.database.entries import Entries, Raw
from tensorplay.database.filename import sibling_name
from tensorplay.database.known import NOTHING_KNOWN, Known
from tensorplay.database.line_file import is_held_here
from tensorplay.database.record import Entry, Validator
from tensorplay.database.results import Results
from tensorplay.database.store import LoadReport, ResultsStore
from tensorplay.database.validators import digest
from tensorplay.errors import ResultsFileWarning, TensorPlayError
from tensorplay.gemm import Signature
from tensorplay.locks import ForkSafeLock
from tensorplay.runtime.complaints import complaints
from tensorplay.runtime.device_explanations import DeviceExplanations
from tensorplay.runtime.journal import Journal
from tensorplay.runtime.listeners import FILE, Listeners
from tensorplay.runtime.merge_report import FileFault, MergeReport
from tensorplay.runtime.notice import warn
from tensorplay.runtime.sources import Parts, Sources
from tensorplay.runtime.unwritten import Unwritten
from tensorplay.runtime.winner_history import WinnerHistory
from tensorplay.typing import Clock

__all__ = ["DeviceResults"]

# A product waits no longer for other writers; what it could not write then is written later, at exit at the latest.
GEMM_LOCK_WAIT_S = 2.0
# After a wait in vain products do not wait again so soon: a holder that is stuck would cost each of them as much.
BACK_OFF_S = 30.0


class DeviceResults:
    """Results, file and validators of one device.

    No method raises for what a file or disk does: it warns, tells the listeners, and keeps what could not be
    written until the next write succeeds. Safe in any number of threads.

    A pinned winner is kept as it is, whatever is measured or read: until it is unpinned, everything that would
    change it leaves it alone, and what a person asks for in spite of that raises `TensorPlayError`.
    """

    def __init__(
        self,
        device: str,
        validators: Sequence[Validator],
        path: str,
        listeners: Listeners,
        clock: Clock = time.monotonic,
        journal: Journal | None = None,
    ) -> None:
        self.device = device
        self.validators = tuple(validators)
        self.results = Results()
        self.origins: dict[Signature, str] = {}
        self.build = digest(self.validators)
        self.explanations = DeviceExplanations(self.build, self._files, listeners, clock)
        self.history = WinnerHistory()
        self._journal = journal or Journal()
        self._pinned: set[Signature] = set()
        self._faults: dict[str, FileFault] = {}
        self._listeners = listeners
        self._lock = ForkSafeLock()
        listeners.defer_under(self._lock)
        self._unwritten = Unwritten()
        self._sources = Sources(self.build)
        self._clock = clock
        self._not_before = clock()
        self._path = path
        self._store = self._store_of(path)
        self.is_loaded = False
        self._read: dict[str, None] = {}
        self._warned_of_write = False

    @property
    def path(self) -> str:
        """The configured file; its `target` may be a sibling."""
        return self._path

    @property
    def target(self) -> str:
        """The file that winners go to."""
        # No lock, here and in `_files`: who only looks does not wait for a writer that waits for a file.
        return self._store.target

    def redirect(self, path: str) -> None:
        """Send later winners to another file. A file that was read already is not read again."""
        with self._listeners.afterwards(), self._lock:
            if path != self._path:
                if self._unwritten.drops:
                    # The last chance to take them out of that file.
                    self._write(self._save)
                self._unwritten.forget_drops()
                self._path = path
                self._store = self._store_of(path)

    def ensure_loaded(self) -> None:
        """Read the file, the first time only."""
        if self.is_loaded:
            return
        with self._listeners.afterwards(), self._lock:
            if not self.is_loaded:
                self._merge(self._store.load(), overwrite=False)
                self.is_loaded = True

    def read(self, path: str, *, overwrite: bool) -> bool:
        """Merge a file; return whether it exists and its validators match."""
        with self._listeners.afterwards(), self._lock:
            return self._merge(ResultsStore(path, self.validators).load(), overwrite=overwrite)

    def is_pinned(self, signature: Signature) -> bool:
        """Return whether a winner is kept as it is."""
        return signature in self._pinned

    def record(self, entry: Entry, origin: str) -> None:
        """Keep a winner, and append it to the file."""
        with self._listeners.afterwards(), self._lock:
            self._check_free(entry.signature)
            self._keep(entry, origin)
            self._save_in_time()

    def replace(self, entry: Entry, origin: str, noted: str = "healed") -> None:
        """Keep a winner in place of another, a stale one if nothing else is noted, and rewrite the file without it."""
        with self._listeners.afterwards(), self._lock:
            self._keep(entry, origin, noted)
            self._unwritten.supersede(entry.signature)
            self._save_in_time()

    def exchange(self, met: Entry | None, entry: Entry, origin: str, *, noted: str = "healed") -> bool:
        """Keep a winner in place of what was met before; return False, and leave all, when that has changed since."""
        with self._listeners.afterwards(), self._lock:
            if self.results.get(entry.signature) != met or entry.signature in self._pinned:
                return False
            if met is None:
                self.record(entry, origin)
            else:
                self.replace(entry, origin, noted)
            return True

    def remove(self, signature: Signature) -> bool:
        """Drop a winner from memory and file, and how it was chosen; return whether there was one in memory."""
        self._check_free(signature)
        self.explanations.forget(signature)
        with self._listeners.afterwards(), self._lock:
            self._check_free(signature)
            known = self.results.remove(signature)
            self.origins.pop(signature, None)
            self._sources.forget(signature)
            self._unwritten.drop((signature,))
            self._journal.note(signature)
            self._save_in_time()
            return known

    def write(self, path: str | None = None, *, known_elsewhere: Known = NOTHING_KNOWN) -> bool:
        """Rewrite a file with every winner, merged with what it holds already; return whether it was written.

        Of winners that were only read from that very file, its present lines count, also those that are gone; a file
        that is gone as a whole gets them all, and what is `known_elsewhere`.
        """
        with self._listeners.afterwards(), self._lock:
            entries, own = self._parts(path or self._path)
            known = known_elsewhere.with_own(own)
            if path is None:
                return self._write(lambda: self._unwritten.write_with(self._store, entries, known))
        # Not under the lock: no product waits for those that write another file.
        store = ResultsStore(path, self.validators)
        return self._write(lambda: store.rewrite(entries, known=known), path)

    def save_pending(self) -> bool:
        """Write what an earlier attempt could not; return whether nothing is left unwritten."""
        with self._listeners.afterwards(), self._lock:
            self.explanations.save_pending()
            return not self._unwritten or self._write(self._save)

    def _parts(self, path: str) -> Parts:
        return self._sources.parts(self.results.unsorted(), path, self.origins)

    def _store_of(self, path: str) -> ResultsStore:
        return ResultsStore(path, self.validators, lock_wait_s=GEMM_LOCK_WAIT_S)

    def _files(self) -> tuple[str, ...]:
        """Return the results files that winners may come from, the one that is written first."""
        sibling = sibling_name(self._path, self.build)
        return tuple(dict.fromkeys((self._store.target, self._path, sibling, *tuple(self._read))))

    def _check_free(self, signature: Signature) -> None:
        if signature in self._pinned:
            raise TensorPlayError(f"the winner of {signature.params} is pinned; unpin it first")

    def _keep(self, entry: Entry, origin: str, noted: str = "") -> None:
        signature = entry.signature
        before = self.results.get(signature)
        # First, so that it is ours, and not the file's, at no moment less than it is in memory.
        self.origins[signature] = origin
        self.results.put(entry)
        self._unwritten.add(entry)
        self.history.note(entry, noted or origin, before)
        self._journal.note(signature)

    def _take(self, entries: Iterable[Entry], source: str, *, overwrite: bool) -> MergeReport:
        """Merge entries; what is pinned stays, and is counted when it would have changed."""
        # Plain tuples, as in `Entries`.
        newest: dict[tuple[str, str], Raw] = {each[:2]: each[:] for each in entries}
        report = None
        try:
            report = self._take_newest(newest.values(), source, overwrite=overwrite)
            return report
        finally:
            # Some of them may be there when a signal handler raised in the middle.
            if report is None or report.merged or report.replaced:
                self._journal.note_many()

    def _take_newest(self, newest: Iterable[Raw], source: str, *, overwrite: bool) -> MergeReport:
        """Merge one entry of each signature; it is for the caller to note in the journal that something changed."""
        fresh: list[Raw] = []
        newer: list[Raw] = []
        kept = pinned = 0
        for raw in newest:
            entry = Entry._make(raw)
            signature = entry.signature
            before = self.results.get(signature)
            if before is None:
                fresh.append(raw)
                self._sources.note(raw[:2], source)
            elif before == entry or is_same_as_text(before, entry):
                self._sources.note(raw[:2], source)
            else:
                is_pinned = signature in self._pinned
                pinned += is_pinned
                kept += not (is_pinned or overwrite)
                if overwrite and not is_pinned:
                    newer.append(raw)
                    self.history.note(entry, "file", before)
        # What a signal handler on this thread has measured since it was looked for is in memory now.
        merged = self.results.merge(fresh, overwrite=overwrite)
        self.results.merge(newer, overwrite=True)
        for op, params, _, _ in newer:
            # No origin is that of a file.
            self.origins.pop(Signature(op, params), None)
            self._unwritten.discard(Signature(op, params))
            self._sources.note((op, params), source)
        return MergeReport(merged, len(newer), kept + len(fresh) - merged, pinned)

    def _save_in_time(self) -> None:
        """Write what is unwritten, unless a lock was waited for in vain just before."""
        if self._clock() >= self._not_before:
            self._write(self._save)

    def _save(self) -> None:
        self._unwritten.write(self._store)

    def _write(self, action: Callable[[], None], other: str | None = None) -> bool:
        """Do what writes the file, or an `other` one, whose failures say nothing about the file."""
        path = other or self._path
        try:
            action()
        except OSError as error:
            if is_held_here(error):
                # Whoever holds it, under the signal handler that this is in, writes it when it is done.
                return False
            if other is None and isinstance(error, TimeoutError):
                self._not_before = self._clock() + BACK_OFF_S
            if other is not None or not self._warned_of_write:
                self._warned_of_write |= other is None
                kept = "where they are" if other else "in memory and are written when it can be"
                warn(f"cannot write {path!r} ({error}); winners stay {kept}", ResultsFileWarning)
            self._listeners.tell(FILE, action="write failed", path=path, error=str(error))
            return False
        if other is None:
            self._warned_of_write = False
            self._not_before = self._clock()
        self._listeners.tell(FILE, action="written", path=other or self._store.target)
        return True

    def _merge(self, report: LoadReport, *, overwrite: bool) -> bool:
        entries = report.entries
        if self._unwritten.drops and report.path == self._path:
            entries = Entries(entry for entry in entries if not self._unwritten.is_dropped(entry.signature))
        source = self._sources.begin(report.path, report.files)
        if overwrite or not self._sources.is_first(source):
            taken = self._take(entries, source, overwrite=overwrite)
            merged = taken.merged + taken.replaced
        else:
            # What every start does, perhaps with a hundred thousand entries.
            merged = self.results.merge(entries, overwrite=False)
            if merged:
                self._journal.note_many()
        if report.mismatches or report.bad_lines:
            self._faults[report.path] = FileFault(self.device, report.path, report.mismatches, report.bad_lines)
        else:
            self._faults.pop(report.path, None)
        self._read.update(dict.fromkeys(report.files))
        self._listeners.tell(FILE, action="read", path=report.path, merged=merged, refused=report.refused)
        for message in complaints(report):
            warn(message, ResultsFileWarning)
        return report.path in report.files
