import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tensorplay.errors import SettingError
from tensorplay.runtime.settings_table import setting_of

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

cuda_machine = import_module("harness.cuda_machine")
document = import_module("selection.document")
ours = import_module("selection.ours")
figures = import_module("selection.figures")

NO_DEVICE = pytest.mark.skipif(cuda_machine.reason_for_no_device() is None, reason="there is a device")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = ROOT / "benchmark" / "bench_selection.py"
    return subprocess.run((sys.executable, str(script), *arguments), capture_output=True, text=True, check=False)


def test_a_plan_needs_no_device_and_tells_what_each_part_takes() -> None:
    done = run("--plan", "--parts", "shapes,wrong", "--shapes", "0:29")
    assert done.returncode == 0, done.stderr
    assert [line.split()[:2] for line in done.stdout.splitlines()[:2]] == [["shapes", "29"], ["wrong", "21"]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--parts", "shapes,nonsense"), "allowed: shapes, fresh"),
        (("--shapes", "half"), "no slice"),
        (("--plan", "--shapes-file", "nowhere.json"), "nowhere.json"),
    ],
)
def test_wrong_arguments_are_refused_with_what_is_allowed(arguments: tuple[str, ...], said: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert said in done.stderr


@NO_DEVICE
def test_without_a_device_nothing_is_measured_or_written(tmp_path: Path) -> None:
    done = run("--quick", "--results", str(tmp_path))
    assert done.returncode == 77
    assert "nothing was measured: " in done.stderr
    assert not list(tmp_path.iterdir())


def test_runs_are_put_together_without_a_device(tmp_path: Path) -> None:
    row: dict[str, Any] = {"item": "a", "slowest_over_fastest": 1.0}
    metadata = {"date": "2026-12-01", "quick": False, "libraries": {"device": "H200"}}
    for number, name in enumerate(("one", "two")):
        written = {"part": "again", "settings": {}, "metadata": metadata, "rows": [row | {"item": name}] * (number + 1)}
        document.saved(document.document_path(tmp_path / name, "again", f"{number}:"), written)
    done = run("--merge", str(tmp_path / "one"), str(tmp_path / "two"), "--results", str(tmp_path / "all"))
    assert done.returncode == 3, done.stderr
    merged = json.loads((tmp_path / "all" / "selection.json").read_text())
    assert [each["item"] for each in merged["settings"]["parts"]["again"]] == ["one", "two"]
    assert merged["metadata"]["libraries"] == {"device": "H200"}
    assert merged["settings"]["missing items"]["shapes"] == 57
    assert "fresh tunings" in done.stdout
    again = run("--merge", str(tmp_path / "all"), "--results", str(tmp_path / "again"))
    assert json.loads((tmp_path / "again" / "selection.json").read_text())["figures"] == merged["figures"], again.stderr


def test_merging_nothing_fails_and_says_so(tmp_path: Path) -> None:
    done = run("--merge", str(tmp_path), "--results", str(tmp_path))
    assert done.returncode == 1
    assert "nothing was measured" in done.stderr


@NO_DEVICE
def test_the_script_for_the_device_runs_it_with_its_words(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHON": sys.executable, "PARTS": "selection", "SELECTION": "--parts decode"}
    done = subprocess.run(
        ("/bin/bash", str(ROOT / "scripts" / "gpu_bench"), str(tmp_path)),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "== selection (exit 77" in done.stdout
    assert "merging" not in done.stdout


@pytest.mark.parametrize("breadth", ours.BREADTHS)
def test_breadths_are_set_by_variables_that_exist(breadth: str) -> None:
    for name, value in ours.settings_of(breadth, 0.5).items():
        try:
            setting_of(name.lower()).kind.parse(value)
        except SettingError as error:
            raise AssertionError(str(error)) from None


@pytest.mark.parametrize("part", figures.PARTS)
def test_every_part_can_be_loaded_without_a_framework(part: str) -> None:
    code = f"import sys, selection.part_{part}; print(sorted({{'torch', 'jax', 'cupy', 'nvmath'}} & set(sys.modules)))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT / "benchmark"), str(ROOT)))}
    command = (sys.executable, "-c", code)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.stdout == "[]\n", done.stderr
