"""Saving winners to another file, while somebody else holds that one: neither products nor readers wait for it."""

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tensorplay.database.record import Entry, Validator
from tensorplay.database.store import ResultsStore
from tensorplay.errors import ResultsFileWarning
from tensorplay.runtime import device_results
from tensorplay.runtime.listeners import Listeners
from tensorplay.runtime.steered_results import SteeredResults

VALIDATORS = (Validator("A_DEVICE", "of some kind"),)
LONG_S = 8.0


def entry(number: int) -> Entry:
    return Entry("GemmTunableOp_Float32", f"taN_m{number}_n8_k8_bias0_dev0", "host_numpy", 1.0)


def in_file(path: Path) -> set[str]:
    return {each.params for each in ResultsStore(str(path), VALIDATORS).load().entries}


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock of a file, as another process does."""
    with Path(f"{path}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "own.csv"


@pytest.fixture
def results(own: Path) -> SteeredResults:
    made = SteeredResults("0", VALIDATORS, str(own), Listeners())
    made.ensure_loaded()
    made.record(entry(1), "measured here")
    return made


def test_a_winner_is_recorded_and_looked_at_while_a_save_waits_for_another_file(
    results: SteeredResults, own: Path, tmp_path: Path
) -> None:
    other, saved = tmp_path / "other.csv", []
    saving = threading.Thread(target=lambda: saved.append(results.write(str(other))))
    recording = threading.Thread(target=results.record, args=(entry(2), "measured here"))
    with held(other):
        saving.start()
        recording.start()
        recording.join(LONG_S)
        assert not recording.is_alive(), "the product waited for the lock of another file"
        assert saving.is_alive()
        assert results.target == str(own)
        assert results.faults() == []
        assert in_file(own) == {entry(1).params, entry(2).params}
    saving.join(LONG_S)
    assert saved == [True]
    assert entry(1).params in in_file(other)


def test_a_save_elsewhere_that_fails_says_which_file_and_the_own_one_is_written_on(
    results: SteeredResults, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_results, "ResultsStore", partial(ResultsStore, lock_wait_s=0.05))
    other = tmp_path / "other.csv"
    for _ in range(2):
        with held(other), pytest.warns(ResultsFileWarning, match=r"other\.csv.* stay where they are"):
            assert not results.write(str(other))
    results.record(entry(2), "measured here")
    assert in_file(own) == {entry(1).params, entry(2).params}
