"""The files that a client may name: results, untuned signatures and explanations, in the folders of the results files.

A name is compared with those that a folder holds; none is ever made into a path. A file is shown only when it says
that it is one of ours: the folder is the working directory as often as not, and what else lies there is nobody's.
"""

import codecs
import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from tensorplay.database.csv_text import VALIDATOR_START, parse_results, parse_untuned
from tensorplay.database.line_file import LineFile
from tensorplay.gemm.signature import OP_PREFIX
from tensorplay.service.file_names import FILE_PATTERN
from tensorplay.service.problems import Problem
from tensorplay.service.recorded_context import RecordedContext
from tensorplay.service.watched import WatchedContext

__all__ = ["MOST_FILE_BYTES", "FoundFile", "ResultFiles", "opened", "tag_of"]

MOST_FILE_BYTES = 64 << 20
"""A larger file is neither given nor loaded."""

_NAME = re.compile(FILE_PATTERN.removesuffix("$") + r"\Z", re.ASCII)
_EXPLANATIONS = ".explain.jsonl"
_HEAD_BYTES = 1 << 16
_MOST_ENTRIES = 10_000
_MOST_LINES = 256
_MOST_FOREIGN = 20


class FoundFile(NamedTuple):
    """One file.

    Attributes
    ----------
    name, folder : str
        The name is all that is shown.
    kind : str
        `results`, `untuned` or `explanations`.
    device : str or None
        Whose winners go there, if anybody's.
    size, modified_ns : int or None
        None for one that is not there yet.
    etag : str or None
        Tells one state of it from another.
    validators : tuple of (str, str)
        What it says that it was written by.
    """

    name: str
    folder: str
    kind: str
    device: str | None
    size: int | None = None
    modified_ns: int | None = None
    etag: str | None = None
    validators: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> str:
        """Return where it is."""
        return os.path.join(self.folder, self.name)  # noqa: PTH118 - as the context has it


class _Head(NamedTuple):
    kind: str | None
    validators: tuple[tuple[str, str], ...]


_FOREIGN = _Head(None, ())
_OURS = (VALIDATOR_START, OP_PREFIX.encode())


def tag_of(status: os.stat_result) -> str:
    """Return the entity tag of a file in a state."""
    return f'"f{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"'


