"""What became of a file whose winners were taken in, and what was wrong with it."""

from collections.abc import Sequence
from typing import NamedTuple

from tensorplay.database.csv_text import BadLine
from tensorplay.database.record import Validator
from tensorplay.database.validators import ValidatorMismatch

__all__ = ["FileFault", "MergeReport"]


class MergeReport(NamedTuple):
    """What a load did.

    Attributes
    ----------
    merged, replaced : int
        Signatures that had no winner before, and that had another one.
    kept, pinned : int
        Signatures whose winner in memory stayed, since it was not to be overwritten, and since it is pinned.
    bad_lines : sequence of BadLine
        Lines that could not be read.
    validators : sequence of Validator
        The file's.
    mismatches : sequence of ValidatorMismatch
        How it differs from this build; then nothing was taken.
    rejected : int
        How many lines could not be read, of which `bad_lines` are the first.
    """

    merged: int = 0
    replaced: int = 0
    kept: int = 0
    pinned: int = 0
    bad_lines: Sequence[BadLine] = ()
    validators: Sequence[Validator] = ()
    mismatches: Sequence[ValidatorMismatch] = ()
    rejected: int = 0


class FileFault(NamedTuple):
    """What is wrong with a results file that was read: another build's validators, or lines that are none."""

    device: str
    path: str
    mismatches: Sequence[ValidatorMismatch]
    bad_lines: Sequence[BadLine]
