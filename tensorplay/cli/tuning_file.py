"""A results or untuned file of any build, read as text, recognised by what it holds, and never touched."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tensorplay.cli.render import printable
from tensorplay.database.csv_text import BadLine, parse_results, parse_untuned
from tensorplay.database.line_file import read_settled
from tensorplay.database.record import Entry, Validator
from tensorplay.gemm import Signature

__all__ = ["FileKind", "TuningFile", "parse_tuning_file", "read_tuning_file", "why_unread"]


class FileKind(StrEnum):
    """What a file is, going by its lines."""

    RESULTS = "results"
    UNTUNED = "untuned"
    EMPTY = "empty"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningFile:
    """What a file says.

    Attributes
    ----------
    path : str
        Where it was read.
    kind : FileKind
        Decides which of the following can be there.
    validators : sequence of Validator
        Of the build that wrote it.
    winners : sequence of Entry
        One for each signature, the last line of each.
    superseded : int
        Lines of winners that a later line of the same signature replaces.
    untuned : sequence of Signature
        Each once.
    bad_lines : sequence of BadLine
        Lines that nothing could be made of.
    """

    path: str
    kind: FileKind
    validators: Sequence[Validator] = ()
    winners: Sequence[Entry] = ()
    superseded: int = 0
    untuned: Sequence[Signature] = ()
    bad_lines: Sequence[BadLine] = ()


def read_tuning_file(path: str) -> TuningFile:
    """Return what the file says; `OSError` when it cannot be read."""
    try:
        data, _ = read_settled(path)
    except ValueError as error:
        raise OSError(f"not a file name: {error}") from None
    return parse_tuning_file(path, data)


def why_unread(path: str, error: OSError) -> str:
    """Return the sentence that every command says of a file that cannot be read."""
    return printable(f"{path} cannot be read: {error.strerror or error}")


def parse_tuning_file(path: str, data: bytes) -> TuningFile:
    """Return what the bytes of a file say; no content raises."""
    results = parse_results(data)
    if results.is_blank:
        return TuningFile(path=path, kind=FileKind.EMPTY)
    if not (results.entries or results.validators):
        untuned = parse_untuned(data)
        if untuned.signatures:
            return TuningFile(path=path, kind=FileKind.UNTUNED, untuned=untuned.signatures, bad_lines=untuned.bad_lines)
        return TuningFile(path=path, kind=FileKind.UNKNOWN, bad_lines=results.bad_lines)
    newest = {(entry.op, entry.params): entry for entry in results.entries}
    return TuningFile(
        path=path,
        kind=FileKind.RESULTS,
        validators=results.validators,
        winners=tuple(newest.values()),
        superseded=len(results.entries) - len(newest),
        bad_lines=results.bad_lines,
    )