class ResultFiles:
    """The files of a context. Every method may wait for a disk.

    Parameters
    ----------
    context : WatchedContext
        Whose results files say which folders are looked into; of recorded files only those that were named are there.
    """

    def __init__(self, context: WatchedContext) -> None:
        self._context = context
        # As of the last listing, by path, with the tag of the state that was read.
        self._heads: dict[str, tuple[str, _Head]] = {}

    def listed(self) -> list[FoundFile]:
        """Return the files, those that winners go to first."""
        targets = [(device, Path(path)) for device, path in self._context.results_files()]
        found: dict[tuple[str, str], FoundFile] = {}
        # Another thread may list at the same time: it reads once more what it does not find here.
        before, self._heads = self._heads, {}
        for device, path in targets:
            found[str(path.parent), path.name] = self._found(str(path.parent), path.name, device, before) or FoundFile(
                path.name, str(path.parent), "results", device
            )
        for folder, name in self._others([path for _, path in targets]):
            if (folder, name) not in found and (each := self._found(folder, name, None, before)) is not None:
                found[folder, name] = each
        return list(found.values())

    def get(self, name: str) -> FoundFile:
        """Return the file of a name; a 404 `Problem` when there is none."""
        for each in self.listed() if _NAME.match(name) else ():
            if each.name == name and each.etag is not None:
                return each
        raise Problem(
            404, "not-found", "no file of winners, signatures or explanations has that name here; GET /files lists them"
        )

    def read(self, name: str) -> tuple[FoundFile, bytes]:
        """Return a file with what it holds; a `Problem` when there is none (404), or it is too large (413)."""
        found = self.get(name)
        try:
            with opened(found.folder, found.name) as file:
                status = file.status()
                if status.st_size > MOST_FILE_BYTES:
                    raise Problem(413, "file-too-large", f"the file is larger than {MOST_FILE_BYTES >> 20} MiB")
                data = file.read(0, status.st_size)
        except OSError:
            raise Problem(404, "not-found", "the file went away, or cannot be read") from None
        changed = found._replace(size=len(data), modified_ns=status.st_mtime_ns, etag=tag_of(status))
        return changed, data

    def folder(self, device: str | None = None) -> tuple[str, str]:
        """Return the device whose winners are meant, the first unless named, and the folder that they go to.

        Raises
        ------
        Problem
            409 when no such device has been met.
        """
        for each, path in self._context.results_files():
            if device is None or each == device:
                return each, str(Path(path).parent)
        raise Problem(409, "no-device", "no such device has been met yet; run a product on it first")

    def _others(self, targets: list[Path]) -> Iterator[tuple[str, str]]:
        """Yield (folder, name) of what may be there besides, explanations behind the results that they explain."""
        if isinstance(self._context, RecordedContext):
            for path in targets:
                yield str(path.parent), path.name.removesuffix(".csv") + _EXPLANATIONS
            return
        for folder in dict.fromkeys(str(path.parent) for path in targets):
            names = sorted(_names(folder))
            yield from ((folder, name) for name in names if name.endswith(".csv"))
            yield from ((folder, name) for name in names if name.endswith(_EXPLANATIONS))

    def _found(
        self, folder: str, name: str, device: str | None, known: Mapping[str, tuple[str, _Head]]
    ) -> FoundFile | None:
        """Return a file if it is one of ours."""
        if not _NAME.match(name) and device is None:
            return None
        try:
            status, head = _looked_into(folder, name, known)
        except OSError:
            return None
        self._heads[os.path.join(folder, name)] = tag_of(status), head  # noqa: PTH118 - as the context has it
        kind = head.kind or ("results" if device is not None else None)
        if kind is None:
            return None
        return FoundFile(
            name, folder, kind, device, status.st_size, status.st_mtime_ns, tag_of(status), head.validators
        )


def _looked_into(folder: str, name: str, known: Mapping[str, tuple[str, _Head]]) -> tuple[os.stat_result, _Head]:
    """Return the state of a file and what it is, which is read only when it was not known in that state."""
    path = os.path.join(folder, name)  # noqa: PTH118 - as the context has it
    status = os.lstat(path)
    tag, head = known.get(path, ("", _FOREIGN))
    if tag == tag_of(status) and stat.S_ISREG(status.st_mode):
        return status, head
    with opened(folder, name) as file:
        return file.status(), _head_of(name, file.read(0, _HEAD_BYTES))


def _head_of(name: str, data: bytes) -> _Head:
    """Return what the beginning of a file says that it is."""
    if name.endswith(_EXPLANATIONS):
        is_ours = data.startswith(b'{"op":"') and b'"build":"' in data[:1000]
        return _Head("explanations", ()) if is_ours else _FOREIGN
    # Parsing is dear, and the folder of a program may hold thousands of tables of other people.
    lines = data[: data.rfind(b"\n") + 1].removeprefix(codecs.BOM_UTF8).split(b"\n", _MOST_LINES)[:_MOST_LINES]
    telling = (line for line in lines if line.strip() and not line.lstrip().startswith(b"#"))
    if not any(line.startswith(_OURS) for line in islice(telling, _MOST_FOREIGN)):
        return _FOREIGN
    whole = b"".join(line + b"\n" for line in lines)
    results = parse_results(whole)
    if results.validators or results.entries:
        return _Head("results", tuple((name, value) for name, value in results.validators))
    return _Head("untuned", ()) if parse_untuned(whole).signatures else _FOREIGN


def _names(folder: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        for number, entry in enumerate(entries):
            if number >= _MOST_ENTRIES:
                return
            if _NAME.match(entry.name):
                yield entry.name


@contextmanager
def opened(folder: str, name: str) -> Iterator[LineFile]:
    """Open a regular file of a folder, and nothing that a link leads to; `OSError` for everything else."""
    path = os.path.join(folder, name)  # noqa: PTH118 - as the context has it
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    with closing(LineFile(path, os.O_RDONLY | os.O_NOFOLLOW)) as file:
        yield file
