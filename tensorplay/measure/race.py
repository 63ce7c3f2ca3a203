"""The race: rounds in which each survivor is timed once, until it is clear who challenges the first choice."""

import math
from typing import TypeVar

from tensorplay.measure.sampler import EARLY_SHARE, Record, Sampler
from tensorplay.measure.statistics import median, paired_gain

__all__ = ["RACE_CONFIDENCE", "leader", "race"]

T = TypeVar("T")

RACE_CONFIDENCE = 0.95
"""Of the bound that drops a candidate: five rounds give it. A wrong drop costs a gain, never a slower kernel."""


def race(sampler: Sampler[T]) -> None:
    """Time the survivors in interleaved rounds, dropping those whose interval lies above the leader's.

    Intervals are those of the ratio within each round, so that what drifts between rounds does not widen them.
    The race is over when the first choice is alone, when its only challenger leads, or when the budget or the
    deadline leaves no more than the confirmation needs. A candidate whose own share is spent sits out and keeps
    its place.
    """
    number = 0
    while not _is_decided(sampler) and not sampler.deadline.has_passed(EARLY_SHARE):
        runners = [record for record in sampler.survivors if _has_room(record)]
        if len(runners) < 2 or runners[0] is not sampler.first:
            break
        sampler.round(number, runners)
        _drop_beaten(sampler)
        number += 1


def leader(sampler: Sampler[T]) -> Record[T]:
    """Return the survivor with the lowest median ratio to the first choice; the earlier one when equal.

    Ratios are those of common rounds, or of the screening for a candidate without any.
    """
    return min(sampler.survivors, key=lambda record: _score(record, sampler.first))


def _is_decided(sampler: Sampler[T]) -> bool:
    challengers = sampler.challengers
    return not challengers or (len(challengers) == 1 and leader(sampler) is challengers[0])


def _has_room(record: Record[T]) -> bool:
    return record.allowance.remaining_before_reserve(record.estimate_ms) > 0


def _score(record: Record[T], first: Record[T]) -> float:
    if record is first:
        return 0.0
    common = _common(record, first)
    if common:
        return median([math.log(own / other) for own, other in common])
    return math.log(record.readings[-1] / first.readings[-1])


def _common(record: Record[T], other: Record[T]) -> list[tuple[float, float]]:
    return [(time_ms, other.rounds[number]) for number, time_ms in record.rounds.items() if number in other.rounds]


def _drop_beaten(sampler: Sampler[T]) -> None:
    ahead = leader(sampler)
    for record in sampler.challengers:
        if record is ahead:
            continue
        common = _common(record, ahead)
        if common and (loss := paired_gain(common, RACE_CONFIDENCE)).low > 0.0:
            record.dropped = f"race: took {loss.median:.1%} longer than {ahead.kernel}"
