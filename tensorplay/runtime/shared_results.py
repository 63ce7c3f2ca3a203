"""The winners of one device beside those of others, where one file has lines of several."""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

from tensorplay.database.csv_text import each_validator
from tensorplay.database.entries import Entries
from tensorplay.database.filename import sibling_name
from tensorplay.database.line_file import read_settled, resolved
from tensorplay.database.record import Validator
from tensorplay.database.store import LoadReport, ResultsStore
from tensorplay.database.validators import compare
from tensorplay.gemm.problem import CPU
from tensorplay.runtime.journal import Journal
from tensorplay.runtime.listeners import Listeners
from tensorplay.runtime.steered_results import SteeredResults
from tensorplay.typing import Clock

__all__ = ["FileHead", "SharedResults"]

# Nobody has more devices, and whoever made up the file may have named more.
_DEVICE = re.compile(rf"_dev({CPU}|0|[1-9][0-9]{{0,3}})(?=[_,])".encode())


class FileHead(NamedTuple):
    """What a results file says of itself: its validators, and the devices that its lines seem to name."""

    validators: tuple[Validator, ...] = ()
    devices: frozenset[str] = frozenset()

    @classmethod
    def read(cls, path: str) -> Self:
        """Return what a file says, nothing where it cannot be read: whoever loads it tells why."""
        try:
            data, _ = read_settled(resolved(path))
        except OSError:
            return cls()
        return cls(tuple(each_validator(data)), frozenset(name.decode() for name in _DEVICE.findall(data)))


class SharedResults(SteeredResults):
    """Results of one device, which reads for others too. Safe in any number of threads."""

    def __init__(
        self,
        device: str,
        validators: Sequence[Validator],
        path: str,
        listeners: Listeners,
        clock: Clock = time.monotonic,
        journal: Journal | None = None,
    ) -> None:
        super().__init__(device, validators, path, listeners, clock, journal)
        # What each file said of devices that were not met; the file may be gone when they are.
        self._guests: dict[str, LoadReport] = {}

    def is_of(self, head: FileHead) -> bool:
        """Return whether a file is of this build and device."""
        return not compare(self.validators, head.validators)

    def read_with(self, others: Sequence["SharedResults"], path: str, *, overwrite: bool) -> bool:
        """Merge a file that other devices match too, each winner into the results of its own device.

        What belongs to none of the others is kept here, perhaps until its device is met. Returns what `read` returns.
        """
        theirs = frozenset(each.device for each in others)
        for each in others:
            each._read_own(path, overwrite=overwrite)
        with self._listeners.afterwards(), self._lock:
            report = ResultsStore(path, self.validators).load()
            rest = Entries(entry for entry in report.entries if _device_of(entry.params) not in theirs)
            guests = Entries(entry for entry in rest if _device_of(entry.params) != self.device)
            self._guests[path] = report._replace(entries=guests)
            if not guests:
                # Then no device that is met waits for this one's lock.
                del self._guests[path]
            return self._merge(report._replace(entries=rest), overwrite=overwrite)

    def take_over(self, other: "SharedResults") -> None:
        """Take the winners of this device that another one of its build read before this one was met, and their pins.

        They stay there too until `let_go`.
        """
        with self._lock:
            for report in other._guests_of(self):
                self._read.update(dict.fromkeys(report.files))
                self._take(report.entries, self._sources.begin(report.path, report.files), overwrite=False)
                self._pinned.update(each.signature for each in report.entries if other.is_pinned(each.signature))

    def let_go(self, other: "SharedResults") -> None:
        """Drop from memory, and from no file, what another device has taken over."""
        if not self._guests:
            return
        with self._lock:
            taken = [entry for report in self._guests_of(other) for entry in report.entries]
            for entry in taken:
                self.results.remove(entry.signature)
                self._sources.forget(entry[:2])
                self._pinned.discard(entry.signature)
            if taken:
                self._journal.note_many()

    def _guests_of(self, other: "SharedResults") -> list[LoadReport]:
        """Return what is kept for another device, as it was read: not what was changed since."""
        if not self._guests or other.build != self.build:
            return []
        with self._lock:
            return [
                report._replace(
                    entries=Entries(
                        entry
                        for entry in report.entries
                        if _device_of(entry.params) == other.device and self.results.get(entry.signature) == entry
                    )
                )
                for report in list(self._guests.values())
            ]

    def _read_own(self, path: str, *, overwrite: bool) -> None:
        """Merge what a file says of this device; what is wrong with it is told by the device that reads the rest."""
        with self._listeners.afterwards(), self._lock:
            report = ResultsStore(path, self.validators).load()
            own = Entries(entry for entry in report.entries if _device_of(entry.params) == self.device)
            self._merge(report._replace(entries=own, bad_lines=(), problems=()), overwrite=overwrite)

    def read_sibling(self, path: str, *, overwrite: bool) -> None:
        """Merge what this build keeps beside a file of another one, if anything."""
        sibling = sibling_name(path, self.build)
        if Path(sibling).exists():
            self.read(sibling, overwrite=overwrite)


def _device_of(params: str) -> str:
    """Return the device that well-formed params name."""
    return params.partition("_dev")[2].partition("_")[0]
