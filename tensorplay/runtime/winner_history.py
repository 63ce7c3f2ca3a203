"""What the winner of a signature was before: noted in this process, or told by a file of explanations."""

from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tensorplay.database.explanation import LONGEST_LINE, parse_explanation
from tensorplay.database.explanations import MOST_BYTES
from tensorplay.database.record import Entry
from tensorplay.errors import RecordError
from tensorplay.gemm import Signature
from tensorplay.locks import ForkSafeLock

__all__ = ["MOST_PASTS", "MOST_SIGNATURES", "PastWinner", "WinnerHistory", "pasts_of_file", "time_now"]

MOST_PASTS = 32
"""Winners that are remembered of one signature, the newest of them."""

MOST_SIGNATURES = 1 << 14
"""Signatures whose winners changed in this process, that are remembered."""


_Raw = tuple[str | None, str, float, str]


class PastWinner(NamedTuple):
    """One winner of a signature, from some moment on.

    Attributes
    ----------
    time : str or None
        When it was recorded, in UTC as ISO 8601; None where no file says it.
    kernel : str
        Kernel id.
    time_ms : float
        As measured; 0 for one that was not.
    origin : str
        `measured here`, `healed`, `override`, `file`, or `measured` where a file of explanations tells of it.
    """

    time: str | None
    kernel: str
    time_ms: float
    origin: str


def time_now() -> str:
    """Return the time as a history tells it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class WinnerHistory:
    """The winners that one device's signatures had in this process; safe in any number of threads.

    Parameters
    ----------
    now : callable
        Returns the time as text.
    """

    def __init__(self, now: Callable[[], str] = time_now) -> None:
        self._now = now
        self._lock = ForkSafeLock()
        self._since = now()
        # Plain tuples, which the garbage collector does not look at: a file may replace all winners at once.
        # In the order that they came: a plain dictionary walks over all that it has dropped to find its first.
        self._pasts = OrderedDict[tuple[str, str], tuple[_Raw, ...]]()

    def note(self, entry: Entry, origin: str, before: Entry | None) -> None:
        """Note a new winner; what was `before`, and is in no history yet, was read from a file."""
        past, key = (self._now(), entry.kernel, entry.time_ms, origin), (entry.op, entry.params)
        with self._lock:
            pasts = self._pasts.get(key)
            if pasts is None:
                if len(self._pasts) >= MOST_SIGNATURES:
                    self._pasts.popitem(last=False)
                pasts = () if before is None else (self._read(before)[:],)
            self._pasts[key] = (*pasts, past)[-MOST_PASTS:]

    def of(self, signature: Signature, entry: Entry | None) -> list[PastWinner]:
        """Return the winners of a signature, oldest first; `entry` is the present one."""
        with self._lock:
            pasts = self._pasts.get(signature)
            if pasts is not None:
                return [PastWinner._make(past) for past in pasts]
        return [] if entry is None else [self._read(entry)]

    def _read(self, entry: Entry) -> PastWinner:
        return PastWinner(self._since, entry.kernel, entry.time_ms, "file")


def pasts_of_file(path: str, signature: Signature, build: str) -> list[PastWinner]:
    """Return the winners that a file of explanations tells of, oldest first; nothing where it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(2 * MOST_BYTES)
    except (OSError, ValueError):
        return []
    params, found = signature.params.encode(), []
    for line in data.split(b"\n"):
        if params not in line or len(line) > LONGEST_LINE:
            continue
        try:
            explanation = parse_explanation(line)
        except RecordError:
            continue
        if (explanation.signature, explanation.build) == (signature, build):
            found.append(PastWinner(None, explanation.winner, explanation.winner_ms or 0.0, "measured"))
    return found[-MOST_PASTS:]
