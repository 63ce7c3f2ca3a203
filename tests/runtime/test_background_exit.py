"""The thread that measures in the background, and the interpreter that ends around it."""

import subprocess
import sys
from pathlib import Path

import pytest

EXIT = """
import sys, threading, time
from tensorplay.gemm import Signature
from tensorplay.runtime.background import Background

class Task:
    device, is_cancelled = "0", False
    signature = Signature("op", "a")

began = threading.Event()
def measure(task):
    began.set()
    {body}
    return True

background = Background(measure, lambda task: {is_time})
background.put(Task())
{wait}
"""


@pytest.mark.parametrize(
    ("body", "is_time", "wait"),
    [
        ("pass", "False", ""),
        ("while not task.is_cancelled: time.sleep(0.001)", "True", "began.wait(20)"),
        ("time.sleep(600)", "True", "began.wait(20)"),
        ("while True: pass", "True", "began.wait(20)"),
    ],
    ids=["waiting", "measuring", "hanging", "spinning"],
)
def test_the_interpreter_exits_soon_and_without_a_word(body: str, is_time: str, wait: str, tmp_path: Path) -> None:
    script = EXIT.format(body=body, is_time=is_time, wait=wait)
    ended = subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", script],
        cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
