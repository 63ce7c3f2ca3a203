"""Items shared among devices: each once, by a process that sees its device only, put together at the end."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

sharing = import_module("selection.sharing")

TELLS = """
import json, os, sys
from pathlib import Path
words = sys.argv[1:]
folder = Path(words[words.index("--results") + 1])
folder.mkdir(parents=True)
device = os.environ["CUDA_VISIBLE_DEVICES"]
(folder / "told.json").write_text(json.dumps([device, words]))
sys.exit(int(device))
"""


@given(st.lists(st.text(max_size=3), max_size=60), st.integers(1, 9))
def test_shares_have_every_item_once(items: list[str], count: int) -> None:
    shares = [sharing.Share(number, count).of(items) for number in range(count)]
    assert sorted(each for share in shares for each in share) == sorted(items)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("text", ["2/2", "1", "/2", "-1/2", "0/0", "1/2/3", "0x1/2"])
def test_what_is_no_share_is_refused_with_what_is_one(text: str) -> None:
    with pytest.raises(ValueError, match="allowed: NUMBER/COUNT"):
        sharing.parse_share(text)


def test_a_share_is_read() -> None:
    assert sharing.parse_share("1/2") == (1, 2)


def test_devices_are_those_that_the_process_sees() -> None:
    assert sharing.devices_of(2, {}) == ["0", "1"]
    assert sharing.devices_of(2, {"CUDA_VISIBLE_DEVICES": "3, GPU-9,1"}) == ["3", "GPU-9"]
    with pytest.raises(ValueError, match="names 1"):
        sharing.devices_of(2, {"CUDA_VISIBLE_DEVICES": "5"})


def test_each_device_runs_its_share_in_folders_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    results, work = tmp_path / "results", tmp_path / "work"
    statuses = sharing.run_shares([sys.executable, "-c", TELLS, "--parts", "again"], 2, results, work)
    # A missed goal is no failure, and is judged when all is together.
    assert statuses == [3, 1]
    assert capsys.readouterr().err == "the share of device 1 ended with status 1\n"
    for number, device in enumerate(("3", "1")):
        assert json.loads((results / f"gpu{number}" / "told.json").read_text()) == [
            device,
            [
                *("--parts", "again", "--gpus", "1", "--share", f"{number}/2"),
                *("--results", str(results / f"gpu{number}"), "--work", str(work / f"gpu{number}")),
            ],
        ]


def test_a_plan_tells_what_a_share_has() -> None:
    script = ROOT / "benchmark" / "bench_selection.py"
    command = (sys.executable, str(script), "--plan", "--parts", "quality,wrong", "--share", "1/2")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert [line.split()[:2] for line in done.stdout.splitlines()[:2]] == [["quality", "6"], ["wrong", "10"]]
