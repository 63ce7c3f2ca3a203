"""A context that measures anew what has a winner, and keeps that winner unless the new measurement decided something.

A busy machine, or a budget that holds too few pairs, ends a measurement with the first choice although nothing was
really compared. That is better than nothing, and worse than what an earlier measurement has confirmed.
"""

import os
from collections.abc import Mapping

from tensorplay.backends.base import Backend
from tensorplay.database.record import Entry
from tensorplay.gemm import GemmProblem, signature_of
from tensorplay.measure.report import UNDECIDED, SelectionReport, Verdict
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.device_results import DeviceResults
from tensorplay.runtime.ledger import Evidence
from tensorplay.runtime.listeners import FILE
from tensorplay.runtime.resolution import EntryState
from tensorplay.runtime.tuner import Measurement

__all__ = ["RemeasuringContext", "has_failed"]

_FAILURES = ("wrong result:", "does not launch:", "cannot run:")
"""How the reasons begin for which a kernel is no winner any more, whatever it was."""


class RemeasuringContext(TuningContext):
    """A context of one thread that measures again; the winner that is there is replaced in one step, and never lost.

    Parameters
    ----------
    environ, directory, backends
        As `TuningContext` takes them.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        directory: str | os.PathLike[str] | None = None,
        backends: Mapping[str, Backend] | None = None,
    ) -> None:
        super().__init__(environ=environ, directory=directory, backends=backends)
        self._undecided: Verdict | None = None

    def winner_of(self, problem: GemmProblem, backend: Backend) -> Entry | None:
        """Return what is recorded for a problem, whether or not it runs."""
        device = self._device(problem.device, backend)
        device.ensure_loaded()
        return device.results.get(signature_of(problem))

    def measure_again(self, problem: GemmProblem, backend: Backend) -> Verdict | None:
        """Measure a problem as though it had no winner; return the verdict that its winner was kept in spite of.

        None where something was recorded, and where it could not be measured, which `explain` says.
        """
        device, signature = self._device(problem.device, backend), signature_of(problem)
        device.ensure_loaded()
        # Somebody asks for it: what kept it from being measured before may have gone.
        self._forgotten(signature)
        self._undecided = None
        self._measure(device, signature, problem, backend)
        self._invalidate()
        return self._undecided

    def why_unwritten(self, problem: GemmProblem, backend: Backend) -> str | None:
        """Write what could not be written so far; return what keeps it from its file, None where nothing does."""
        device = self._device(problem.device, backend)
        failures: list[str] = []

        def hear(event: str, detail: Mapping[str, object]) -> None:
            if event == FILE and detail["action"] == "write failed":
                failures.append(f"{detail['path']}: {detail['error']}")

        forget = self.listeners.add(hear)
        try:
            is_written = device.save_pending()
        finally:
            forget()
        return None if is_written else "; ".join(failures) or device.path

    def _record(
        self, device: DeviceResults, measurement: Measurement, met: Entry | None, backend: Backend
    ) -> Evidence | None:
        report = measurement.report
        if met is not None and report.verdict in UNDECIDED and self._stays(device, met, measurement, backend):
            self._undecided = report.verdict
            return None
        return super()._record(device, measurement, met, backend)

    def _stays(self, device: DeviceResults, met: Entry, measurement: Measurement, backend: Backend) -> bool:
        """Return whether what was met before runs here, and was not as undecided as what was found now."""
        if has_failed(met.kernel, measurement.report):
            return False
        _, state = self._recorded(device, met.signature, measurement.plan.problem, backend)
        if state not in {EntryState.WINNER, EntryState.DEFAULT}:
            return False
        # Where nothing explains it, a person or an older file chose it.
        found = device.explanations.find(met.signature, met)
        return found is None or found.verdict not in UNDECIDED


def has_failed(kernel: str, report: SelectionReport) -> bool:
    """Return whether a measurement found that a kernel does not run any more, or computes something else."""
    dropped = (candidate.dropped or "" for candidate in report.candidates if candidate.kernel == kernel)
    return any(reason.startswith(_FAILURES) for reason in dropped)
