"""`make demo` runs on a new machine, and changes no environment that somebody made for something else."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKE = shutil.which("make") or "make"
NEEDED = ("Makefile", "pyproject.toml", "setup.py", "scripts/setup", "tensorplay/ops/_layout_key.c")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a folder with what a demo is set up from."""
    for name in NEEDED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tmp_path / name)
    return tmp_path


def commands(clone: Path) -> str:
    # As from a shell, also where it is make that runs these tests.
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    ended = subprocess.run([MAKE, "-n", "demo"], cwd=clone, env=environ, capture_output=True, text=True, check=True)
    return ended.stdout


@pytest.mark.parametrize("has_own", [False, True])
def test_the_demo_makes_an_environment_of_its_own_beside_one_that_it_did_not_make(clone: Path, has_own: bool) -> None:
    if has_own:
        (clone / ".venv" / "bin").mkdir(parents=True)
    said = commands(clone)
    assert "VENV=build/demo-venv sh scripts/setup --only-dependencies" in said
    assert "build/demo-venv/bin/python -m tensorplay bench --directory demo --fresh" in said
    assert ".venv" not in said


def test_the_demo_uses_the_environment_that_the_tests_have_made(clone: Path) -> None:
    (clone / ".venv").mkdir()
    (clone / ".venv" / ".installed").touch()
    assert commands(clone).strip() == ".venv/bin/python -m tensorplay bench --directory demo --fresh"


def installed(clone: Path, *arguments: str) -> list[str]:
    """Return what the set-up asks of pip, in an environment whose pip only writes that down."""
    python, log = clone / "own" / "bin" / "python", clone / "asked"
    python.parent.mkdir(parents=True)
    warned = '"$PYTHONWARNINGS"'
    python.write_text(
        f'#!/bin/sh\n[ "$1" = -c ] && exec {sys.executable} "$@"\nprintf "%s | %s\\n" "$*" {warned} >> {log}\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    subprocess.run(
        ["/bin/sh", "scripts/setup", *arguments],
        cwd=clone,
        env={"PATH": "/usr/bin:/bin", "PYTHON": sys.executable, "VENV": "own"},
        check=True,
    )
    return log.read_text(encoding="utf-8").splitlines()


def test_the_demo_installs_what_the_package_needs_and_not_the_package(clone: Path) -> None:
    (asked,) = installed(clone, "--only-dependencies")
    assert "--editable" not in asked
    assert " . " not in asked
    needed = (clone / "own" / "needed.txt").read_text(encoding="utf-8").splitlines()
    assert needed == tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]


def test_the_tests_install_the_package_editable_without_the_warning_of_its_hook(clone: Path) -> None:
    upgraded, asked = installed(clone)
    assert "--upgrade pip>=25.1" in upgraded
    assert "--editable . --group dev" in asked
    assert asked.endswith("| ignore:Editable installation")
