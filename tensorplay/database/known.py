"""Winners that a process only read from a results file, and that the file may know better about by now."""

from itertools import chain
from typing import NamedTuple

from tensorplay.database.entries import Entries

__all__ = ["NOTHING_KNOWN", "Known"]


class Known(NamedTuple):
    """What is in memory since a file said it, and for no other reason.

    Attributes
    ----------
    entries : Entries
        As they are in memory.
    files : frozenset of str
        The files that they were read from, of the configured one and the sibling, symbolic links followed.
    """

    entries: Entries
    files: frozenset[str]

    def with_own(self, own: "Known") -> "Known":
        """Return both, of which `own` counts more."""
        return Known(Entries(chain(self.entries, own.entries)), self.files | own.files) if self.entries else own


NOTHING_KNOWN = Known(Entries(), frozenset())
"""That every winner in memory counts more than the file."""
