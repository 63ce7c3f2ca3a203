"""The picture and the table of the layers are those of the import contract."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

_SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def contract(root: Path) -> list[set[str]]:
    """Return the layers of the contract, the topmost first."""
    document = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    layers = next(c for c in document["tool"]["importlinter"]["contracts"] if c["type"] == "layers")["layers"]
    return [set(re.split(r" *[|:] *", layer)) for layer in layers]


def test_the_picture_shows_the_layers_in_their_order(root: Path, contract: list[set[str]]) -> None:
    picture = ET.parse(root / "docs" / "images" / "layers.svg")  # noqa: S314 - our own file
    drawn: dict[float, set[str]] = defaultdict(set)
    for text in picture.iter(f"{_SVG}text"):
        if text.get("class") == "layer":
            drawn[float(text.get("y", "nan"))].add(text.text or "")
    assert [drawn[y] for y in sorted(drawn)] == contract


def test_the_table_has_every_package(
    docs: Callable[[str], str],
    rows: Callable[..., list[list[str]]],
    names: Callable[[str], list[str]],
    contract: list[set[str]],
) -> None:
    listed = [name for row in rows(docs("architecture.md"), "Package") for name in names(row[0])]
    assert sorted(listed) == sorted(set().union(*contract))


def test_every_picture_stands_alone_and_is_readable_on_any_background(root: Path) -> None:
    pictures = sorted((root / "docs" / "images").glob("*.svg"))
    assert {picture.stem for picture in pictures} >= {"layers", "call", "bench"}
    for picture in pictures:
        text = picture.read_text(encoding="utf-8")
        svg = ET.fromstring(text)  # noqa: S314 - our own file
        width, height = map(float, svg.get("viewBox", "").split()[2:])
        # The first shape is the background, so that no theme of the page shows through.
        background = next(svg.iter(f"{_SVG}rect")) if picture.stem in {"layers", "call"} else None
        assert background is None or (float(background.get("width", 0)), float(background.get("height", 0))) == (
            width - 1,
            height - 1,
        )
        fetched = set(re.findall(r"https?://[^\s\"')]+|url\((?!#)[^)]*\)|@import|@font-face", text))
        assert fetched <= {"http://www.w3.org/2000/svg"}, picture.name


def test_no_text_of_a_drawing_leaves_its_picture(root: Path) -> None:
    for name in ("layers", "call"):
        svg = ET.parse(root / "docs" / "images" / f"{name}.svg").getroot()  # noqa: S314 - our own file
        width = float(svg.get("width", 0))
        for text in svg.iter(f"{_SVG}text"):
            # Half an em for each letter is what sans-serif text takes at most, on the average.
            half = len(text.text or "") * 7 / (2 if text.get("text-anchor") == "middle" else 1)
            place = float(text.get("x", "nan"))
            assert place + half <= width, text.text
            assert text.get("text-anchor") != "middle" or place - half >= 0, text.text
