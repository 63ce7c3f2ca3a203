"""Measuring inside a process: one problem at a time, within the process's budget, never raising."""

import os
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Mapping

from tensorplay.backends.base import Backend, Plan
from tensorplay.database.record import Entry
from tensorplay.errors import OperandError, TensorPlayWarning
from tensorplay.gemm import DEFAULT, GemmProblem, Signature, signature_of
from tensorplay.interrupts import is_nested, is_of_a_handler, note_handlers
from tensorplay.locks import ForkSafeLock
from tensorplay.measure.budget import Deadline
from tensorplay.measure.report import UNDECIDED, Verdict
from tensorplay.measure.search_memory import SearchMemory
from tensorplay.measure.selection import select_in_process
from tensorplay.runtime import listeners as events
from tensorplay.runtime.archive import Archive
from tensorplay.runtime.device_results import DeviceResults
from tensorplay.runtime.kept_winner import has_failed, why_kept
from tensorplay.runtime.known_killers import KnownKillers
from tensorplay.runtime.ledger import Evidence, Ledger
from tensorplay.runtime.newest import keep_newest
from tensorplay.runtime.notice import logger, warn
from tensorplay.runtime.resolution import EntryState, Reason
from tensorplay.runtime.rules import tuning_rules
from tensorplay.runtime.tuner import Measurement, measure
from tensorplay.typing import Clock

__all__ = ["Measuring"]

# Signatures whose in-process selection is known, the newest of them; an older one is timed once more.
MOST_SELECTED = 1 << 16


