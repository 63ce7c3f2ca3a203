"""The lock of a file of lines: who waits for it, and who is told at once that it waits for itself."""

import errno
import os
import threading
from pathlib import Path

import pytest

from tensorplay.database.line_file import is_held_here, open_locked

WAIT_S = 5.0


def append(path: Path, data: bytes) -> None:
    with open_locked(str(path), WAIT_S) as file:
        file.append(data)


def test_a_thread_that_holds_a_lock_is_told_so_at_once_when_it_asks_again(path: Path) -> None:
    for _ in range(2):
        with open_locked(str(path), 60.0) as file:
            with pytest.raises(OSError, match="holds the lock already") as told, open_locked(str(path), 60.0):
                pass
            assert told.value.errno == errno.EDEADLK
            assert is_held_here(told.value)
            file.append(b"one\n")
            append(path.with_name("another.csv"), b"one\n")
    assert path.read_bytes() == b"one\none\n"


def test_another_thread_waits_for_a_lock_as_ever(path: Path) -> None:
    failures: list[OSError] = []

    def ask() -> None:
        try:
            with open_locked(str(path), 0.02):
                pass
        except OSError as error:
            failures.append(error)

    with open_locked(str(path), WAIT_S):
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
    assert [type(failure) for failure in failures] == [TimeoutError]
    assert not is_held_here(failures[0])
    ask()
    assert len(failures) == 1


def test_a_lock_that_was_not_had_can_be_asked_for_again(path: Path) -> None:
    missing = path.parent / "missing" / path.name
    for _ in range(2):
        with pytest.raises(FileNotFoundError), open_locked(str(missing), WAIT_S):
            pass
    missing.parent.mkdir()
    append(missing, b"one\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_does_not_take_another_thread_s_lock_for_its_own(path: Path) -> None:
    begun, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        with open_locked(str(path), WAIT_S):
            begun.set()
            is_over.wait(WAIT_S)

    thread = threading.Thread(target=hold)
    thread.start()
    assert begun.wait(WAIT_S)
    pid = os.fork()
    if pid == 0:
        found = []

        def ask() -> None:
            # Threads of the child may have the number of one that lived in the parent only.
            try:
                append(path, b"one\n")
            except OSError as error:
                found.append(is_held_here(error))

        asking = threading.Thread(target=ask)
        asking.start()
        asking.join()
        os._exit(any(found))
    is_over.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
