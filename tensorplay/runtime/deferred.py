"""Measuring later: what `MODE=background` does with a product that has no winner.

The first choice runs at once, and the signature is queued. A thread measures it when the program makes no products
and the device is idle; then the winner takes the place of the first choice, for the next call of each layout. A
signature that is pinned meanwhile is measured no more; one that was being measured just then is recorded for later
processes, and runs the first choice in this one.
"""

import os
import sys
import threading
from collections.abc import Mapping
from types import FrameType

from tensorplay.backends.base import Backend
from tensorplay.errors import LaunchError, SettingError
from tensorplay.gemm import GemmProblem, Signature
from tensorplay.interrupts import is_of_a_handler
from tensorplay.measure.report import Verdict
from tensorplay.runtime import listeners as events
from tensorplay.runtime.background import Background, Placed
from tensorplay.runtime.device_results import DeviceResults
from tensorplay.runtime.measuring import Measuring
from tensorplay.runtime.setting import shown
from tensorplay.runtime.tuner import Measurement
from tensorplay.typing import Clock

__all__ = ["Deferred", "DeferredTask"]

# Far enough for no measurement to notice; a finite deadline is what can be brought to pass.
_FAR_S = 1e9
# A measurement that failed to launch, or that other work disturbed, is repeated until then.
_MOST_ATTEMPTS = 3
_DISTURBED = frozenset({Verdict.UNSTABLE, Verdict.WITHIN_NOISE})
_PRODUCTS = "tensorplay.ops."
# A listener or a signal handler inside of a product may wait for somebody, or for the background itself.
_INSIDE_OF_PRODUCTS = frozenset({"tensorplay.runtime.background", "tensorplay.runtime.listeners"})


class DeferredTask:
    """A signature that waits: what is needed to measure it on another thread."""

    __slots__ = ("attempts", "backend", "device", "is_cancelled", "met", "problem", "results", "signature")

    def __init__(self, signature: Signature, problem: GemmProblem, backend: Backend, results: DeviceResults) -> None:
        self.signature = signature
        self.problem = problem
        self.backend = backend
        self.results = results
        self.device = results.device
        self.met = results.results.get(signature)
        self.attempts = 0
        self.is_cancelled = False


