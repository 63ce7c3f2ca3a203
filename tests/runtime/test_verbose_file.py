import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tensorplay.errors import SettingWarning
from tensorplay.runtime.listeners import (
    FILE,
    TUNING_FAILED,
)
from tensorplay.runtime.settings import Settings
from tensorplay.runtime.verbose import LINE_PREFIX, VerboseLog


@pytest.fixture
def settings() -> Settings:
    return Settings({"TP_TUNABLEOP_VERBOSE": "1"})


@pytest.fixture
def log(settings: Settings) -> Iterator[VerboseLog]:
    log = VerboseLog(settings)
    yield log
    log.close()


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def write_two_lines(log: VerboseLog) -> None:
    log(FILE, {"fact": 1})
    log(FILE, {"fact": 2})


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_at_level_zero_no_file_is_opened(settings: Settings, log: VerboseLog, tmp_path: Path) -> None:
    settings.set("verbose", 0)
    settings.set("verbose_filename", str(tmp_path / "log"))
    log(FILE, {})
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_appended_to_and_complete_after_each_line(
    settings: Settings, log: VerboseLog, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    path.write_text("what was there\n")
    settings.set("verbose_filename", str(path))
    log(FILE, {"path": "é"})
    assert lines(path) == ["what was there", "[tensorplay.tunable] file path=é"]
    log(FILE, {})
    assert len(lines(path)) == 3


def test_another_name_opens_another_file(
    settings: Settings, log: VerboseLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, fact in [("a", 1), ("b", 2), ("a", 3)]:
        settings.set("verbose_filename", str(tmp_path / name))
        log(FILE, {"fact": fact})
    settings.set("verbose_filename", "err")
    log(FILE, {"fact": 4})
    assert lines(tmp_path / "a") == ["[tensorplay.tunable] file fact=1", "[tensorplay.tunable] file fact=3"]
    assert lines(tmp_path / "b") == ["[tensorplay.tunable] file fact=2"]
    assert capsys.readouterr().err == "[tensorplay.tunable] file fact=4\n"


def test_a_closed_log_opens_its_file_again(settings: Settings, log: VerboseLog, tmp_path: Path) -> None:
    settings.set("verbose_filename", str(tmp_path / "log"))
    for _ in range(2):
        log(FILE, {})
        log.close()
        log.close()
    assert len(lines(tmp_path / "log")) == 2


def test_no_file_is_left_open(settings: Settings, tmp_path: Path) -> None:
    before = open_files()
    log = VerboseLog(settings)
    for name in ("a", "b"):
        settings.set("verbose_filename", str(tmp_path / name))
        log(FILE, {})
    log.close()
    gc.collect()
    assert open_files() == before


@pytest.mark.parametrize("name", ["missing/log", ".hidden/log", "folder", "pipe", "x" * 5000])
def test_a_file_that_cannot_be_opened_is_warned_of_once_and_standard_error_is_used(
    settings: Settings, log: VerboseLog, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    settings.set("verbose_filename", str(tmp_path / name))
    with pytest.warns(SettingWarning, match="cannot be written .* go to standard error") as warned:
        write_two_lines(log)
    assert len(warned) == 1
    assert capsys.readouterr().err == "[tensorplay.tunable] file fact=1\n[tensorplay.tunable] file fact=2\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_is_warned_of_once_and_standard_error_is_used(
    settings: Settings, log: VerboseLog, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.set("verbose_filename", "/dev/full")
    with pytest.warns(SettingWarning, match="No space left on device") as warned:
        write_two_lines(log)
    assert len(warned) == 1
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_setting_that_changes_ends_the_use_of_standard_error(
    settings: Settings, log: VerboseLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.set("verbose_filename", str(tmp_path / "missing" / "log"))
    with pytest.warns(SettingWarning):
        log(FILE, {})
    settings.set("verbose_filename", str(tmp_path / "log"))
    capsys.readouterr()
    log(FILE, {})
    assert capsys.readouterr().err == ""
    assert len(lines(tmp_path / "log")) == 1


def test_threads_and_logs_that_share_a_file_never_tear_a_line(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "log"
    settings.set("verbose_filename", str(path))
    logs = [VerboseLog(settings), VerboseLog(settings)]
    threads, rounds = 4, 50
    begin = threading.Barrier(threads)

    def work(number: int) -> None:
        begin.wait(30)
        for turn in range(rounds):
            logs[number % 2](TUNING_FAILED, {"number": number, "turn": turn, "filler": "x" * 290})

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(50)
    for log in logs:
        log.close()
    expected = {
        f"{LINE_PREFIX} tuning_failed number={number} turn={turn} filler={'x' * 290}"
        for number in range(threads)
        for turn in range(rounds)
    }
    assert len(lines(path)) == len(expected)
    assert set(lines(path)) == expected
