"""The results of one device while its file cannot be written: what waits, and what becomes of it."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock
import pytest

from tensorplay.database.record import Entry, Validator
from tensorplay.database.store import ResultsStore
from tensorplay.errors import ResultsFileWarning
from tensorplay.gemm import Signature
from tensorplay.runtime import device_results
from tensorplay.runtime.device_results import BACK_OFF_S
from tensorplay.runtime.listeners import Listeners
from tensorplay.runtime.steered_results import SteeredResults
from tensorplay.testing.manual_clock import ManualClock

VALIDATORS = (Validator("A_DEVICE", "of some kind"),)


def entry(number: int, kernel: str = "host_numpy", time_ms: float = 1.0) -> Entry:
    return Entry("GemmTunableOp_Float32", f"taN_m{number}_n8_k8_bias0_dev0", kernel, time_ms)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_results, "GEMM_LOCK_WAIT_S", 0.05)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.csv"


@pytest.fixture
def results(path: Path, clock: ManualClock) -> SteeredResults:
    """Results whose file holds what is stale of three products."""
    store = ResultsStore(str(path), VALIDATORS)
    for number in (1, 2, 3):
        store.append(entry(number, "host_scipy"))
    made = SteeredResults("0", VALIDATORS, str(path), Listeners(), clock)
    made.ensure_loaded()
    return made


@contextmanager
def held(path: Path, results: SteeredResults) -> Iterator[None]:
    """Hold the file's lock, after one wait for it in vain."""
    with filelock.FileLock(f"{path}.lock"):
        with pytest.warns(ResultsFileWarning, match="has held the lock"):
            results.record(entry(9), "measured here")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield


def in_file(path: Path) -> dict[Signature, str]:
    return {each.signature: each.kernel for each in ResultsStore(str(path), VALIDATORS).load().entries}


def test_what_heals_while_a_lock_is_held_waits_once_and_its_stale_line_goes_later(
    path: Path, results: SteeredResults, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held(path, results):
        # Not even tried: that it would take no time here does not show how often it was.
        tried = []
        monkeypatch.setattr(results._store, "rewrite", lambda *_, **__: tried.append(1))
        results.replace(entry(1), "measured here")
        assert results.exchange(results.results.get(entry(2).signature), entry(2), "measured here")
        assert results.remove(entry(3).signature)
        assert tried == []
    monkeypatch.undo()
    assert in_file(path) == {entry(number).signature: "host_scipy" for number in (1, 2, 3)}
    clock.advance(BACK_OFF_S)
    results.record(entry(4), "measured here")
    assert in_file(path) == {entry(number).signature: "host_numpy" for number in (1, 2, 4, 9)}
    assert "host_scipy" not in path.read_text()


def test_what_waits_is_written_and_dropped_at_the_end(path: Path, results: SteeredResults) -> None:
    with held(path, results):
        results.replace(entry(1), "measured here")
        assert results.remove(entry(2).signature)
    assert results.save_pending()
    assert in_file(path) == {
        entry(1).signature: "host_numpy",
        entry(3).signature: "host_scipy",
        entry(9).signature: "host_numpy",
    }
    before = path.read_bytes()
    assert results.save_pending()
    assert path.read_bytes() == before


def test_what_was_removed_does_not_come_back_from_the_file_that_still_has_it(
    path: Path, results: SteeredResults
) -> None:
    with held(path, results):
        results.remove(entry(2).signature)
        for overwrite in (False, True):
            assert results.read(str(path), overwrite=overwrite)
            assert results.results.get(entry(2).signature) is None
    assert results.write()
    assert entry(2).signature not in in_file(path)


def test_what_was_removed_and_measured_again_is_in_the_file(path: Path, results: SteeredResults) -> None:
    with held(path, results):
        results.remove(entry(2).signature)
        results.record(entry(2), "measured here")
    assert results.save_pending()
    assert in_file(path)[entry(2).signature] == "host_numpy"


def test_everything_can_be_dropped_while_a_lock_is_held(path: Path, results: SteeredResults) -> None:
    with held(path, results):
        assert results.clear() == 4
    assert results.save_pending()
    assert in_file(path) == {}


def test_another_file_loses_nothing_that_was_to_go_from_the_one_before(path: Path, results: SteeredResults) -> None:
    other = path.with_name("other.csv")
    ResultsStore(str(other), VALIDATORS).append(entry(2, "host_scipy"))
    with held(path, results):
        results.remove(entry(2).signature)
    results.redirect(str(other))
    assert entry(2).signature not in in_file(path)
    results.record(entry(4), "measured here")
    assert in_file(other)[entry(2).signature] == "host_scipy"


def test_a_file_that_is_too_large_is_left_alone_and_a_sibling_is_written(path: Path, clock: ManualClock) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)
    results = SteeredResults("0", VALIDATORS, str(path), Listeners(), clock)
    with pytest.warns(ResultsFileWarning, match="cannot be read.*allowed: "):
        results.ensure_loaded()
    results.record(entry(1), "measured here")
    assert results.write()
    with pytest.warns(ResultsFileWarning, match="cannot be read.*allowed: "):
        assert not results.read(str(path), overwrite=False)
    assert path.stat().st_size == 1 << 40
    assert results.target != str(path)
    assert in_file(Path(results.target)) == {entry(1).signature: "host_numpy"}
