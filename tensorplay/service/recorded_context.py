"""Recorded files as a context that nothing can be changed in, for a service without a process that multiplies."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any

from tensorplay.database.csv_text import BadLine, parse_results, parse_untuned
from tensorplay.database.explanations import ExplanationLog, explanations_name
from tensorplay.database.line_file import read_settled
from tensorplay.database.record import Entry, Validator
from tensorplay.database.validators import digest
from tensorplay.database.written_line import WrittenLine, written_line
from tensorplay.gemm import Signature
from tensorplay.measure.report import SelectionReport
from tensorplay.runtime.archive import Recorded
from tensorplay.runtime.listeners import FILE, UNTUNED, Listeners
from tensorplay.runtime.merge_report import FileFault
from tensorplay.runtime.notice import logger
from tensorplay.runtime.rejections import Rejection
from tensorplay.runtime.resolution import Reason
from tensorplay.runtime.settings import Settings, SettingState
from tensorplay.runtime.winner_history import PastWinner, pasts_of_file
from tensorplay.service.unchanging import Unchanging

__all__ = ["RecordedContext"]

_DEVICE = re.compile(r"_dev([^_]+)")
_FOUND = (*(each.name for each in fields(SelectionReport)), "left_out", "clocks")
_Stamp = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    """What one file says, with its file of explanations; `stamp` tells one state of the two from another."""

    stamp: _Stamp = ()
    validators: Sequence[Validator] = ()
    bad_lines: Sequence[BadLine] = ()
    winners: Mapping[Signature, Entry] = field(default_factory=dict)
    untuned: Sequence[Signature] = ()
    explanations: Mapping[Signature, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def device(self) -> str:
        """Return the device of its first line: a file is of one device, but for those that people put together."""
        first = next(iter([*self.winners, *self.untuned]), None)
        return "?" if first is None else _device_of(first)


class RecordedContext(Unchanging):
    """The winners and untuned signatures of files, read again by `refresh` where they changed.

    Of a signature that is in several files, the file that is named last counts. Files of any build are shown, and
    none is ever written. Safe in any number of threads.

    Parameters
    ----------
    files : iterable of str
        Results and untuned files, told apart by what they say. One that is not there yet is empty.
    """

    def __init__(self, files: Iterable[str]) -> None:
        self.listeners = Listeners()
        self.plans: Mapping[Any, Any] = MappingProxyType({})
        self._settings = Settings({})
        self._lock = Lock()
        self._refreshing = Lock()
        self._contents = {str(Path(name).absolute()): _Content() for name in files}
        self._revision = 0
        self.refresh()

    def refresh(self) -> bool:
        """Read the files that changed, tell the listeners, and return whether there were any."""
        changed = []
        with self._refreshing:
            for path, before in self._held():
                stamp = _stamp_of(path)
                if stamp != before.stamp:
                    # Read before the lock is taken: who asks meanwhile is told what the file said before.
                    content = _content_of(path, stamp)
                    with self._lock:
                        self._contents[path] = content
                    changed.append(path)
            self._revision += bool(changed)
        for path in changed:
            self.listeners.tell(FILE, action="read", path=path)
            self.listeners.tell(UNTUNED, path=path)
        return bool(changed)

    def recorded(self) -> list[Recorded]:
        """Return every winner, with the origin `file`."""
        return list(self.each_recorded())

    def each_recorded(self) -> Iterator[Recorded]:
        """Yield what `recorded` returns, one by one, for whoever needs no list of it."""
        for entry in self._winners().values():
            yield Recorded(*entry, _device_of(entry.signature), "file")

    def results_revision(self) -> int:
        """Return a number that grows whenever a file changed."""
        return self._revision

    def results_files(self) -> list[tuple[str, str]]:
        """Return (device, file) for each file."""
        return [(content.device, path) for path, content in self._held()]

    def validators_of(self, device: str) -> list[tuple[str, str]]:
        """Return the validators that the device's files were written with."""
        found = dict.fromkeys(
            (name, value)
            for _, content in self._held()
            if content.device == device
            for name, value in content.validators
        )
        return list(found)

    def settings(self) -> list[SettingState]:
        """Return every setting at its default: nothing runs here that they could act on."""
        return self._settings.describe()

    def explain(self, op: str, params: str) -> dict[str, Any]:
        """Return the winner of a signature, and what the file of explanations says of it."""
        signature = Signature(op, params)
        entry, found = None, None
        for _, content in self._held():
            if signature in content.winners:
                entry, found = content.winners[signature], content.explanations.get(signature)
        if found is not None and entry is not None and found.get("winner") not in {None, entry.kernel}:
            # Written by hand since.
            found = None
        return {
            "op": op,
            "params": params,
            "kernel": entry.kernel if entry else None,
            "time_ms": entry.time_ms if entry else None,
            "origin": "file" if entry else None,
            "pinned": None,
            "not_measured": None,
            "background": None,
            "rejections": [],
            "calls": {},
            **dict.fromkeys(_FOUND),
            **(found or {}),
        }

    def stats(self) -> dict[str, int]:
        """Return zeros: nothing is counted in a file."""
        return {reason.value: 0 for reason in Reason} | {"waiting": 0, "measuring": 0}

    def calls_of(self, op: str, params: str) -> dict[str, int]:
        """Return no calls."""
        del op, params
        return {}

    def get_rejections(self) -> list[Rejection]:
        """Return none: what does not run is known only where it should."""
        return []

    def rejection_meetings(self, op: str, params: str, kernel: str) -> None:
        """Return that there were none."""
        del op, params, kernel

    def spent_tuning_seconds(self) -> float:
        """Return 0: nothing is measured here."""
        return 0.0

    def get_untuned(self) -> list[tuple[str, str]]:
        """Return the signatures of untuned files that no results file has a winner of."""
        winners = self._winners()
        found = dict.fromkeys(each for _, content in self._held() for each in content.untuned if each not in winners)
        return [(op, params) for op, params in found]

    def calls_by_signature(self) -> dict[Signature, int]:
        """Return no calls."""
        return {}

    def recorded_of(self, signatures: Iterable[Signature]) -> list[Recorded]:
        """Return the winners of some signatures."""
        wanted = set(signatures)
        return [each for each in self.recorded() if Signature(each.op, each.params) in wanted]

    def changed_since(self, revision: int) -> None:
        """Return that it is not known: a file that changed is read as a whole."""
        del revision

    def first_choices(self, signatures: Iterable[Signature]) -> dict[Signature, float]:
        """Return the first choices' times, in milliseconds, that the files of explanations tell."""
        told = self._explained(signatures)
        return {signature: each["first_choice_ms"] for signature, each in told.items() if each["first_choice_ms"]}

    def verdicts(self, signatures: Iterable[Signature]) -> dict[Signature, str]:
        """Return why winners were selected, where the files of explanations tell it."""
        return {signature: each["verdict"] for signature, each in self._explained(signatures).items()}

    def _explained(self, signatures: Iterable[Signature]) -> dict[Signature, Mapping[str, Any]]:
        found: dict[Signature, Mapping[str, Any]] = {}
        held = [content for _, content in self._held()]
        for signature in signatures:
            for content in held:
                entry, told = content.winners.get(signature), content.explanations.get(signature)
                if entry is not None:
                    found.pop(signature, None)
                    if told and told["winner"] == entry.kernel:
                        found[signature] = told
        return found

    def written_at(self, op: str, params: str) -> WrittenLine | None:
        """Return the file and line that the winner of a signature stands in now; the file that is named last counts."""
        signature = Signature(op, params)
        for path, content in reversed(self._held()):
            if signature in content.winners:
                return written_line(path, content.winners[signature])
        return None

    def past_winners(self, op: str, params: str) -> list[PastWinner]:
        """Return the winners that the files tell of, oldest first."""
        signature, pasts = Signature(op, params), []
        for path, content in self._held():
            entry = content.winners.get(signature)
            if entry is not None:
                told = pasts_of_file(explanations_name(path), signature, digest(content.validators))
                pasts += [past for past in told if past.kernel != entry.kernel]
                pasts.append(PastWinner(None, entry.kernel, entry.time_ms, "file"))
        return pasts

    def file_faults(self) -> list[FileFault]:
        """Return the lines of results files that could not be read."""
        return [
            FileFault(content.device, path, (), content.bad_lines)
            for path, content in self._held()
            if content.bad_lines
        ]

    def _held(self) -> list[tuple[str, _Content]]:
        with self._lock:
            return list(self._contents.items())

    def _winners(self) -> dict[Signature, Entry]:
        return {signature: entry for _, content in self._held() for signature, entry in content.winners.items()}


