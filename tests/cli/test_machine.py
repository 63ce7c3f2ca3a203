"""What the doctor says of the extensions in C."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from tensorplay.cli import machine as machine_module
from tensorplay.cli.main import main
from tensorplay.extensions import EXTENSIONS, extension


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, without settings."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TP_TUNABLEOP_")]:
        monkeypatch.delenv(name)


def doctor(*options: str) -> str:
    result = CliRunner().invoke(main, ["doctor", *options])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("built", "said"),
    [
        (("_layout_key", "_direct", "_launch"), "_layout_key, _direct, _launch"),
        (("_direct",), "_direct (left out: _layout_key, _launch; docs/install.md says why)"),
        ((), "none (left out: _layout_key, _direct, _launch; docs/install.md says why)"),
    ],
)
def test_it_tells_which_extensions_are_in_use(
    built: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {name: name.rpartition(".")[2] in built for name in EXTENSIONS}
    monkeypatch.setattr(machine_module, "extension", lambda name: object() if found[name] else None)
    assert f"  extensions in C: {said}" in doctor().splitlines()
    assert json.loads(doctor("--json"))["machine"]["extensions"] == found


def test_the_extensions_that_it_finds_are_those_that_are_there() -> None:
    found = json.loads(doctor("--json"))["machine"]["extensions"]
    assert found == {name: extension(name) is not None for name in EXTENSIONS}
