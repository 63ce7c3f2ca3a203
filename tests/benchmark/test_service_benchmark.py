"""The benchmark of the service: its parts run and are put together, and one that runs again replaces what was known."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmark"
SCRIPT = BENCHMARK / "bench_service.py"
# The benchmarks are scripts: their own folder is where they look for what they share.
sys.path.insert(0, str(BENCHMARK))

bench = import_module("bench_service")
fresh = import_module("harness.fresh")
result = import_module("harness.result")
spread = import_module("harness.spread")
told = import_module("service.told")


def document(part: str, *measured: float) -> Any:
    """What the file of a part says."""
    figures = [
        result.Figure(f"figure {number}", value, "ms", result.Goal(10.0), spread.spread_of([value] * 9))
        for number, value in enumerate(measured)
    ]
    found = result.Result(f"service_{part}", f"{part}?", figures, {"repeats": 9})
    return {"figures": [each.to_dict() for each in figures], "metadata": {}, "rows": [], "settings": found.settings} | {
        "question": found.question
    }


def test_what_the_parts_found_becomes_one_result_and_is_found_in_its_file_again(tmp_path: Path) -> None:
    documents = {part: document(part, 1.0, 20.0) for part in bench.PARTS}
    found = bench.merged(documents)
    assert [figure.is_reached for figure in found.figures] == [True, *[True, False] * len(bench.PARTS)]
    result.write(found, tmp_path, {})
    assert bench.known(tmp_path) == documents
    assert bench.known(tmp_path / "elsewhere") == {}
    assert bench.known(None) == {}


def test_a_part_that_did_not_finish_is_a_goal_missed() -> None:
    found = bench.merged({"stop": document("stop", 1.0)})
    assert not found.is_reached
    assert found.figures[0].measured == len(bench.PARTS) - 1


def run(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    command = (sys.executable, str(SCRIPT), "--quick", "--results", str(tmp_path), *arguments)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*.json")
    assert str(tmp_path) not in path.read_text()
    written: dict[str, Any] = json.loads(path.read_text())
    for figure in written["figures"]:
        assert figure["name"] in done.stdout
    return written


def test_one_part_can_be_run_alone_and_the_others_stay(tmp_path: Path) -> None:
    result.write(bench.merged({part: document(part, 1.0) for part in bench.PARTS}), tmp_path, {})
    written = run(tmp_path, "--part", "stop")
    assert written["settings"]["parts"]["stop"]["settings"]["streams"] == 5
    assert written["settings"]["parts"]["soak"]["settings"] == {"repeats": 9}
    assert written["figures"][0] == {**written["figures"][0], "measured": 0, "reached": True}


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_all_parts_run(tmp_path: Path) -> None:
    written = run(tmp_path)
    assert set(written["settings"]["parts"]) == set(bench.PARTS)


def test_a_told_process_answers_and_says_why_it_ended(tmp_path: Path) -> None:
    with told.ToldProcess("service.clients", directory=tmp_path) as process:
        assert process.ask("heard") == {"bytes": 0, "events": 0, "ended": 0}
        assert process.computed_s() > 0
        with pytest.raises(fresh.FreshProcessError, match="KeyError: 'nonsense'"):
            process.ask("nonsense")
