import json
import math
import sys
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

document = import_module("selection.document")
running = import_module("selection.running")
figures = import_module("selection.figures")
setting = import_module("selection.setting")

ROWS = st.lists(st.fixed_dictionaries({"item": st.sampled_from("abcde"), "value": st.integers(0, 9)}), max_size=6)

# A part as the real ones are, which measures by counting.
PART = """
def items(setting):
    return [str(number) for number in range(setting.problems)]

def measured(setting, wanted):
    for item in wanted:
        if item == "7":
            raise RuntimeError("the device is gone")
        if item != "3":
            yield {"item": item, "us": 1 / 3}
"""


def written(part: str, rows: list[dict[str, Any]], *, date: str = "1", quick: bool = False) -> dict[str, Any]:
    return {"part": part, "settings": {}, "metadata": {"date": date, "quick": quick}, "rows": rows}


@given(ROWS, ROWS)
def test_of_an_item_that_was_measured_twice_the_later_row_counts(earlier: list[Any], later: list[Any]) -> None:
    merged = document.merged_parts([written("shapes", earlier), written("shapes", later)])["shapes"]
    expected = {row["item"]: row["value"] for row in [*earlier, *later]}
    assert {item: row["value"] for item, row in merged.items()} == expected


@given(ROWS)
def test_merging_twice_changes_nothing(rows: list[Any]) -> None:
    one = written("fresh", rows)
    assert document.merged_parts([one, one]) == document.merged_parts([one])


def test_rows_stand_in_the_order_of_the_list_whoever_measured_which(tmp_path: Path) -> None:
    chosen = setting.Setting(work=tmp_path)
    listed = running.wanted_items("shapes", chosen)
    halves = [written("shapes", [{"item": item} for item in half]) for half in (listed[1::2], listed[::2])]
    unlisted = written("shapes", [{"item": "of another list"}])
    merged = document.merged_parts([unlisted, *halves])
    assert list(merged["shapes"]) != [*listed, "of another list"]
    assert list(running.in_order(merged, chosen)["shapes"]) == [*listed, "of another list"]


def test_quick_rows_count_only_where_there_are_no_others() -> None:
    quick, slow = written("shapes", [{"item": "a", "value": 1}], quick=True), written("shapes", [])
    assert document.merged_parts([quick, slow]) == {"shapes": {}}
    assert document.merged_parts([quick])["shapes"]["a"]["value"] == 1


def test_documents_are_found_below_their_folders_and_read_by_date(tmp_path: Path) -> None:
    for folder, date in (("late", "2026-12-02"), ("early/deep", "2026-12-01")):
        path = document.document_path(tmp_path / folder, "shapes", "0:29:2")
        document.saved(path, written("shapes", [{"item": "a", "value": date}], date=date))
        assert path.name == "selection_part_shapes_0-29-2.json"
    (tmp_path / "other.json").write_text("no json at all")
    found = document.read_documents([tmp_path, tmp_path / "late"])
    assert [each["metadata"]["date"] for each in found] == ["2026-12-01", "2026-12-02"]
    assert document.merged_parts(found)["shapes"]["a"]["value"] == "2026-12-02"


def test_a_merged_result_can_be_merged_again(tmp_path: Path) -> None:
    merged = {"metadata": {"date": "1", "quick": False}, "settings": {"parts": {"fresh": [{"item": "a"}]}}}
    (tmp_path / "selection.json").write_text(json.dumps(merged))
    document.saved(document.document_path(tmp_path, "fresh"), written("fresh", [{"item": "b"}], date="2"))
    parts = document.merged_parts(document.read_documents([tmp_path]))
    assert list(parts["fresh"]) == ["a", "b"]


@given(st.floats(-1e300, 1e300))
def test_numbers_keep_five_digits_however_deep_they_lie(value: float) -> None:
    found = document.rounded({"a": [value, {"b": (value, 3, None, "x", True)}]})
    assert math.isclose(found["a"][0], value, rel_tol=1e-4)
    assert found["a"][1]["b"] == [found["a"][0], 3, None, "x", True]
    assert document.rounded(found) == found


@pytest.fixture
def counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the package have one more part, in a file of its own."""
    (tmp_path / "part_counting.py").write_text(PART)
    package = import_module("selection")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    yield tmp_path / "results"
    sys.modules.pop("selection.part_counting", None)


def run(folder: Path, wanted: str, **further: Any) -> int:
    chosen = setting.Setting(work=folder, wanted=wanted, problems=10)
    left: int = running.run_part("counting", chosen, folder, facts_of_device=dict, **further)
    return left


def rows_of(folder: Path) -> list[str]:
    return list(document.merged_parts(document.read_documents([folder])).get("counting", {}))


def test_a_part_that_breaks_keeps_what_it_had(counting: Path) -> None:
    with pytest.raises(RuntimeError, match="the device is gone"):
        run(counting, "5:")
    assert rows_of(counting) == ["5", "6"]


def test_slices_have_files_of_their_own_and_an_item_passed_over_counts_as_left_out(counting: Path) -> None:
    assert run(counting, "0:2") == 0
    assert run(counting, "2:5") == 1
    assert rows_of(counting) == ["0", "1", "2", "4"]
    assert len(list(counting.iterdir())) == 2
    (one,) = counting.glob("*_0-2.json")
    assert json.loads(one.read_text())["rows"][0]["us"] == 0.33333


def test_a_run_that_resumes_measures_only_what_is_missing(counting: Path) -> None:
    run(counting, "0:2")
    assert run(counting, "0:3", resume=True) == 0
    (later,) = counting.glob("*_0-3.json")
    assert [row["item"] for row in json.loads(later.read_text())["rows"]] == ["2"]
    assert run(counting, "0:3", resume=True) == 0
    assert rows_of(counting) == ["0", "1", "2"]


def test_no_item_is_begun_that_would_end_too_late(counting: Path) -> None:
    # Each look at the clock is a second later, and an item takes some of them.
    assert run(counting, "0:3", seconds=4.0, now=map(float, count()).__next__) > 0
    assert rows_of(counting)[:1] == ["0"]


def test_every_part_has_items_and_knows_a_quick_slice_of_them() -> None:
    chosen = setting.Setting(work=Path(), quick=True)
    assert running.expected_items(chosen) == {
        "shapes": 57,
        "fresh": 57,
        "decode": 12,
        "again": 12,
        "quality": 12,
        "wrong": 21,
    }
    assert set(running.QUICK_ITEMS) == set(figures.PARTS)
    assert len(running.wanted_items("shapes", chosen)) == 3
    assert len(running.wanted_items("wrong", chosen)) == 1
    assert running.wanted_items("wrong", setting.Setting(work=Path(), problems=20)) == ["0:21"]
