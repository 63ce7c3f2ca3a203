"""The background in whole processes, on the host's backend: it measures, ends quietly, and survives a fork."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

VARIABLES = {
    "TP_TUNABLEOP_ENABLED": "1",
    "TP_TUNABLEOP_MODE": "background",
    "TP_TUNABLEOP_FILENAME": "mine.csv",
    "TP_TUNABLEOP_MAX_TUNING_DURATION_MS": "3",
}
START = """
import os, sys
import numpy, tensorplay
from tensorplay import tunable
a = numpy.ones((8, 8), numpy.float32)
def multiply(rows=8):
    assert (tensorplay.mm(numpy.ones((rows, 8), numpy.float32), a) == 8).all()
multiply()
"""


def python(code: str, directory: Path, **variables: str) -> str:
    """Run code in a fresh process, in which nothing is said on standard error; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", START + code],
        cwd=directory,
        env={**os.environ, **VARIABLES, **variables},
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_a_drained_process_has_measured_everything_and_the_next_replays(tmp_path: Path) -> None:
    code = """
multiply(4)
assert tunable.drain(50)
multiply()
stats = tunable.stats()
print(stats["queued"], stats["measured"], stats["replayed"], stats["waiting"])
"""
    assert python(code, tmp_path) == "2 2 1 0"
    assert python(code, tmp_path) == "0 0 3 0"


@pytest.mark.parametrize("wait", ["", "import time; time.sleep(0.03)", "tunable.tuning_disable()"])
def test_a_process_that_does_not_wait_ends_at_once_and_in_silence(tmp_path: Path, wait: str) -> None:
    code = f"""
for rows in range(1, 200):
    multiply(rows)
{wait}
print(tunable.stats()["queued"])
"""
    assert python(code, tmp_path) == "199"


def test_a_product_made_while_the_interpreter_exits_is_right(tmp_path: Path) -> None:
    code = """
import atexit
class Late:
    def __del__(self):
        multiply(5)
late = Late()
sys.modules["late"] = late
atexit.register(multiply, 6)
print("end")
"""
    assert python(code, tmp_path) == "end"


def test_nothing_is_started_before_a_product_waits(tmp_path: Path) -> None:
    code = """
import threading
print(threading.active_count(), tunable.drain(), tunable.stats()["queued"])
"""
    assert python(code, tmp_path, TP_TUNABLEOP_TUNING="0") == "1 True 0"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_forked_children_and_their_parent_each_go_on_measuring(tmp_path: Path) -> None:
    code = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
def fork(waiting):
    # So that it still waits when the process forks.
    with tunable.get_tuning_context()._measuring:
        multiply(waiting)
        return os.fork()
children = []
for waiting, rows in ((12, 20), (13, 30)):
    child = fork(waiting)
    if child == 0:
        # What the parent had queued is the parent's, until the child multiplies so too.
        is_empty = tunable.stats()["waiting"] == tunable.stats()["measuring"] == 0
        before = tunable.stats()["measured"]
        multiply(rows)
        multiply(waiting)
        is_drained = tunable.drain(50)
        os._exit(0 if is_empty and is_drained and tunable.stats()["measured"] == before + 2 else 1)
    children.append(child)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children], tunable.drain(50))
print(len({params for _, params, _, _ in tunable.get_results()}))
tunable.read_file()
print(len({params for _, params, _, _ in tunable.get_results()}))
"""
    assert python(code, tmp_path).splitlines() == ["[0, 0] True", "3", "5"]
