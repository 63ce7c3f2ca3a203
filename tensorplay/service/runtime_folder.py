"""The folder of a user's sockets and records: nobody else can look into it, or it is not used.

What stands there under a name of ours may have been put there by another user, to be told what we say or to make us
remove something. So a folder that is a link, of another user, or open to others, is refused, and never repaired.
"""

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tensorplay.errors import SettingError

__all__ = ["VARIABLE", "check_folder", "folder_to_use", "folders_to_read", "made_folder"]

VARIABLE = "TENSORPLAY_RUNTIME_DIR"
"""Names the folder, instead of the usual one."""

_LONGEST = 50
_SHARED = Path("/tmp")  # noqa: S108 - where a folder of ours is only used after it was checked
_PRIVATE, _OTHERS_WRITE = 0o077, 0o022


def folder_to_use(environ: Mapping[str, str], user: int) -> Path:
    """Return where a process of a user keeps its socket and record; it need not exist yet.

    That is `$XDG_RUNTIME_DIR/tensorplay-<uid>`, or below `/tmp` where there is no such directory of the user's.
    """
    if given := environ.get(VARIABLE, ""):
        return Path(given)
    name = f"tensorplay-{user}"
    own = Path(environ.get("XDG_RUNTIME_DIR", ""))
    # After `su` it is still that of another user; and the address of a socket has little room.
    if own.is_absolute() and len(os.fsencode(own / name)) <= _LONGEST and _is_of(own, user):
        return own / name
    return _SHARED / name


def folders_to_read(environ: Mapping[str, str], user: int) -> list[Path]:
    """Return where processes of a user may keep their records: a batch system starts them in another environment."""
    used = folder_to_use(environ, user)
    if environ.get(VARIABLE, ""):
        return [used]
    name = f"tensorplay-{user}"
    return list(dict.fromkeys((used, Path(f"/run/user/{user}") / name, _SHARED / name)))


def made_folder(path: Path) -> Path:
    """Return a folder that only this user can look into, made if need be; `SettingError` when it is another's.

    Raises
    ------
    SettingError
        When it is refused.
    OSError
        When it cannot be made.
    """
    while True:
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        # Whoever left it last may have taken it away just now.
        with suppress(FileNotFoundError):
            check_folder(path)
            return path


def check_folder(path: Path) -> None:
    """Raise a `SettingError` unless a path is a folder that nobody else can look into or replace."""
    status, above = path.lstat(), path.parent.stat()
    user = os.geteuid()
    if stat.S_ISLNK(status.st_mode):
        reason = "it is a symbolic link, and must be a folder itself"
    elif not stat.S_ISDIR(status.st_mode):
        reason = "it is no folder"
    elif status.st_uid != user:
        reason = f"it belongs to the user {status.st_uid}, and must belong to {user}"
    elif status.st_mode & _PRIVATE:
        reason = f"its mode is {stat.S_IMODE(status.st_mode):04o}, and must be 0700"
    elif above.st_mode & _OTHERS_WRITE and not above.st_mode & stat.S_ISVTX:
        reason = f"others may replace it, since {path.parent} is open to them (mode {stat.S_IMODE(above.st_mode):04o})"
    else:
        return
    raise SettingError(f"{path} is not used: {reason}; remove it, or name another folder in {VARIABLE}")


def _is_of(path: Path, user: int) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == user and not status.st_mode & _PRIVATE
