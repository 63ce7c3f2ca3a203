"""The first choices' times of many winners at once, from files of explanations that are read where they grew only."""

import errno
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tensorplay.database.explanation import parse_explanation
from tensorplay.database.line_file import LARGEST_BYTES, FileTooLargeError
from tensorplay.errors import RecordError
from tensorplay.gemm import Signature
from tensorplay.locks import ForkSafeLock

__all__ = ["ExplainedTime", "ExplainedTimes"]

# Bytes of lines that are parsed before other threads get their turn.
_BREATH_BYTES = 1 << 16
_BREATH_S = 1e-4


class ExplainedTime(NamedTuple):
    """What a measurement found, in milliseconds; None where nothing was timed; and why it selected the winner."""

    winner: str
    winner_ms: float | None
    first_choice_ms: float | None
    verdict: str = ""


class _Seen(NamedTuple):
    identity: tuple[int, int]
    end: int
    times: dict[Signature, ExplainedTime]


class ExplainedTimes:
    """What the files of explanations of one build say, kept in memory; safe in any number of threads.

    Parameters
    ----------
    build : str
        Digest of the validators: other builds' lines are passed over.
    """

    def __init__(self, build: str) -> None:
        self._build = build
        self._lock = ForkSafeLock()
        self._seen: dict[str, _Seen] = {}

    def of(self, path: str) -> Mapping[Signature, ExplainedTime]:
        """Return what a file says by now, nothing when it is missing or cannot be read."""
        with self._lock:
            try:
                self._catch_up(path)
            except (OSError, ValueError):
                self._seen.pop(path, None)
            known = self._seen.get(path)
            return MappingProxyType({} if known is None else known.times)

    def _catch_up(self, path: str) -> None:
        with Path(path).open("rb") as file:
            status = os.fstat(file.fileno())
            identity = (status.st_dev, status.st_ino)
            before = self._seen.get(path)
            if before is None or before.identity != identity or status.st_size < before.end:
                # Another file has its place: everything is read anew, into a dictionary that nobody holds.
                before = _Seen(identity, 0, {})
            if status.st_size == before.end:
                self._seen[path] = before
                return
            if status.st_size - before.end > LARGEST_BYTES:
                raise FileTooLargeError(errno.EFBIG, f"it has grown by more than {LARGEST_BYTES} bytes", path)
            file.seek(before.end)
            data = file.read(status.st_size - before.end)
        whole = data[: data.rfind(b"\n") + 1]
        times = dict(before.times)
        self._parse(whole, times)
        self._seen[path] = _Seen(identity, before.end + len(whole), times)

    def _parse(self, data: bytes, times: dict[Signature, ExplainedTime]) -> None:
        build, parsed = self._build.encode(), 0
        for line in data.split(b"\n"):
            if build not in line:
                continue
            try:
                found = parse_explanation(line)
            except RecordError:
                continue
            if found.build == self._build:
                times[found.signature] = ExplainedTime(
                    found.winner, found.winner_ms, found.first_choice_ms, found.verdict
                )
            parsed += len(line)
            if parsed > _BREATH_BYTES:
                parsed = 0
                time.sleep(_BREATH_S)
