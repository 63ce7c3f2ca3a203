import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from tensorplay.cli.main import main
from tensorplay.version import __version__

COMMAND = [sys.executable, "-m", "tensorplay"]
HEAVY = {"numpy", "rich", "scipy", "threadpoolctl", "ml_dtypes", "filelock", "asyncio", "tensorplay.runtime.context"}
HEAVY |= {"tensorplay.runtime.settings", "httpx", "pydantic", "fastapi"}


def test_the_version_is_shown_by_module_and_by_command() -> None:
    shown = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout == f"tensorplay {__version__}\n"
    assert CliRunner().invoke(main, ["--version"]).output == shown.stdout


def test_the_command_starts_with_a_click_whose_types_take_no_parameter() -> None:
    script = (
        "import click\n"
        "def refuse(cls, item): raise TypeError('not subscriptable, as before click 8.4')\n"
        "click.ParamType.__class_getitem__ = classmethod(refuse)\n"
        "from tensorplay.cli.main import main\n"
        "main(['ctl', '--help'])\n"
    )
    subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--version"], ["--help"], ["bench", "--help"], ["show", "-h"], ["explain", "-h"], ["doctor", "-h"]),
        *(["ctl", "-h"], ["serve", "-h"]),
    ],
)
def test_version_and_help_import_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from tensorplay.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code\n"
        "print(sorted(sys.modules), file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", script, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = {name.strip("' \n[]") for name in ended.stderr.split(",")}
    assert "click" in imported
    assert not imported & HEAVY


@pytest.mark.parametrize("command", ["bench", "show", "explain", "doctor"])
def test_the_help_of_each_command_has_an_example(command: str) -> None:
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0
    example = result.output.partition("Example:\n")[2].strip()
    assert f"tensorplay {command}" in example
    assert command in CliRunner().invoke(main, ["--help"]).output


def test_an_unknown_command_is_a_usage_error() -> None:
    assert CliRunner().invoke(main, ["tune"]).exit_code == 2


def test_ctrl_c_ends_a_command_with_130_and_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    line = "GemmTunableOp_Float32,taN_m{}_n8_k8_bias0_devcpu,Default,0.5\n"
    path.write_text("".join(line.format(m) for m in range(1, 300_000)))
    with subprocess.Popen([*COMMAND, "show", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate()
    assert process.returncode == 130
    assert complaint == b"interrupted\n"


def test_ctrl_c_while_commands_are_imported_is_no_traceback_either() -> None:
    script = (
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'tensorplay.cli.show': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from tensorplay.cli.main import main\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_what_is_no_regular_file_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for arguments in (["show", str(pipe)], ["show", "/dev/zero"], ["bench", "--shapes", str(pipe)]):
        done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode != 0
        assert "not a regular file" in done.stderr
        assert "Traceback" not in done.stderr


def test_an_output_that_cannot_be_written_is_one_line_and_exit_1(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text("GemmTunableOp_Float32,taN_m8_n8_k8_bias0_devcpu,Default,0.5\n")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "show", str(path)], stdout=full, stderr=subprocess.PIPE, text=True, timeout=30, check=False
        )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["ctl", "--help"]])
def test_a_version_or_help_that_cannot_be_written_is_one_line_and_exit_1(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "tensorplay: [Errno 28] No space left on device\n"


def test_a_closed_output_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text("GemmTunableOp_Float32,taN_m8_n8_k8_bias0_devcpu,Default,0.5\n")
    command = " ".join(map(shlex.quote, [*COMMAND, "show", str(path)]))
    done = subprocess.run(["/bin/sh", "-c", f"{command} >&-"], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_stops_early_is_no_error_to_tell_about(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    lines = (f"GemmTunableOp_Float32,taN_m{m}_n8_k8_bias0_devcpu,Default,0.5\n" for m in range(1, 5000))
    path.write_text("".join(lines))
    with subprocess.Popen(
        [*COMMAND, "show", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "4999 winners" in process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""


def test_what_the_terminal_cannot_spell_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text("Validator,HOST_CPU,Zürich Ω\n", encoding="utf-8")
    environ = os.environ | {"PYTHONIOENCODING": "latin-1"}
    shown = subprocess.run([*COMMAND, "show", str(path)], capture_output=True, check=True, env=environ)
    assert b"HOST_CPU: Z\xfcrich \\u03a9" in shown.stdout
