"""Locks exclude threads, and a forked child can take those that other threads held."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tensorplay.locks import ForkSafeLock, imported

NEEDS_FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def in_child(check: object) -> int:
    """Run `check` in a forked child with a limit of its own; return the child's exit code."""
    assert callable(check)
    pid = os.fork()
    if pid == 0:
        timer = threading.Timer(5, os._exit, [3])
        timer.daemon = True
        timer.start()
        os._exit(0 if check() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def taken(lock: ForkSafeLock) -> bool:
    with lock:
        return True


def test_it_says_whether_the_asking_thread_holds_it() -> None:
    lock = ForkSafeLock()
    told: list[bool] = [lock.is_held_here()]
    with lock:
        told.append(lock.is_held_here())
        thread = threading.Thread(target=lambda: told.append(lock.is_held_here()))
        thread.start()
        thread.join()
    assert [*told, lock.is_held_here()] == [False, True, False, False]


def test_one_thread_at_a_time_holds_it() -> None:
    lock = ForkSafeLock()
    inside: list[int] = []

    def work() -> None:
        for _ in range(200):
            with lock:
                inside.append(1)
                assert len(inside) == 1
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert inside == []


def test_its_holder_may_take_it_again() -> None:
    lock = ForkSafeLock()
    with lock, lock:
        assert taken(lock)


@NEEDS_FORK
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_can_take_what_another_thread_held_when_it_was_forked() -> None:
    lock = ForkSafeLock()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    try:
        assert in_child(lambda: taken(lock)) == 0
    finally:
        done.set()
        holder.join()
    assert taken(lock)


@NEEDS_FORK
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_forking_thread_can_give_back_what_it_held_in_both_processes() -> None:
    lock = ForkSafeLock()
    child = -1
    with lock:
        pid = os.fork()
    if pid == 0:
        os._exit(0 if taken(lock) else 1)
    child = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert child == 0
    assert taken(lock)


def test_an_interrupt_at_any_moment_leaves_it_open(tmp_path: Path) -> None:
    """A signal handler raises again and again while the lock is taken and given back; another thread can take it."""
    code = """
import signal, threading
from tensorplay.locks import ForkSafeLock
lock, interrupted = ForkSafeLock(), 0
def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
while interrupted < 300:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
        while True:
            with lock:
                pass
    except KeyboardInterrupt:
        interrupted += 1
    finally:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, 0)
taken = []
def take():
    with lock:
        taken.append(True)
thread = threading.Thread(target=take, daemon=True)
thread.start()
thread.join(10)
print(taken)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False)
    assert done.stdout == "[True]\n", done.stderr


@NEEDS_FORK
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_no_process_forks_while_another_thread_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_to_import.py").write_text("import time\ntime.sleep(0.5)\nready = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    thread = threading.Thread(target=imported, args=("slow_to_import",))
    thread.start()
    time.sleep(0.1)
    assert in_child(lambda: imported("slow_to_import").ready) == 0
    thread.join()
