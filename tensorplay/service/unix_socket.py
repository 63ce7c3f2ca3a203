"""A private Unix socket that listens: under a name which one process has at a time, and which the dead give back."""

import errno
import fcntl
import os
import socket
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tensorplay.errors import SettingError
from tensorplay.service.runtime_folder import VARIABLE, made_folder

__all__ = ["LONGEST_ADDRESS", "PrivateSocket", "SocketTakenError", "is_dead", "is_full", "peer_of", "remove_dead"]

LONGEST_ADDRESS = 107
"""Bytes that the kernel keeps of a socket's address, without the zero at its end."""

_BACKLOG = 128
_LOOK_S = 0.2
_HELD_S = 1.0
_ATTEMPTS = 5


class SocketTakenError(OSError):
    """Another process that lives has the name.

    Attributes
    ----------
    owner : int or None
        Its process id.
    """

    def __init__(self, path: Path, owner: int | None) -> None:
        by = "another process" if owner is None else f"the process {owner}"
        super().__init__(errno.EADDRINUSE, f"{path} is served by {by}")
        self.owner = owner


class PrivateSocket:
    """A socket that listens under a path, until it is closed; only this user can reach it.

    Parameters
    ----------
    path : Path
        In a folder that `made_folder` makes, and then refuses or not. What a dead process left there is replaced.

    Raises
    ------
    SocketTakenError
        When a process that lives has the path.
    SettingError
        When the folder is refused, or the path is longer than the kernel allows.
    OSError
        When it cannot be made.
    """

    def __init__(self, path: Path) -> None:
        fresh = path.with_suffix(".new")
        if len(os.fsencode(path)) > LONGEST_ADDRESS:
            raise SettingError(
                f"the address of a socket has at most {LONGEST_ADDRESS} bytes, and {path} has "
                f"{len(os.fsencode(path))}: name a shorter folder in {VARIABLE}"
            )
        self.path = path
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            for attempt in range(_ATTEMPTS):
                try:
                    self._bind(fresh)
                    break
                except FileNotFoundError:
                    # Another process of the job, the last one in the folder, ended and took it away.
                    if attempt == _ATTEMPTS - 1:
                        raise
        except BaseException:
            self.listener.close()
            raise

    def close(self) -> None:
        """Stop listening and give the name back, unless another has it by now; again in vain."""
        self.listener.close()
        with suppress(OSError), _held(self.path.parent):
            status = self.path.lstat()
            if (status.st_dev, status.st_ino) == self._identity:
                self.path.unlink()
            # The last one; the others are told by an error that they are not.
            self.path.parent.rmdir()

    def _bind(self, fresh: Path) -> None:
        made_folder(self.path.parent)
        with _held(self.path.parent):
            if not is_dead(self.path):
                raise SocketTakenError(self.path, _owner(self.path))
            fresh.unlink(missing_ok=True)
            # It gets its name only when it listens: whoever finds it can connect, or its process is dead.
            self.listener.bind(os.fspath(fresh))
            fresh.chmod(0o600)
            self.listener.listen(_BACKLOG)
            status = fresh.lstat()
            self._identity = status.st_dev, status.st_ino
            fresh.replace(self.path)


def is_dead(path: Path) -> bool:
    """Return whether no process listens under a path: there is nothing, or what a dead one left."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_LOOK_S)
        try:
            probe.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return True
        except OSError:
            # Full, or stopped: there is a process.
            return False
    return False


def is_full(path: Path) -> bool:
    """Return whether a process listens under a path, and so many wait for it that no other can connect."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.0)
        try:
            probe.connect(os.fspath(path))
        except BlockingIOError:
            return True
        except OSError:
            return False
    return False


def remove_dead(path: Path) -> bool:
    """Remove what a dead process left under a path; return whether there was such a thing."""
    if not is_dead(path):
        return False
    with suppress(OSError), _held(path.parent):
        # Once more, now that no other can take the name meanwhile.
        if stat.S_ISSOCK(path.lstat().st_mode) and is_dead(path):
            path.unlink()
            return True
    return False


def peer_of(connection: socket.socket) -> tuple[int, int]:
    """Return the process and the user at the other end, as the kernel knows them."""
    pid, user, _ = struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, user


def _owner(path: Path) -> int | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_LOOK_S)
        try:
            probe.connect(os.fspath(path))
            return peer_of(probe)[0] or None
        except OSError:
            return None


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Let nobody else change the names in a folder meanwhile; `OSError` when another does not let go."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        end = time.monotonic() + _HELD_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise
                time.sleep(0.01)
        yield
    finally:
        # Not by closing alone: a child that was forked meanwhile has it open too.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)
