"""Winners that a disk does not take, and results files that are told to the offline tuner."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tensorplay.database.csv_text import parse_results
from tensorplay.database.killers import Death, Killer, KillerLog
from tensorplay.distributed.offline import OfflineTuner
from tensorplay.gemm import Signature
from tensorplay.testing import scripted_kernel

# A limit of file sizes does what a full disk does: nothing can be added to a file.
WORKER = """
import resource, sys
from tensorplay.distributed.worker import main
from tensorplay.testing import ScriptedBackend, scripted_kernel

HOW = sys.argv.pop(1)
# What is compiled under the limit would be cut too, and left for whoever imports it next.
sys.dont_write_bytecode = True


class Filled(ScriptedBackend):
    def first_choice(self, problem):
        is_full = HOW == "full" or (HOW == "full at first" and problem.m == 4)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0 if is_full else resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return super().first_choice(problem)


times = {scripted_kernel(1): 1.0, scripted_kernel(2): 0.5, scripted_kernel(3): 0.25 if HOW == "full" else 0.7}
sys.exit(main(find=lambda device: Filled(times, device=device)))
"""

FAST, FASTER = scripted_kernel(2), scripted_kernel(3)
ONE, OTHER, ELSEWHERE = (
    Signature("GemmTunableOp_Float32", f"taN_m{m}_n3_k5_bias0_dev{device}") for m, device in ((4, 0), (8, 0), (4, 1))
)


class Folder:
    """A folder of results, and tuners whose disk is full or not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "worker.py").write_text(WORKER, encoding="utf-8")

    def tuner(self, how: str, results: Mapping[str, str] | None = None, *, again: bool = False) -> OfflineTuner:
        def command(device: str, results: str) -> Sequence[str]:
            return [sys.executable, str(self.path / "worker.py"), how, device, results]

        environ = {**os.environ, "TP_TUNABLEOP_FILENAME": str(self.path / "winners.csv")}
        return OfflineTuner(environ=environ, results=results, again=again, command=command)

    def winners(self, name: str) -> dict[Signature, str]:
        return {entry.signature: entry.kernel for entry in parse_results((self.path / name).read_bytes()).entries}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_winner_that_is_not_on_disk_is_a_problem_of_its_signature_that_names_the_file(folder: Folder) -> None:
    for outcome in folder.tuner("full").tune([ONE, OTHER]):
        assert (outcome.kernel, outcome.measured, outcome.kept) == (FASTER, True, None)
        assert (outcome.problem or "").startswith(f"measured, not written: {folder.path / 'winners0.csv'}: ")
        assert "File too large" in (outcome.problem or "")
    assert folder.winners("winners0.csv") == {}


def test_what_could_not_be_written_is_written_with_the_next_one(folder: Folder) -> None:
    first, second = folder.tuner("full at first").tune([ONE, OTHER])
    assert "measured, not written" in (first.problem or "")
    assert (second.problem, second.measured) == (None, True)
    assert folder.winners("winners0.csv") == {ONE: FAST, OTHER: FAST}


def test_an_earlier_winner_stays_where_the_new_one_cannot_be_written(folder: Folder) -> None:
    folder.tuner("roomy").tune([ONE])
    before = (folder.path / "winners0.csv").read_bytes()
    (outcome,) = folder.tuner("full", again=True).tune([ONE])
    assert "measured, not written" in (outcome.problem or "")
    assert (outcome.kernel, outcome.kept) == (FAST, "the earlier winner stays")
    assert (folder.path / "winners0.csv").read_bytes() == before


def test_winners_go_to_the_very_file_that_is_given_for_a_device_and_its_killers_are_left_out(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.path)
    KillerLog("mine.killers.csv").record(Killer(*ONE, FASTER, Death.DIED))
    tuner = folder.tuner("roomy", {"0": "mine.csv"})
    assert tuner.killers_of("0").path == str(folder.path / "mine.killers.csv")
    assert tuner.killers_of("1").path == str(folder.path / "winners1.killers.csv")
    mine, _ = tuner.tune([ONE, ELSEWHERE])
    assert mine.candidates == 2
    assert folder.winners("mine.csv") == {ONE: FAST}
    # Of a device that none is given for, as always.
    assert folder.winners("winners1.csv") == {ELSEWHERE: FAST}
    assert not (folder.path / "winners0.csv").exists()
