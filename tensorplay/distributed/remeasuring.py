"""A context that measures anew what has a winner, and tells what was there and what became of it."""

from collections.abc import Mapping

from tensorplay.backends.base import Backend
from tensorplay.database.record import Entry
from tensorplay.gemm import GemmProblem, signature_of
from tensorplay.measure.report import Verdict
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.listeners import FILE

__all__ = ["RemeasuringContext"]


class RemeasuringContext(TuningContext):
    """A context of one thread that measures again; the winner that is there is replaced in one step, and never lost."""

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
        found = self._measure(device, signature, problem, backend)
        self._invalidate()
        return found if isinstance(found, Verdict) else None

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
