"""The winners of one device: in memory for every call, and on disk as soon as they are recorded."""

import time
from collections.abc import Callable, Iterable, Sequence

from tensorplay.database.filename import sibling_name
from tensorplay.database.record import Entry, Validator
from tensorplay.database.results import Results
from tensorplay.database.store import LoadReport, ResultsStore
from tensorplay.database.validators import digest
from tensorplay.errors import ResultsFileWarning
from tensorplay.gemm import Signature
from tensorplay.locks import ForkSafeLock
from tensorplay.runtime.device_explanations import DeviceExplanations
from tensorplay.runtime.listeners import FILE, Listeners
from tensorplay.runtime.notice import warn
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
    """

    def __init__(
        self,
        device: str,
        validators: Sequence[Validator],
        path: str,
        listeners: Listeners,
        clock: Clock = time.monotonic,
    ) -> None:
        self.device = device
        self.validators = tuple(validators)
        self.results = Results()
        self.origins: dict[Signature, str] = {}
        self.explanations = DeviceExplanations(digest(self.validators), self._files, listeners, clock)
        self._listeners = listeners
        self._lock = ForkSafeLock()
        self._pending: dict[Signature, Entry] = {}
        self._clock = clock
        self._not_before = clock()
        self._path = path
        self._store = self._store_of(path)
        self._loaded = False
        self._read: dict[str, None] = {}
        self._warned_of_write = False

    @property
    def path(self) -> str:
        """The configured file; its `target` may be a sibling."""
        return self._path

    @property
    def target(self) -> str:
        """The file that winners go to."""
        with self._lock:
            return self._store.target

    def redirect(self, path: str) -> None:
        """Send later winners to another file. A file that was read already is not read again."""
        with self._lock:
            if path != self._path:
                self._path = path
                self._store = self._store_of(path)

    def ensure_loaded(self) -> None:
        """Read the file, the first time only."""
        if self._loaded:
            return
        with self._lock:
            if not self._loaded:
                self._merge(self._store.load(), overwrite=False)
                self._loaded = True

    def read(self, path: str, *, overwrite: bool) -> bool:
        """Merge a file; return whether it exists and its validators match."""
        with self._lock:
            return self._merge(ResultsStore(path, self.validators).load(), overwrite=overwrite)

    def record(self, entry: Entry, origin: str) -> None:
        """Keep a winner, and append it to the file."""
        with self._lock:
            self._keep(entry, origin)
            if self._clock() >= self._not_before:
                self._write(self._append_pending)

    def replace(self, entry: Entry, origin: str) -> None:
        """Keep a winner in place of a stale one, and rewrite the file without the stale line."""
        with self._lock:
            self._keep(entry, origin)
            self._write(lambda: self._store.rewrite(tuple(self._pending.values())))

    def exchange(self, met: Entry | None, entry: Entry, origin: str) -> bool:
        """Keep a winner in place of what was met before; return False, and leave all, when that has changed since."""
        with self._lock:
            if self.results.get(entry.signature) != met:
                return False
            if met is None:
                self.record(entry, origin)
            else:
                self.replace(entry, origin)
            return True

    def remove(self, signature: Signature) -> bool:
        """Drop a winner from memory and file, and how it was chosen; return whether there was one in memory."""
        self.explanations.forget(signature)
        with self._lock:
            known = self.results.remove(signature)
            self.origins.pop(signature, None)
            self._pending.pop(signature, None)
            self._write(lambda: self._store.rewrite(tuple(self._pending.values()), drop={signature}))
            return known

    def write(self, path: str | None = None) -> bool:
        """Rewrite a file with every winner, merged with what it holds already; return whether it was written."""
        with self._lock:
            store = self._store if path is None else ResultsStore(path, self.validators)
            return self._write(lambda: store.rewrite(self.results.entries()), clear=path is None)

    def save_pending(self) -> bool:
        """Write what an earlier attempt could not; return whether nothing is left unwritten."""
        with self._lock:
            return not self._pending or self._write(self._append_pending)

    def _store_of(self, path: str) -> ResultsStore:
        return ResultsStore(path, self.validators, lock_wait_s=GEMM_LOCK_WAIT_S)

    def _files(self) -> tuple[str, ...]:
        """Return the results files that winners may come from, the one that is written first."""
        with self._lock:
            sibling = sibling_name(self._path, digest(self.validators))
            return tuple(dict.fromkeys((self._store.target, self._path, sibling, *self._read)))

    def _keep(self, entry: Entry, origin: str) -> None:
        self.results.put(entry)
        self.origins[entry.signature] = origin
        self._pending[entry.signature] = entry

    def _append_pending(self) -> None:
        for signature, entry in list(self._pending.items()):
            self._store.append(entry)
            # A signal handler on this thread may have written it, or a newer one, meanwhile.
            if self._pending.get(signature) is entry:
                del self._pending[signature]

    def _write(self, action: Callable[[], None], *, clear: bool = False) -> bool:
        try:
            action()
        except OSError as error:
            if isinstance(error, TimeoutError):
                self._not_before = self._clock() + BACK_OFF_S
            if not self._warned_of_write:
                self._warned_of_write = True
                warn(
                    f"cannot write {self._path!r} ({error}); winners stay in memory and are written when it can be",
                    ResultsFileWarning,
                )
            self._listeners.tell(FILE, action="write failed", path=self._path, error=str(error))
            return False
        self._warned_of_write = False
        self._not_before = self._clock()
        if clear:
            self._pending.clear()
        self._listeners.tell(FILE, action="written", path=self._store.target)
        return True

    def _merge(self, report: LoadReport, *, overwrite: bool) -> bool:
        merged = self.results.merge(report.entries, overwrite=overwrite)
        self._read.update(dict.fromkeys(report.files))
        self._listeners.tell(FILE, action="read", path=report.path, merged=merged, refused=report.refused)
        for message in _complaints(report):
            warn(message, ResultsFileWarning)
        return report.path in report.files


def _complaints(report: LoadReport) -> Iterable[str]:
    """Yield one warning text for each thing that is wrong with a file."""
    yield from report.problems
    if report.refused:
        if any(mismatch.found for mismatch in report.mismatches):
            differing = "; ".join(str(mismatch) for mismatch in report.mismatches)
            why = f"was written by another build or device: {differing}"
        else:
            why = "has no validator lines, so that nothing says which build wrote it, or whether it is a results file"
        yield f"{report.path!r} {why}. It is left as it is, and winners of this build go to a sibling file"
    if report.bad_lines:
        shown = "; ".join(f"line {line.number}: {line.reason}" for line in report.bad_lines[:3])
        more = f" and {len(report.bad_lines) - 3} more" if len(report.bad_lines) > 3 else ""
        yield f"{report.path!r} has lines that are not used: {shown}{more}"
