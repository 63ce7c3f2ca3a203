"""Locks exclude threads, and a forked child can take those that other threads held."""

import os
import threading

import pytest

from tensorplay.locks import ForkSafeLock

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


@pytest.mark.parametrize("reentrant", [False, True])
def test_one_thread_at_a_time_holds_it(reentrant: bool) -> None:
    lock = ForkSafeLock(reentrant=reentrant)
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


def test_a_reentrant_one_may_be_taken_again_by_its_holder() -> None:
    lock = ForkSafeLock(reentrant=True)
    with lock, lock:
        assert taken(lock)


@NEEDS_FORK
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("reentrant", [False, True])
def test_a_child_can_take_what_another_thread_held_when_it_was_forked(reentrant: bool) -> None:
    lock = ForkSafeLock(reentrant=reentrant)
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
@pytest.mark.parametrize("reentrant", [False, True])
def test_the_forking_thread_can_give_back_what_it_held_in_both_processes(reentrant: bool) -> None:
    lock = ForkSafeLock(reentrant=reentrant)
    child = -1
    with lock:
        pid = os.fork()
    if pid == 0:
        os._exit(0 if taken(lock) else 1)
    child = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert child == 0
    assert taken(lock)
