"""Tuning jobs: signatures measured one after another on a thread of their own, with progress and a way to stop."""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median
from threading import Lock, Thread

from tensorplay.errors import TensorPlayError
from tensorplay.gemm import Signature
from tensorplay.service.live_runtime import LiveRuntime
from tensorplay.service.problems import Problem

__all__ = ["OVER", "Job", "Jobs"]

OVER = frozenset({"succeeded", "failed", "cancelled"})
_MOST_JOBS = 100
_MOST_FAILURES = 100


@dataclass(eq=False)
class Job:
    """One job; read by any thread, written by its own.

    Attributes
    ----------
    state : str
        `queued`, `running`, `cancelling`, or one of `OVER`.
    current : Signature or None
        What is measured now.
    failures : list of (Signature, str)
        What could not be measured, with the reason.
    seconds : list of float
        What each finished signature took.
    """

    id: str
    signatures: Sequence[Signature]
    created_at: str
    state: str = "queued"
    done: int = 0
    current: Signature | None = None
    failures: list[tuple[Signature, str]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    started: float | None = None
    ended: float | None = None
    revision: int = 0

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
        self._keys: dict[str, tuple[tuple[Signature, ...], str]] = {}

    def start(self, signatures: Sequence[Signature], key: str | None = None) -> Job:
        """Start a job and return it; with the same idempotency key, the one that was started before.

        Raises
        ------
        Problem
            409 while another runs, 422 for no signatures, or for a key that was used for others.
        """
        wanted = tuple(dict.fromkeys(signatures))
        if not wanted:
            raise Problem(
                422, "nothing-to-tune", "there are no signatures to tune; run the workload with tuning off first"
            )
        with self._lock:
            if key and key in self._keys:
                before, identity = self._keys[key]
                if before != wanted:
                    raise Problem(422, "key-reused", "this Idempotency-Key was used for another job; make a new one")
                if identity in self._jobs:
                    return self._jobs[identity]
            running = next((job for job in self._jobs.values() if job.state not in OVER), None)
            if running is not None:
                raise Problem(409, "job-running", "another job is running; wait for it or cancel it", job=running.id)
            job = Job(secrets.token_hex(8), wanted, datetime.now(UTC).isoformat(timespec="seconds"))
            self._jobs[job.id] = job
            if key:
                self._keys[key] = (wanted, job.id)
                while len(self._keys) > _MOST_JOBS:
                    del self._keys[next(iter(self._keys))]
            over = [each for each in self._jobs.values() if each.state in OVER]
            for old in over[: max(0, len(self._jobs) - _MOST_JOBS)]:
                del self._jobs[old.id]
        Thread(target=self._run, args=(job,), name="tensorplay-job", daemon=True).start()
        return job

    def listed(self) -> list[Job]:
        """Return all jobs, the newest first."""
        with self._lock:
            return list(self._jobs.values())[::-1]

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
        for signature in job.signatures:
            if job.state == "cancelling":
                break
            job.current = signature
            self._tell(job)
            begin = time.monotonic()
            reason = self._tuned(signature)
            if reason is not None and len(job.failures) < _MOST_FAILURES:
                job.failures.append((signature, reason))
            job.seconds.append(time.monotonic() - begin)
            job.done += 1
        job.current = None
        job.ended = time.monotonic()
        with self._lock:
            if job.state == "cancelling" and job.done < len(job.signatures):
                job.state = "cancelled"
            else:
                job.state = "failed" if len(job.failures) == len(job.signatures) else "succeeded"
        self._tell(job)

    def _tuned(self, signature: Signature) -> str | None:
        """Measure a signature; return why it could not be."""
        try:
            told = self._runtime.tune(signature)
        except TensorPlayError as error:
            return str(error)
        reason = told.get("not_measured")
        return None if reason is None else str(reason)

    def _tell(self, job: Job) -> None:
        job.revision += 1
        self._runtime.touch("jobs", job=job.id, state=job.state, done=job.done, of=len(job.signatures))
