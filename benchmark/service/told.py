"""A process that does what it is told, one line at a time, so that hosts and clients share no interpreter."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.fresh import FreshProcessError, clean_environment

__all__ = ["ToldProcess", "obey", "wait_until"]

_BENCHMARK = Path(__file__).resolve().parents[1]
_ENDS_S = 20.0


class ToldProcess:
    """A module's process; `ask` calls one of the functions that it obeys.

    Parameters
    ----------
    module : str
        Beside the benchmarks; run as a program, it calls `obey`.
    directory : path
        The working directory.
    settings : mapping, optional
        TensorPlay's variables without their prefix; those of this process are not passed on.
    """

    def __init__(
        self, module: str, *, directory: str | os.PathLike[str], settings: Mapping[str, str] | None = None
    ) -> None:
        self._module = module
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed in `close`
        self._process = subprocess.Popen(
            (sys.executable, "-m", module),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=directory,
            env=clean_environment(**(settings or {})) | {"PYTHONPATH": _search_path()},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def computed_s(self) -> float:
        """Return for how many seconds it has computed so far."""
        # Behind the name of the program, which may hold anything; see proc(5).
        columns = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(columns[11]) + int(columns[12])) / os.sysconf("SC_CLK_TCK")

    def ask(self, name: str, **arguments: Any) -> Any:
        """Return what a function returns; both sides pass as JSON."""
        self.begin(name, **arguments)
        return self.answer()

    def begin(self, name: str, **arguments: Any) -> None:
        """Let it call a function, whose answer is fetched by `answer`."""
        if self._process.stdin is None:
            raise RuntimeError("the process has no input")
        self._process.stdin.write(json.dumps([name, arguments]) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Return what the function returned that was begun last; `FreshProcessError` when it failed."""
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            self._process.wait(_ENDS_S)
            raise FreshProcessError(f"{self._module} ended with {self._process.returncode}:\n{self.written()}")
        return json.loads(line)

    def written(self) -> str:
        """Return what it wrote to standard error."""
        self._errors.seek(0)
        return self._errors.read()

    def close(self) -> None:
        """Let it end, and wait for that."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            self._process.wait(_ENDS_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._errors.close()


def _search_path() -> str:
    return os.pathsep.join(each for each in (str(_BENCHMARK), os.environ.get("PYTHONPATH")) if each)


def obey(functions: Mapping[str, Callable[..., Any]]) -> None:
    """Call what each line of the standard input names, and answer on the standard output, until there are no more."""
    for line in sys.stdin:
        name, arguments = json.loads(line)
        answer = json.dumps(functions[name](**arguments))
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    """Return once something is so; `RuntimeError` when it takes too long."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"waited {seconds:g} s in vain: {what}")
        time.sleep(0.01)
