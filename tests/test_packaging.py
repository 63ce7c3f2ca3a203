"""What is built from a clean copy is what the repository holds: every module, the marker of types, the web files."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from email.parser import HeaderParser
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import tensorplay
from tensorplay.cli.main import main

ROOT = Path(__file__).parents[1]

Test = Callable[..., None]

# The first that reads `license` as a text. Where it is older, a build fetches another, which needs a network.
_LEAST_SETUPTOOLS = 77


def _builds_here() -> bool:
    try:
        return int(metadata.version("setuptools").partition(".")[0]) >= _LEAST_SETUPTOOLS
    except metadata.PackageNotFoundError:
        return False


def of_the_wheel(test: Test) -> Test:
    """Mark a test that builds a wheel: it takes longer, and is for the night where building needs a network."""
    return pytest.mark.timeout(180)(test if _builds_here() else pytest.mark.nightly(test))


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """Give a wheel that was built from a clean copy."""
    copy, built = tmp_path_factory.mktemp("copy") / "tensorplay", tmp_path_factory.mktemp("built")
    left_out = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "demo", "results")
    shutil.copytree(ROOT, copy, ignore=left_out)
    options = ["--no-build-isolation"] if _builds_here() else []
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        *options,
        "--wheel-dir",
        str(built),
        str(copy),
    ]
    subprocess.run(command, check=True)
    (path,) = built.iterdir()
    with zipfile.ZipFile(path) as opened:
        yield opened


def _packages_on_disk() -> set[str]:
    found = {".".join(path.parent.relative_to(ROOT).parts) for path in ROOT.glob("tensorplay/**/__init__.py")}
    return found | {"tensorplay.web"}


def test_the_list_of_packages_is_that_on_disk(document: dict[str, Any]) -> None:
    packages = document["tool"]["setuptools"]["packages"]
    assert sorted(packages) == sorted(_packages_on_disk())
    assert document["tool"]["setuptools"]["package-dir"] == {"tensorplay.web": "web"}


def test_the_web_package_has_no_code() -> None:
    text = (ROOT / "web" / "__init__.py").read_text(encoding="utf-8")
    assert re.fullmatch(r'""".*"""\n', text, re.DOTALL)


def test_the_installed_version_is_that_of_the_package() -> None:
    assert metadata.version("tensorplay") == tensorplay.__version__


def test_the_command_is_installed() -> None:
    (command,) = metadata.entry_points(group="console_scripts", name="tensorplay")
    assert command.load() is main


def test_what_is_imported_is_what_is_required(document: dict[str, Any]) -> None:
    required = {re.split(r"[>=<]", requirement)[0] for requirement in document["project"]["dependencies"]}
    assert required == {"numpy", "filelock", "threadpoolctl", "click", "rich"}


@of_the_wheel
def test_a_wheel_holds_every_module_and_data_file_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    modules = {str(path.relative_to(ROOT)) for path in ROOT.glob("tensorplay/**/*.py")}
    web = {f"tensorplay/{path.relative_to(ROOT)}" for path in ROOT.glob("web/**/*") if path.is_file()}
    assert held == modules | {name for name in web if "__pycache__" not in name} | {"tensorplay/py.typed"}


@of_the_wheel
def test_a_wheel_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    (path,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    facts = HeaderParser().parsestr(wheel.read(path).decode())
    assert facts["Version"] == tensorplay.__version__
    assert facts["License-Expression"] == "MIT AND 0BSD"
    assert facts["Requires-Python"] == ">=3.11"
    assert any(name.endswith("/licenses/LICENSE") for name in wheel.namelist())
