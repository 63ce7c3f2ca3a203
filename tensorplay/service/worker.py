"""The threads for what takes long, so that neither a slow disk nor a long list delays another answer, or the exit.

Another process may hold the lock of a file for as long as it likes. So reading has a thread of its own, only so many
wait for either, and lists are made on a third. What a product writes waits for such a lock, too, and holds one of the
runtime meanwhile: what needs that is asked for on a fourth. What dead ranks left is removed on a fifth.

All are daemons: an interpreter that ends waits for none. The loop's own threads are not, and since Python 3.12 they
cannot even be shut down while it ends: nothing here may use `asyncio.to_thread`, or the executor behind it.
"""

import asyncio
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread, current_thread
from typing import Any, NamedTuple, TypeVar

from tensorplay.locks import ForkSafeLock
from tensorplay.service.problem_schemas import ProblemModel
from tensorplay.service.problems import Problem

__all__ = ["BUSY", "MOST_WAITING", "Worker"]

MOST_WAITING = 32
"""How many functions wait for a thread; one more is refused."""

_END_S = 0.3

BUSY: dict[int | str, dict[str, Any]] = {
    503: {"model": ProblemModel, "description": "Too many wait for the disk, or another process holds the file."}
}
"""How the OpenAPI document describes that a `Worker` may refuse."""

T = TypeVar("T")


class _Task(NamedTuple):
    function: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]

    def run(self) -> None:
        """Do it, and tell the loop what came of it."""
        if self.future.cancelled():
            return
        try:
            result = self.function()
        except BaseException as error:  # noqa: BLE001 - whoever asked gets it, whatever it is
            self.tell(self.future.set_exception, error)
        else:
            self.tell(self.future.set_result, result)

    def tell(self, method: Callable[..., object], *arguments: object) -> None:
        """Call a method of the future on its loop, unless it is settled or the loop has gone."""

        def settle() -> None:
            if not self.future.done():
                method(*arguments)

        try:
            self.loop.call_soon_threadsafe(settle)
        except RuntimeError:
            return


_Tasks = SimpleQueue[_Task | None]


class _Lane:
    """One function after another, on a thread that is started when the first comes."""

    def __init__(self, name: str, *, is_bounded: bool = True) -> None:
        self._name = name
        self._is_bounded = is_bounded
        self._lock = ForkSafeLock()
        self._tasks: _Tasks = SimpleQueue()
        self._thread: Thread | None = None

    async def run(self, function: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._lock:
            # A forked child has the queue, but no thread, and nobody to wait for what was in it.
            if self._thread is None or not self._thread.is_alive():
                self._tasks = SimpleQueue()
                self._thread = Thread(target=_work, args=(self._tasks,), name=self._name, daemon=True)
                self._thread.start()
            if self._is_bounded and self._tasks.qsize() >= MOST_WAITING:
                raise Problem(503, "files-busy", "too many wait for the disk; try again", headers={"Retry-After": "2"})
            self._tasks.put(_Task(function, loop, future))
        return await future

    def close(self) -> Thread | None:
        with self._lock:
            thread, self._thread = self._thread, None
            tasks, self._tasks = self._tasks, SimpleQueue()
        while (task := _next(tasks)) is not None:
            task.tell(task.future.cancel)
        tasks.put(None)
        return thread

    def __del__(self) -> None:
        # Else the thread of an application that nobody closed would wait for ever.
        self._tasks.put(None)


class Worker:
    """Runs what reads files, what waits for their locks, what asks the runtime, computes, and tidies: one of each."""

    def __init__(self) -> None:
        self._reading = _Lane("tensorplay-files-read")
        self._writing = _Lane("tensorplay-files")
        self._computing = _Lane("tensorplay-lists", is_bounded=False)
        self._asking = _Lane("tensorplay-runtime", is_bounded=False)
        self._tidying = _Lane("tensorplay-ranks", is_bounded=False)

    async def run(self, function: Callable[[], T]) -> T:
        """Return what the function returns, or raise what it raises; a 503 `Problem` when too many wait."""
        return await self._writing.run(function)

    async def read(self, function: Callable[[], T]) -> T:
        """Do the same for a function that takes no lock of a file."""
        return await self._reading.run(function)

    async def compute(self, function: Callable[[], T]) -> T:
        """Do the same for a function that waits for no disk; none is refused."""
        return await self._computing.run(function)

    async def ask(self, function: Callable[[], T]) -> T:
        """Do the same for a function that takes a lock of the runtime, and writes nothing; none is refused."""
        return await self._asking.run(function)

    async def tidy(self, function: Callable[[], T]) -> T:
        """Do the same for a function that waits a moment for other processes of this host; none is refused."""
        return await self._tidying.run(function)

    def close(self) -> None:
        """Let the threads end with what they do now, and wait a moment for that: an idle one ends at once."""
        lanes = (self._computing, self._asking, self._tidying, self._reading, self._writing)
        threads = [each.close() for each in lanes]
        until = time.monotonic() + _END_S
        for each in threads:
            if each is not None and each is not current_thread():
                each.join(max(0.0, until - time.monotonic()))


def _work(tasks: _Tasks) -> None:
    while (task := tasks.get()) is not None:
        task.run()
        # Not kept while the next is waited for.
        del task


def _next(tasks: _Tasks) -> _Task | None:
    try:
        return tasks.get_nowait()
    except Empty:
        return None
