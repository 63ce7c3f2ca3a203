"""What a run of the selection keeps where time is short or a process fails."""

import argparse
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

bench = import_module("bench_selection")
document = import_module("selection.document")
estimate = import_module("selection.estimate")
fresh = import_module("harness.fresh")
part_again = import_module("selection.part_again")
part_quality = import_module("selection.part_quality")
running = import_module("selection.running")
setting = import_module("selection.setting")

# A part that measures four items at once.
BATCHES = """
BATCH = 4

def items(setting):
    return [str(number) for number in range(12)]

def measured(setting, wanted):
    for item in wanted:
        yield {"item": item}
"""

SETTING = setting.Setting(work=Path())


class StandIn:
    """A prepared process that answers at once; it fails for the shapes named, and tells when it was used."""

    failing: ClassVar[set[str]] = set()
    told: ClassVar[list[str]] = []

    def __init__(self, function: Any, **_folder: Any) -> None:
        self.name = function.__name__
        self.told.append(f"start {self.name}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.told.append(f"end {self.name}")

    def wait_until_ready(self) -> None:
        self.told.append(f"ready {self.name}")

    def call(self, *, shapes: list[list[Any]], search_seconds: float = 0.0, **_further: Any) -> list[dict[str, Any]]:
        self.told.append(f"{self.name} {search_seconds:g}")
        if any(str(setting.SelectionShape(*shape)) in self.failing for shape in shapes):
            raise fresh.FreshProcessError("failed")
        if self.name == "compare":
            return [{f"kernel{seconds:g}": 6.0 / (seconds + 1) for seconds in (3.0, 60.0)} for _ in shapes]
        facts = {"first": "kernel60", "verdict": "winner", "confirmation": None, "search": {"timed": 9}}
        return [{"kernel": f"kernel{search_seconds:g}", "seconds": search_seconds, **facts} for _ in shapes]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[StandIn]]:
    """Let the parts start stand-ins for processes."""
    for part in (part_again, part_quality):
        monkeypatch.setattr(part, "PreparedProcess", StandIn)
    yield StandIn
    StandIn.failing, StandIn.told = set(), []


def test_a_batch_that_is_measured_is_kept_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "part_batches.py").write_text(BATCHES)
    package = import_module("selection")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    results = tmp_path / "results"
    # Each look at the clock is a second later.
    left = running.run_part(
        "batches", SETTING, results, seconds=1.0, now=map(float, count()).__next__, facts_of_device=dict
    )
    assert left == 8
    rows = document.merged_parts(document.read_documents([results]))["batches"]
    assert list(rows) == ["0", "1", "2", "3"]
    sys.modules.pop("selection.part_batches")


def test_the_next_processes_import_during_the_long_search_and_never_beside_another_one(
    stand_in: type[StandIn],
) -> None:
    wanted = part_quality.items(SETTING)[:2]
    rows = list(part_quality.measured(SETTING, wanted))
    assert [row["item"] for row in rows] == wanted
    assert rows[0]["short_kernel"] == "kernel3"
    assert rows[0]["share"] == pytest.approx(4.0 / 61.0)
    starts, ready = ["start tune", "start tune", "start compare"], ["ready tune", "ready tune", "ready compare"]
    first = [*starts, *ready, "tune 3", *starts, "tune 60", *ready, "compare 0"]
    ends = ["end compare", "end tune", "end tune"] * 2
    assert stand_in.told == [*first, "tune 3", "tune 60", "compare 0", *ends]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_shape_whose_process_fails_is_passed_over(
    stand_in: type[StandIn], failing: int, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = part_quality.items(SETTING)[:3]
    stand_in.failing = {wanted[failing]}
    assert [row["item"] for row in part_quality.measured(SETTING, wanted)] == [
        item for place, item in enumerate(wanted) if place != failing
    ]
    assert capsys.readouterr().err == f"{wanted[failing]}: failed\n"
    assert stand_in.told.count("start compare") == stand_in.told.count("end compare")


def test_a_batch_with_a_process_that_fails_is_passed_over(
    stand_in: type[StandIn], capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = part_again.items(SETTING)[:8]
    stand_in.failing = {wanted[2]}
    (row, other) = part_again.measured(SETTING, wanted)
    assert [row["item"], other["item"]] == wanted[6:]
    assert "failed" in capsys.readouterr().err
    assert row["kernels"] == ["kernel3"] * 5
    assert row["slowest_over_fastest"] == 1.0, "that of the first choice is told, and counts for nothing"
    assert row["us"][0] / row["first_us"] == pytest.approx(61.0 / 4.0)
    assert row["search_of_each"] == [{"timed": 9}] * 5


@pytest.mark.parametrize("part", ["shapes", "fresh", "decode", "again", "quality", "wrong"])
def test_what_is_kept_first_takes_less_than_everything(part: str) -> None:
    items = len(running.wanted_items(part, SETTING))
    shortest = estimate.shortest_seconds(part, items, SETTING)
    assert 0 < shortest <= estimate.estimated_seconds(part, items, SETTING)


def test_two_shapes_are_not_left_out_for_the_time_that_a_whole_batch_takes() -> None:
    assert estimate.shortest_seconds("again", 2, SETTING) < estimate.shortest_seconds("again", 6, SETTING) / 2


def test_shares_are_put_together_without_what_earlier_runs_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"slowest_over_fastest": 1.0}
    metadata = {"date": "2026-12-01", "quick": False}
    old = {"settings": {"parts": {"again": [row | {"item": "old"}]}}, "metadata": metadata}
    (tmp_path / "selection.json").write_text(json.dumps(old))

    def run_shares(_command: object, gpus: int, results: Path, _work: object) -> None:
        for number in range(gpus):
            written = {"part": "again", "settings": {}, "metadata": metadata, "rows": [row | {"item": str(number)}]}
            folder = results / f"gpu{number}" / bench.FOLDER
            document.saved(document.document_path(folder, "again"), written)

    monkeypatch.setattr(bench, "run_shares", run_shares)
    options = argparse.Namespace(results=tmp_path, work=None, gpus=2, quick=False)
    assert bench._run_on_several([], SETTING, options) == 3
    merged = json.loads((tmp_path / "selection.json").read_text())
    assert [each["item"] for each in merged["settings"]["parts"]["again"]] == ["0", "1"]
    assert len(merged["settings"]["runs"]) == 2
    assert "fresh tunings" in capsys.readouterr().out
