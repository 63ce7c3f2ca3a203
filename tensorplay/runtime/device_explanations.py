"""How the winners of one device were chosen: on disk, beside the results files, for every process to read."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from tensorplay.database.explanation import Explanation, explanation_of
from tensorplay.database.explanations import ExplanationLog, explanations_name
from tensorplay.database.line_file import is_held_here
from tensorplay.database.record import Entry
from tensorplay.errors import RecordError
from tensorplay.gemm import DEFAULT, Signature
from tensorplay.runtime.explained_times import ExplainedTime
from tensorplay.runtime.listeners import FILE, Listeners
from tensorplay.runtime.notice import logger
from tensorplay.typing import Clock

__all__ = ["DeviceExplanations", "explains"]

# Evidence is worth less waiting than a winner is; after a wait in vain, none for a while.
_LOCK_WAIT_S = 0.5
_BACK_OFF_S = 30.0
# A results file holds six significant digits.
_SAME_TIME = 1e-5


class DeviceExplanations:
    """The files of explanations of one device. No method raises for what a disk does; safe in any number of threads.

    Parameters
    ----------
    build : str
        Digest of the validators: explanations of other builds are passed over, whatever file they are in.
    results : callable
        Returns the results files that winners may come from now, the one that is written first.
    listeners : Listeners
        Hear what could not be written.
    clock : callable
        Seconds, for how long not to try again.
    """

    def __init__(
        self, build: str, results: Callable[[], Sequence[str]], listeners: Listeners, clock: Clock = time.monotonic
    ) -> None:
        self._build = build
        self._results = results
        self._listeners = listeners
        self._clock = clock
        self._not_before = clock()
        self._has_failed = False
        # Files with explanations that were to be written while the same thread was writing.
        self._pending: deque[tuple[str, Explanation]] = deque()

    def record(self, signature: Signature, report: Mapping[str, object], clocks: Mapping[str, int] | None) -> bool:
        """Put a measurement's report on disk; return whether that could be done. What could not stays in memory."""
        if self._clock() < self._not_before:
            return False
        path = explanations_name(self._results()[0])
        try:
            explanation = explanation_of(signature, self._build, report, clocks)
        except RecordError as error:
            self._tell_failure(path, error)
            return False
        is_recorded = self._is_recorded(path, explanation)
        self.save_pending()
        return is_recorded

    def save_pending(self) -> None:
        """Write what a signal handler could not, since it had interrupted a write of the same file."""
        for _ in range(len(self._pending)):
            try:
                path, explanation = self._pending.popleft()
            except IndexError:
                return
            self._is_recorded(path, explanation)

    def find(self, signature: Signature, entry: Entry | None) -> Explanation | None:
        """Return how the entry was chosen, by whichever process, or how the signature last was when there is no entry.

        None where no file says it: of an entry that was written by hand, or measured again since.
        """
        for results in self._results():
            path = explanations_name(results)
            try:
                found = ExplanationLog(path).find(signature, self._build)
            except OSError as error:
                self._tell_failure(path, error)
                continue
            if found is not None and (entry is None or explains(found, entry)):
                return found
        return None

    def forget(self, signature: Signature) -> None:
        """Drop the explanations of a signature."""
        for results in self._results():
            path = explanations_name(results)
            try:
                ExplanationLog(path, lock_wait_s=_LOCK_WAIT_S).forget(signature, self._build)
            except OSError as error:
                self._tell_failure(path, error)
        self.save_pending()

    def forget_all(self) -> None:
        """Drop every explanation of this build."""
        for results in self._results():
            path = explanations_name(results)
            try:
                ExplanationLog(path, lock_wait_s=_LOCK_WAIT_S).forget_all(self._build)
            except OSError as error:
                self._tell_failure(path, error)
        self.save_pending()

    def _is_recorded(self, path: str, explanation: Explanation) -> bool:
        """Return whether it is on disk, or will be when the write that a signal handler interrupted is done."""
        try:
            ExplanationLog(path, lock_wait_s=_LOCK_WAIT_S).record(explanation)
        except (OSError, RecordError) as error:
            if is_held_here(error):
                self._pending.append((path, explanation))
                return True
            self._tell_failure(path, error)
            return False
        self._has_failed = False
        return True

    def _tell_failure(self, path: str, error: Exception) -> None:
        if isinstance(error, TimeoutError):
            self._not_before = self._clock() + _BACK_OFF_S
        if not self._has_failed:
            self._has_failed = True
            logger.warning("the file %r, which says how winners were chosen, cannot be used: %s", path, error)
        self._listeners.tell(FILE, action="explanation failed", path=path, error=str(error))


def explains(explanation: Explanation | ExplainedTime, entry: Entry) -> bool:
    """Return whether the entry is what that measurement recorded."""
    if entry.kernel == DEFAULT and explanation.winner_ms is None:
        return entry.time_ms == 0
    if explanation.winner != entry.kernel or explanation.winner_ms is None:
        return False
    return abs(explanation.winner_ms - entry.time_ms) <= _SAME_TIME * entry.time_ms
