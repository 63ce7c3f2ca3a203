import errno
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorplay.database.record import Entry
from tensorplay.database.untuned import UntunedLog
from tensorplay.errors import RecordError
from tensorplay.gemm import Signature

MakeEntry = Callable[..., Entry]
RunScript = Callable[..., str]
StartScript = Callable[..., subprocess.Popen[str]]


def signature(m: int) -> Signature:
    return Signature("GemmTunableOp_Float32", f"taN_m{m}_n8_k8_bias0_devcpu")


def line(m: int) -> str:
    return f"GemmTunableOp_Float32,taN_m{m}_n8_k8_bias0_devcpu\n"


def test_each_signature_is_written_once(path: Path) -> None:
    log = UntunedLog(str(path))
    assert [log.record(signature(m)) for m in (1, 2, 1, 2)] == [True, True, False, False]
    assert path.read_text(encoding="utf-8") == line(1) + line(2)
    assert log.read().signatures == (signature(1), signature(2))


def test_a_rerun_and_another_log_write_nothing_again(path: Path) -> None:
    one, other = UntunedLog(str(path)), UntunedLog(str(path))
    assert one.record(signature(1))
    assert not other.record(signature(1))
    assert other.record(signature(2))
    assert not one.record(signature(2))
    assert not UntunedLog(str(path)).record(signature(2))
    assert path.read_text(encoding="utf-8") == line(1) + line(2)


def test_a_missing_file_says_nothing_and_nothing_is_made(path: Path) -> None:
    log = UntunedLog(str(path))
    assert log.read() == ((), ())
    assert log.path == str(path)
    assert list(path.parent.iterdir()) == []


def test_a_text_that_is_no_signature_is_refused(path: Path) -> None:
    with pytest.raises(RecordError):
        UntunedLog(str(path)).record(Signature("GemmTunableOp_Float32", "taN\n"))
    assert not path.exists()


def test_lines_that_cannot_be_read_are_reported_and_left(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf# note\r\n" + line(1).encode() + b"nonsense\n\xff\n")
    log = UntunedLog(str(path))
    assert [(bad.path, bad.number, bad.raw) for bad in log.read().bad_lines] == [
        (str(path), 3, b"nonsense"),
        (str(path), 4, b"\xff"),
    ]
    assert not log.record(signature(1))
    assert log.record(signature(2))
    assert path.read_bytes().endswith(b"nonsense\n\xff\n" + line(2).encode())


@pytest.mark.parametrize("cut", range(1, 48))
def test_a_torn_last_line_never_becomes_a_signature(path: Path, cut: int) -> None:
    torn = "GemmTunableOp_Float32,taN_m16_n8_k8_bias0_dev12"[:cut]
    path.write_text(line(1) + torn, encoding="utf-8")
    log = UntunedLog(str(path))
    assert [bad.text for bad in log.read().bad_lines] == [torn]
    assert log.record(signature(2))
    assert log.read() == ((signature(1), signature(2)), ())
    assert Path(f"{path}.rejected").read_text(encoding="utf-8") == torn + "\n"


def test_a_line_torn_by_another_writer_between_two_records_is_mended(path: Path) -> None:
    log = UntunedLog(str(path))
    log.record(signature(1))
    with path.open("a", encoding="utf-8") as file:
        file.write(line(2) + "GemmTunableOp_")
    assert not log.record(signature(2))
    assert log.record(signature(3))
    assert path.read_text(encoding="utf-8") == line(1) + line(2) + line(3)


def test_a_signature_half_seen_is_seen_once_its_writer_has_ended_it(path: Path) -> None:
    log = UntunedLog(str(path))
    log.record(signature(1))
    path.write_text(line(1) + line(2) + line(3)[:-4], encoding="utf-8")
    assert not log.record(signature(2))
    path.write_text(line(1) + line(2) + line(3), encoding="utf-8")
    assert not log.record(signature(3))
    assert path.read_text(encoding="utf-8") == line(1) + line(2) + line(3)


def test_a_signature_put_in_front_by_an_editor_is_seen(path: Path) -> None:
    log = UntunedLog(str(path))
    log.record(signature(1))
    path.write_text(line(10) + line(11), encoding="utf-8")
    assert not log.record(signature(10))
    assert log.record(signature(1))


def test_a_file_put_in_its_place_is_read_from_its_start(path: Path) -> None:
    log = UntunedLog(str(path))
    log.record(signature(1))
    other = path.with_suffix(".new")
    other.write_text(line(2) + line(3), encoding="utf-8")
    other.replace(path)
    assert not log.record(signature(2))
    assert log.record(signature(1))


@pytest.mark.parametrize("content", ["", "# emptied by hand\n", line(9), line(9) * 40])
def test_a_file_emptied_or_edited_meanwhile_is_read_again(path: Path, content: str) -> None:
    log = UntunedLog(str(path))
    log.record(signature(1))
    path.write_text(content, encoding="utf-8")
    assert log.record(signature(2))
    assert path.read_text(encoding="utf-8") == content + line(2)
    if len(content) < len(line(1)):
        assert log.record(signature(1))


def test_what_cannot_be_written_raises_and_is_tried_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = UntunedLog(str(path))
    log.record(signature(1))

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail)
        with pytest.raises(OSError, match="No space"):
            log.record(signature(2))
    assert path.read_text(encoding="utf-8") == line(1)
    assert log.record(signature(2))
    assert path.read_text(encoding="utf-8") == line(1) + line(2)


