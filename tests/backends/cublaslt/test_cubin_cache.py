"""Machine code on disk: found again, never torn, bounded, and silent where there is no folder."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.backends.cublaslt.cubin_cache import CubinCache, _name, cache_folder

CODE = b"machine code"


def test_what_was_written_is_read_by_the_same_parts_only(tmp_path: Path) -> None:
    cache = CubinCache(tmp_path / "kernels")
    assert cache.read("source", "sm_90") is None
    cache.write(CODE, "source", "sm_90")
    assert CubinCache(tmp_path / "kernels").read("source", "sm_90") == CODE
    assert cache.read("source", "sm_80") is None
    assert cache.read("sources", "m_90") is None


@given(first=st.lists(st.text(max_size=6), max_size=4), second=st.lists(st.text(max_size=6), max_size=4))
def test_different_parts_have_different_names(first: list[str], second: list[str]) -> None:
    assert (_name(tuple(first)) == _name(tuple(second))) == (first == second)


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda _: b"", lambda b: b[:32], lambda b: b[:-1] + b"x"])
def test_a_file_that_is_torn_or_changed_is_not_believed(tmp_path: Path, damage: object) -> None:
    cache = CubinCache(tmp_path)
    cache.write(CODE, "source")
    (file,) = tmp_path.iterdir()
    assert callable(damage)
    file.write_bytes(damage(file.read_bytes()))
    assert cache.read("source") is None
    cache.write(CODE, "source")
    assert cache.read("source") == CODE


def _as_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _as_link(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to(file.with_name("elsewhere"))


def _as_huge(file: Path) -> None:
    os.truncate(file, 1 << 40)


def _as_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.skipif(os.name != "posix", reason="files of another kind")
@pytest.mark.parametrize("change", [_as_pipe, _as_link, _as_huge, _as_folder, lambda file: file.chmod(0o666)])
def test_nothing_but_a_file_that_the_user_alone_can_write_is_read(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    cache = CubinCache(tmp_path)
    cache.write(CODE, "source")
    (file,) = tmp_path.iterdir()
    change(file)
    assert cache.read("source") is None
    cache.write(CODE, "source")
    assert cache.read("source") == (None if file.is_dir() else CODE)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")
def test_another_user_s_file_is_not_believed(tmp_path: Path) -> None:
    cache = CubinCache(tmp_path)
    cache.write(CODE, "source")
    (file,) = tmp_path.iterdir()
    os.chown(file, 12345, -1)
    assert cache.read("source") is None


def test_the_files_used_least_recently_go_when_there_is_no_more_room(tmp_path: Path) -> None:
    old = CubinCache(tmp_path)
    for number in range(4):
        old.write(bytes(1000), str(number))
        os.utime(tmp_path / _name((str(number),)), (number, number))
    assert old.read("0") is not None
    CubinCache(tmp_path, most_bytes=3200).write(bytes(1000), "new")
    assert [name for name in "0123" if CubinCache(tmp_path).read(name)] == ["0", "3"]
    assert CubinCache(tmp_path).read("new") is not None


def test_a_part_that_a_killed_process_left_is_removed_in_time(tmp_path: Path) -> None:
    left = tmp_path / ".killed.part"
    left.write_bytes(bytes(5000))
    os.utime(left, (1, 1))
    CubinCache(tmp_path, most_bytes=3000).write(CODE, "source")
    assert not left.exists()


def test_without_a_folder_nothing_is_kept_and_nothing_raises(tmp_path: Path) -> None:
    for folder in (None, tmp_path / "file" / "below"):
        (tmp_path / "file").write_text("no folder")
        cache = CubinCache(folder)
        cache.write(CODE, "source")
        assert cache.read("source") is None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="for root every folder can be written")
def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    CubinCache(tmp_path).write(CODE, "source")
    assert CubinCache(tmp_path).read("source") is None


WRITER = """
import sys
from pathlib import Path
from tensorplay.backends.cublaslt.cubin_cache import CubinCache

cache = CubinCache(Path(sys.argv[1]))
for _ in range(100):
    cache.write(b"machine code" * 1000, "source")
"""


def test_processes_that_write_at_once_leave_whole_files(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, tmp_path]) for _ in range(2)]
    cache = CubinCache(tmp_path)
    while any(writer.poll() is None for writer in writers):
        assert cache.read("source") in {None, CODE * 1000}
    assert [writer.returncode for writer in writers] == [0, 0]
    assert [file.suffix for file in tmp_path.iterdir()] == [".cubin"]


@pytest.mark.skipif(sys.platform == "win32", reason="paths of another kind")
@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"XDG_CACHE_HOME": "/cache", "HOME": "/home"}, "/cache/tensorplay/kernels"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/home"}, "/home/.cache/tensorplay/kernels"),
        ({"HOME": "/home"}, "/home/.cache/tensorplay/kernels"),
        ({"HOME": "relative"}, None),
        ({}, None),
    ],
)
def test_the_folder_is_the_user_s_own(environ: dict[str, str], folder: str | None) -> None:
    assert cache_folder(environ) == (None if folder is None else Path(folder))
