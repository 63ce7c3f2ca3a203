"""Every command of the pages exists; those that only look are run, and show what the page says."""

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tensorplay.cli.main import main

Blocks = Callable[[Path, str], list[tuple[int, str]]]
Command = tuple[list[str], dict[str, str], list[str]]

_SETTING = re.compile(r"(?P<name>[A-Z_]+)=(?P<value>.*)")
_TUNE = """
import numpy as np, tensorplay
for rows in (4, 16):
    tensorplay.mm(np.ones((rows, 8), np.float32), np.ones((8, 8), np.float32))
tensorplay.tunable.tuning_disable()
tensorplay.tunable.record_untuned_enable()
tensorplay.mm(np.ones((2, 8)), np.ones((8, 8)))
"""


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a results file, an untuned file and a list of shapes, as the pages name them."""
    folder = tmp_path_factory.mktemp("project")
    environ = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_MAX_TUNING_DURATION_MS": "1"}
    subprocess.run([sys.executable, "-P", "-W", "error", "-c", _TUNE], cwd=folder, env=environ, check=True)
    (folder / "shapes.json").write_text('[["float32", 4, 4, 4, false]]', encoding="utf-8")
    return folder


def _commands(page: Path, blocks: Blocks, program: str) -> Iterator[Command]:
    """Yield arguments, environment and expected output of every command line that runs `program`."""
    for _, text in blocks(page, "console"):
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            line, *output = part.splitlines()
            words = shlex.split(line, comments=True)
            environ = {}
            while match := _SETTING.fullmatch(words[0]):
                environ[match["name"]] = match["value"]
                words.pop(0)
            if words[0].rpartition("/")[2] == program:
                yield words[1:], environ, output


def _parse(arguments: list[str]) -> str:
    """Return the subcommand that the arguments run, having parsed all its options."""
    with click.Context(main, info_name="tensorplay") as parent:
        name, command, rest = main.resolve_command(parent, arguments)
        assert command is not None
        command.make_context(name, list(rest), parent=parent)
        return str(name)


def test_every_command_of_tensorplay_is_accepted_and_those_that_only_look_are_run(
    console_page: Path,
    blocks: Blocks,
    missing_lines: Callable[[list[str], str], list[str]],
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(project)
    for arguments, environ, output in _commands(console_page, blocks, "tensorplay"):
        if not arguments[0].startswith("-") and _parse(arguments) in {"bench", "ctl", "serve", "tune"}:
            continue
        result = CliRunner().invoke(main, arguments, env=environ)
        assert result.exit_code == 0, (arguments, result.output)
        assert missing_lines(output, result.output) == [], result.output


def test_an_option_that_does_not_exist_is_found(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    assert _parse(["show", "tunableop_resultscpu.csv", "--limit", "3"]) == "show"
    with pytest.raises(click.UsageError):
        _parse(["show", "tunableop_resultscpu.csv", "--most", "3"])


def test_every_target_of_make_and_every_extra_of_pip_exists(pages: list[Path], blocks: Blocks, root: Path) -> None:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for page in pages:
        for arguments, _, _ in _commands(page, blocks, "make"):
            for target in arguments:
                assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page.name}: make {target}"
        for arguments, _, _ in _commands(page, blocks, "pip"):
            assert arguments[0] == "install"
            ours = [argument for argument in arguments[1:] if argument.startswith(".")]
            extras = {extra for argument in ours for extra in re.findall(r"\w+", argument)}
            assert extras <= set(project["optional-dependencies"]), page.name


def test_every_script_that_a_page_runs_exists(pages: list[Path], blocks: Blocks, root: Path) -> None:
    readers_own = {"train.py", "serve.py", "program.py"}
    for page in pages:
        for arguments, _, _ in _commands(page, blocks, "python"):
            assert arguments[0] in readers_own or (root / arguments[0]).is_file(), f"{page.name}: {arguments[0]}"