class Deferred(Measuring):
    """A context that can measure in the background.

    Attributes
    ----------
    background : Background
        What waits, and what is being measured.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        directory: str | os.PathLike[str],
        backends: Mapping[str, Backend],
        clock: Clock,
    ) -> None:
        super().__init__(environ, directory, backends, clock)
        self.background: Background[DeferredTask] = Background(
            self._measure_task,
            self._is_time,
            failed=lambda task, error: self._broke_off(task.signature, error),
            # What waited in the parent must be queued again in the child, at its next call there.
            forked=self._invalidate,
        )
        # Calls that were counted when each device was last looked at.
        self._calls_seen: dict[str, int] = {}

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until nothing is left to be measured in the background; return whether that came within the time.

        Parameters
        ----------
        timeout : float, optional
            Seconds; None waits for as long as it takes, for ever where the device is never idle.

        Raises
        ------
        SettingError
            When the time is negative or no number.
        """
        if timeout is not None and not timeout >= 0:
            raise SettingError(f"a timeout of {shown(timeout)}; allowed: seconds from 0 up, or None for no limit")
        return self.background.drain(timeout)

    def unpin(self) -> int:
        """Let every signature that was pinned under a graph capture be decided anew; return how many there were.

        Graphs captured before keep what they captured, so eager reruns may differ from them in the last bits.
        """
        count = self._ledger.unpin()
        self._invalidate()
        return count

    def close(self) -> None:
        """End the use of a context: call off what is measured in the background, and do as an archive does."""
        self.background.end()
        super().close()

    def _queue(self, device: DeviceResults, signature: Signature, problem: GemmProblem, backend: Backend) -> bool:
        """Let a signature be measured later; return whether it will be."""
        placed = self.background.put(DeferredTask(signature, problem, backend, device))
        if placed is Placed.NEW:
            self._ledger.note_queued(signature)
        return placed is not Placed.REFUSED

    def _measure(
        self, device: DeviceResults, signature: Signature, problem: GemmProblem, backend: Backend
    ) -> Measurement | Verdict | None:
        """Do as `Measuring` does; what it did not foresee is raised, and counts against the signature."""
        try:
            return super()._measure(device, signature, problem, backend)
        except Exception as error:
            if not is_of_a_handler(error):
                self._broke_off(signature, error)
            raise

    def _broke_off(self, signature: Signature, error: Exception) -> None:
        """Let a later call measure after all what ended in a way nobody foresaw, which may pass; not for ever."""
        if self._ledger.break_off(signature) >= _MOST_ATTEMPTS:
            self._give_up(signature, error)
        else:
            self.listeners.tell(events.TUNING_FAILED, op=signature.op, params=signature.params, reason=str(error))
        self._renew(signature)

    def _renew(self, signature: Signature) -> None:
        """Let the next call of a signature be decided anew: what its prepared plans were decided by has changed."""

    def _is_deferring(self) -> bool:
        settings = self._settings
        return settings.enabled and settings.tuning and settings.mode == "background"

    def _is_time(self, task: DeferredTask) -> bool:
        """Return whether no product was made since the device was last looked at, nor is now, and it is idle."""
        calls = self._ledger.counters.calls_made()
        is_quiet = self._calls_seen.get(task.device) == calls
        self._calls_seen[task.device] = calls
        if not is_quiet or task.backend.is_capturing(None, task.device) or not task.backend.is_idle(task.device):
            return False
        if _is_multiplying():
            # Calls are counted before they run. The moment without any begins when this one ends.
            del self._calls_seen[task.device]
            return False
        return True

    def _measure_task(self, task: DeferredTask) -> bool:
        """Measure a task and record its winner; return False for one that is to be measured once more."""
        evidence = None
        with task.backend.beside_captures(), self.listeners.afterwards(), self._measuring:
            if not self._is_wanted(task):
                return True
            calls = self._ledger.counters.calls_made()
            found = self._attempt(task) if self._is_affordable(task.signature) else None
            if task.is_cancelled or self._is_to_repeat(task, found, calls):
                why = "called off" if task.is_cancelled else "disturbed, and put back"
                signature = task.signature
                self.listeners.tell(events.TUNING_FAILED, op=signature.op, params=signature.params, reason=why)
                return task.is_cancelled
            if isinstance(found, Exception):
                self._give_up(task.signature, found)
            elif found is not None:
                evidence = self._record(task.results, found, task.met, task.backend)
        if isinstance(found, Measurement):
            self._tell(task.results, found.entry, evidence)
        self._renew(task.signature)
        return True

    def _attempt(self, task: DeferredTask) -> Measurement | Exception:
        def clock() -> float:
            # Called off, the measurement finds its deadline passed, and ends with its next sample.
            return self._clock() + (2 * _FAR_S if task.is_cancelled else 0.0)

        task.attempts += 1
        try:
            return self._measured(task.signature, task.problem, task.backend, clock, most_s=_FAR_S)
        except Exception as error:  # noqa: BLE001 - as in `_measure`
            return error

    def _is_to_repeat(self, task: DeferredTask, found: Measurement | Exception | None, calls: int) -> bool:
        """Return whether a capture may have made it fail, or other work have blurred what it found."""
        if found is None or task.attempts >= _MOST_ATTEMPTS:
            return False
        if isinstance(found, Exception):
            # Captures on streams that nobody asked about are not seen, but are felt so.
            return isinstance(found, LaunchError)
        is_blurred = found.report.verdict in _DISTURBED
        return is_blurred and (calls != self._ledger.counters.calls_made() or not task.backend.is_idle(task.device))

    def _is_wanted(self, task: DeferredTask) -> bool:
        ledger, signature = self._ledger, task.signature
        is_closed = ledger.pinned(signature) is not None or ledger.not_measurable(signature) is not None
        is_as_met = task.results.results.get(signature) == task.met
        return is_as_met and not is_closed and not task.is_cancelled and self._is_deferring()


def _is_multiplying() -> bool:
    """Return whether another thread is inside of a product, by what threads are at: no product has to say so itself."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        # Threads that do not stop for each other must not look at each other's frames.
        return False
    tops = sys._current_frames()
    # Kept, our own frame would keep itself, and with it operands of the others, until garbage is collected.
    tops.pop(threading.get_ident(), None)
    return any(map(_is_in_product, tops.values()))


def _is_in_product(top: FrameType) -> bool:
    frame: FrameType | None = top
    while frame is not None:
        module = frame.f_globals.get("__name__")
        # What was executed in a dictionary may call itself anything.
        if isinstance(module, str):
            if module in _INSIDE_OF_PRODUCTS:
                return False
            if module.startswith(_PRODUCTS):
                return True
        frame = frame.f_back
    return False