def test_a_missing_folder_and_a_folder_in_its_place_raise(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such folder"):
        UntunedLog(str(tmp_path / "missing" / "untuned.csv")).record(signature(1))
    with pytest.raises(IsADirectoryError):
        UntunedLog(str(tmp_path)).record(signature(1))
    with pytest.raises(OSError, match="not a regular file"):
        UntunedLog(str(tmp_path)).read()


def test_threads_write_each_signature_once(path: Path) -> None:
    log = UntunedLog(str(path))
    written: list[int] = []

    def record(own: UntunedLog) -> None:
        written.extend(m for m in range(1, 30) if own.record(signature(m)))

    threads = [threading.Thread(target=record, args=(own,)) for own in (log, log, UntunedLog(str(path)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(written) == list(range(1, 30))
    assert sorted(path.read_text(encoding="utf-8").splitlines(keepends=True)) == sorted(map(line, range(1, 30)))


RECORD = """
from tensorplay.database.untuned import UntunedLog
log = UntunedLog(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
print(sum(log.record(entry(m).signature) for m in range(1, 60)), flush=True)
"""


def test_processes_write_each_signature_once(path: Path, start_script: StartScript) -> None:
    processes = [start_script(RECORD, path) for _ in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    counts = [int(process.communicate(timeout=50)[0]) for process in processes]
    assert sum(counts) == 59
    assert sorted(path.read_text(encoding="utf-8").splitlines(keepends=True)) == sorted(map(line, range(1, 60)))


CONTENTS = st.lists(
    st.sampled_from(
        [line(1).encode(), line(2).encode(), line(3).encode()[:-3], b"\n", b"#", b",", b"\xff", b"\r", b"x"]
    )
).map(b"".join) | st.binary(max_size=40)


def check_record(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "untuned.csv"
        path.write_bytes(content)
        log = UntunedLog(str(path))
        before = log.read()
        assert log.record(signature(7)) == (signature(7) not in before.signatures)
        after = UntunedLog(str(path)).read()
        assert after.signatures == (*before.signatures, signature(7))
        kept = Path(f"{path}.rejected")
        moved = kept.read_bytes().splitlines(keepends=True) if kept.exists() else []
        assert len(after.bad_lines) >= len(before.bad_lines) - 1
        assert bool(moved) == (len(after.bad_lines) < len(before.bad_lines))


@given(CONTENTS)
@settings(max_examples=100, deadline=None)
def test_one_more_signature_costs_no_other_whatever_the_file_holds(content: bytes) -> None:
    check_record(content)


@pytest.mark.nightly
@given(CONTENTS)
@settings(max_examples=10_000, deadline=None)
def test_ten_thousand_files_lose_no_signature_to_one_more(content: bytes) -> None:
    check_record(content)
