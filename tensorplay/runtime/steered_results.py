"""The winners of one device, as people steer them: pinned, overridden, taken from files, and looked back at."""

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import add

from tensorplay.database.csv_text import BadLine, each_line, each_validator
from tensorplay.database.entries import Raw
from tensorplay.database.explanations import explanations_name
from tensorplay.database.known import NOTHING_KNOWN
from tensorplay.database.record import Entry, Validator
from tensorplay.database.store import ResultsStore
from tensorplay.database.validators import compare
from tensorplay.database.written_line import WrittenLine, written_line
from tensorplay.errors import TensorPlayError
from tensorplay.gemm import DEFAULT, Signature
from tensorplay.runtime.device_explanations import explains
from tensorplay.runtime.device_results import DeviceResults
from tensorplay.runtime.explained_times import ExplainedTimes
from tensorplay.runtime.journal import Journal
from tensorplay.runtime.listeners import FILE, Listeners
from tensorplay.runtime.merge_report import FileFault, MergeReport
from tensorplay.runtime.slices import emptied, paced
from tensorplay.runtime.winner_history import PastWinner, pasts_of_file
from tensorplay.typing import Clock

__all__ = ["SteeredResults"]

_MOST_VALIDATORS = 256
_MOST_BAD_LINES = 100
# So many lines are read in four milliseconds.
_SLICE = 512


