"""Diagnostic lines: the listener that writes what the runtime does to standard error, standard output or a file."""

import contextlib
import io
import os
import sys
from collections.abc import Mapping
from typing import TextIO

from tensorplay.errors import SettingWarning
from tensorplay.locks import ForkSafeLock
from tensorplay.measure.report import SelectionReport, Verdict
from tensorplay.runtime.listeners import (
    FALLBACK,
    FILE,
    HEALED,
    PINNED,
    QUEUED,
    REJECTED,
    SETTING,
    TUNED,
    TUNING_FAILED,
    TUNING_STARTED,
    UNTUNED,
    WINNER,
)
from tensorplay.runtime.notice import warn
from tensorplay.runtime.setting import shown
from tensorplay.runtime.settings import Settings

__all__ = ["LINE_PREFIX", "VerboseLog"]

LINE_PREFIX = "[tensorplay.tunable]"

_LEVELS = {
    SETTING: 1,
    FILE: 1,
    REJECTED: 1,
    HEALED: 1,
    PINNED: 1,
    FALLBACK: 1,
    TUNING_FAILED: 1,
    QUEUED: 2,
    TUNING_STARTED: 2,
    TUNED: 2,
    UNTUNED: 2,
    WINNER: 2,
}
_EVERYTHING = 3
_LONGEST_TEXT = 300


class VerboseLog:
    """Writes one line for each event that the level lets through, in any number of threads.

    At level 0 nothing is written or opened. A file is opened when its first line is written, is appended to, and
    gives way to another when the setting changes. One that cannot be opened or written is warned of, once, and
    standard error is used instead.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # Reentrant, since a signal handler may multiply while this thread writes.
        self._lock = ForkSafeLock()
        self._file: io.FileIO | None = None
        self._file_name: str | None = None

    def __call__(self, event: str, detail: Mapping[str, object]) -> None:
        """Write the event, if the level lets it through; of a measurement's report, what the level asks for."""
        level = self._settings.verbose
        if level < _LEVELS.get(event, _EVERYTHING):
            return
        facts, report = dict(detail), detail.get("report")
        if isinstance(report, SelectionReport):
            del facts["report"]
            facts |= {"verdict": report.verdict, "gain": _gain(report)}
        self._write_line(event, facts)
        if isinstance(report, SelectionReport) and level >= _EVERYTHING:
            for candidate in report.candidates:
                known = {name: fact for name, fact in candidate.to_dict().items() if fact is not None}
                self._write_line("candidate", {"params": detail.get("params"), **known})

    def _write_line(self, event: str, facts: Mapping[str, object]) -> None:
        line = " ".join([LINE_PREFIX, _text(event), *(f"{_text(key)}={_text(fact)}" for key, fact in facts.items())])
        name = self._settings.verbose_filename
        with self._lock:
            failure = self._write(name, line + "\n")
        if failure is not None:
            warn(
                f"the diagnostic log {shown(name)} cannot be written ({failure}); its lines go to standard error. Set "
                "verbose_filename to err, out or a file that can be appended to",
                SettingWarning,
            )

    def close(self) -> None:
        """Close the file, if one is open; a later line opens it again."""
        with self._lock:
            self._abandon_file()
            self._file_name = None

    def _write(self, name: str, line: str) -> OSError | ValueError | None:
        """Write to where `name` says; return why that failed, the first time that it does."""
        if name in {"err", "out"}:
            self.close()
            _write_to_stream(sys.stderr if name == "err" else sys.stdout, line)
            return None
        failure: OSError | ValueError | None = None
        try:
            if name != self._file_name:
                self.close()
                self._file_name = name
                self._file = _open(name)
            if self._file is not None:
                self._file.write(line.encode())
        except (OSError, ValueError) as error:
            failure = error
            self._abandon_file()
        if self._file is None:
            _write_to_stream(sys.stderr, line)
        return failure

    def _abandon_file(self) -> None:
        """Close the file, and leave its name as the one that was tried."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None


def _gain(report: SelectionReport) -> float:
    """Return how much faster the selected kernel is than the first choice, as a share of its time."""
    return report.confirmation.gain if report.verdict is Verdict.WINNER and report.confirmation else 0.0


def _open(name: str) -> io.FileIO:
    """Open for appending, unbuffered, so that one line is one write also where several processes share the file."""
    # Without O_NONBLOCK, a named pipe that nobody reads would stop the product that is running.
    descriptor = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
    os.set_blocking(descriptor, True)
    return io.FileIO(descriptor, "a")


def _write_to_stream(stream: TextIO | None, line: str) -> None:
    """Write and flush; where the stream is missing, closed or full there is nobody left to tell."""
    if stream is None:
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"  # None in memory, absent in replacements
    with contextlib.suppress(OSError, ValueError):
        stream.write(line.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()


def _text(fact: object) -> str:
    """Return the fact as one word, or as words in quotes: short, printable, and never a second line."""
    text = f"{fact:.6g}" if isinstance(fact, float) else str(fact)
    if len(text) > _LONGEST_TEXT:
        text = text[:_LONGEST_TEXT] + "..."
    if not text.isprintable() or "\\" in text:
        text = "".join(c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode() for c in text)
    if not text or any(c in text for c in ' "='):
        return '"' + text.replace('"', '\\"') + '"'
    return text
