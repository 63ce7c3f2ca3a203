"""The offline tuner: signatures measured in processes that may die, one for each device, all devices at once.

A candidate can poison a device's context, hang, or kill its process, so none is run in a process that somebody needs.
What a worker was running when it ended is remembered as a killer, in a file beside the results, and left out from
then on; a fresh worker goes on with the same signature. Where several kernels ran, nobody is blamed, and the fresh
worker runs them one at a time. The first choice is blamed never: nothing can take its place.
"""

import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tensorplay.database.filename import results_name
from tensorplay.database.killers import Death, Killer, KillerLog, killers_name
from tensorplay.distributed.message import NOTHING, Request
from tensorplay.distributed.partition import by_device
from tensorplay.distributed.worker_process import WorkerEndedError, WorkerProcess, worker_command
from tensorplay.errors import RecordError, SettingWarning
from tensorplay.gemm import Signature
from tensorplay.measure.report import Verdict
from tensorplay.runtime.kept_winner import STAYS, why_kept
from tensorplay.runtime.settings import Settings

__all__ = ["OfflineTuner", "TuneOutcome", "configured_results"]

_MOST_DEATHS = 8
"""Of workers for one signature: what kills more often than that is not a candidate's fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOutcome:
    """What came of one signature.

    Attributes
    ----------
    signature : Signature
        Op and params.
    kernel : str or None
        What is recorded for it.
    time_ms, first_choice_ms : float or None
        Of the kernel and of the library's first choice; None where nothing was timed.
    verdict : str or None
        Why that kernel is recorded; None where nothing says it.
    measured : bool
        Whether it was measured now.
    kept : str or None
        In words, that the winner of before stays although it was to be measured again; None where it does not.
    candidates : int or None
        How many kernels took part.
    problem : str or None
        Why it could not be measured; where it was measured, why its winner is not on disk.
    killers : tuple of Killer
        Kernels that took a worker down.
    seconds : float
        What it took.
    warnings : tuple of str
        What the worker warned of, and killers that could not be written down.
    """

    signature: Signature
    kernel: str | None = None
    time_ms: float | None = None
    first_choice_ms: float | None = None
    verdict: str | None = None
    measured: bool = False
    kept: str | None = None
    candidates: int | None = None
    problem: str | None = None
    killers: tuple[Killer, ...] = ()
    seconds: float = 0.0
    warnings: tuple[str, ...] = field(default=())

    @property
    def gain(self) -> float | None:
        """Return how many times faster than the first choice the kernel is; None where that is not known."""
        return self.first_choice_ms / self.time_ms if self.first_choice_ms and self.time_ms else None


class OfflineTuner:
    """Measures signatures in workers, and records their winners in the results file of each device.

    Parameters
    ----------
    environ : mapping
        What the workers' environments are made of.
    results : mapping of str to str, optional
        The very results file of each device; no ordinal is inserted. Of a device that is not in it, the file that
        `TP_TUNABLEOP_FILENAME` names, with its ordinal.
    stall_s : float
        Seconds without a word after which a worker counts as hung.
    again : bool
        Whether signatures that have a winner are measured again. It stays until that has decided something.
    command : callable
        Returns the command of a worker, from a device and its results file.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        results: Mapping[str, str] | None = None,
        stall_s: float = 120.0,
        again: bool = False,
        command: Callable[[str, str], Sequence[str]] = worker_command,
    ) -> None:
        self._environ = dict(os.environ if environ is None else environ)
        self._results = dict(results or {})
        self._configured = configured_results(self._environ)
        self._stall_s = stall_s
        self.again = again
        self._command = command

    def tune(
        self, signatures: Iterable[Signature], *, tell: Callable[[TuneOutcome], None] = lambda _outcome: None
    ) -> list[TuneOutcome]:
        """Measure the signatures; the outcomes come in the order of the devices, and `tell` hears each at once.

        `tell` is called on a thread of each device. What interrupts this ends the workers; what they recorded stays.

        Raises
        ------
        SignatureError
            When one is no signature.
        OSError
            When a worker cannot be started.
        """
        parts = by_device(signatures)
        if not parts:
            return []
        with ThreadPoolExecutor(len(parts), thread_name_prefix="tensorplay-tune") as pool:
            runs = [_DeviceRun(self, device, wanted, tell) for device, wanted in parts.items()]
            futures = [pool.submit(run.outcomes) for run in runs]
            try:
                return [outcome for future in futures for outcome in future.result()]
            finally:
                for run in runs:
                    run.stop()

    def results_of(self, device: str) -> str:
        """Return the results file of a device, as an absolute path."""
        return str(Path(self._results.get(device, results_name(self._configured, device))).absolute())

    def killers_of(self, device: str) -> KillerLog:
        """Return the killers beside the results file of a device."""
        return KillerLog(killers_name(self.results_of(device)))

    def start(self, device: str) -> WorkerProcess:
        """Start a worker of a device."""
        command = self._command(device, self.results_of(device))
        return WorkerProcess(command, environ=self._environ, stall_s=self._stall_s)


