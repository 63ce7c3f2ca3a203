"""Who is told of a process's context: once, when it is made, and only of an address that is given."""

import subprocess
import sys
from pathlib import Path

_TOLD = """
from tensorplay.runtime.first_context import on_first_context
from tensorplay.runtime.process import get_tuning_context, state

def tell(address):
    # Asking again here must find the context, and not wait for itself.
    print(address, get_tuning_context() is state.context)

on_first_context(tell)
get_tuning_context()
get_tuning_context()
"""


def _output(folder: Path, **environ: str) -> str:
    command = [
        sys.executable,
        "-P",
        "-c",
        "import tensorplay.service.autostart as a; a.serve_dashboard = print" + _TOLD,
    ]
    ended = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=50, check=True)
    return ended.stdout


def test_it_is_told_once_of_the_address(tmp_path: Path) -> None:
    assert _output(tmp_path, TP_TUNABLEOP_DASHBOARD="127.0.0.1:1") == "127.0.0.1:1\n127.0.0.1:1 True\n"


def test_without_an_address_nobody_is_told(tmp_path: Path) -> None:
    assert _output(tmp_path) == ""
