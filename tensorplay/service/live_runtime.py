"""The runtime of this process as the service sees it: snapshots that are cheap to ask for, and counted changes.

No request holds a lock of the runtime while it serialises: what it reads is a copy made for its revision.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from tensorplay.errors import TensorPlayError
from tensorplay.gemm import Signature, parse_signature
from tensorplay.runtime import listeners as events
from tensorplay.runtime.rejections import Rejection
from tensorplay.runtime.settings import SettingState
from tensorplay.service.identity import result_id
from tensorplay.service.listing import ResultsIndex
from tensorplay.service.row import Row
from tensorplay.service.watched import WatchedContext

__all__ = ["KINDS", "Happening", "LiveRuntime"]

KINDS = ("settings", "results", "rejections", "untuned", "files", "jobs")
"""What has a revision of its own."""

_CHANGED_BY = {
    events.SETTING: ("settings",),
    events.TUNED: ("results", "untuned"),
    events.HEALED: ("results", "rejections"),
    events.REJECTED: ("rejections",),
    events.FALLBACK: ("rejections",),
    events.UNTUNED: ("untuned",),
    events.FILE: ("files", "results"),
}
_LOG_LENGTH = 1000
# Paths are never taken from a client, nor addresses.
_PATH_SETTINGS = frozenset({"dashboard", "filename", "untuned_filename", "verbose_filename"})


class Happening(NamedTuple):
    """One event of the runtime, as the log keeps it."""

    number: int
    time: str
    kind: str
    detail: dict[str, str]


class LiveRuntime:
    """A context, watched: of a process that multiplies, or of recorded files.

    Parameters
    ----------
    context : WatchedContext
        Whose results and settings are shown and changed.
    read_only : bool
        Whether every change is refused.
    """

    def __init__(self, context: WatchedContext, *, read_only: bool = False) -> None:
        self.context = context
        self.read_only = read_only
        self._lock = Lock()
        self._revisions: Counter[str] = Counter()
        self._index = ResultsIndex(-1, ())
        self._log: deque[Happening] = deque(maxlen=_LOG_LENGTH)
        self._count = 0
        self._subscribers: tuple[Callable[[Happening, tuple[str, ...]], None], ...] = ()
        self._remove = context.listeners.add(self._hear)

    def close(self) -> None:
        """Stop watching."""
        self._remove()

    def revision(self, kind: str) -> int:
        """Return a number that grows whenever something of a kind changes."""
        return self.context.results_revision() if kind == "results" else self._revisions[kind]

    def touch(self, kind: str, **detail: object) -> None:
        """Say that something of a kind changed that the runtime itself does not tell of."""
        self._happen(kind, (kind,), detail)

    def subscribe(self, callback: Callable[[Happening, tuple[str, ...]], None]) -> Callable[[], None]:
        """Call back after each event, on the thread that it happened on, with the kinds that changed."""
        with self._lock:
            self._subscribers += (callback,)

        def remove() -> None:
            with self._lock:
                self._subscribers = tuple(each for each in self._subscribers if each is not callback)

        return remove

    def index(self) -> ResultsIndex:
        """Return all winners as they are now."""
        revision = self.context.results_revision()
        if self._index.revision != revision:
            index = ResultsIndex(revision, self.context.recorded(), self._index)
            with self._lock:
                if index.revision >= self._index.revision:
                    self._index = index
            return index
        return self._index

    def settings(self) -> list[SettingState]:
        """Return every setting."""
        return self.context.settings()

    def is_locked(self, name: str) -> bool:
        """Return whether a setting cannot be changed by a client."""
        return self.read_only or name in _PATH_SETTINGS

    def set(self, name: str, value: object) -> None:
        """Change a setting; the same value changes nothing. `SettingError` when it is not allowed."""
        self.context.change_setting(name, value, origin="rest")

    def explain(self, row: Row) -> dict[str, Any]:
        """Return why a signature runs what it runs."""
        return dict(self.context.explain(row.op, row.params))

    def forget(self, row: Row) -> None:
        """Drop a winner."""
        self.context.forget(row.op, row.params)
        self.touch("results", action="forgotten", op=row.op, params=row.params)

    def override(self, row: Row, kernel: str) -> None:
        """Record a kernel of the client's choice; `TensorPlayError` when it cannot run."""
        self.context.override(row.op, row.params, kernel)
        self.touch("results", action="overridden", op=row.op, params=row.params)

    def rejections(self) -> list[Rejection]:
        """Return the recorded winners that did not run."""
        return self.context.get_rejections()

    def untuned(self) -> list[tuple[str, Signature, dict[str, int]]]:
        """Return id, signature and calls of each signature that ran without a winner, and has none yet."""
        index = self.index()
        return [
            (result_id(op, params), Signature(op, params), self.context.calls_of(op, params))
            for op, params in self.context.get_untuned()
            if index.get(result_id(op, params)) is None
        ]

    def tune(self, signature: Signature) -> dict[str, Any]:
        """Measure a signature now, on this thread, and return why it runs what it runs from now on.

        Raises
        ------
        TensorPlayError
            When it is no signature, or no backend here runs its device.
        """
        problem = parse_signature(*signature)
        self.context.tune(problem)
        return dict(self.context.explain(*signature))

    def log(self, since: int = 0) -> list[Happening]:
        """Return the events behind a number, oldest first."""
        with self._lock:
            return [happening for happening in self._log if happening.number > since]

    def validators(self) -> dict[str, list[tuple[str, str]]]:
        """Return the validators of each device that was met."""
        found = {}
        for device, _ in self.context.results_files():
            try:
                found[device] = self.context.validators_of(device)
            except TensorPlayError:
                continue
        return found

    def _hear(self, event: str, detail: Mapping[str, object]) -> None:
        self._happen(
            event, _CHANGED_BY.get(event, ()), {name: value for name, value in detail.items() if name != "report"}
        )

    def _happen(self, event: str, kinds: tuple[str, ...], detail: Mapping[str, object]) -> None:
        # Folders are nobody's business.
        shown = {
            name: (Path(str(value)).name if name == "path" else str(value))[:300] for name, value in detail.items()
        }
        with self._lock:
            self._count += 1
            happening = Happening(self._count, datetime.now(UTC).isoformat(timespec="milliseconds"), event, shown)
            self._log.append(happening)
            self._revisions.update(kinds)
            subscribers = self._subscribers
        for subscriber in subscribers:
            subscriber(happening, kinds)
