"""What people do to winners while a process runs: pin, go back, measure anew, load, save, and clear lists."""

from collections.abc import Iterable, Mapping

from tensorplay.database.written_line import WrittenLine
from tensorplay.errors import TensorPlayError
from tensorplay.gemm import GemmProblem, Signature, parse_signature, signature_of
from tensorplay.measure.report import Verdict
from tensorplay.runtime.archive import Recorded
from tensorplay.runtime.explaining import Explaining
from tensorplay.runtime.listeners import REJECTED, UNTUNED, WINNER
from tensorplay.runtime.merge_report import FileFault, MergeReport
from tensorplay.runtime.rejections import Meetings
from tensorplay.runtime.steered_results import SteeredResults
from tensorplay.runtime.winner_history import PastWinner

__all__ = ["Steering"]


class Steering(Explaining):
    """A context that people steer, through the service or in a session of Python."""

    def pin_winner(self, op: str, params: str) -> bool:
        """Keep a winner as it is until it is unpinned or the process ends; return whether there is one.

        It is neither healed nor overwritten by a file; forgetting and overriding it raise `TensorPlayError`. Where it
        does not run any more, the first choice does.
        """
        device, signature = self._held_in(op, params)
        is_pinned = device.pin(signature)
        if is_pinned:
            self.background.remove(signature)
            self._told(signature, "pinned")
        return is_pinned

    def unpin_winner(self, op: str, params: str) -> bool:
        """Let a winner be changed again; return whether it was pinned."""
        device, signature = self._held_in(op, params)
        was_pinned = device.unpin(signature)
        if was_pinned:
            self._told(signature, "unpinned")
        return was_pinned

    def withdraw_override(self, op: str, params: str) -> bool:
        """Put the last winner that was no override in its place; return False when none is known, and it is forgotten.

        Raises
        ------
        TensorPlayError
            When the winner is no override, or is pinned.
        """
        device, signature = self._held_in(op, params)
        if not device.is_override(signature):
            raise TensorPlayError(f"the winner of {params} is no override")
        is_restored = device.go_back(signature)
        self._forgotten(signature)
        self._told(signature, "restored" if is_restored else "forgotten")
        return is_restored

    def forget_all(self) -> int:
        """Drop every winner from memory and file; return how many there were. `TensorPlayError` when any is pinned."""
        # Plain tuples, as in `Entries`.
        dropped = [(device, [entry[:2] for entry in device.results]) for device in self._met()]
        count = 0
        for device, signatures in dropped:
            count += device.clear()
            for op, params in signatures:
                self._forgotten(Signature(op, params))
        self._invalidate()
        if count:
            self.listeners.tell(WINNER, action="all forgotten", count=count)
        return count

    def past_winners(self, op: str, params: str) -> list[PastWinner]:
        """Return the winners that a signature is known to have had, oldest first; the last is the present one."""
        device, signature = self._held_in(op, params)
        return device.past_winners(signature)

    def written_at(self, op: str, params: str) -> WrittenLine | None:
        """Return the file and line that the winner of a signature stands in now, of those that this process uses.

        None where it stands in none, as after a write that failed or where somebody has changed the file since.
        """
        signature = Signature(op, params)
        found = (device.written_at(signature) for device in self._met())
        return next((each for each in found if each is not None), None)

    def measure_beside(self, problem: GemmProblem, *, again: bool = False) -> bool | Verdict:
        """Measure a problem on this thread, beside others that may capture graphs; return whether it has a winner.

        What has a winner is measured only with `again`, and the new one takes its place; where nothing was decided, the
        earlier one stays if it runs and was decided, and what is returned is the verdict in spite of which it does.

        Raises
        ------
        TensorPlayError
            When nothing here runs its device, when it is of no family that is tuned, or when its winner is pinned.
        """
        backend = self.backend(problem.device)
        with backend.beside_captures():
            if not again:
                return self.tune(problem)
            if not backend.is_tunable(problem, self._settings.families):
                raise self._untunable(problem)
            signature = signature_of(problem)
            device = self._device(problem.device, backend)
            device.ensure_loaded()
            if device.is_pinned(signature):
                raise TensorPlayError(f"the winner of {signature.params} is pinned; unpin it first")
            # A person asks: what kept it from being measured before may have gone.
            self._ledger.try_again()
            found = self._measure(device, signature, problem, backend)
            self._invalidate()
            return found if isinstance(found, Verdict) else found is not None

    def reresolve(self) -> None:
        """Let every product be decided anew at its next call, by what is recorded and set then."""
        self._ledger.try_again()
        self._invalidate()

    def spent_tuning_seconds(self) -> float:
        """Return the seconds that this process has measured for: what `total_tuning_seconds` bounds."""
        return self._spent_seconds

    def load_results(self, device: str, path: str, data: bytes, *, overwrite: bool = False) -> MergeReport:
        """Merge a results file into a device's winners, given as its bytes; nothing when it is another build's."""
        try:
            return self._device(device).take(path, data, overwrite=overwrite)
        finally:
            # What was taken in before an interrupt counts too.
            self._invalidate()

    def save_results(self, device: str, path: str) -> None:
        """Rewrite a file of this build with a device's winners, merged with what it holds; `OSError` as it comes."""
        self._device(device).write_to(path)

    def recorded_of(self, signatures: Iterable[Signature]) -> list[Recorded]:
        """Return the winners of some signatures; those without one are left out."""
        devices = self._met()
        return [
            Recorded(*entry, device.device, device.origins.get(signature, "file"), device.is_pinned(signature))
            for signature in signatures
            for device in devices
            if (entry := device.results.get(signature)) is not None
        ]

    def changed_since(self, revision: int) -> frozenset[Signature] | None:
        """Return the signatures whose winners changed behind a results revision; None when that is not known."""
        return self._journal.since(revision)

    def first_choices(self, signatures: Iterable[Signature]) -> Mapping[Signature, float]:
        """Return the first choices' times, in milliseconds, of those winners that it is known of."""
        devices, found, unknown = self._met(), {}, []
        for signature in signatures:
            entry = next((entry for device in devices if (entry := device.results.get(signature)) is not None), None)
            evidence = self._evidence_of(signature, entry)
            if evidence is None:
                unknown.append(signature)
            elif evidence.report.first_choice_ms is not None:
                found[signature] = evidence.report.first_choice_ms
        for device in devices if unknown else ():
            found |= device.first_choices(unknown)
        return found

    def calls_by_signature(self) -> Mapping[Signature, int]:
        """Return how often each signature ran without a recorded winner in this process; replays are not among them."""
        return self._ledger.counters.calls_without_winner()

    def file_faults(self) -> list[FileFault]:
        """Return what was wrong with results files that were read."""
        return [fault for device in self._met() for fault in device.faults()]

    def forget_untuned(self, op: str, params: str) -> bool:
        """Take a signature off the list of untuned ones, until it runs without a winner anew; return whether it was."""
        count = self._ledger.forget_untuned(Signature(op, params))
        self._cleared(UNTUNED, count)
        return count > 0

    def forget_all_untuned(self) -> int:
        """Empty the list of untuned signatures; return how many there were."""
        count = self._ledger.forget_untuned()
        self._cleared(UNTUNED, count)
        return count

    def rejection_meetings(self, op: str, params: str, kernel: str) -> Meetings | None:
        """Return how often a recorded winner was met and did not run, and when; None when it never was."""
        return self._ledger.rejections.meetings(Signature(op, params), kernel)

    def clear_rejections(self) -> int:
        """Empty the list of rejections, and not what is known of kernels that failed; return how many there were."""
        count = self._ledger.rejections.clear()
        self._cleared(REJECTED, count)
        return count

    def _held_in(self, op: str, params: str) -> tuple[SteeredResults, Signature]:
        """Return the results that hold a signature's winner, else those of its device; `SignatureError` for none."""
        problem, signature = parse_signature(op, params), Signature(op, params)
        holders = self._holders(problem, signature)
        if holders:
            return holders[0], signature
        device = self._device(problem.device, self._backend_of(problem))
        device.ensure_loaded()
        return device, signature

    def _told(self, signature: Signature, action: str) -> None:
        self._invalidate()
        self.listeners.tell(WINNER, op=signature.op, params=signature.params, action=action)

    def _cleared(self, event: str, count: int) -> None:
        # Whose plans are settled would not be met again.
        self._invalidate()
        if count:
            self.listeners.tell(WINNER, action=f"{event} list cleared", count=count)
