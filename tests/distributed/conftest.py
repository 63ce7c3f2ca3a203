"""Workers on a scripted device, with kernels that end their process in every way there is."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

WORKER = """
import os, signal, sys, time
from tensorplay.distributed.worker import main
from tensorplay.errors import LaunchError
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST, BAD = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
HOW = sys.argv.pop(1)


class Deadly(ScriptedBackend):
    is_poisoned = False

    def _plan(self, problem, kernel):
        plan = super()._plan(problem, kernel)

        def run(left, right, out=None):
            if self.is_poisoned:
                raise LaunchError("an illegal memory access was encountered")
            if kernel == BAD and HOW == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if kernel == BAD and HOW == "exits":
                print("printed by a library")
                os._exit(3)
            if kernel == BAD and HOW == "hung":
                time.sleep(600)
            if kernel == BAD and HOW == "poisoned":
                self.is_poisoned = True
                raise LaunchError("an illegal memory access was encountered")
            if kernel == BAD and HOW == "fails":
                raise LaunchError("not supported")
            return plan.run(left, right, out)

        return type(plan)(problem, kernel, run)


print("printed by a library")
if HOW == "does not start":
    raise SystemExit("no such device")
sys.exit(main(find=lambda device: Deadly({FIRST: 1.0, BAD: 0.25, FAST: 0.5}, device=device)))
"""

Command = Callable[[str], Callable[[str, str], Sequence[str]]]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Makes the command of a worker one of whose kernels behaves as named."""
    path = tmp_path / "worker.py"
    path.write_text(WORKER, encoding="utf-8")
    return lambda how: lambda device, results: [sys.executable, str(path), how, device, results]
