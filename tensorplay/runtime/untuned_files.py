"""The files that untuned signatures are written to: at once where possible, later where a lock is held too long."""

import time
from collections import OrderedDict
from collections.abc import Callable

from tensorplay.database.line_file import is_held_here
from tensorplay.database.untuned import UntunedLog
from tensorplay.errors import ResultsFileWarning
from tensorplay.gemm import Signature
from tensorplay.locks import ForkSafeLock
from tensorplay.runtime.device_results import BACK_OFF_S, GEMM_LOCK_WAIT_S
from tensorplay.runtime.newest import keep_newest
from tensorplay.runtime.notice import warn

__all__ = ["MOST_PENDING", "UntunedFiles"]

MOST_PENDING = 1 << 16
"""Signatures that wait for one file that cannot be written, the newest of them; an older one is met anew, or lost."""


class UntunedFiles:
    """Untuned signatures on their way to files; safe in any number of threads.

    A product that met a signature waits for a file's lock, but not long: whoever holds it may be stopped. The files are
    left alone for a while then, and what could not be written is so with the next signature, or at the end.

    Parameters
    ----------
    clock : callable
        Seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logs: dict[str, UntunedLog] = {}
        self._pending: dict[str, OrderedDict[Signature, None]] = {}
        self._not_before: dict[str, float] = {}
        self._warned: set[str] = set()
        self._lock = ForkSafeLock()

    def record(self, path: str, signature: Signature) -> None:
        """Write a signature to a file, once; warns with `ResultsFileWarning` when it cannot be."""
        with self._lock:
            log = self._logs.setdefault(path, UntunedLog(path, lock_wait_s=GEMM_LOCK_WAIT_S))
            pending = self._pending.setdefault(path, OrderedDict())
            pending[signature] = None
            keep_newest(pending, MOST_PENDING)
            is_time = self._clock() >= self._not_before.get(path, 0.0)
        if is_time:
            self._write(path, log)

    def save_pending(self) -> None:
        """Write what an earlier attempt could not."""
        with self._lock:
            logs = [(path, log) for path, log in self._logs.copy().items() if self._pending.get(path)]
        for path, log in logs:
            self._write(path, log)

    def _write(self, path: str, log: UntunedLog) -> None:
        pending = self._pending[path]
        # Again and again, since a signal handler may have met further ones while this thread held the file's lock.
        while batch := list(pending):
            for signature in batch:
                if not self._is_written(path, log, signature):
                    return
                pending.pop(signature, None)
        self._warned.discard(path)

    def _is_written(self, path: str, log: UntunedLog, signature: Signature) -> bool:
        try:
            log.record(signature)
        except OSError as error:
            if not is_held_here(error):
                self._tell_failure(path, error)
            return False
        return True

    def _tell_failure(self, path: str, error: OSError) -> None:
        if isinstance(error, TimeoutError):
            self._not_before[path] = self._clock() + BACK_OFF_S
        if path not in self._warned:
            self._warned.add(path)
            kept = f"signatures, the newest {MOST_PENDING}, are written when it can be"
            warn(f"cannot write the untuned file {path!r} ({error}); {kept}", ResultsFileWarning)
