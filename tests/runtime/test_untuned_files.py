"""Untuned signatures on their way to files: whose lock is held, whose folder is missing, and which come back."""

import warnings
from pathlib import Path

import filelock
import pytest

from tensorplay.database.untuned import UntunedLog
from tensorplay.errors import ResultsFileWarning
from tensorplay.gemm import Signature
from tensorplay.runtime import untuned_files
from tensorplay.runtime.device_results import BACK_OFF_S
from tensorplay.runtime.untuned_files import UntunedFiles
from tensorplay.testing.manual_clock import ManualClock


def signature(number: int) -> Signature:
    return Signature("GemmTunableOp_Float32", f"taN_m{number}_n8_k8_bias0_devcpu")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untuned_files, "GEMM_LOCK_WAIT_S", 0.05)


def test_a_lock_that_is_held_is_waited_for_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path, clock = str(tmp_path / "untuned.csv"), ManualClock()
    files = UntunedFiles(clock)
    files.record(path, signature(1))
    with filelock.FileLock(f"{path}.lock"):
        with pytest.warns(ResultsFileWarning, match="cannot be used|cannot write"):
            files.record(path, signature(2))
        with warnings.catch_warnings():
            # Nobody waits, and nobody is told again.
            warnings.simplefilter("error")
            files.record(path, signature(3))
    files.record(path, signature(4))
    assert UntunedLog(path).read().signatures == (signature(1),)
    clock.advance(BACK_OFF_S)
    files.record(path, signature(5))
    assert UntunedLog(path).read().signatures == tuple(signature(number) for number in (1, 2, 3, 4, 5))


def test_what_is_left_is_written_at_the_end(tmp_path: Path) -> None:
    path = str(tmp_path / "later" / "untuned.csv")
    files = UntunedFiles(ManualClock())
    with pytest.warns(ResultsFileWarning, match="cannot write"):
        files.record(path, signature(1))
    (tmp_path / "later").mkdir()
    files.save_pending()
    files.save_pending()
    assert UntunedLog(path).read().signatures == (signature(1),)


def test_while_a_file_cannot_be_written_the_newest_wait_and_the_warning_says_how_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untuned_files, "MOST_PENDING", 2)
    path = str(tmp_path / "later" / "untuned.csv")
    files = UntunedFiles(ManualClock())
    with pytest.warns(ResultsFileWarning, match="the newest 2, are written when it can be"):
        files.record(path, signature(1))
    for number in (2, 3):
        files.record(path, signature(number))
    (tmp_path / "later").mkdir()
    files.record(path, signature(4))
    assert UntunedLog(path).read().signatures == (signature(3), signature(4))
    files.record(path, signature(1))
    assert UntunedLog(path).read().signatures == (signature(3), signature(4), signature(1))
