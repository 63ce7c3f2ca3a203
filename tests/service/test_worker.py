"""The threads for files: a stuck write delays no read and no exit, and not everything waits for it."""

import asyncio
import gc
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from tensorplay.service.problems import Problem
from tensorplay.service.worker import MOST_WAITING, Worker


def test_what_is_asked_for_comes_back_result_or_error() -> None:
    async def ask() -> int:
        worker = Worker()
        with pytest.raises(ValueError, match="invalid literal"):
            await worker.run(lambda: int("x"))
        return await worker.run(lambda: 3) + await worker.read(lambda: 4)

    assert asyncio.run(ask()) == 7


def test_a_stuck_write_delays_no_read_and_only_so_many_wait_for_it() -> None:
    may_go = threading.Event()

    async def ask() -> list[bool]:
        worker = Worker()
        writes = [asyncio.create_task(worker.run(partial(may_go.wait, 30)))]
        while len(writes) < MOST_WAITING + 1:
            # The first leaves the queue once its thread has it.
            await asyncio.sleep(0.05 if len(writes) == 1 else 0)
            writes.append(asyncio.create_task(worker.run(may_go.is_set)))
        await asyncio.sleep(0)
        assert await worker.read(lambda: 4) == 4
        with pytest.raises(Problem) as refused:
            await worker.run(may_go.is_set)
        assert refused.value.status == 503
        may_go.set()
        return await asyncio.gather(*writes)

    assert asyncio.run(ask()) == [True] * (MOST_WAITING + 1)


def test_what_computes_waits_for_no_disk_and_is_never_refused() -> None:
    may_go = threading.Event()

    async def ask() -> list[int]:
        worker = Worker()
        stuck = [asyncio.create_task(each(partial(may_go.wait, 30))) for each in (worker.run, worker.read)]
        found = await asyncio.gather(*(worker.compute(partial(pow, number, 2)) for number in range(3 * MOST_WAITING)))
        may_go.set()
        assert all(await asyncio.gather(*stuck))
        return found

    assert asyncio.run(ask()) == [number**2 for number in range(3 * MOST_WAITING)]


def test_what_asks_the_runtime_delays_nothing_else_and_is_never_refused() -> None:
    may_go = threading.Event()

    async def ask() -> list[bool]:
        worker = Worker()
        asked = [asyncio.create_task(worker.ask(partial(may_go.wait, 30))) for _ in range(3 * MOST_WAITING)]
        for each in (worker.run, worker.read, worker.compute):
            assert await each(lambda: 4) == 4
        may_go.set()
        return await asyncio.gather(*asked)

    assert all(asyncio.run(ask()))


def test_closing_cancels_what_waits_and_the_next_begins_anew() -> None:
    may_go = threading.Event()

    async def ask() -> int:
        worker = Worker()
        first = asyncio.create_task(worker.run(partial(may_go.wait, 30)))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(worker.run(may_go.is_set))
        await asyncio.sleep(0)
        worker.close()
        with pytest.raises(asyncio.CancelledError):
            await second
        found = await worker.run(lambda: 5)
        may_go.set()
        assert await first
        return found

    assert asyncio.run(ask()) == 5


def test_the_thread_ends_with_what_it_belongs_to() -> None:
    before = set(threading.enumerate())

    async def ask() -> None:
        await Worker().run(lambda: 1)

    asyncio.run(ask())
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        thread.join(20)
        assert not thread.is_alive()


def test_a_program_ends_though_a_write_is_stuck(tmp_path: Path) -> None:
    program = """
import asyncio, time
from tensorplay.service.worker import Worker
async def ask():
    worker = Worker()
    for _ in range(3):
        asyncio.create_task(worker.run(lambda: time.sleep(100)))
    await asyncio.sleep(0.2)
asyncio.run(ask())
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
