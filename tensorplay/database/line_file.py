"""A file of whole lines that several processes append to: how it is read, locked, mended, extended, replaced.

Nothing here knows what a line says. Only the logs and the store of this package use it. No descriptor stays open
between calls, so a fork inherits nothing; every failure is an `OSError`.
"""

import contextlib
import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tensorplay.database.filename import rejected_name
from tensorplay.locks import imported

__all__ = [
    "LARGEST_BYTES",
    "LOCK_WAIT_S",
    "FileTooLargeError",
    "LineFile",
    "is_held_here",
    "keep_rejected",
    "open_locked",
    "read_settled",
    "replace_file",
    "resolved",
]

LOCK_WAIT_S = 10.0
"""How long a writer waits for the others, in seconds: far longer than any write takes."""

LARGEST_BYTES = 64 << 20
"""What is read of one file at once: ten times what a hundred thousand winners take. A larger one is none of ours."""

_POLL_S = 0.005
_SETTLE_S = 0.01
_MOST_SETTLING = 20


class FileTooLargeError(OSError):
    """A file is larger than any that is read."""


class _Holding(threading.local):
    """The locks that a thread holds or waits for; in a forked child only those of the thread that forked."""

    def __init__(self) -> None:
        self.locks: set[str] = set()


_holding = _Holding()


def resolved(path: str) -> str:
    """Return the path with symbolic links followed, so that all who share a file share its lock and replace it."""
    try:
        # Asks the system in order to be told of a text that it has no name for; realpath may stop before that part.
        os.access(path, os.F_OK)
        return os.path.realpath(path)
    except ValueError as error:
        raise OSError(errno.EINVAL, f"not a file name ({error})", path) from None


def read_settled(path: str) -> tuple[bytes, os.stat_result]:
    """Return what the file holds and its status, without its lock: a read-only folder has no room for one.

    An unended last line may be one that another process is writing just now: it gets a moment to end it.
    """
    data, status = _read(path)
    for _ in range(_MOST_SETTLING):
        if not data or data.endswith(b"\n"):
            break
        time.sleep(_SETTLE_S)
        before = data
        data, status = _read(path)
        if before == data:
            break
    return data, status


def _read(path: str) -> tuple[bytes, os.stat_result]:
    with contextlib.closing(LineFile(path, os.O_RDONLY)) as file:
        return file.read(), file.status()


class LineFile:
    """One open file; whoever writes holds its lock, as `open_locked` arranges."""

    __slots__ = ("_fd", "path")

    def __init__(self, path: str, flags: int) -> None:
        self.path = path
        # O_NONBLOCK: opening a pipe that nobody writes to would otherwise wait for ever.
        self._fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
        if not stat.S_ISREG(self.status().st_mode):
            self.close()
            raise OSError(errno.EINVAL, "not a regular file; name another file", path)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._fd)

    def status(self) -> os.stat_result:
        """Return what the system knows of the open file."""
        return os.fstat(self._fd)

    def read(self, start: int = 0, most: int | None = None) -> bytes:
        """Return the bytes from `start` on, up to the end or to `most` bytes; `FileTooLargeError` beyond the bound."""
        left = max(self.status().st_size - start, 0) if most is None else most
        if left > LARGEST_BYTES:
            raise FileTooLargeError(
                errno.EFBIG, f"{left} bytes are to be read; allowed: {LARGEST_BYTES}; name another file", self.path
            )
        parts = []
        while left and (part := os.pread(self._fd, left, start)):
            parts.append(part)
            start += len(part)
            left -= len(part)
        return b"".join(parts)

    def append(self, data: bytes) -> None:
        """Put `data` at the end and on disk; when that fails, the file is as long as before."""
        size = self.status().st_size
        written = False
        try:
            _write_all(self._fd, data)
            os.fdatasync(self._fd)
            written = True
        finally:
            if not written:
                # What cannot be taken back is a torn line, which the next writer mends.
                with contextlib.suppress(OSError):
                    self.cut(size)
        if size == 0:
            _sync_folder(self.path)

    def cut(self, size: int) -> None:
        """Drop everything from `size` bytes on."""
        os.ftruncate(self._fd, size)

    def mend(self, tail: bytes, is_whole: Callable[[bytes], bool]) -> bytes:
        """Deal with an unended last line, of which `tail` is at least all; return what the next line must start with.

        A whole line is to be ended. A torn one goes to the rejected lines and out of the file, since a line end
        or an append could make a line of it that nobody wrote.
        """
        last = tail[tail.rfind(b"\n") + 1 :]
        if not last:
            return b""
        if is_whole(last):
            return b"\n"
        keep_rejected(self.path, (last,))
        self.cut(self.status().st_size - len(last))
        return b""