class Measuring(Archive):
    """An archive that can fill itself.

    Parameters
    ----------
    environ, directory, backends
        As `Archive` takes them.
    clock : callable
        Seconds for `TOTAL_TUNING_SECONDS`.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        directory: str | os.PathLike[str],
        backends: Mapping[str, Backend],
        clock: Clock,
    ) -> None:
        super().__init__(environ, directory, backends)
        self._ledger = Ledger(self.listeners)
        # Kernel ids, and not plans: those hold the library's descriptors, and backends bound how many they keep.
        self._selected: OrderedDict[Signature, str] = OrderedDict()
        self._clock = clock
        self._spent_seconds = 0.0
        self._search_memory = SearchMemory()
        self._killers = KnownKillers()
        # Two measurements at once would disturb each other; a waiting thread then finds the winner recorded.
        self._measuring = ForkSafeLock()
        self.listeners.defer_under(self._measuring)

    def tune(self, problem: GemmProblem) -> bool:
        """Measure a problem and record its winner, whatever the switches say; return whether one is there that runs.

        Blocks until it is done. What has such a winner is not measured again: forget it first. A stale one is replaced,
        unless it is pinned.

        Raises
        ------
        OperandError
            When the problem is of no family that is tuned.
        TensorPlayError
            When nothing here runs its device.
        """
        backend = self.backend(problem.device)
        if not backend.is_tunable(problem, self._settings.families):
            raise self._untunable(problem)
        signature = signature_of(problem)
        device = self._device(problem.device, backend)
        device.ensure_loaded()

        def is_settled() -> bool:
            return self._recorded(device, signature, problem, backend)[1] in {EntryState.WINNER, EntryState.DEFAULT}

        if not is_settled() and not device.is_pinned(signature):
            self._measure(device, signature, problem, backend)
            self._invalidate()
        return is_settled()

    def calls_of(self, op: str, params: str) -> dict[str, int]:
        """Return how often a signature was called in this process, by reason."""
        return self._ledger.counters.calls(Signature(op, params))

    @abstractmethod
    def _recorded(
        self, device: DeviceResults, signature: Signature, problem: GemmProblem, backend: Backend
    ) -> tuple[Plan | None, EntryState]:
        """Return the recorded winner's plan, and what kind of entry there is; a stale one is reported."""

    @abstractmethod
    def _evidence_of(self, signature: Signature, entry: Entry | None) -> Evidence | None:
        """Return what this process knows of how an entry was chosen."""

    def _untunable(self, problem: GemmProblem) -> OperandError:
        """Return the error that says that a problem is of no family that is tuned."""
        families = self._settings.families
        more = "; families=all tunes more (TP_TUNABLEOP_FAMILIES)" if families != "all" else ""
        return OperandError(f"{signature_of(problem).params} is not tuned with families={families}{more}")

    def _first_choice(self, problem: GemmProblem, backend: Backend) -> Plan:
        """Return what runs where nothing was selected."""
        if self._settings.deterministic:
            return backend.deterministic_choice(problem)
        return backend.first_choice(problem)

    def _fixed_dispatch(self, problem: GemmProblem, backend: Backend) -> Plan:
        """Return what runs a problem of no tunable family."""
        plan = backend.fixed_dispatch(problem)
        # The classic call is `Default` here, whose makers promise the same bits on the same device.
        if self._settings.deterministic and not plan.is_deterministic and plan.kernel != DEFAULT:
            return backend.deterministic_choice(problem)
        return plan

    def _measure(
        self, device: DeviceResults, signature: Signature, problem: GemmProblem, backend: Backend
    ) -> Measurement | Verdict | None:
        """Measure and record; None when another thread did so meanwhile, or when it cannot be done, now or at all.

        The verdict where the winner that was there stays in spite of it.
        """
        met = device.results.get(signature)
        if self._is_interrupted():
            return None
        with self.listeners.afterwards(), self._measuring:
            if device.results.get(signature) != met or self._ledger.not_measurable(signature) is not None:
                return None
            if not self._is_affordable(signature):
                return None
            try:
                measurement = self._measured(signature, problem, backend, self._clock)
            except Exception as error:
                if is_of_a_handler(error):
                    raise
                self._give_up(signature, error)
                return None
            # Recorded before the lock is given up, so that whoever waited finds it.
            outcome = self._record(device, measurement, met, backend)
        self._tell(device, measurement.entry, outcome)
        return measurement if isinstance(outcome, Evidence) else outcome

    def _stays(self, device: DeviceResults, met: Entry, measurement: Measurement, backend: Backend) -> bool:
        """Return whether nothing was decided now, and what was met before runs and was not as undecided."""
        report = measurement.report
        if report.verdict not in UNDECIDED or has_failed(met.kernel, report):
            return False
        _, state = self._recorded(device, met.signature, measurement.plan.problem, backend)
        if state not in {EntryState.WINNER, EntryState.DEFAULT}:
            return False
        evidence = self._evidence_of(met.signature, met)
        if evidence is not None:
            return evidence.report.verdict not in UNDECIDED
        # Where nothing explains it, a person or an older file chose it.
        found = device.explanations.find(met.signature, met)
        return found is None or found.verdict not in UNDECIDED

    def _record(
        self, device: DeviceResults, measurement: Measurement, met: Entry | None, backend: Backend
    ) -> Evidence | Verdict | None:
        """Keep a winner in place of what was met before; None, and nothing, where somebody changed that meanwhile.

        A busy machine, or a budget that holds too few pairs, ends a measurement with the first choice although nothing
        was really compared. That is better than nothing, and worse than what an earlier measurement has confirmed. So
        a winner that was there, and runs, stays then: what comes back is the verdict that it stays in spite of.
        """
        entry = measurement.entry
        if met is not None and self._stays(device, met, measurement, backend):
            return measurement.report.verdict
        is_stale = met is not None and self._ledger.rejections.is_open(entry.signature, met.kernel)
        evidence = Evidence(measurement.report, backend.clocks(device.device), is_stale)
        if not device.exchange(met, entry, "measured here", noted="healed" if is_stale else "measured here"):
            return None
        if met is not None:
            self._ledger.rejections.heal(entry.signature, met.kernel, winner=entry.kernel)
        self._ledger.keep_evidence(entry.signature, evidence)
        return evidence

    def _tell(self, device: DeviceResults, entry: Entry, evidence: Evidence | Verdict | None) -> None:
        """Put on disk how a winner was chosen, and tell the listeners; for a verdict, that the one before stays."""
        if isinstance(evidence, Verdict):
            self.listeners.tell(events.TUNING_FAILED, op=entry.op, params=entry.params, reason=why_kept(evidence))
        if not isinstance(evidence, Evidence):
            return
        try:
            is_explained = device.explanations.record(entry.signature, evidence.report.to_dict(), evidence.clocks)
        except Exception:  # noqa: BLE001 - the winner is recorded, and must run whatever becomes of its explanation
            logger.exception("how the winner of %s was chosen could not be written", entry.params)
            is_explained = False
        if not is_explained:
            self._ledger.counters.count(Reason.UNEXPLAINED)
        event = events.HEALED if evidence.has_healed else events.TUNED
        self.listeners.tell(event, **entry._asdict(), report=evidence.report)

    def _is_interrupted(self) -> bool:
        """Return whether this product comes in the middle of our work: of a signal handler, a finalizer, or a listener.

        Where this thread is measuring, a second measurement would launch into the first one's stream, which may be in
        the middle of a capture. Where it does anything else of ours, it may hold what the measuring thread waits for.
        """
        return self._measuring.is_held_here() or is_nested()

    def _is_affordable(self, signature: Signature) -> bool:
        """Return whether the process may still measure; the reason is kept where it may not."""
        total = self._settings.total_tuning_seconds
        if not total or self._spent_seconds < total:
            return True
        self._ledger.give_up(signature, f"the {total:g} s of tuning that this process may spend are spent")
        return False

    def _give_up(self, signature: Signature, error: Exception) -> None:
        self._ledger.give_up(signature, str(error))
        warn(f"a product was not measured, the library's first choice runs: {error}", TensorPlayWarning)
        self.listeners.tell(events.TUNING_FAILED, op=signature.op, params=signature.params, reason=str(error))

    def _measured(
        self, signature: Signature, problem: GemmProblem, backend: Backend, clock: Clock, *, most_s: float | None = None
    ) -> Measurement:
        """Measure, for at most `most_s` seconds of `clock` and what the process may spend; raises what fails."""
        total = self._settings.total_tuning_seconds
        results = self._device(problem.device, backend).path
        self._killers.look_again(results)
        # At once: whoever waits for this lock waits for the measurement that is told of.
        self.listeners.tell_under(self._measuring, events.TUNING_STARTED, op=signature.op, params=signature.params)
        note_handlers()
        started = self._clock()
        try:
            return measure(
                backend,
                problem,
                tuning_rules(self._settings, backend, problem),
                excluded=self._ledger.rejections.failed(signature) | self._killers.of(results, signature),
                deadline=Deadline(clock, total - self._spent_seconds if total else most_s),
                memory=self._search_memory,
            )
        finally:
            self._spent_seconds += self._clock() - started

    def _select(self, signature: Signature, problem: GemmProblem, backend: Backend) -> Plan:
        """Return the library's choice that is fastest in this process; timed once, never recorded.

        Nothing is timed where sums must keep their order, since the next process might select another.
        """
        if self._settings.deterministic:
            return self._first_choice(problem, backend)
        choices = backend.library_choices(problem)
        if len(choices) == 1:
            return choices[0]
        with self._measuring:
            known = self._selected.get(signature)
            selected = next((choice for choice in choices if choice.kernel == known), None)
            if selected is None:
                note_handlers()
                try:
                    with backend.open_trial(problem, rotating_bytes=0) as trial:
                        selected = select_in_process(choices, trial.timer)
                except Exception as error:
                    if is_of_a_handler(error):
                        raise
                    logger.warning("in-process selection for %s failed: %s", signature.params, error)
                    selected = choices[0]
                self._selected[signature] = selected.kernel
                keep_newest(self._selected, MOST_SELECTED)
            return selected