def _device_of(signature: Signature) -> str:
    match = _DEVICE.search(signature.params)
    return match[1] if match else "?"


def _stamp_of(path: str) -> _Stamp:
    stamps = []
    for each in (path, explanations_name(path)):
        try:
            status = Path(each).stat()
        except (OSError, ValueError):
            stamps.append((0, 0, 0))
        else:
            stamps.append((status.st_ino, status.st_mtime_ns, status.st_size))
    return tuple(stamps)


def _content_of(path: str, stamp: _Stamp) -> _Content:
    """Return what a file says; one that cannot be read is logged, and says nothing."""
    try:
        data, _ = read_settled(path)
    except FileNotFoundError:
        return _Content(stamp=stamp)
    except (OSError, ValueError) as error:
        logger.warning("%r cannot be read: %s", path, error)
        return _Content(stamp=stamp)
    results = parse_results(data)
    if not (results.entries or results.validators):
        return _Content(stamp=stamp, untuned=parse_untuned(data).signatures)
    return _Content(
        stamp=stamp,
        validators=results.validators,
        bad_lines=results.bad_lines,
        winners={entry.signature: entry for entry in results.entries},
        explanations=_explanations_of(path, digest(results.validators)),
    )


def _explanations_of(path: str, build: str) -> Mapping[Signature, Mapping[str, Any]]:
    try:
        found = ExplanationLog(explanations_name(path)).read().explanations
    except OSError as error:
        logger.warning("how the winners of %r were chosen cannot be read: %s", path, error)
        return {}
    return MappingProxyType(
        {
            each.signature: {key: value for key, value in each.to_dict().items() if key != "build"}
            for each in found
            if each.build == build
        }
    )
