"""Kernels of our own as machine code: from the user's files or compiled, several at once and before they are asked for.

The compiler runs outside the interpreter's lock, so that several kernels take no longer than one where there are
processors for them. Whoever asks for one that is being compiled waits for it, and none is compiled twice.
"""

import os
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cache

from tensorplay.backends.cublaslt.compiler import kernel_files, machine_code
from tensorplay.backends.host.machine import usable_cpus
from tensorplay.locks import ForkSafeLock

__all__ = ["at_once", "begin_compiling", "code_of", "has_room", "is_compiling", "wait_for_any"]

_MOST_AT_ONCE = 8
# Those that nobody has asked for yet.
_MOST_WAITING = 64
_WAIT_SECONDS = 0.005

_waiting: dict[tuple[str, tuple[int, int]], Future[bytes]] = {}
_beginning = ForkSafeLock()


def begin_compiling(sources: Sequence[str], capability: tuple[int, int]) -> None:
    """Let the sources be compiled on threads of their own, which end when they are done; waits for nothing."""
    with _beginning:
        new = [source for source in dict.fromkeys(sources) if (source, capability) not in _waiting]
        if not new:
            return
        _let_go(len(_waiting) + len(new) - _MOST_WAITING)
        pool = ThreadPoolExecutor(min(at_once(), len(new)), thread_name_prefix="tensorplay-compile")
        try:
            for source in new:
                _waiting[source, capability] = pool.submit(machine_code, source, capability, kernel_files())
        except RuntimeError:
            # No more threads, or the interpreter is about to exit: what is left is compiled when it is asked for.
            return
        finally:
            pool.shutdown(wait=False)


def code_of(source: str, capability: tuple[int, int]) -> bytes:
    """Return a source's machine code, waiting for it where it is being compiled; raises what `machine_code` does."""
    key = source, capability
    waiting = _waiting.get(key)
    if waiting is None:
        return machine_code(source, capability, kernel_files())
    try:
        return waiting.result()
    finally:
        # Not before: another thread may ask for it meanwhile, for another device.
        if waiting.done():
            _waiting.pop(key, None)


def is_compiling(source: str, capability: tuple[int, int]) -> bool:
    """Return whether whoever asked for the source's machine code would have to wait for a thread."""
    waiting = _waiting.get((source, capability))
    return waiting is not None and not waiting.done()


def has_room() -> bool:
    """Return whether another one begun now would have a processor of its own, beside whoever measures meanwhile."""
    return len(_unfinished()) < max(1, min(at_once(), usable_cpus() - 1))


def wait_for_any(seconds: float) -> None:
    """Wait until one more is compiled: a few milliseconds at most, and no longer than so many seconds."""
    unfinished = _unfinished()
    if unfinished:
        wait(unfinished, max(0.0, min(_WAIT_SECONDS, seconds)), FIRST_COMPLETED)


def _let_go(count: int) -> None:
    # What is done first, the oldest of it: one that is let go while a thread works on it is compiled twice.
    known = sorted(_waiting.items(), key=lambda each: not each[1].done())
    for key, _ in known[: max(0, count)]:
        # Whoever waits for one may take it out meanwhile.
        _waiting.pop(key, None)


def _unfinished() -> list[Future[bytes]]:
    return [waiting for waiting in list(_waiting.values()) if not waiting.done()]


@cache
def at_once() -> int:
    """Return how many kernels are compiled at the same time."""
    return min(_MOST_AT_ONCE, usable_cpus())


# The threads that would finish them are not there in a child.
os.register_at_fork(after_in_child=_waiting.clear)
