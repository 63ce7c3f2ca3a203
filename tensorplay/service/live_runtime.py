"""The runtime of this process as the service sees it: snapshots that are cheap to ask for, and counted changes.

No request holds a lock of the runtime while it serialises: what it reads is a copy made for its revision.
"""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tensorplay.gemm import Signature, parse_signature
from tensorplay.locks import ForkSafeLock
from tensorplay.measure.report import CandidateReport, SelectionReport, Verdict
from tensorplay.runtime import listeners as events
from tensorplay.runtime.archive import Recorded
from tensorplay.runtime.kept_winner import why_kept
from tensorplay.runtime.plans import plan_count
from tensorplay.runtime.rejections import Rejection
from tensorplay.runtime.settings import SettingState
from tensorplay.service.baseline import Baseline
from tensorplay.service.current_index import CurrentIndex
from tensorplay.service.current_untuned import CurrentUntuned
from tensorplay.service.known_verdicts import KnownVerdicts
from tensorplay.service.met_devices import MetDevices
from tensorplay.service.shown_text import encodable
from tensorplay.service.watched import WatchedContext
from tensorplay.service.worker import Worker

__all__ = ["FILE_SETTINGS", "KINDS", "OUTCOMES", "Happening", "LiveRuntime", "Tuned", "without_folders"]

KINDS = ("settings", "results", "rejections", "untuned", "files", "jobs")
"""What has a revision of its own."""

_CHANGED_BY = {
    events.SETTING: ("settings",),
    events.TUNED: ("results", "untuned"),
    events.HEALED: ("results", "rejections"),
    events.REJECTED: ("rejections",),
    events.FALLBACK: ("rejections",),
    events.UNTUNED: ("untuned",),
    events.WINNER: ("results", "rejections", "untuned"),
    events.FILE: ("files", "results"),
}
_PINNED = "its winner does not run any more, and is pinned: unpin it, and it is measured"
_NOT_REPLACED = "its winner does not run any more, and another one was not found"
_LOG_LENGTH = 1000
_FOLDERS = re.compile(r"/(?:[^/\s'\",;]+/)+")
FILE_SETTINGS = frozenset({"filename", "untuned_filename", "verbose_filename"})
"""Settings that hold paths: a client sees the name of the file alone."""
# Paths are never taken from a client, nor addresses.
_LOCKED_SETTINGS = FILE_SETTINGS | {"dashboard"}


OUTCOMES = ("selected", "screening", "race", "confirmation", "not_reached", "failed")
"""What became of candidates: selected, dropped by a stage, not reached within the time for measuring, or failed."""

_OUTCOME_OF = {
    "screening": "screening",
    "race": "race",
    "confirmation": "confirmation",
    "not confirmed": "confirmation",
    "not measured": "not_reached",
}
"""By how the reason begins for which a candidate was dropped; every other reason is a failure."""


class Happening(NamedTuple):
    """One event of the runtime, as the log keeps it."""

    number: int
    time: str
    kind: str
    detail: dict[str, str]


class Tuned(NamedTuple):
    """What became of a signature that was to be measured.

    Attributes
    ----------
    not_measured : str or None
        Why it could not be.
    is_skipped : bool
        Whether it was left as it is, since it has a winner that runs.
    """

    not_measured: str | None
    is_skipped: bool


