"""One process at a time has the name of a socket; the dead lose it, and nobody else does."""

import os
import signal
import socket
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tensorplay.errors import SettingError
from tensorplay.service.unix_socket import (
    LONGEST_ADDRESS,
    PrivateSocket,
    SocketTakenError,
    is_dead,
    is_full,
    peer_of,
    remove_dead,
)


@pytest.fixture
def path() -> Iterator[Path]:
    """A short one."""
    with tempfile.TemporaryDirectory(prefix="x") as name:
        yield Path(name) / "job" / "1.sock"


def left_by_the_dead(path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        PrivateSocket(path)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert path.exists()


def test_it_listens_for_this_user_alone_until_it_is_closed(path: Path) -> None:
    made = PrivateSocket(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert not is_dead(path)
    made.close()
    made.close()
    assert not path.parent.exists()
    assert is_dead(path)


def test_a_name_that_is_taken_is_refused_and_stays(path: Path) -> None:
    made = PrivateSocket(path)
    with pytest.raises(SocketTakenError, match=f"is served by the process {os.getpid()}") as caught:
        PrivateSocket(path)
    assert caught.value.owner == os.getpid()
    assert not is_dead(path)
    assert not remove_dead(path)
    made.close()


def test_the_name_of_a_dead_process_is_taken_over(path: Path) -> None:
    left_by_the_dead(path)
    assert is_dead(path)
    made = PrivateSocket(path)
    assert not is_dead(path)
    made.close()


def test_what_a_dead_process_left_is_removed_by_who_finds_it(path: Path) -> None:
    left_by_the_dead(path)
    assert remove_dead(path)
    assert not path.exists()
    assert not remove_dead(path)


def test_what_is_no_socket_is_not_removed(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_text("precious")
    assert not remove_dead(path)
    assert path.read_text() == "precious"


def test_a_name_that_another_has_by_now_is_not_taken_from_it(path: Path) -> None:
    made = PrivateSocket(path)
    path.unlink()
    other = PrivateSocket(path)
    made.close()
    assert not is_dead(path)
    other.close()
    assert not path.parent.exists()


def test_of_many_that_want_one_name_one_gets_it(path: Path) -> None:
    left_by_the_dead(path)

    def take(_: int) -> PrivateSocket | None:
        try:
            return PrivateSocket(path)
        except SocketTakenError:
            return None

    with ThreadPoolExecutor(8) as pool:
        made = [each for each in pool.map(take, range(24)) if each is not None]
    assert len(made) == 1
    assert not is_dead(path)
    made[0].close()
    assert not path.parent.exists()


def test_the_last_one_to_leave_takes_the_folder_away_while_others_come(path: Path) -> None:
    def come_and_go(number: int) -> None:
        for _ in range(20):
            PrivateSocket(path.with_name(f"{number}.sock")).close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(come_and_go, range(4)))
    assert not path.parent.exists()


def test_an_address_that_the_kernel_would_cut_is_refused(path: Path) -> None:
    longest = path.parent / ("x" * (LONGEST_ADDRESS - len(os.fsencode(path.parent)) - 6) + ".sock")
    made = PrivateSocket(longest)
    made.close()
    with pytest.raises(
        SettingError, match=r"at most 107 bytes, .* 108: name a shorter folder in TENSORPLAY_RUNTIME_DIR"
    ):
        PrivateSocket(longest.with_name("x" + longest.name))


def test_one_that_has_no_room_is_full_and_not_dead(path: Path) -> None:
    made = PrivateSocket(path)
    assert not is_full(path)
    waiting = []
    while not is_full(path):
        waiting.append(socket.socket(socket.AF_UNIX))
        waiting[-1].settimeout(0.0)
        waiting[-1].connect(os.fspath(path))
    assert not is_dead(path)
    assert not is_full(path.with_name("2.sock"))
    for each in waiting:
        each.close()
    made.close()


def test_the_kernel_says_who_is_at_the_other_end() -> None:
    one, other = socket.socketpair()
    assert peer_of(one) == (os.getpid(), os.geteuid())
    one.close()
    other.close()


def test_a_path_without_a_folder_that_could_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        PrivateSocket(Path("/nonexistent/x/1.sock"))
