"""The decision table: from the facts of one call to what runs and what is remembered. Pure.

====== ======================== ======= ====== ========================== ==================================
feature entry                   capture tuning what runs                  what is remembered
====== ======================== ======= ====== ========================== ==================================
off    -                        no      -      in-process selection       in memory only, apart from `Default`
off    -                        yes     -      first choice               nothing
on     winner                   any     any    the winner                 replay counted
on     `Default`                any     any    first choice               replay counted
on     stale                    no      on     measured again             rejection, entry healed
on     stale                    no      later  first choice               rejection, queued; healed later
on     stale                    no      off    first choice               rejection; healed later
on     stale                    yes     any    first choice, pinned       rejection
on     none                     no      on     measured                   winner recorded
on     none                     no      later  first choice               queued
on     none                     no      off    first choice               untuned, logged if recording
on     none                     yes     any    first choice, pinned       untuned, logged if recording
====== ======================== ======= ====== ========================== ==================================

Tuning is on *later* where it is on and `MODE` is `background`: the signature is queued, and measured when the device
is idle.

A pin outlives every row: a pinned signature runs the first choice until it is unpinned, so that eager reruns
stay bit-identical to a captured replay.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum

__all__ = ["Action", "Decision", "EntryState", "Facts", "Reason", "decide"]


class EntryState(Enum):
    """What the results hold for a signature."""

    NONE = "none"
    WINNER = "winner"
    DEFAULT = "default"
    STALE = "stale"


class Action(Enum):
    """What is run."""

    WINNER = "winner"
    FIRST_CHOICE = "first choice"
    SELECT_IN_PROCESS = "in-process selection"
    MEASURE = "measure"


class Reason(StrEnum):
    """Why it is run: the codes that `stats()` counts.

    `replayed`, `first_choice`, `selected_in_process` and `fallback` count calls; `measured`, `queued`, `untuned`,
    `pinned` and `rejected` count signatures, `unexplained` those whose explanation could not be written.
    """

    REPLAYED = "replayed"
    MEASURED = "measured"
    QUEUED = "queued"
    FIRST_CHOICE = "first_choice"
    SELECTED_IN_PROCESS = "selected_in_process"
    UNTUNED = "untuned"
    PINNED = "pinned"
    REJECTED = "rejected"
    FALLBACK = "fallback"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a decision depends on, and nothing else."""

    enabled: bool
    entry: EntryState
    capturing: bool
    tuning: bool
    background: bool = False
    pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do with one call.

    Attributes
    ----------
    action : Action
        What runs.
    reason : Reason
        What each such call is counted as.
    pin : bool
        The signature keeps the first choice for the life of the process.
    untuned : bool
        The signature is remembered as untuned, and logged if recording is on.
    reject : bool
        The entry is reported as a rejection.
    queue : bool
        The signature is to be measured in the background.
    settled : bool
        Later calls may do the same without asking again, capturing or not, until something changes.
    until_captured : bool
        Later calls may do the same without asking again while nothing is captured: the same signature met under
        capture must still be pinned.
    """

    action: Action
    reason: Reason
    pin: bool = False
    untuned: bool = False
    reject: bool = False
    queue: bool = False
    settled: bool = False
    until_captured: bool = False


def decide(facts: Facts) -> Decision:
    """Return the row of the table that `facts` select."""
    if facts.pinned:
        return Decision(action=Action.FIRST_CHOICE, reason=Reason.FIRST_CHOICE, settled=True)
    if not facts.enabled:
        if facts.capturing:
            return Decision(action=Action.FIRST_CHOICE, reason=Reason.FIRST_CHOICE)
        return Decision(action=Action.SELECT_IN_PROCESS, reason=Reason.SELECTED_IN_PROCESS, settled=True)
    if facts.entry is EntryState.WINNER:
        return Decision(action=Action.WINNER, reason=Reason.REPLAYED, settled=True)
    if facts.entry is EntryState.DEFAULT:
        return Decision(action=Action.FIRST_CHOICE, reason=Reason.REPLAYED, settled=True)
    stale = facts.entry is EntryState.STALE
    if facts.capturing:
        return Decision(
            action=Action.FIRST_CHOICE,
            reason=Reason.FIRST_CHOICE,
            pin=True,
            untuned=not stale,
            reject=stale,
            settled=True,
        )
    if facts.tuning and not facts.background:
        return Decision(action=Action.MEASURE, reason=Reason.MEASURED, reject=stale)
    return Decision(
        action=Action.FIRST_CHOICE,
        reason=Reason.FIRST_CHOICE,
        untuned=not (stale or facts.tuning),
        reject=stale,
        queue=facts.tuning,
        until_captured=True,
    )
