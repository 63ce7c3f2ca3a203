"""Measuring inside a process: one problem at a time, within the process's budget, never raising."""

import os
from collections.abc import Mapping

from tensorplay.backends.base import Backend, Plan
from tensorplay.database.record import Entry
from tensorplay.errors import TensorPlayWarning
from tensorplay.gemm import GemmProblem, Signature
from tensorplay.locks import ForkSafeLock
from tensorplay.measure.budget import Deadline
from tensorplay.measure.selection import select_in_process
from tensorplay.runtime import listeners as events
from tensorplay.runtime.archive import Archive
from tensorplay.runtime.device_results import DeviceResults
from tensorplay.runtime.ledger import Ledger
from tensorplay.runtime.notice import logger, warn
from tensorplay.runtime.rules import tuning_rules
from tensorplay.runtime.tuner import Measurement, measure
from tensorplay.typing import Clock

__all__ = ["Measuring"]


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
        self._selected: dict[Signature, Plan] = {}
        self._clock = clock
        self._spent_seconds = 0.0
        # Two measurements at once would disturb each other; a waiting thread then finds the winner recorded.
        self._measuring = ForkSafeLock()

    def _measure(
        self, device: DeviceResults, signature: Signature, problem: GemmProblem, backend: Backend
    ) -> Measurement | None:
        """Measure and record; None when another thread did so meanwhile, or when it cannot be done."""
        met = device.results.get(signature)
        with self._measuring:
            if device.results.get(signature) != met or self._ledger.not_measurable(signature) is not None:
                return None
            measurement = self._measured(signature, problem, backend)
            if measurement is None:
                return None
            # Recorded before the lock is given up, so that whoever waited finds it.
            self._record(device, measurement.entry, met)
            self._ledger.keep_report(signature, measurement.report)
        self.listeners.tell(
            events.TUNED if met is None else events.HEALED,
            **measurement.entry._asdict(),
            report=measurement.report,
        )
        return measurement

    def _record(self, device: DeviceResults, entry: Entry, stale: Entry | None) -> None:
        if stale is None:
            device.record(entry, "measured here")
        else:
            device.replace(entry, "measured here")
            self._ledger.rejections.heal(entry.signature, stale.kernel, winner=entry.kernel)

    def _measured(self, signature: Signature, problem: GemmProblem, backend: Backend) -> Measurement | None:
        """Measure; None, with the reason kept, where that is not possible."""
        total = self._settings.total_tuning_seconds
        if total and self._spent_seconds >= total:
            self._ledger.give_up(signature, f"the {total:g} s of tuning that this process may spend are spent")
            return None
        self.listeners.tell(events.TUNING_STARTED, op=signature.op, params=signature.params)
        started = self._clock()
        try:
            return measure(
                backend,
                problem,
                tuning_rules(self._settings, backend, problem),
                excluded=self._ledger.rejections.failed(signature),
                deadline=Deadline(self._clock, total - self._spent_seconds if total else None),
            )
        except Exception as error:  # noqa: BLE001 - whatever a library raises must not leave the caller's GEMM
            self._ledger.give_up(signature, str(error))
            warn(f"a product was not measured, the library's first choice runs: {error}", TensorPlayWarning)
            self.listeners.tell(events.TUNING_FAILED, op=signature.op, params=signature.params, reason=str(error))
            return None
        finally:
            self._spent_seconds += self._clock() - started

    def _select(self, signature: Signature, problem: GemmProblem, backend: Backend) -> Plan:
        """Return the library's choice that is fastest in this process; timed once, never recorded."""
        choices = backend.library_choices(problem)
        if len(choices) == 1:
            return choices[0]
        with self._measuring:
            if signature not in self._selected:
                try:
                    with backend.open_trial(problem, rotating_bytes=0) as trial:
                        self._selected[signature] = select_in_process(choices, trial.timer)
                except Exception as error:  # noqa: BLE001 - as in `_measured`
                    logger.warning("in-process selection for %s failed: %s", signature.params, error)
                    self._selected[signature] = choices[0]
            return self._selected[signature]
