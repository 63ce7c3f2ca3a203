"""A process has one context, made at first touch; a forked child goes on with what it inherits."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import get_tuning_context, use_context
from tensorplay.testing import ScriptedBackend

ON = {"TP_TUNABLEOP_ENABLED": "1"}


def python(code: str, directory: Path, **environ: str) -> str:
    """Run code in a fresh process; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=directory,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_everyone_gets_the_same_context() -> None:
    with use_context(TuningContext(environ={})) as context:
        assert get_tuning_context() is context


def test_a_context_used_for_a_while_gives_way_again_also_after_an_error() -> None:
    with use_context(TuningContext(environ={})) as outer:
        with pytest.raises(ZeroDivisionError), use_context(TuningContext(environ={})):
            raise ZeroDivisionError
        assert get_tuning_context() is outer


def test_the_environment_is_read_at_first_touch_and_never_again(tmp_path: Path) -> None:
    code = """
import os
from tensorplay import tunable
os.environ["TP_TUNABLEOP_MAX_TUNING_SAMPLES"] = "7"
assert tunable.get_max_tuning_samples() == 7
os.environ["TP_TUNABLEOP_MAX_TUNING_SAMPLES"] = "9"
print(tunable.get_max_tuning_samples())
"""
    assert python(code, tmp_path) == "7"


def test_two_variables_tune_a_program_that_knows_nothing_of_tuning(tmp_path: Path) -> None:
    code = """
import numpy, tensorplay
a = numpy.ones((8, 8), numpy.float32)
for _ in range(3):
    assert (tensorplay.mm(a, a) == 8).all()
from tensorplay import tunable
stats = tunable.stats()
print(stats["measured"], stats["replayed"])
"""
    variables = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_FILENAME": "mine.csv"}
    assert python(code, tmp_path, **variables) == "1 2"
    assert python(code, tmp_path, **variables) == "0 3"
    assert (tmp_path / "minecpu.csv").exists()


def test_what_could_not_be_written_is_written_at_exit(tmp_path: Path) -> None:
    code = """
import os, warnings
warnings.simplefilter("ignore")
import numpy, tensorplay
a = numpy.ones((8, 8), numpy.float32)
tensorplay.mm(a, a)
os.mkdir("late")
"""
    variables = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_FILENAME": "late/mine.csv"}
    python(code, tmp_path, **variables)
    assert "GemmTunableOp_Float32" in (tmp_path / "late" / "minecpu.csv").read_text()


def test_a_setting_that_is_ignored_does_not_stop_the_first_product_where_warnings_are_errors(tmp_path: Path) -> None:
    code = "import numpy, tensorplay; print(tensorplay.mm(numpy.eye(2), numpy.eye(2))[0, 0])"
    assert python(code, tmp_path, TP_TUNABLEOP_ENABLED="maybe", TP_TUNABLEOP_TYPO="1") == "1.0"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_another_thread_measures_can_measure_too(
    make_context: Any, call: Any, backend: ScriptedBackend
) -> None:
    context = make_context()
    held, done = threading.Event(), threading.Event()

    def measure_for_long() -> None:
        with context._measuring, context._state_lock, context._ledger._lock:
            held.set()
            done.wait(20)

    thread = threading.Thread(target=measure_for_long)
    thread.start()
    held.wait(20)
    try:
        pid = os.fork()
        if pid == 0:
            threading.Timer(10, os._exit, [3]).start()
            call(context)
            os._exit(0 if context.stats()["measured"] == 1 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        done.set()
        thread.join()