def configured_results(environ: Mapping[str, str]) -> str:
    """Return the setting `filename`, empty for the default; the workers tell what is wrong in the environment."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SettingWarning)
        return Settings(environ).filename


class _DeviceRun:
    """The signatures of one device, measured one after another."""

    def __init__(
        self, tuner: OfflineTuner, device: str, signatures: Sequence[Signature], tell: Callable[[TuneOutcome], None]
    ) -> None:
        self._tuner = tuner
        self._device = device
        self._signatures = signatures
        self._tell = tell
        self._worker: WorkerProcess | None = None
        self._has_answered = False
        self._is_stopped = False

    def outcomes(self) -> list[TuneOutcome]:
        found = []
        try:
            for signature in self._signatures:
                if self._is_stopped:
                    break
                begin = time.monotonic()
                fields = self._measured(signature)
                found.append(TuneOutcome(signature=signature, seconds=time.monotonic() - begin, **fields))
                self._tell(found[-1])
        finally:
            self._end_worker()
        return found

    def stop(self) -> None:
        """End now; what is being measured is given up, and blamed on no kernel."""
        self._is_stopped = True
        worker = self._worker
        if worker is not None:
            worker.kill()

    def _measured(self, signature: Signature) -> dict[str, Any]:
        recorded: dict[str, Any] = {}
        killers: list[Killer] = []
        warnings: list[str] = []
        answer = self._answer(signature, recorded, killers, warnings)
        warnings += answer.pop("warnings", ())
        undecided = answer.pop("undecided", None)
        if undecided is not None:
            answer["kept"] = why_kept(Verdict(undecided))
        elif answer["problem"] is not None and recorded.get("kernel") not in {None, *(each.kernel for each in killers)}:
            answer |= recorded | {"kept": STAYS}
        return answer | {"warnings": tuple(warnings), "killers": tuple(killers)}

    def _answer(
        self, signature: Signature, recorded: dict[str, Any], killers: list[Killer], warnings: list[str]
    ) -> dict[str, Any]:
        """Return what a worker says in the end; what was recorded before, who killed, and warnings are added."""
        request = Request(signature=signature, again=self._tuner.again)
        for _ in range(_MOST_DEATHS):
            try:
                answer = self._living_worker().ask(request, recorded.update)
            except WorkerEndedError as death:
                self._end_worker()
                problem = self._why_not_again(request, death)
                if problem is not None:
                    return {"problem": problem}
                if death.running.culprit is None:
                    request = replace(request, apart=True)
                    continue
                killers.append(Killer(*signature, death.running.culprit, death.death))
                warnings += self._remember(killers[-1])
                # In the file it may be missing.
                request = replace(request, killers=tuple(killer.kernel for killer in killers))
            else:
                self._has_answered = True
                answer.pop("event")
                return answer
        return {"problem": f"{_MOST_DEATHS} workers ended while measuring it"}

    def _why_not_again(self, request: Request, death: WorkerEndedError) -> str | None:
        """Return why no other worker is asked; None where one may tell more."""
        kernels, culprit = death.running
        is_idle = not kernels and death.death is not Death.POISONED
        if self._is_stopped or (is_idle and not self._has_answered):
            # It never ran anything, so that another would end the same way.
            return str(death)
        if culprit is not None or not request.apart:
            return None
        # Kernels ran one at a time, and none of those that can be left out.
        return f"{death} (the library's first choice {kernels[0]} was running)" if kernels else str(death)

    def _remember(self, killer: Killer) -> list[str]:
        """Write a killer down; return what a person must know of it."""
        log = self._tuner.killers_of(self._device)
        try:
            log.record(killer)
        except (OSError, RecordError) as error:
            return [f"the killer {killer.kernel} could not be written to {log.path!r}, others may run it: {error}"]
        return []

    def _living_worker(self) -> WorkerProcess:
        if self._worker is None:
            self._worker = self._tuner.start(self._device)
            self._has_answered = False
        if self._is_stopped:
            # `stop` came while it was being started, and saw none.
            self._worker.kill()
            raise WorkerEndedError(Death.DIED, NOTHING, "the tuner was stopped")
        return self._worker

    def _end_worker(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None
