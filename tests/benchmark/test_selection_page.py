import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmark"), str(ROOT / "scripts")]

page = import_module("selection.page")
picture = import_module("make_selection_picture")
figures = import_module("selection.figures")
part_shapes = import_module("selection.part_shapes")

MARKED = "a\n<!-- begin figures -->\nold\n<!-- end figures -->\nb\n<!-- begin shapes -->\n<!-- end shapes -->\n"


def document(**further: Any) -> dict[str, Any]:
    names = [name for name in part_shapes.CONTESTANTS if name != "torch"]
    row = {"shape": "1x2x3 float32", "torch us": 12.345, "roofline us": 6.0, "roofline share": 0.5}
    row |= {f"{name}/torch": 1.0234 for name in names} | {f"{name} us": 12.0 for name in names}
    return {
        "figures": [
            {"name": "worst | best", "measured": 0.98765, "unit": "", "goal": ">= 0.99", "reached": False},
            {"name": "seconds", "measured": 3.0, "unit": "s", "goal": None, "reached": None},
        ],
        "rows": [row | {"search/first fresh": None, "cupy/torch": None}],
        "metadata": {
            "date": "2026-12-01T10:00:00",
            "clocks_before": {"driver": "580.1"},
            "libraries": {"device": "NVIDIA H200", "packages": {"torch": "2.11.0"}},
        },
    } | further


def test_the_page_says_what_the_committed_result_says() -> None:
    result = json.loads(picture.RESULT.read_text(encoding="utf-8")) if picture.RESULT.exists() else None
    text = picture.PAGE.read_text(encoding="utf-8")
    assert page.filled(text, result) == text, "run scripts/make_selection_picture.py"
    assert text.count("<!-- begin ") == text.count("<!-- end ") == 4
    assert (page.NOT_MEASURED in text) is (result is None)


def test_the_picture_is_there_once_there_is_a_result() -> None:
    assert picture.PICTURE.exists() is picture.RESULT.exists()


def test_tables_are_made_between_the_marks_and_filling_twice_changes_nothing() -> None:
    once = page.filled(MARKED, document())
    assert page.filled(once, document()) == once
    assert "| worst \\| best | 0.9877 | >= 0.99 | **no** |" in once
    assert "| seconds | 3 s |  |  |" in once
    (row,) = [line for line in once.splitlines() if line.startswith("| 1x2x3")]
    (head,) = [line for line in once.splitlines() if line.startswith("| Shape")]
    assert row.count("|") == head.count("|")
    assert row.endswith("| 1.023 | - | 50% |")
    assert once.startswith("a\n")
    assert page.filled(once, None) == page.filled(MARKED, None) != once


def test_a_shortfall_is_told_beside_the_figures() -> None:
    assert "it is hard" in page.filled(MARKED, document(shortfall="it is hard"))


def test_the_page_names_device_libraries_and_day() -> None:
    filled = page.filled("<!-- begin machine -->\n<!-- end machine -->", document())
    assert "Measured on: NVIDIA H200, driver 580.1, torch 2.11.0, 2026-12-01." in filled


def test_every_contestant_is_drawn_or_is_what_others_are_drawn_over() -> None:
    assert set(picture.SERIES) | {"torch", "heuristic"} == set(part_shapes.CONTESTANTS)
    assert len({marker for _, _, marker in picture.SERIES.values()}) == len(picture.SERIES)


def test_a_picture_is_drawn_and_is_the_same_for_the_same_numbers(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = document()["rows"] * 3
    for name in ("one.png", "two.png"):
        picture.draw(rows, tmp_path / name)
    one, two = ((tmp_path / name).read_bytes() for name in ("one.png", "two.png"))
    assert one.startswith(b"\x89PNG")
    assert one == two
