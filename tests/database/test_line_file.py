import errno
import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tensorplay.database.line_file import (
    LARGEST_BYTES,
    FileTooLargeError,
    LineFile,
    keep_rejected,
    open_locked,
    read_settled,
    replace_file,
    resolved,
)

WAIT_S = 5.0


def append(path: Path, data: bytes) -> None:
    with open_locked(str(path), WAIT_S) as file:
        file.append(data)


def never(_: bytes) -> bool:
    return False


def fail_with(code: int) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def test_a_file_is_made_by_the_first_append_and_extended_by_the_next(path: Path) -> None:
    append(path, b"one\n")
    append(path, b"two\n")
    assert path.read_bytes() == b"one\ntwo\n"


def test_short_writes_are_finished(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:3])))
    append(path, b"a longer line\n")
    assert path.read_bytes() == b"a longer line\n"


def test_short_reads_are_finished(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"a longer line\n")
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, start: pread(fd, min(size, 3), start))
    assert read_settled(str(path))[0] == b"a longer line\n"


@pytest.mark.parametrize("call", ["write", "fdatasync"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_failed_append_leaves_the_file_as_long_as_before(
    path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    path.write_bytes(b"one\n")
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail_with(code))
        with pytest.raises(OSError, match=os.strerror(code)):
            append(path, b"two\n")
    assert path.read_bytes() == b"one\n"


def test_an_append_that_fails_half_way_leaves_nothing_torn(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"one\n")
    write = os.write

    def fill_disk(fd: int, data: bytes) -> int:
        monkeypatch.setattr(os, "write", fail_with(errno.ENOSPC))
        return write(fd, bytes(data[:2]))

    monkeypatch.setattr(os, "write", fill_disk)
    with pytest.raises(OSError, match="No space"):
        append(path, b"two\n")
    monkeypatch.undo()
    assert path.read_bytes() == b"one\n"


def test_a_torn_last_line_goes_to_the_rejected_lines(path: Path) -> None:
    path.write_bytes(b"one\ntor")
    with open_locked(str(path), WAIT_S) as file:
        assert file.mend(file.read(), lambda line: line != b"tor") == b""
    assert path.read_bytes() == b"one\n"
    assert Path(f"{path}.rejected").read_bytes() == b"tor\n"


def test_a_whole_last_line_is_to_be_ended_and_stays(path: Path) -> None:
    path.write_bytes(b"one\ntwo")
    with open_locked(str(path), WAIT_S) as file:
        assert file.mend(b"two", lambda line: line == b"two") == b"\n"
        assert file.mend(b"one\n", never) == b""
    assert path.read_bytes() == b"one\ntwo"
    assert not Path(f"{path}.rejected").exists()


def test_a_torn_line_that_cannot_be_kept_is_not_cut(path: Path) -> None:
    path.write_bytes(b"one\ntor")
    Path(f"{path}.rejected").mkdir()
    with open_locked(str(path), WAIT_S) as file, pytest.raises(OSError, match="rejected"):
        file.mend(file.read(), never)
    assert path.read_bytes() == b"one\ntor"


def test_rejected_lines_are_kept_once_each(path: Path) -> None:
    keep_rejected(str(path), [])
    assert not Path(f"{path}.rejected").exists()
    keep_rejected(str(path), [b"a", b"b", b"a"])
    keep_rejected(str(path), [b"b", b"\xff"])
    assert Path(f"{path}.rejected").read_bytes() == b"a\nb\n\xff\n"


def test_rejected_lines_do_not_glue_to_an_unended_one(path: Path) -> None:
    Path(f"{path}.rejected").write_bytes(b"by hand")
    keep_rejected(str(path), [b"a"])
    assert Path(f"{path}.rejected").read_bytes() == b"by hand\na\n"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_replaced_file_keeps_its_permissions(path: Path, mode: int) -> None:
    path.write_bytes(b"old\n")
    path.chmod(mode)
    status = replace_file(str(path), b"new\n")
    assert path.read_bytes() == b"new\n"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert (status.st_ino, status.st_size) == (path.stat().st_ino, 4)
    assert os.listdir(path.parent) == [path.name]  # noqa: PTH208 - names are compared


def test_a_file_is_not_replaced_by_half_of_a_new_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"old\n")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail_with(errno.ENOSPC))
        with pytest.raises(OSError, match="No space"):
            replace_file(str(path), b"new\n")
    assert path.read_bytes() == b"old\n"
    assert [child.name for child in path.parent.iterdir()] == [path.name]


def test_what_a_killed_rewrite_left_is_not_in_the_way(path: Path) -> None:
    path.write_bytes(b"old\n")
    Path(f"{path}.tmp").write_bytes(b"half")
    replace_file(str(path), b"new\n")
    assert path.read_bytes() == b"new\n"
    assert not Path(f"{path}.tmp").exists()


def test_a_link_in_place_of_the_temporary_file_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"old\n")
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    Path(f"{path}.tmp").symlink_to(victim)
    replace_file(str(path), b"new\n")
    assert victim.read_bytes() == b"precious"


def test_a_lock_held_elsewhere_is_waited_for_but_not_for_ever(path: Path) -> None:
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with open_locked(str(path), WAIT_S):
            held.set()
            release.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        with pytest.raises(TimeoutError, match="held the lock"), open_locked(str(path), 0.02):
            pass
    finally:
        release.set()
        thread.join()
    append(path, b"one\n")


def test_a_lock_that_this_thread_holds_already_is_an_error_and_no_deadlock(path: Path) -> None:
    with open_locked(str(path), WAIT_S), pytest.raises(OSError, match="lock"), open_locked(str(path), 0.02):
        pass


def test_no_folder_is_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such folder"):
        append(tmp_path / "missing" / "file.csv", b"one\n")
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_refused_at_once(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(OSError, match="not a regular file"):
        read_settled(str(path))
    with pytest.raises(OSError, match="not a regular file"):
        append(path, b"one\n")


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_text_that_is_no_file_name_is_an_os_error(name: str) -> None:
    with pytest.raises(OSError, match="not a file name"):
        resolved(name)


def test_reading_waits_for_a_line_that_is_being_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"one\ntw")
    pieces = [b"o", b"\n"]

    def write_meanwhile(_: float) -> None:
        path.write_bytes(path.read_bytes() + pieces.pop(0))

    monkeypatch.setattr(time, "sleep", write_meanwhile)
    data, status = read_settled(str(path))
    assert data == b"one\ntwo\n"
    assert (status.st_ino, status.st_size) == (path.stat().st_ino, len(data))


def test_reading_does_not_wait_for_ever_for_a_line_that_nobody_ends(path: Path) -> None:
    path.write_bytes(b"one\ntw")
    assert read_settled(str(path))[0] == b"one\ntw"


def test_a_descriptor_is_not_left_open(path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0  # noqa: PTH208 - a count
    append(path, b"one\n")
    read_settled(str(path))
    keep_rejected(str(path), [b"x"])
    replace_file(str(path), b"two\n")
    with pytest.raises(OSError, match="not a regular file"):
        LineFile(str(path.parent), os.O_RDONLY)
    after = len(os.listdir("/proc/self/fd")) if before else 0  # noqa: PTH208 - a count
    assert after == before


def test_a_file_that_is_too_large_is_not_read(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(LARGEST_BYTES + 1)
    with pytest.raises(FileTooLargeError, match=f"{LARGEST_BYTES + 1} bytes are to be read; allowed: {LARGEST_BYTES}"):
        read_settled(str(path))
    with open_locked(str(path), WAIT_S) as file_of_ours:
        assert file_of_ours.read(LARGEST_BYTES) == b"\0"
