"""The race: rounds in which each survivor is timed once, until it is clear who challenges the first choice."""

import math
from typing import TypeVar

from tensorplay.measure.sampler import EARLY_SHARE, Record, Sampler
from tensorplay.measure.statistics import MedianBounds, median, paired_gain

__all__ = ["FINALISTS", "NEAR_TIE", "RACE_CONFIDENCE", "finalists", "leader", "race"]

T = TypeVar("T")

RACE_CONFIDENCE = 0.95
"""Of the bound that drops a candidate: five rounds give it. A wrong drop costs a gain, never a slower kernel."""

NEAR_TIE = 0.04
"""Who is behind the leader by less may still be ahead of it: in a few rounds, what wanders looks like a difference."""

FINALISTS = 3
"""So many of a near tie are left to the confirmation, whose fresh rounds tell them apart."""

_LOOKS = frozenset({5, 7, 10, 14, 20, 28, 40, 56, 80})
"""Rounds after which candidates are dropped: a bound that is looked at after each fails more often than it says."""

_SURE_ROUNDS = 14
"""From here on a near tie beyond the finalists is settled by its bound alone."""


def race(sampler: Sampler[T], *, min_gain: float) -> None:
    """Time the survivors in interleaved rounds, dropping those whose interval lies above the leader's.

    Intervals are those of the ratio within each round, so that what drifts between rounds does not widen them. Who
    surely gains less than `min_gain` over the first choice is dropped too: it could not be confirmed. The race is
    over when the first choice is alone, when a lonely challenger leads, when all challengers are finalists, or when
    the budget or the deadline leaves no more than the confirmation needs. A candidate whose own share is spent sits
    out and keeps its place.
    """
    number = 0
    while not _is_decided(sampler, number) and not sampler.deadline.has_passed(EARLY_SHARE):
        runners = [record for record in sampler.survivors if _has_room(sampler, record)]
        if len(runners) < 2 or runners[0] is not sampler.first:
            break
        sampler.round(number, runners)
        number += 1
        if number in _LOOKS:
            _drop_beaten(sampler, number)
            _drop_hopeless(sampler, min_gain)


def leader(sampler: Sampler[T]) -> Record[T]:
    """Return the survivor with the lowest median ratio to the first choice; the earlier one when equal.

    Ratios are those of common rounds, or of the screening for a candidate without any.
    """
    return min(sampler.survivors, key=lambda record: _score(record, sampler.first))


def finalists(sampler: Sampler[T]) -> list[Record[T]]:
    """Return the leader and its nearest ties, best first, at most `FINALISTS`; empty when the first choice leads."""
    scores = {record: _score(record, sampler.first) for record in sampler.survivors}
    ranked = sorted(scores, key=lambda record: scores[record])
    if ranked[0] is sampler.first:
        return []
    near = [record for record in ranked if scores[record] - scores[ranked[0]] < NEAR_TIE]
    return [record for record in near if record is not sampler.first][:FINALISTS]


def _is_decided(sampler: Sampler[T], rounds: int) -> bool:
    challengers = sampler.challengers
    if not challengers:
        return True
    if rounds < min(_LOOKS):
        return len(challengers) == 1 and leader(sampler) is challengers[0]
    return set(challengers) == set(finalists(sampler))


def _has_room(sampler: Sampler[T], record: Record[T]) -> bool:
    return record.allowance.remaining_before_reserve(sampler.cost_ms(record)) > 0


def _score(record: Record[T], first: Record[T]) -> float:
    if record is first:
        return 0.0
    common = _common(record, first)
    if common:
        return median([math.log(own / other) for own, other in common])
    return math.log(record.readings[-1] / first.readings[-1])


def _common(record: Record[T], other: Record[T]) -> list[tuple[float, float]]:
    return [(time_ms, other.rounds[number]) for number, time_ms in record.rounds.items() if number in other.rounds]


def _drop_beaten(sampler: Sampler[T], rounds: int) -> None:
    ahead, kept = leader(sampler), finalists(sampler)
    for record in sampler.challengers:
        gain = _gain(record, ahead) if record is not ahead and record not in kept else None
        if gain is not None and gain.low > 0.0 and (gain.median > NEAR_TIE or rounds >= _SURE_ROUNDS):
            record.dropped = f"race: took {gain.median:.1%} longer than {ahead.kernel}"


def _drop_hopeless(sampler: Sampler[T], min_gain: float) -> None:
    for record in sampler.challengers:
        gain = _gain(sampler.first, record)
        if gain is not None and gain.high < min_gain:
            record.dropped = f"race: gains {gain.high:.1%} over the first choice at most"


def _gain(slow: Record[T], fast: Record[T]) -> MedianBounds | None:
    """Return by what share `slow` takes longer in common rounds, None without any."""
    common = _common(slow, fast)
    return paired_gain(common, RACE_CONFIDENCE) if common else None
