"""One tuning worker as its parent sees it: started, asked, watched, and ended when it says nothing any more."""

import contextlib
import os
import queue
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from threading import Thread
from types import TracebackType
from typing import Any, Self

from tensorplay.database.killers import Death
from tensorplay.distributed.message import (
    DONE,
    LOST,
    MET,
    NOTHING,
    TRY,
    Request,
    Running,
    decode,
    decode_running,
    encode_request,
)
from tensorplay.errors import TensorPlayError

__all__ = ["WorkerEndedError", "WorkerProcess", "worker_command"]

_ENDING_S = 5.0
_LONGEST_COMPLAINT = 400


class WorkerEndedError(TensorPlayError):
    """A worker ended, or had to be ended, before it answered.

    Attributes
    ----------
    death : Death
        How.
    running : Running
        What it said last that it would run.
    """

    def __init__(self, death: Death, running: Running, message: str) -> None:
        super().__init__(message)
        self.death = death
        self.running = running


def worker_command(device: str, results: str) -> list[str]:
    """Return the command of a worker in a fresh interpreter, but for the descriptor that it answers on."""
    return [sys.executable, "-m", "tensorplay.distributed.worker", device, results]


class WorkerProcess:
    """A worker between its start and its end, which the end of a `with` block brings.

    Parameters
    ----------
    command : sequence of str
        What to start; the number of the descriptor that it answers on is added.
    environ : mapping
        The worker's environment.
    stall_s : float
        Seconds without a word from it after which it counts as hung.
    """

    def __init__(self, command: Sequence[str], *, environ: Mapping[str, str], stall_s: float) -> None:
        self._stall_s = stall_s
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        read_end, write_end = os.pipe()
        self._answers = os.fdopen(read_end, "rb")
        try:
            # Not on standard output, on which libraries print what they like.
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [*command, str(write_end)],
                stdin=subprocess.PIPE,
                stdout=self._complaints,
                stderr=self._complaints,
                env=dict(environ),
                pass_fds=(write_end,),
            )
        except OSError:
            self._answers.close()
            self._complaints.close()
            raise
        finally:
            os.close(write_end)
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        # A pipe cannot be read with a time limit on every system, a queue can.
        self._reader = Thread(target=self._read, name="tensorplay-worker-reader", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, request: Request, met: Callable[[dict[str, Any]], object] = lambda _recorded: None) -> dict[str, Any]:
        """Return the worker's answer for one signature; `WorkerEndedError` when there will be none.

        `met` hears what is recorded for it when it is to be measured again, before it is.
        """
        if self._process.stdin is None:
            raise WorkerEndedError(Death.DIED, NOTHING, "the pipes to the worker could not be made")
        try:
            self._process.stdin.write(encode_request(request))
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._gone(NOTHING) from None
        running = NOTHING
        while True:
            message = self._next(running)
            if message["event"] == MET:
                met({name: value for name, value in message.items() if name != "event"})
            elif message["event"] == TRY:
                running = decode_running(message)
            elif message["event"] == LOST:
                raise WorkerEndedError(Death.POISONED, decode_running(message), str(message["reason"]))
            elif message["event"] == DONE:
                return message

    def kill(self) -> None:
        """End the worker at once; from any thread."""
        self._process.kill()

    def close(self) -> None:
        """End the worker, kindly first, and give back pipes and files."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(_ENDING_S)
        if not self._reader.is_alive():
            self._answers.close()
        self._complaints.close()

    def _read(self) -> None:
        for line in self._answers:
            self._lines.put(line)
        self._lines.put(b"")

    def _next(self, running: Running) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=self._stall_s)
        except queue.Empty:
            self._process.kill()
            self._process.wait()
            raise WorkerEndedError(
                Death.HUNG, running, f"it said nothing for {self._stall_s:g} s and was ended"
            ) from None
        if not line.endswith(b"\n"):
            raise self._gone(running)
        return decode(line)

    def _gone(self, running: Running) -> WorkerEndedError:
        try:
            code = self._process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._complaints.seek(0)
        said = self._complaints.read().decode(errors="backslashreplace").strip()
        ending = f"it was ended by signal {-code}" if code < 0 else f"it ended with code {code}"
        # Of a traceback, the last line is the error.
        last = said.rpartition("\n")[2][-_LONGEST_COMPLAINT:]
        return WorkerEndedError(Death.DIED, running, f"{ending}: {last}" if last else ending)
