"""`tensorplay ctl export`: what a file of others says is shown on a terminal, and copied everywhere else."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, start
from tensorplay.testing import ScriptedBackend, scripted_kernel

FOREIGN = "\x1b[31mred\x1b]0;title\x07"
EXPORT = [sys.executable, "-m", "tensorplay", "ctl", "export", "--kind", "rejections.csv"]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A process that was given a file with escape sequences in it."""
    backend = ScriptedBackend({scripted_kernel(1): 1.0})
    context = TuningContext(environ={"TP_TUNABLEOP_ENABLED": "1"}, directory=tmp_path, backends={"0": backend})
    (tmp_path / "foreign.csv").write_text(f"Validator,TP_TUNABLEOP_FORMAT,1\nValidator,HOST_CPU,{FOREIGN}\n")
    with pytest.warns(match="foreign"):
        context.read_file("foreign.csv")
    with start(context=context) as started:
        yield started
    context.close()


@pytest.fixture(params=["", "1"], ids=["buffered", "unbuffered"])
def environ(service: Service, request: pytest.FixtureRequest) -> dict[str, str]:
    return os.environ | {"TENSORPLAY_URL": service.url, "TERM": "xterm-256color", "PYTHONUNBUFFERED": request.param}


def test_a_terminal_is_shown_escapes_and_a_pipe_and_a_file_get_the_bytes(
    environ: dict[str, str], tmp_path: Path
) -> None:
    piped = subprocess.run(EXPORT, capture_output=True, env=environ, check=True).stdout
    assert b"\x1b" in piped
    ours, theirs = pty.openpty()
    copy = tmp_path / "copy.csv"
    for arguments in ([], ["--output", str(copy)]):
        subprocess.run([*EXPORT, *arguments], stdin=subprocess.DEVNULL, stdout=theirs, env=environ, check=True)
    os.close(theirs)
    shown = b""
    while part := _read(ours):
        shown += part
    os.close(ours)
    assert copy.read_bytes() == piped
    assert b"\x1b" not in shown
    assert b"\x07" not in shown
    assert b"\\x1b[31mred\\x1b]0;title\\x07" in shown
    assert len(shown.splitlines()) == len(piped.splitlines()) > 1


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        # Linux says EIO when the last writer has gone.
        return b""