class LiveRuntime:
    """A context, watched: of a process that multiplies, or of recorded files.

    Parameters
    ----------
    context : WatchedContext
        Whose results and settings are shown and changed.
    read_only : bool
        Whether every change is refused.
    environ : mapping, optional
        What settings go back to that somebody had changed before this was made.

    Attributes
    ----------
    worker : Worker
        The threads for what takes long.
    winners : CurrentIndex
        All winners.
    untuned : CurrentUntuned
        The signatures without one.
    met : MetDevices
        The devices that were met.
    verdicts : KnownVerdicts
        Why winners were selected.
    """

    def __init__(
        self, context: WatchedContext, *, read_only: bool = False, environ: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.context = context
        self.read_only = read_only
        self._lock = ForkSafeLock()
        self._revisions: Counter[str] = Counter()
        self.worker = Worker()
        self.winners = CurrentIndex(context, self.worker)
        self.untuned = CurrentUntuned(context, self.winners, self.worker, lambda: self._revisions["untuned"], _now)
        self.met = MetDevices(context, self.worker)
        self.verdicts = KnownVerdicts(context, self.met)
        self._baseline = Baseline(context.settings(), environ)
        self._outcomes: Counter[str] = Counter()
        self._log: deque[Happening] = deque(maxlen=_LOG_LENGTH)
        self._count = 0
        self._subscribers: tuple[Callable[[Happening, tuple[str, ...]], None], ...] = ()
        self._remove = context.listeners.add(self._hear)

    def leave(self) -> None:
        """Hear nothing more: what a forked child does, where nobody else may be asked."""
        self._remove()

    def close(self) -> None:
        """Stop watching."""
        self.leave()
        self.worker.close()

    def revision(self, kind: str) -> int:
        """Return a number that grows whenever something of a kind changes."""
        return self.context.results_revision() if kind == "results" else self._revisions[kind]

    def touch(self, kind: str, **detail: object) -> None:
        """Say that something of a kind changed that the runtime itself does not tell of."""
        self._happen(kind, (kind,), detail)

    def subscribe(self, callback: Callable[[Happening, tuple[str, ...]], None]) -> Callable[[], None]:
        """Call back after each event, on the thread that it happened on, with the kinds that changed.

        One event after the other, in the order of their numbers: what is called must wait for nobody.
        """
        with self._lock:
            self._subscribers += (callback,)

        def remove() -> None:
            with self._lock:
                self._subscribers = tuple(each for each in self._subscribers if each is not callback)

        return remove

    def settings(self) -> list[SettingState]:
        """Return every setting."""
        return self.context.settings()

    def is_locked(self, name: str) -> bool:
        """Return whether a setting cannot be changed by a client."""
        return self.read_only or name in _LOCKED_SETTINGS

    def reresolve(self) -> int:
        """Let every product be decided anew at its next call; return how many were ready to run."""
        count = plan_count(self.context.plans)
        self.context.reresolve()
        self._happen("reresolved", (), {"plans": count})
        return count

    def outcomes(self) -> dict[str, int]:
        """Return what became of the candidates that were measured since the service started, by `OUTCOMES`."""
        with self._lock:
            return {outcome: self._outcomes[outcome] for outcome in OUTCOMES}

    def revisions(self) -> dict[str, int]:
        """Return the revision of each kind."""
        return {kind: self.revision(kind) for kind in KINDS}

    def set(self, name: str, value: object) -> None:
        """Change a setting for good; the same value changes nothing. `SettingError` when it is not allowed."""
        self.context.change_setting(name, value, origin="rest")

    def reset(self, name: str) -> None:
        """Put a setting back to what the environment says, else to its default; `SettingError` when there is none."""
        former = self._baseline.of(name)
        (now,) = (each for each in self.settings() if each.name == name)
        if (now.value, now.origin) == former:
            return
        self.context.change_setting(name, former.value, origin=former.origin)
        if now.value == former.value:
            # The runtime tells of values alone, and its origin is shown too.
            self._happen(events.SETTING, ("settings",), {"name": name, "old": now.origin, "new": former.origin})

    def rejections(self) -> list[Rejection]:
        """Return the recorded winners that did not run."""
        return self.context.get_rejections()

    def tune(self, signature: Signature, *, again: bool = False) -> Tuned:
        """Measure a signature now, on this thread; what has a winner that runs only with `again`.

        Raises
        ------
        TensorPlayError
            When it is no signature, no backend here runs its device, or its winner is pinned.
        """
        before = self.context.recorded_of([signature])
        is_settled = self.context.measure_beside(parse_signature(*signature), again=again)
        if isinstance(is_settled, Verdict):
            return Tuned(why_kept(is_settled), is_skipped=False)
        after = self.context.recorded_of([signature])
        # Its file may have been read just now.
        is_same = (
            _choices(before) == _choices(after) if before else any(each.origin != "measured here" for each in after)
        )
        if not again and is_settled and is_same:
            return Tuned(None, is_skipped=True)
        reason = self.context.explain(*signature).get("not_measured")
        if reason is None and after and not (again or is_settled):
            reason = _PINNED if any(each.pinned for each in after) else _NOT_REPLACED
        return Tuned(None if reason is None else str(reason), is_skipped=False)

    def log(self, since: int = 0) -> list[Happening]:
        """Return the events behind a number, oldest first."""
        with self._lock:
            return [happening for happening in self._log if happening.number > since]

    def _hear(self, event: str, detail: Mapping[str, object]) -> None:
        report = detail.get("report")
        if isinstance(report, SelectionReport):
            with self._lock:
                self._outcomes.update(map(_outcome, report.candidates))
        self._happen(
            event, _CHANGED_BY.get(event, ()), {name: value for name, value in detail.items() if name != "report"}
        )

    def _happen(self, event: str, kinds: tuple[str, ...], detail: Mapping[str, object]) -> None:
        shown = {name: _shown(name, value) for name, value in detail.items()}
        now = _now()
        if event == events.UNTUNED and "params" in detail:
            self.untuned.note(str(detail["op"]), str(detail["params"]), now)
        with self._lock:
            self._count += 1
            happening = Happening(self._count, now, event, shown)
            self._log.append(happening)
            self._revisions.update(kinds)
            # Not after the lock: another thread's event would be told before this one.
            for subscriber in self._subscribers:
                subscriber(happening, kinds)


def _choices(recorded: Iterable[Recorded]) -> list[tuple[str, float]]:
    return [(each.kernel, each.time_ms) for each in recorded]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _outcome(candidate: CandidateReport) -> str:
    if candidate.dropped is None:
        return "selected"
    return _OUTCOME_OF.get(candidate.dropped.partition(":")[0], "failed")


def _shown(name: str, value: object) -> str:
    """Return a detail of an event as text; folders are nobody's business."""
    text = encodable(str(value)[:2000])
    return (Path(text).name if name == "path" else without_folders(text))[:300]


def without_folders(text: str) -> str:
    """Return a text without the folders that it names, which are nobody's business."""
    return _FOLDERS.sub("", encodable(text))
