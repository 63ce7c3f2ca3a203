"""The processes of `tensorplay bench`: one for each shape and mode, so that nothing is warm but what should be."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from tensorplay.cli.bench_shape import BenchShape

__all__ = ["BenchMode", "Job", "WorkerError", "run_job", "worker_environment"]

_VARIABLES = "TP_TUNABLEOP_"
_ENDING_S = 5.0
_LONGEST_COMPLAINT = 400

Reply = dict[str, Any]  # JSON: what `tensorplay.cli.bench_worker` says it is


class BenchMode(StrEnum):
    """How a worker dispatches: without tuning, measuring what has no winner, or replaying only."""

    DEFAULT = "default"
    TUNE = "tune"
    REPLAY = "replay"


class WorkerError(Exception):
    """A worker ended without an answer; the message is what it left on standard error."""


class Job(NamedTuple):
    """One fresh process: what it multiplies, how it dispatches, and the results file that it is given."""

    shape: BenchShape
    mode: BenchMode
    iterations: int
    results_name: str


def worker_environment(mode: BenchMode, results_name: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return a worker's environment: none of our variables by default, else the caller's but those that decide.

    What must be deterministic is so by default too: the others would be compared with something that is not allowed.
    `results_name` has no device ordinal in it; the runtime inserts that.
    """
    if mode is BenchMode.DEFAULT:
        kept = f"{_VARIABLES}DETERMINISTIC"
        return {name: value for name, value in environ.items() if name == kept or not name.startswith(_VARIABLES)}
    return dict(environ) | {
        f"{_VARIABLES}ENABLED": "1",
        f"{_VARIABLES}MODE": "blocking",
        f"{_VARIABLES}TUNING": "1" if mode is BenchMode.TUNE else "0",
        f"{_VARIABLES}FILENAME": results_name,
    }


def run_job(job: Job, environ: Mapping[str, str]) -> Reply:
    """Return what a fresh process found; whatever interrupts this ends the process first.

    Raises
    ------
    WorkerError
        When the process ended without an answer.
    """
    request = {"shape": str(job.shape), "mode": job.mode.value, "iterations": job.iterations}
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, *_import_options(), "-m", "tensorplay.cli.bench_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env=worker_environment(job.mode, job.results_name, environ),
        )
        try:
            answer = _converse(process, json.dumps(request).encode() + b"\n")
        finally:
            _end(process)
        complaints.seek(0)
        complaint = complaints.read().decode(errors="backslashreplace").strip()
    try:
        reply: Reply = json.loads(answer)
    except ValueError:
        raise WorkerError(_last_words(process.returncode, complaint)) from None
    return reply | {"stderr": complaint}


def _converse(process: subprocess.Popen[bytes], request: bytes) -> bytes:
    """Write the request and read to the end; the pipe stays open, since its end tells the worker that we died."""
    if process.stdin is None or process.stdout is None:
        raise WorkerError("the pipes to the worker could not be made")
    try:
        process.stdin.write(request)
        process.stdin.flush()
    except BrokenPipeError:
        # It died before it read; what it says on standard error is told instead.
        return b""
    return process.stdout.read()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait for a worker that has answered, end one that has not, and close the pipes."""
    if process.stdout is not None:
        process.stdout.close()
    if process.stdin is not None:
        # Its end lets a worker that is still at work go; nothing is buffered that could fail.
        process.stdin.close()
    try:
        process.wait(_ENDING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _import_options() -> list[str]:
    # Without -P a module of the working directory would come before everyone else's of that name. When the package
    # itself is only found there, in a checkout that is not installed, it must be looked for there.
    is_checkout = Path(__file__).parents[2] == Path.cwd()
    return [] if is_checkout else ["-P"]


def _last_words(returncode: int, complaint: str) -> str:
    ending = f"was ended by signal {-returncode}" if returncode < 0 else f"ended with code {returncode}"
    # Of a traceback, the last line is the error.
    last = complaint.rpartition("\n")[2][-_LONGEST_COMPLAINT:]
    return f"the process {ending}" + (f": {last}" if last else " and said nothing")
