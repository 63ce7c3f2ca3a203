"""Machine code kept on disk, so that a kernel is compiled once for a machine and not once a process.

A file's name is a hash of all that its contents depend on; its first bytes are a hash of the rest, so one that is torn
or was changed is seen and made anew. Nothing here raises: without a folder that can be written, kernels are compiled.
"""

import hashlib
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

__all__ = ["MOST_BYTES", "CubinCache", "cache_folder"]

MOST_BYTES = 64 << 20
"""What all files together may take; beyond it the ones used least recently go."""

_SUFFIX = ".cubin"
_DIGEST_BYTES = 32
# Checking the whole folder at each write would be slow; files are some 30 KiB.
_WRITES_PER_CHECK = 16


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the user's folder for kernels, None where there is no home."""
    base = environ.get("XDG_CACHE_HOME", "")
    # As the specification of these folders has it, a relative path is ignored.
    if base and Path(base).is_absolute():
        return Path(base) / "tensorplay" / "kernels"
    home = environ.get("HOME", "") or (environ.get("USERPROFILE", "") if sys.platform == "win32" else "")
    return Path(home) / ".cache" / "tensorplay" / "kernels" if home and Path(home).is_absolute() else None


class CubinCache:
    """Files of machine code; any number of processes and threads may use one folder at once.

    Parameters
    ----------
    folder : Path or None
        Made at the first write; None keeps nothing.
    most_bytes : int
        What all files together may take.
    """

    def __init__(self, folder: Path | None, *, most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._writes = 0

    def read(self, *parts: str) -> bytes | None:
        """Return what was written for the same parts, None when there is nothing sound."""
        if self._folder is None:
            return None
        file = self._folder / _name(parts)
        try:
            stored = _own_bytes(file, self._most_bytes)
        except OSError:
            return None
        digest, code = stored[:_DIGEST_BYTES], stored[_DIGEST_BYTES:]
        if not code or hashlib.sha256(code).digest() != digest:
            return None
        # The time of the last use decides what goes first.
        with suppress(OSError):
            os.utime(file)
        return code

    def write(self, code: bytes, *parts: str) -> None:
        """Keep machine code for later processes, whole or not at all."""
        if self._folder is None:
            return
        temporary = None
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=self._folder, prefix=".", suffix=".part", delete=False) as stream:
                temporary = Path(stream.name)
                stream.write(hashlib.sha256(code).digest() + code)
            temporary.replace(self._folder / _name(parts))
        except OSError:
            if temporary is not None:
                with suppress(OSError):
                    temporary.unlink()
            return
        self._writes += 1
        if self._writes % _WRITES_PER_CHECK == 1:
            self._shrink()

    def _shrink(self) -> None:
        if self._folder is None:
            return
        files = []
        with suppress(OSError):
            for file in self._folder.iterdir():
                # A part that was left by a killed process counts too, and grows old.
                if file.name.endswith((_SUFFIX, ".part")):
                    with suppress(OSError):
                        about = file.lstat()
                        files.append((about.st_mtime, about.st_size, file))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self._most_bytes:
                return
            with suppress(OSError):
                path.unlink()
            total -= size


def _own_bytes(file: Path, most: int) -> bytes:
    """Return what a plain file of the user's holds, that nobody else can write; nothing for anything else.

    What is in it runs on the device, and the hash in it only tells what is torn. Neither a pipe nor a device is
    waited for, nor read without end.
    """
    more = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW"))
    with open(file, "rb", opener=lambda path, flags: os.open(path, flags | more)) as stream:
        about = os.fstat(stream.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_size > most:
            return b""
        if os.name == "posix" and (about.st_uid not in {0, os.geteuid()} or about.st_mode & 0o022):
            return b""
        return stream.read(most)


def _name(parts: tuple[str, ...]) -> str:
    # With their lengths, so that what belongs to one part cannot be read as another's.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest() + _SUFFIX
