"""Tuning jobs: signatures measured one after another on a thread of their own, with progress and a way to stop."""

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median
from threading import Lock, Thread

from tensorplay.errors import TensorPlayError
from tensorplay.gemm import Signature
from tensorplay.runtime.notice import logger
from tensorplay.service.live_runtime import LiveRuntime, Tuned, without_folders
from tensorplay.service.problems import Problem

__all__ = ["OVER", "Job", "Jobs"]

OVER = frozenset({"succeeded", "failed", "cancelled"})
_MOST_JOBS = 100
_MOST_FAILURES = 100
_LONGEST_REASON = 300


@dataclass(eq=False)
class Job:
    """One job; read by any thread, written by its own.

    Attributes
    ----------
    state : str
        `queued`, `running`, `cancelling`, or one of `OVER`.
    current : Signature or None
        What is measured now.
    skipped : int
        How many of those that are done have a winner that runs, and were left as they are.
    failed : int
        How many could not be measured.
    failures : list of (Signature, str)
        The first of them, each with the reason.
    budget : mapping of str to float
        `total_seconds`, and settings that hold while it runs.
    reason : str or None
        Why it ended before everything was measured, if it did so itself.
    seconds : list of float
        What each signature took that was not skipped.
    """

    id: str
    signatures: Sequence[tuple[str, str]]
    created_at: str
    kind: str = "tune"
    budget: Mapping[str, float] = field(default_factory=dict)
    state: str = "queued"
    done: int = 0
    skipped: int = 0
    failed: int = 0
    current: Signature | None = None
    failures: list[tuple[Signature, str]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    started: float | None = None
    ended: float | None = None
    revision: int = 0
    reason: str | None = None

    @property
    def elapsed_s(self) -> float:
        """Return the seconds since the start, up to the end."""
        return 0.0 if self.started is None else (self.ended or time.monotonic()) - self.started

    @property
    def eta_s(self) -> float | None:
        """Return the seconds that are left, by the median of what is done; None when nothing is, or all."""
        if self.state in OVER or not self.seconds:
            return None
        return (len(self.signatures) - self.done) * median(self.seconds)


class Jobs:
    """The jobs of one application: one runs at a time, since measurements would disturb each other."""

    def __init__(self, runtime: LiveRuntime) -> None:
        self._runtime = runtime
        self._lock = Lock()
        self._jobs: dict[str, Job] = {}

    def start(
        self, signatures: Iterable[tuple[str, str]], *, kind: str = "tune", budget: Mapping[str, float] | None = None
    ) -> Job:
        """Start a job and return it.

        Parameters
        ----------
        signatures : iterable of (str, str)
            What is measured, each once.
        kind : str
            `tune`, or `retune` for what is measured even where it has a winner.
        budget : mapping of str to float, optional
            `total_seconds`, after which nothing further is begun, and settings that hold while it runs.

        Raises
        ------
        Problem
            409 while another runs, 422 for no signatures.
        """
        # Plain tuples, which the garbage collector does not look at: there may be a hundred thousand.
        wanted = tuple(dict.fromkeys(each[:] for each in signatures))
        if not wanted:
            raise Problem(
                422, "nothing-to-tune", "there are no signatures to tune; run the workload with tuning off first"
            )
        with self._lock:
            running = next((job for job in self._jobs.values() if job.state not in OVER), None)
            if running is not None:
                raise Problem(
                    409,
                    "job-running",
                    "another job is running; wait for it or cancel it",
                    job=running.id,
                    link=f"jobs/{running.id}",
                )
            now = datetime.now(UTC).isoformat(timespec="seconds")
            job = Job(secrets.token_hex(8), wanted, now, kind, dict(budget or {}))
            self._jobs[job.id] = job
            over = [each for each in self._jobs.values() if each.state in OVER]
            for old in over[: max(0, len(self._jobs) - _MOST_JOBS)]:
                del self._jobs[old.id]
        thread = Thread(target=self._run, args=(job,), name="tensorplay-job", daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:
            # No more threads, or the interpreter is about to exit.
            self._end(job, _broken_off(job, error))
        return job

    def listed(self) -> list[Job]:
        """Return all jobs, the newest first."""
        with self._lock:
            return list(self._jobs.values())[::-1]

    def running(self) -> Job | None:
        """Return the job that is not over; there is one at most."""
        return next((job for job in self.listed() if job.state not in OVER), None)

    def get(self, identity: str) -> Job:
        """Return a job; a 404 `Problem` when there is none."""
        job = self._jobs.get(identity)
        if job is None:
            raise Problem(404, "not-found", "there is no such job")
        return job

    def cancel(self, identity: str) -> Job:
        """Let a job end after the signature that it measures; again in vain."""
        job = self.get(identity)
        with self._lock:
            if job.state in {"queued", "running"}:
                job.state = "cancelling"
        self._tell(job)
        return job

    def forget(self, identity: str) -> None:
        """Drop a job that is over; a 409 `Problem` for one that is not."""
        job = self.get(identity)
        with self._lock:
            if job.state not in OVER:
                raise Problem(409, "job-running", "this job is running; cancel it first", job=job.id)
            self._jobs.pop(identity, None)
        self._tell(job)

    def close(self) -> None:
        """Let every job end."""
        for job in self.listed():
            if job.state not in OVER:
                self.cancel(job.id)

    def _run(self, job: Job) -> None:
        job.started = time.monotonic()
        with self._lock:
            if job.state == "queued":
                job.state = "running"
        settings = {name: value for name, value in job.budget.items() if name != "total_seconds"}
        trouble = "its thread ended; the log of the process says why"
        try:
            with self._runtime.context.configure(**settings) if settings else nullcontext():
                self._measure(job)
            trouble = ""
        except Exception as error:  # noqa: BLE001 - whatever it is, no other job may wait for this one for ever
            trouble = _broken_off(job, error)
        finally:
            self._end(job, trouble)

    def _end(self, job: Job, trouble: str) -> None:
        """Let a job be over; it has failed when there was trouble."""
        job.current = None
        job.ended = time.monotonic()
        with self._lock:
            if trouble:
                job.state, job.reason = "failed", trouble
            elif job.done < len(job.signatures) and (job.state == "cancelling" or job.reason is not None):
                job.state = "cancelled"
            else:
                job.state = "failed" if job.failed == len(job.signatures) else "succeeded"
        self._tell(job)

    def _measure(self, job: Job) -> None:
        total = job.budget.get("total_seconds")
        for op, params in job.signatures:
            if job.state == "cancelling":
                return
            if total and job.elapsed_s >= total:
                job.reason = f"the {total:g} s of its budget are spent"
                return
            job.current = signature = Signature(op, params)
            self._tell(job)
            begin = time.monotonic()
            reason, is_skipped = self._tuned(signature, is_again=job.kind == "retune")
            if reason is not None:
                job.failed += 1
                if len(job.failures) < _MOST_FAILURES:
                    job.failures.append((signature, reason))
            if is_skipped:
                job.skipped += 1
            else:
                job.seconds.append(time.monotonic() - begin)
            job.done += 1

    def _tuned(self, signature: Signature, *, is_again: bool) -> Tuned:
        """Measure a signature; return what became of it."""
        try:
            return self._runtime.tune(signature, again=is_again)
        except TensorPlayError as error:
            return Tuned(str(error), is_skipped=False)

    def _tell(self, job: Job) -> None:
        job.revision += 1
        self._runtime.touch("jobs", job=job.id, state=job.state, done=job.done, of=len(job.signatures))


def _broken_off(job: Job, error: Exception) -> str:
    """Log what kept a job from being done, and return it for people, without folders."""
    what = "it could not be begun" if job.current is None else f"measuring {job.current.params} broke off"
    logger.error("job %s: %s", job.id, what, exc_info=error)
    told = without_folders(f"{type(error).__name__}: {error}")[:_LONGEST_REASON]
    return f"{what}, by {told}; the log of the process says more"
