"""The screening: a short look at every candidate, which drops what is clearly slower."""

from collections.abc import Sequence
from typing import TypeVar

from tensorplay.measure.judgement import FEWEST_PAIRS
from tensorplay.measure.sampler import EARLY_SHARE, Record, Sampler

__all__ = ["FIRST_LIMIT", "LAUNCHES", "SECOND_LIMIT", "SMALL_FIELD", "TIME_RAN_OUT", "screen"]

T = TypeVar("T")

FIRST_LIMIT = 1.5
"""Who takes this many times the fastest is dropped after the first look: drift and cold clocks are at most 15 %."""

SECOND_LIMIT = 1.2
"""The same after the second look, whose reading averages several launches."""

LAUNCHES = 4
"""Launches of one reading in the second look: enough to make what surrounds a launch on a device small."""

SMALL_FIELD = 4
"""No second look at this many survivors or fewer: racing them costs no more."""

TIME_RAN_OUT = "not measured: the tuning time ran out"
"""Why a candidate was dropped that the deadline left unread."""

_LOOK_SHARE = 4
"""The second look takes at most this part of what is left before the confirmation; the race needs the rest."""


def screen(sampler: Sampler[T]) -> None:
    """Warm up and read each candidate, dropping whoever two readings in a row call clearly slower.

    One reading never decides while a second can be afforded: a launch may be interrupted, which makes a good
    candidate look slow, and the first timed launch of a bad one may flatter it, which makes all others look slow.
    The first choice is never dropped. Candidates are read in the order given, most promising first, so that
    those left out when the time runs out are the least.
    """
    for record in sampler.records:
        _open(sampler, record)
    ratios = _ratios(sampler.survivors)
    suspects = [record for record in sampler.survivors if ratios[record] > FIRST_LIMIT]
    if suspects:
        fastest = min(sampler.survivors, key=lambda record: record.readings[-1])
        readers = [record for record in sampler.survivors if record in {sampler.first, fastest, *suspects}]
        _look(sampler, readers, ratios, limit=FIRST_LIMIT, launches=1, share=1)
    if len(sampler.survivors) > SMALL_FIELD:
        _look(sampler, sampler.survivors, ratios, limit=SECOND_LIMIT, launches=LAUNCHES, share=_LOOK_SHARE)


def _open(sampler: Sampler[T], record: Record[T]) -> None:
    if record is not sampler.first and sampler.deadline.has_passed(EARLY_SHARE):
        record.dropped = TIME_RAN_OUT
        return
    sampler.warm_up(record)
    if record.dropped is not None:
        return
    # A first launch may load or even compile a kernel, which takes longer than many others.
    if record is not sampler.first and sampler.deadline.has_passed(EARLY_SHARE):
        record.dropped = TIME_RAN_OUT
        return
    sampler.read(record, 1)


def _look(
    sampler: Sampler[T],
    readers: Sequence[Record[T]],
    ratios: dict[Record[T], float],
    *,
    limit: float,
    launches: int,
    share: int,
) -> None:
    """Read once more those that can afford it; drop who is over the limit now and was the time before."""
    read = set()
    fastest_ms = min(record.readings[-1] for record in readers)
    for record in sampler.shuffled(readers):
        affordable = min(launches, _room(record, fastest_ms) // share)
        if affordable > 0 and not sampler.deadline.has_passed(EARLY_SHARE):
            sampler.read(record, affordable)
            read.add(record)
    standing = [record for record in readers if record.dropped is None]
    latest = _ratios(standing)
    for record in standing:
        before = ratios[record]
        if record in read:
            ratios[record] = latest[record]
        slow = min(before, ratios[record])
        if record is not sampler.first and slow > limit:
            record.dropped = f"screening: took {slow:.2f} times the fastest of its look"


def _room(record: Record[T], fastest_ms: float) -> int:
    """Return how many launches fit before the confirmation.

    Where none do and too few for a confirmation would be left, the reading is doubted instead: it may be an
    interruption's, of a candidate that is as fast as the fastest. Then one may be begun: it may be slow after all.
    """
    allowance = record.allowance
    if allowance.remaining_samples(record.estimate_ms) >= FEWEST_PAIRS:
        return allowance.remaining_before_reserve(record.estimate_ms)
    return min(1, allowance.remaining_before_reserve(min(record.estimate_ms, fastest_ms)))


def _ratios(records: Sequence[Record[T]]) -> dict[Record[T], float]:
    best = min(record.readings[-1] for record in records)
    return {record: record.readings[-1] / best for record in records}