class SteeredResults(DeviceResults):
    """Results of one device, with what only people ask for. Safe in any number of threads."""

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
        self._times = ExplainedTimes(self.build)

    def take(self, path: str, data: bytes, *, overwrite: bool) -> MergeReport:
        """Merge what a results file says, given as its bytes; nothing when it is another build's."""
        # More than so many are no build's, and what differs is told of so many.
        validators = tuple(islice(_different(each_validator(data)), _MOST_VALIDATORS))
        mismatches = compare(self.validators, validators)
        if validators and mismatches:
            return MergeReport(validators=validators, mismatches=mismatches)
        # Plain tuples, as in `Entries`.
        newest: dict[tuple[str, str], Raw] = {}
        bad_lines, rejected = list[BadLine](), 0
        for each in paced(each_line(data), _SLICE):
            if mismatches and isinstance(each, Entry | BadLine):
                return MergeReport(mismatches=mismatches)
            if isinstance(each, Entry):
                newest[each[:2]] = each[:]
            elif isinstance(each, BadLine):
                rejected += 1
                if rejected <= _MOST_BAD_LINES:
                    bad_lines.append(each)
        with self._lock:
            source = self._sources.begin(path, (path,))
            self._read[path] = None
        report = self._take_in_slices(newest, source, overwrite=overwrite)
        self._listeners.tell(FILE, action="read", path=path, merged=report.merged + report.replaced, refused=False)
        return report._replace(bad_lines=tuple(bad_lines), validators=validators, rejected=rejected)

    def _take_in_slices(self, newest: dict[tuple[str, str], Raw], source: str, *, overwrite: bool) -> MergeReport:
        """Merge one entry of each signature, and leave none there; the lock is given back now and then."""
        report, is_whole = MergeReport(), False
        try:
            for part in emptied(newest, _SLICE):
                with self._lock:
                    taken = self._take_newest(part, source, overwrite=overwrite)
                report = MergeReport(*map(add, report[:4], taken[:4]))
            is_whole = True
            return report
        finally:
            if report.merged or report.replaced or not is_whole:
                # Who reads the winners meanwhile reads them once more; also what was taken in before an interrupt.
                self._journal.note_many()

    def write_beside(self, others: Iterable["SteeredResults"], path: str | None = None) -> bool:
        """Rewrite a file as `write` does, which other devices have read too, or may have.

        Where it is gone as a whole, what they had read from it is put there as well: the next of them finds it there.
        """
        known, name = NOTHING_KNOWN, path or self.path
        for each in others:
            if each is not self and each.build == self.build:
                with each._lock:
                    known = known.with_own(each._parts(name).known)
        return self.write(path, known_elsewhere=known)

    def write_to(self, path: str) -> None:
        """Rewrite a file of this build as `write` does; `OSError` as from the store."""
        with self._lock:
            entries, known = self._parts(path)
        ResultsStore(path, self.validators).rewrite(entries, known=known)
        self._listeners.tell(FILE, action="written", path=path)

    def pin(self, signature: Signature) -> bool:
        """Keep the winner of a signature as it is; return whether there is one."""
        with self._lock:
            if self.results.get(signature) is None:
                return False
            self._pinned.add(signature)
            self._journal.note(signature)
            return True

    def unpin(self, signature: Signature) -> bool:
        """Let a winner be changed again; return whether it was pinned."""
        with self._lock:
            was_pinned = signature in self._pinned
            self._pinned.discard(signature)
            self._journal.note(signature)
            return was_pinned

    def clear(self) -> int:
        """Drop every winner from memory and file, and how they were chosen; return how many there were."""
        with self._listeners.afterwards(), self._lock:
            if self._pinned:
                count = len(self._pinned)
                raise TensorPlayError(f"pinned winners: {count}; unpin them first, or drop the others one by one")
            # Plain tuples, as in `Entries`.
            dropped = [entry[:2] for entry in self.results]
            for op, params in dropped:
                self.results.remove(Signature(op, params))
            self.origins.clear()
            self._sources.forget_all()
            self._unwritten.drop(dropped)
            self._journal.note_many()
            if dropped:
                self._save_in_time()
        self.explanations.forget_all()
        return len(dropped)

    def is_override(self, signature: Signature) -> bool:
        """Return whether a winner is a person's choice: in this process, or by a file that has no time for it."""
        entry = self.results.get(signature)
        if entry is None or self.origins.get(signature) == "override":
            return entry is not None
        return entry.time_ms == 0 and entry.kernel != DEFAULT

    def go_back(self, signature: Signature) -> bool:
        """Put the last winner that was no override in the place of one, or drop it; return whether there was such."""
        self._check_free(signature)
        before = [past for past in self.past_winners(signature) if past.time_ms or past.kernel == DEFAULT]
        earlier = next((past for past in reversed(before) if past.origin != "override"), None)
        if earlier is None:
            self.remove(signature)
            return False
        with self._listeners.afterwards(), self._lock:
            self._check_free(signature)
            origin = "file" if earlier.origin in {"file", "measured"} else "measured here"
            self._keep(Entry(*signature, earlier.kernel, earlier.time_ms), origin)
            self._save_in_time()
            return True

    def past_winners(self, signature: Signature) -> list[PastWinner]:
        """Return the winners that a signature is known to have had, oldest first; the last is the present one's."""
        here = self.history.of(signature, self.results.get(signature))
        # A file has six digits of a time.
        known = {(past.kernel, f"{past.time_ms:.5g}") for past in here}
        told = [
            past
            for results in self._files()
            for past in pasts_of_file(explanations_name(results), signature, self.build)
            if (past.kernel, f"{past.time_ms:.5g}") not in known
        ]
        return [*told, *here]

    def written_at(self, signature: Signature) -> WrittenLine | None:
        """Return the file and line that the winner of a signature stands in now; None where it stands in none."""
        entry = self.results.get(signature)
        if entry is None:
            return None
        found = (written_line(results, entry) for results in self._files())
        return next((each for each in found if each is not None), None)

    def first_choices(self, signatures: Iterable[Signature]) -> dict[Signature, float]:
        """Return the first choices' times, in milliseconds, of those whose winner's explanation is on disk."""
        told = [self._times.of(explanations_name(results)) for results in self._files()]
        found = {}
        for signature in signatures:
            entry = self.results.get(signature)
            for times in told if entry is not None else ():
                time_ms = times.get(signature)
                if time_ms is not None and entry is not None and explains(time_ms, entry):
                    if time_ms.first_choice_ms is not None:
                        found[signature] = time_ms.first_choice_ms
                    break
        return found

    def faults(self) -> list[FileFault]:
        """Return what was wrong with the files that were read, in the order that they were met."""
        return list(self._faults.values())


def _different(validators: Iterable[Validator]) -> Iterator[Validator]:
    """Yield equal ones once."""
    seen: set[Validator] = set()
    for each in validators:
        if each not in seen:
            seen.add(each)
            yield each
