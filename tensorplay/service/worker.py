"""The one thread that files are read and written on, so that a slow disk delays no other answer."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["Worker"]

T = TypeVar("T")


class Worker:
    """Runs one function after another on a thread that is started when the first comes."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None

    async def run(self, function: Callable[[], T]) -> T:
        """Return what the function returns, or raise what it raises."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "tensorplay-files")
        return await asyncio.get_running_loop().run_in_executor(self._executor, function)

    def close(self) -> None:
        """Let the thread end with what it does now."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)
