"""The fragments of the changelog are ones, and a release can be made of them."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

_NAME = re.compile(r"(?:\d+|\+[\w-]+)\.(?P<kind>[a-z]+)(?:\.\d+)?\.md")

needs_towncrier = pytest.mark.skipif(find_spec("towncrier") is None, reason="towncrier is not installed")


def _towncrier(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "towncrier", "build", "--version", "9.9.9", "--date", "2031-02-03", *options]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def _sentences(root: Path) -> list[str]:
    return [fragment.read_text(encoding="utf-8").split()[0] for fragment in root.glob("changelog.d/*.md")]


def test_every_fragment_has_a_name_that_towncrier_takes_and_ends_like_a_sentence(root: Path) -> None:
    document = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    kinds = {kind["directory"] for kind in document["tool"]["towncrier"]["type"]}
    for fragment in root.glob("changelog.d/[!.]*"):
        match = _NAME.fullmatch(fragment.name)
        assert match, fragment.name
        assert match["kind"] in kinds, fragment.name
        assert fragment.read_text(encoding="utf-8").endswith(".\n"), fragment.name


@needs_towncrier
def test_a_draft_holds_every_fragment(root: Path) -> None:
    draft = _towncrier(root, "--draft")
    assert [word for word in _sentences(root) if word not in draft] == []


@needs_towncrier
def test_a_release_goes_below_the_header_of_the_page(root: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("pyproject.toml", "docs/changelog.md"):
        shutil.copy(root / name, tmp_path / name)
    shutil.copytree(root / "changelog.d", tmp_path / "changelog.d")
    header = (tmp_path / "docs" / "changelog.md").read_text(encoding="utf-8")
    _towncrier(tmp_path, "--keep")
    page = (tmp_path / "docs" / "changelog.md").read_text(encoding="utf-8")
    assert page.startswith(header.rstrip("\n"))
    assert "9.9.9 (2031-02-03)" in page.removeprefix(header.rstrip("\n"))
