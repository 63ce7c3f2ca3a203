"""Whether a file is this build's: its validators and ours must be equal as sets."""

import zlib
from collections.abc import Sequence
from typing import NamedTuple

from tensorplay.database.record import Validator

__all__ = ["ValidatorMismatch", "compare", "digest"]

_LONGEST_SHOWN, _MOST_SHOWN = 200, 3


class ValidatorMismatch(NamedTuple):
    """One validator that differs.

    Attributes
    ----------
    name : str
        Of the validator.
    expected : str or None
        This build's value; None when this build has no such validator.
    found : tuple of str
        The file's values: none when it is missing there, several when the file contradicts itself.
    """

    name: str
    expected: str | None
    found: tuple[str, ...]

    def __str__(self) -> str:
        expected = "nothing" if self.expected is None else _shown(self.expected)
        shown = [_shown(value) for value in self.found[:_MOST_SHOWN]]
        more = len(self.found) - len(shown)
        found = " and ".join([*shown, f"{more} more"] if more else shown) or "nothing"
        return f"{_shortened(self.name)}: expected {expected}, found {found}"


def _shown(value: str) -> str:
    return repr(_shortened(value))


def _shortened(text: str) -> str:
    """Return the beginning of what a foreign file says: it may say a megabyte."""
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


def digest(validators: Sequence[Validator]) -> str:
    """Return eight hexadecimal digits that tell one set of validators from another, whatever their order."""
    # Only names a file: the validators inside it decide. CRC-32 is as long as the name allows, and costs no import.
    text = "\n".join(sorted(f"{name},{value}" for name, value in validators))
    return f"{zlib.crc32(text.encode()):08x}"


def compare(expected: Sequence[Validator], found: Sequence[Validator]) -> tuple[ValidatorMismatch, ...]:
    """Return every validator that differs, by name; none when the two are equal as sets."""
    values: dict[str, dict[str, None]] = {}
    for name, value in found:
        values.setdefault(name, {})[value] = None
    ours = dict(expected)
    names = sorted(ours.keys() | values.keys())
    differences = (ValidatorMismatch(name, ours.get(name), tuple(values.get(name, ()))) for name in names)
    return tuple(mismatch for mismatch in differences if mismatch.found != (mismatch.expected,))
