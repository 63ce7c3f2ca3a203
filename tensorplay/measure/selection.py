"""The selection: from candidates to the one that may replace the library's first choice, or to none.

A wrong yes makes a user's program slower for ever, a wrong no costs a gain. So the stages before the confirmation
only decide who is worth confirming, and whatever they get wrong, the first choice is replaced only by what
beat it in fresh samples.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tensorplay.measure.budget import Budget, Deadline
from tensorplay.measure.confirmation import RESERVED_SAMPLES, Ruling, confirm
from tensorplay.measure.judgement import FEWEST_SEPARATED
from tensorplay.measure.mean_choice import lowest_mean, select_in_process
from tensorplay.measure.race import finalists, race
from tensorplay.measure.report import CandidateReport, Confirmation, SelectionReport, Verdict
from tensorplay.measure.sampler import Record, Sampler
from tensorplay.measure.screening import TIME_RAN_OUT, screen
from tensorplay.measure.search import Search, widen
from tensorplay.measure.statistics import median, quartiles
from tensorplay.typing import Timer

__all__ = ["Selection", "choose", "lowest_mean", "select_in_process"]

T = TypeVar("T")

_TIMING_SAMPLES = 5
"""Samples of a first choice that no race has timed, so that the recorded time is more than one reading."""


@dataclass(frozen=True, slots=True)
class Selection(Generic[T]):
    """The selected candidate, what it takes in milliseconds, and why it was selected."""

    winner: T
    winner_ms: float
    report: SelectionReport

    @property
    def verdict(self) -> Verdict:
        """Return why the winner was selected."""
        return self.report.verdict


def choose(
    candidates: Sequence[T],
    timer: Timer[T],
    *,
    budget: Budget,
    describe: Callable[[T], str],
    min_gain: float = 0.01,
    deadline: Deadline | None = None,
    rng: random.Random | None = None,
    search: Search[T] | None = None,
) -> Selection[T]:
    """Measure the candidates and return the fastest, or the first of them unless another is surely faster.

    Parameters
    ----------
    candidates : sequence
        The library's first choice, then the others, most promising first.
    timer : Timer
        Runs them.
    budget : Budget
        Of each candidate, over all stages: never overrun by more than one sample, which is a launch, or one reading of
        up to four where a kernel turns slow within it. Three fifths of it, and at least eight samples, are kept for
        the confirmation, which needs seven.
    describe : callable
        Returns a candidate's kernel id.
    min_gain : float
        By what share the first choice must take longer than the winner.
    deadline : Deadline, optional
        Of all candidates together, looked at between samples. Once it has passed, only the first choice is
        still timed, once.
    rng : random.Random, optional
        Decides the order of launches; seeded alike for all calls unless given.
    search : Search, optional
        How to look beyond the candidates, after they were screened. Needs a deadline, whose clock it goes by.

    Raises
    ------
    ValueError
        When there are no candidates, `min_gain` is negative or not finite, or there is a search and no deadline.
    MeasurementError
        When the first choice cannot be timed.
    """
    if not (math.isfinite(min_gain) and min_gain >= 0.0):
        raise ValueError(f"min_gain is {min_gain!r}; allowed: a share from 0 up, such as 0.01")
    if search is not None and deadline is None:
        raise ValueError("a search needs a deadline, of no seconds if it has none: its clock says when it is over")
    sampler = Sampler(
        candidates,
        timer,
        describe=describe,
        budget=budget,
        reserved_samples=RESERVED_SAMPLES,
        deadline=deadline or Deadline(lambda: 0.0),
        rng=rng or random.Random(0),  # noqa: S311 - an order of launches, not a secret
    )
    screen(sampler)
    searched = widen(sampler, search) if search is not None else None
    race(sampler, min_gain=min_gain)
    verdict, winner, ruling = _decide(sampler, min_gain)
    confirmation = ruling.confirmation if ruling else None
    _time_first_choice(sampler)
    first_ms = confirmation.first_choice_ms if confirmation else _typical_ms(sampler.first)
    winner_ms = confirmation.winner_ms if confirmation and winner is not sampler.first else first_ms
    report = SelectionReport(
        verdict=verdict,
        winner=winner.kernel,
        winner_ms=winner_ms,
        first_choice_ms=first_ms,
        candidates=tuple(_candidate_report(record, winner) for record in sampler.records),
        confirmation=confirmation,
        search=searched,
        histogram=ruling.histogram if ruling else None,
    )
    return Selection(winner.candidate, winner_ms, report)


def _decide(sampler: Sampler[T], min_gain: float) -> tuple[Verdict, Record[T], Ruling[T] | None]:
    first = sampler.first
    while challengers := finalists(sampler):
        ruling = confirm(sampler, challengers, min_gain=min_gain)
        if ruling.challenger.dropped is not None:
            continue
        winner = ruling.challenger if ruling.verdict is Verdict.WINNER else first
        _drop_finalists(first, challengers, ruling)
        return ruling.verdict, winner, ruling
    if any(record.dropped == TIME_RAN_OUT for record in sampler.records):
        return Verdict.INSUFFICIENT_BUDGET, first, None
    if all(record.is_broken for record in sampler.records[1:]):
        return Verdict.ALONE, first, None
    return Verdict.FIRST_CHOICE, first, None


def _drop_finalists(first: Record[T], challengers: Sequence[Record[T]], ruling: Ruling[T]) -> None:
    """Say why each but the winner was not selected."""
    is_won = ruling.verdict is Verdict.WINNER
    loser = first if is_won else ruling.challenger
    loser.dropped = _why_not(ruling.verdict, ruling.confirmation)
    for record in challengers:
        if record is not ruling.challenger and record.dropped is None:
            told = "confirmation: gained less than" if is_won else "race: a near tie of"
            record.dropped = f"{told} {ruling.challenger.kernel}"


def _why_not(verdict: Verdict, confirmation: Confirmation | None) -> str:
    if confirmation is None:
        return (
            f"not confirmed: {verdict}, max_tuning_duration_ms or max_tuning_samples holds fewer than "
            f"{FEWEST_SEPARATED} pairs with the first choice"
        )
    gain = f"{confirmation.gain:+.1%} ({confirmation.gain_low:+.1%} to {confirmation.gain_high:+.1%})"
    if verdict is Verdict.WINNER:
        return f"confirmation: the winner gains {gain}"
    return f"not confirmed: {verdict}, the gain is {gain}"


def _time_first_choice(sampler: Sampler[T]) -> None:
    first = sampler.first
    if first.careful_ms:
        return
    for number in range(_TIMING_SAMPLES):
        if sampler.deadline.has_passed() or first.allowance.remaining_samples(sampler.cost_ms(first)) < 1:
            return
        sampler.round(number, [first])


def _typical_ms(record: Record[T]) -> float:
    return median(record.careful_ms or record.readings[-1:])


def _candidate_report(record: Record[T], winner: Record[T]) -> CandidateReport:
    careful = record.careful_ms
    low, high = quartiles(careful) if careful else (None, None)
    return CandidateReport(
        kernel=record.kernel,
        samples=len(careful),
        median_ms=median(careful) if careful else None,
        quartile_low_ms=low,
        quartile_high_ms=high,
        screened_ms=record.readings[-1] if record.readings else None,
        dropped=None if record is winner else record.dropped or "race: another was faster",
    )
