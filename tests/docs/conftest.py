"""The pages, taken apart: what the tests of this folder compare with the code."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("changelog.d/*.md")]
)

# What needs a GPU says so in the line before, and is run by tests/gpu/test_examples.py.
_FENCE = re.compile(
    r"^(?P<needs><!-- needs: \w+ -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


def _blocks(page: Path, language: str) -> list[tuple[int, str]]:
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, match.start("text")), match["text"])
        for match in _FENCE.finditer(text)
        if match["language"] == language and match["needs"] is None
    ]


def _rows(text: str, *head: str) -> list[list[str]]:
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if _cells(line)[: len(head)] == list(head)]
    assert starts, f"there is no table with the head {head}"
    rows = []
    for start in starts:
        for line in lines[start + 2 :]:
            if not line.startswith("|"):
                break
            rows.append(_cells(line))
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each page; `python_page` and `csv_page` are those with such blocks."""
    for fixture, language in (
        ("page", ""),
        ("python_page", "python"),
        ("csv_page", "csv"),
        ("console_page", "console"),
    ):
        if fixture in metafunc.fixturenames:
            pages = [page for page in PAGES if not language or _blocks(page, language)]
            metafunc.parametrize(fixture, pages, ids=[str(page.relative_to(ROOT)) for page in pages])


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the folder of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def pages() -> list[Path]:
    """Return every page."""
    return PAGES


@pytest.fixture(scope="session")
def blocks() -> Callable[[Path, str], list[tuple[int, str]]]:
    """Return what gives the fenced blocks of one language, each with the number of lines before it."""
    return _blocks


@pytest.fixture(scope="session")
def docs() -> Callable[[str], str]:
    """Return what gives the text of a page under docs/."""
    return lambda name: (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def rows() -> Callable[..., list[list[str]]]:
    """Return what gives the cells of every table with that head: `rows(text, "Option", "Means")`."""
    return _rows


@pytest.fixture(scope="session")
def names() -> Callable[[str], list[str]]:
    """Return what gives the names in backticks of a text, in order."""
    return lambda text: re.findall(r"`([^`\n]+)`", text)


@pytest.fixture(scope="session")
def missing_lines() -> Callable[[list[str], str], list[str]]:
    """Return what gives the expected lines that do not follow one another in an output; `*` stands for anything."""

    def missing(expected: list[str], output: str) -> list[str]:
        lines = iter(output.splitlines())
        patterns = [(line, re.compile(".*".join(map(re.escape, line.split("*"))))) for line in expected]
        return [line for line, pattern in patterns if not any(pattern.fullmatch(found.strip()) for found in lines)]

    return missing
