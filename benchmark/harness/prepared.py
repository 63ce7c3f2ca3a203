"""Fresh processes that import before their turn and wait: many import at once, and one at a time has the device.

A process imports its packages when it is started, which takes seconds and touches no device. It calls the function
when it is told to, and ends.
"""

import ctypes
import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.fresh import FreshProcessError, clean_environment

__all__ = ["PreparedProcess", "call_prepared"]

_BENCHMARK = Path(__file__).resolve().parents[1]
_READY = "ready"
_SECONDS = 120.0
# Of <linux/prctl.h>.
_PR_SET_PDEATHSIG = 1


class PreparedProcess:
    """A process that waits to call a function; both sides pass as JSON. End it by leaving the `with` block.

    Parameters
    ----------
    function : callable
        Of the top level of a module below `benchmark`. A function `prepare` of that module, if there is one, is
        called before the process is ready: it imports, and must touch no device.
    directory : path
        The working directory there.
    settings : mapping, optional
        TensorPlay's variables without their prefix; those of this process are not passed on.
    """

    def __init__(
        self,
        function: Callable[..., object],
        *,
        directory: str | os.PathLike[str],
        settings: Mapping[str, str] | None = None,
    ) -> None:
        path = Path(inspect.getfile(function)).resolve().relative_to(_BENCHMARK).with_suffix("")
        self._name = f"{'.'.join(path.parts)}:{function.__name__}"
        # A file, since a full pipe that nobody reads would stop the process.
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `close`
        self._process = subprocess.Popen(
            (sys.executable, "-m", "harness.prepared", ".".join(path.parts), function.__name__, str(directory)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=_BENCHMARK,
            env=clean_environment(**(settings or {})),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def wait_until_ready(self) -> None:
        """Wait for its imports; `FreshProcessError` when they fail."""
        line = self._process.stdout.readline() if self._process.stdout else ""
        if line.strip() != _READY:
            self._process.wait()
            raise FreshProcessError(f"{self._name} did not start:\n{self._what_it_wrote()}")

    def call(self, *, timeout: float = _SECONDS, **arguments: object) -> Any:
        """Return what the function returns, its process having ended.

        Raises
        ------
        FreshProcessError
            When it raised, crashed, or took more than `timeout` seconds.
        """
        try:
            answer, _ = self._process.communicate(json.dumps(arguments) + "\n", timeout)
        except subprocess.TimeoutExpired as error:
            self.close()
            raise FreshProcessError(f"{self._name} took more than {timeout:g} s") from error
        written = self._what_it_wrote()
        if self._process.returncode != 0:
            raise FreshProcessError(f"{self._name} failed with status {self._process.returncode}:\n{written}")
        sys.stderr.write(written)
        return json.loads(answer.splitlines()[-1])

    def close(self) -> None:
        """End the process if it runs still."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()
        self._errors.close()

    def _what_it_wrote(self) -> str:
        self._errors.seek(0)
        return self._errors.read()


def call_prepared(
    function: Callable[..., object],
    *,
    directory: str | os.PathLike[str],
    settings: Mapping[str, str] | None = None,
    **arguments: Any,
) -> Any:
    """Return what `function(**arguments)` returns in a process of its own, which nothing waits beside."""
    with PreparedProcess(function, directory=directory, settings=settings) as process:
        process.wait_until_ready()
        return process.call(**arguments)


def _end_with_parent() -> None:
    """Let the system end this process with the one that started it: a search of a minute would disturb what follows."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _wait_and_answer(module_name: str, function: str, directory: str) -> None:
    _end_with_parent()
    module = importlib.import_module(module_name)
    getattr(module, "prepare", lambda: None)()
    os.chdir(directory)
    sys.stdout.write(f"{_READY}\n")
    sys.stdout.flush()
    answer = getattr(module, function)(**json.loads(sys.stdin.readline()))
    sys.stdout.write(f"\n{json.dumps(answer)}\n")


if __name__ == "__main__":
    _wait_and_answer(*sys.argv[1:])
