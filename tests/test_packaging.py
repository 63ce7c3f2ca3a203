"""What is built from a clean copy is what the repository holds: every module, the marker of types, the web files."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
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
from tensorplay.extensions import EXTENSIONS, extension
from tensorplay.ops.keyed import layout_key

ROOT = Path(__file__).parents[1]
BUILT = {f"{name.replace('.', '/')}{sysconfig.get_config_var('EXT_SUFFIX')}" for name in EXTENSIONS}

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
def clean_copy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Return what makes a copy of the sources, without anything that was built from them."""
    left_out = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "*.so", "build", "dist", "demo", "results")

    def copy() -> Path:
        return Path(shutil.copytree(ROOT, tmp_path_factory.mktemp("copy") / "tensorplay", ignore=left_out))

    return copy


def _built_wheel(copy: Path, into: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    options = ["--no-build-isolation"] if _builds_here() else []
    command = [sys.executable, "-m", "pip", "wheel", "--verbose", "--no-deps", *options]
    command += ["--wheel-dir", str(into), str(copy)]
    return subprocess.run(command, env=os.environ | environ, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def wheel(clean_copy: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """Give a wheel that was built from a clean copy."""
    built = tmp_path_factory.mktemp("built")
    done = _built_wheel(clean_copy(), built)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = built.iterdir()
    with zipfile.ZipFile(path) as opened:
        yield opened


def _compiles_here() -> bool:
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    return shutil.which(compiler.split()[0]) is not None and Path(sysconfig.get_path("include"), "Python.h").is_file()


def _sources_of_a_wheel() -> set[str]:
    files = {str(path.relative_to(ROOT)) for path in ROOT.glob("tensorplay/**/*.py*") if path.suffix in {".py", ".pyi"}}
    web = {f"tensorplay/{path.relative_to(ROOT)}" for path in ROOT.glob("web/**/*") if path.is_file()}
    return files | {name for name in web if "__pycache__" not in name} | {"tensorplay/py.typed"}


def _held(wheel: zipfile.ZipFile) -> set[str]:
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


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
    assert _held(wheel) == _sources_of_a_wheel() | (BUILT if _compiles_here() else set())


@of_the_wheel
def test_without_a_compiler_a_wheel_lacks_the_extensions_alone_and_the_build_says_so(
    clean_copy: Callable[[], Path], tmp_path: Path
) -> None:
    done = _built_wheel(clean_copy(), tmp_path, CC="/nonexistent/cc")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in EXTENSIONS:
        assert f'building extension "{name}" failed' in done.stdout + done.stderr
    (path,) = tmp_path.iterdir()
    with zipfile.ZipFile(path) as opened:
        assert _held(opened) == _sources_of_a_wheel()
        opened.extractall(tmp_path / "installed")  # noqa: S202 - made here
    code = (
        "import numpy, tensorplay; from tensorplay.ops.keyed import layout_key;"
        "print(layout_key, tensorplay.mm(numpy.ones((2, 3)), numpy.ones((3, 4))).sum())"
    )
    command = [sys.executable, "-P", "-W", "error", "-c", code]
    environ = os.environ | {"PYTHONPATH": str(tmp_path / "installed")}
    ended = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr) == ("None 24.0\n", "")


@of_the_wheel
def test_a_build_that_must_have_the_extensions_fails_without_a_compiler(
    clean_copy: Callable[[], Path], tmp_path: Path
) -> None:
    done = _built_wheel(clean_copy(), tmp_path, CC="/nonexistent/cc", TENSORPLAY_EXTENSIONS="required")
    assert done.returncode != 0
    assert "/nonexistent/cc" in done.stdout + done.stderr
    assert not list(tmp_path.iterdir())


@of_the_wheel
def test_a_source_distribution_holds_what_the_extensions_are_built_from(
    clean_copy: Callable[[], Path], tmp_path: Path
) -> None:
    code = f"from setuptools.build_meta import build_sdist; build_sdist({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=clean_copy(), check=True, capture_output=True)
    (path,) = tmp_path.iterdir()
    with tarfile.open(path) as opened:
        held = {name.partition("/")[2] for name in opened.getnames()}
    sources = {
        str(path.relative_to(ROOT)) for path in ROOT.glob("tensorplay/**/_*") if path.suffix in {".c", ".h", ".pyi"}
    }
    assert len(sources) > 2 * len(EXTENSIONS)
    assert {"pyproject.toml", "setup.py"} | sources <= held
    assert not {name for name in held if name.startswith("tests/")}, "they cannot run without what they lean on"


@pytest.mark.skipif(not _compiles_here(), reason="there is no compiler, or no header of Python, to build it with")
def test_where_there_is_a_compiler_the_extensions_are_in_use() -> None:
    assert layout_key is not None, "run `make .venv/.installed`"
    assert [name for name in EXTENSIONS if extension(name) is None] == []


@of_the_wheel
def test_a_wheel_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    (path,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    facts = HeaderParser().parsestr(wheel.read(path).decode())
    assert facts["Version"] == tensorplay.__version__
    assert facts["License-Expression"] == "MIT AND 0BSD"
    assert facts["Requires-Python"] == ">=3.11"
    assert any(name.endswith("/licenses/LICENSE") for name in wheel.namelist())
