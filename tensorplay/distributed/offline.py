"""The offline tuner: signatures measured in processes that may die, one for each device, all devices at once.

A candidate can poison a device's context, hang, or kill its process, so none is run in a process that somebody needs.
What a worker was running when it ended is remembered as a killer, in a file beside the results, and left out from
then on; a fresh worker goes on with the same signature.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tensorplay.database.filename import default_results_name, insert_ordinal
from tensorplay.database.killers import Killer, KillerLog, killers_name
from tensorplay.distributed.partition import by_device
from tensorplay.distributed.worker_process import WorkerEndedError, WorkerProcess, worker_command
from tensorplay.gemm import Signature

__all__ = ["OfflineTuner", "TuneOutcome"]

_FILENAME = "TP_TUNABLEOP_FILENAME"
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
        Why that kernel; None for one that was recorded before.
    measured : bool
        Whether it was measured now.
    candidates : int or None
        How many kernels took part.
    problem : str or None
        Why it could not be measured.
    killers : tuple of Killer
        Kernels that took a worker down.
    seconds : float
        What it took.
    warnings : tuple of str
        What the worker warned of.
    """

    signature: Signature
    kernel: str | None = None
    time_ms: float | None = None
    first_choice_ms: float | None = None
    verdict: str | None = None
    measured: bool = False
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
        What the workers' environments are made of; the results file is `TP_TUNABLEOP_FILENAME`'s.
    stall_s : float
        Seconds without a word after which a worker counts as hung.
    again : bool
        Whether signatures that have a winner are measured again.
    command : callable
        Returns the command of a worker, from a device and the file of its killers.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        stall_s: float = 120.0,
        again: bool = False,
        command: Callable[[str, str], Sequence[str]] = worker_command,
    ) -> None:
        self._environ = dict(os.environ if environ is None else environ)
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

    def killers_of(self, device: str) -> KillerLog:
        """Return the killers beside the results file of a device."""
        name = self._environ.get(_FILENAME)
        path = insert_ordinal(name, device) if name else default_results_name(device)
        return KillerLog(killers_name(str(Path(path).absolute())))

    def start(self, device: str) -> WorkerProcess:
        """Start a worker of a device."""
        return WorkerProcess(
            self._command(device, self.killers_of(device).path), environ=self._environ, stall_s=self._stall_s
        )


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
        killers: list[Killer] = []
        again = self._tuner.again
        for _ in range(_MOST_DEATHS):
            if self._worker is None:
                self._worker = self._tuner.start(self._device)
            try:
                answer = self._worker.ask(signature, again=again)
            except WorkerEndedError as death:
                self._end_worker()
                if death.kernel is None or self._is_stopped:
                    # It had not begun to run anything, so that another would end the same way.
                    return {"problem": str(death), "killers": tuple(killers)}
                killers.append(Killer(*signature, death.kernel, death.death))
                self._remember(killers[-1])
                continue
            answer.pop("event")
            return answer | {"warnings": tuple(answer.get("warnings", ())), "killers": tuple(killers)}
        return {"problem": f"{_MOST_DEATHS} workers ended while measuring it", "killers": tuple(killers)}

    def _remember(self, killer: Killer) -> None:
        self._tuner.killers_of(self._device).record(killer)

    def _end_worker(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None