@contextlib.contextmanager
def open_locked(path: str, wait_s: float) -> Iterator[LineFile]:
    """Open the file, made when missing, and hold its lock: `path` and `.lock`, which stays behind.

    Raises
    ------
    TimeoutError
        When another process holds the lock for `wait_s` seconds.
    OSError
        `EDEADLK` at once when this thread holds or awaits the lock already, being in a signal handler; `is_held_here`.
        When the folder is missing, or file or lock cannot be written.
    """
    with _locked(path, wait_s), contextlib.closing(LineFile(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)) as file:
        yield file


@contextlib.contextmanager
def _locked(path: str, wait_s: float) -> Iterator[None]:
    # Imported here: it brings asyncio with it, and most processes never write.
    filelock = imported("filelock")

    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder; make it or name another file", str(folder))
    name = f"{path}.lock"
    if name in _holding.locks:
        # Who waited here would wait for the caller of the signal handler that it is in.
        raise OSError(errno.EDEADLK, "this thread holds the lock already, under the signal handler that asks", name)
    try:
        # Before the lock is had, so that there is no moment at which it is had and not known of.
        _holding.locks.add(name)
        with _acquired(filelock.FileLock(name), name, wait_s):
            yield
    finally:
        _holding.locks.discard(name)


@contextlib.contextmanager
def _acquired(lock: Any, name: str, wait_s: float) -> Iterator[None]:
    filelock = imported("filelock")
    try:
        lock.acquire(timeout=wait_s, poll_interval=_POLL_S)
    except filelock.Timeout:
        message = f"another process has held the lock for {wait_s} seconds"
        raise TimeoutError(errno.ETIMEDOUT, message, name) from None
    except RuntimeError as error:
        # filelock's word for a lock that cannot exist here.
        raise OSError(errno.ENOLCK, str(error), name) from error
    try:
        yield
    finally:
        lock.release()


def is_held_here(error: Exception) -> bool:
    """Return whether a write failed only since the same thread is writing the file already, under a signal handler.

    What was to be written is then to be kept, and written by whoever holds the lock, when it is done.
    """
    return isinstance(error, OSError) and error.errno == errno.EDEADLK


def keep_rejected(path: str, lines: Iterable[bytes]) -> None:
    """Append the lines to the rejected lines of the file at `path`, each once; the caller holds the file's lock."""
    wanted = dict.fromkeys(lines)
    if not wanted:
        return
    with contextlib.closing(LineFile(rejected_name(path), os.O_RDWR | os.O_APPEND | os.O_CREAT)) as file:
        kept = file.read()
        known = set(kept.split(b"\n"))
        fresh = [line for line in wanted if line not in known]
        if fresh:
            file.append((b"" if kept.endswith(b"\n") or not kept else b"\n") + b"\n".join(fresh) + b"\n")


def replace_file(path: str, data: bytes) -> os.stat_result:
    """Put a new file in the place of the one at `path`, with its permissions; return the new one's status.

    The caller holds the lock.

    A reader, and whoever looks after a crash, finds either the old file or the new one.
    """
    temporary = Path(f"{path}.tmp")
    # Left by a writer that was killed: the lock says that nobody else is writing it.
    temporary.unlink(missing_ok=True)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        try:
            _copy_permissions(path, fd)
            _write_all(fd, data)
            os.fsync(fd)
            status = os.fstat(fd)
        finally:
            os.close(fd)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path)
    return status


def _copy_permissions(path: str, fd: int) -> None:
    status = Path(path).stat()
    for owner in (status.st_uid, -1):
        # Only root gives files away; the group may still be one of ours.
        with contextlib.suppress(PermissionError):
            os.fchown(fd, owner, status.st_gid)
            break
    os.fchmod(fd, stat.S_IMODE(status.st_mode))


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def _sync_folder(path: str) -> None:
    fd = os.open(Path(path).parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        # Some network file systems have no such operation, and keep names by other means.
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(fd)
