"""The pictures of terminals show every line whole, underscores of the last one included."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"

# Below the base line: what the lowest letters of the usual fonts take, of a letter's height.
_DESCENT = 0.24
_LETTER = 20


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = spec_from_file_location("make_pictures", ROOT / "scripts" / "make_pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_is_whole(picture: str) -> None:
    """Check that nothing is clipped, and that the lowest letters of the last line are within the picture."""
    assert "clip" not in picture
    box = re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', picture)
    moved = re.search(
        r'<g transform="translate\([\d.]+, ([\d.]+)\)">\s*(?:<rect[^>]*>\s*)*<g class="[\w-]+-matrix"', picture
    )
    assert box is not None
    assert moved is not None
    lines = [float(y) for y in re.findall(r'<text class="[\w-]+" x="[\d.]+" y="([\d.]+)" textLength', picture)]
    assert lines
    assert max(lines) + _DESCENT * _LETTER + float(moved[1]) <= float(box[1])


@pytest.mark.parametrize("name", ["bench", "show"])
def test_the_pictures_of_the_documentation_are_whole(name: str) -> None:
    assert_is_whole((IMAGES / f"{name}.svg").read_text(encoding="utf-8"))


def test_a_picture_that_is_drawn_is_whole(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "IMAGES", tmp_path)
    script.draw("first\nsecond_line\n  export TP_TUNABLEOP_FILENAME=tunableop_results.csv\n", ("bench",))
    assert_is_whole((tmp_path / "bench.svg").read_text(encoding="utf-8"))


def test_a_picture_that_is_cut_is_found() -> None:
    picture = (IMAGES / "show.svg").read_text(encoding="utf-8")
    for cut in (
        picture.replace("<text ", '<text clip-path="url(#a)" '),
        re.sub(r"(viewBox=\S+ 0 \S+ )\d+", r"\g<1>300", picture),
    ):
        assert cut != picture
        with pytest.raises(AssertionError):
            assert_is_whole(cut)
