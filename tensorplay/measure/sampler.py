"""The order of launches, and what came of them: who is timed when, within whose allowance.

What drifts must hit everybody alike, so candidates are timed in turn, never one after the other's whole share:
rounds in changing order for the race, alternating rounds for the confirmation. No call to the timer holds a
candidate twice, so that its allowance is looked at before each of its samples.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from tensorplay.errors import LaunchError, MeasurementError
from tensorplay.measure.budget import MOST_WARMUP_MS, MOST_WARMUP_SAMPLES, Allowance, Budget, Deadline
from tensorplay.typing import Timer

__all__ = ["EARLY_SHARE", "Record", "Sampler"]

T = TypeVar("T")

EARLY_SHARE = 0.75
"""How much of the deadline screening and race may take: the confirmation times two candidates only."""

_GROUP = 8
"""Candidates in one call of a round: samples of one call compare best, but the deadline is seen only between calls."""

# Whatever is not between a picosecond and thirty years is a defect of the timer.
_SHORTEST_MS, _LONGEST_MS = 1e-9, 1e12


class Record(Generic[T]):
    """What is known about one candidate while it is measured.

    Attributes
    ----------
    candidate : object
        What the timer runs.
    kernel : str
        How it is named in reports.
    allowance : Allowance
        What it has spent of its budget.
    readings : list of float
        Screening times in milliseconds, in the order they were taken.
    rounds : dict
        The sample of each round of the race that it took part in.
    confirming : list of float
        Its samples in the confirmation.
    dropped : str or None
        Why it is out, or None while it is not.
    is_broken : bool
        Whether it is out because it does not run.
    """

    __slots__ = ("allowance", "candidate", "confirming", "dropped", "is_broken", "kernel", "readings", "rounds")

    def __init__(self, candidate: T, kernel: str, allowance: Allowance) -> None:
        self.candidate = candidate
        self.kernel = kernel
        self.allowance = allowance
        self.readings: list[float] = []
        self.rounds: dict[int, float] = {}
        self.confirming: list[float] = []
        self.dropped: str | None = None
        self.is_broken = False

    @property
    def careful_ms(self) -> list[float]:
        """Return the samples of race and confirmation: those that medians are made of."""
        return [*self.rounds.values(), *self.confirming]

    @property
    def estimate_ms(self) -> float:
        """Return what one more launch is likely to take; 0 while nothing is known.

        The lower median of all times, so that one interruption among two does not end a candidate's share.
        """
        times = sorted([*self.readings, *self.careful_ms])
        return times[(len(times) - 1) // 2] if times else 0.0


class Sampler(Generic[T]):
    """Runs a timer on candidates, keeps their samples, and drops those that cannot be timed.

    A candidate that raises `LaunchError`, or whose time is no possible duration, is dropped with the reason; the
    others go on. When it is the first choice, there is nothing to compare with: `MeasurementError`.

    Parameters
    ----------
    candidates : sequence
        The library's first choice first.
    timer : Timer
        Runs them.
    describe : callable
        Names a candidate for reports.
    budget : Budget
        Of each candidate.
    reserved_samples : int
        What each candidate keeps for the confirmation at least.
    deadline : Deadline
        Of them all.
    rng : random.Random
        Decides the order of rounds.
    """

    def __init__(
        self,
        candidates: Sequence[T],
        timer: Timer[T],
        *,
        describe: Callable[[T], str],
        budget: Budget,
        reserved_samples: int,
        deadline: Deadline,
        rng: random.Random,
    ) -> None:
        if len(candidates) == 0:
            raise ValueError("no candidates were given; the first must be the library's first choice")
        self.deadline = deadline
        self.describe = describe
        self._timer = timer
        self._budget = budget
        self._reserved_samples = reserved_samples
        self.records = [self.enter(each) for each in candidates]
        self._rng = rng
        self._order: list[Record[T]] = []

    @property
    def first(self) -> Record[T]:
        """Return the record of the library's first choice."""
        return self.records[0]

    @property
    def survivors(self) -> list[Record[T]]:
        """Return the records that are not dropped; the first choice is always the first of them."""
        return [record for record in self.records if record.dropped is None]

    @property
    def challengers(self) -> list[Record[T]]:
        """Return the survivors without the first choice."""
        return self.survivors[1:]

    def shuffled(self, records: Sequence[Record[T]]) -> list[Record[T]]:
        """Return the records in random order."""
        return self._rng.sample(list(records), len(records))

    def enter(self, candidate: T) -> Record[T]:
        """Return a record of the candidate, which takes part in nothing until it is among the `records`."""
        return Record(candidate, self.describe(candidate), Allowance(self._budget, self._reserved_samples))

    def pace(self, launches: int) -> float:
        """Return a screening time of the first choice that counts against no budget: what others are compared with.

        A search compares thousands of candidates with it, over seconds in which clocks drift.
        """
        first = self.first
        try:
            reading = self._timer.screen(first.candidate, launches)
        except LaunchError as error:
            raise self._not_timed(error) from error
        if not _SHORTEST_MS <= reading <= _LONGEST_MS:
            raise self._not_timed(_no_duration(reading))
        return reading

    def warm_up(self, record: Record[T], *, is_proven: bool = False) -> None:
        """Launch once untimed, unless it is proven to launch, then as often as the warm-up part of the budget says."""
        try:
            if not is_proven:
                self._timer.warm_up(record.candidate)
            self._warm_further(record)
        except LaunchError as error:
            self._drop(record, error)

    def read(self, record: Record[T], launches: int) -> None:
        """Take one screening time, the mean of `launches` launches."""
        try:
            reading = self._timer.screen(record.candidate, launches)
        except LaunchError as error:
            self._drop(record, error)
            return
        if self._is_time(record, reading):
            record.allowance.charge(reading * launches, launches)
            record.readings.append(reading)

    def cost_ms(self, record: Record[T]) -> float:
        """Return what one more careful sample is likely to take of the candidate's time, in all its launches."""
        return record.estimate_ms * self._timer.sample_launches(record.candidate)

    def round(self, number: int, records: Sequence[Record[T]]) -> None:
        """Take one sample of each record, in an order that changes from round to round.

        Even rounds are shuffled, each odd one runs the other way round, so that a steady drift cancels over two.
        """
        self._order = self._order[::-1] if number % 2 else self.shuffled(records)
        taking_part = set(records)
        for group in self._groups([record for record in self._order if record in taking_part]):
            for record, sample in self._samples(group):
                record.rounds[number] = sample

    def together(self, order: Sequence[Record[T]]) -> dict[Record[T], float]:
        """Take a fresh sample of each for the confirmation, in this order; who is dropped by it is left out."""
        samples = dict(self._samples(order))
        for record, sample in samples.items():
            record.confirming.append(sample)
        return samples

    def _warm_further(self, record: Record[T]) -> None:
        # Timed only to know when the duration is over: measuring looks at no clock but the deadline's.
        budget = self._budget
        if not (budget.warmup_duration_ms or budget.warmup_samples):
            return
        most_ms = min(budget.warmup_duration_ms or MOST_WARMUP_MS, MOST_WARMUP_MS)
        most = min(budget.warmup_samples or MOST_WARMUP_SAMPLES, MOST_WARMUP_SAMPLES)
        launches, spent_ms = 0, 0.0
        while launches < most and spent_ms < most_ms and not self.deadline.has_passed(EARLY_SHARE):
            reading = self._timer.screen(record.candidate, 1)
            if not self._is_time(record, reading):
                return
            launches += 1
            spent_ms += reading

    def _groups(self, order: Sequence[Record[T]]) -> Iterator[list[Record[T]]]:
        group: list[Record[T]] = []
        for record in order:
            if not group:
                if self.deadline.has_passed(EARLY_SHARE):
                    return
                left_ms = self.deadline.remaining_seconds(EARLY_SHARE) * 1000.0
            group.append(record)
            left_ms -= self.cost_ms(record)
            if len(group) == _GROUP or left_ms <= 0.0:
                yield group
                group = []
        if group:
            yield group

    def _samples(self, group: Sequence[Record[T]]) -> list[tuple[Record[T], float]]:
        """Return the samples of one call; when it fails, of one call for each, since it does not say who failed."""
        try:
            times = self._timer.sample([record.candidate for record in group])
        except LaunchError as error:
            if len(group) == 1:
                self._drop(group[0], error)
                return []
            return [sample for record in group for sample in self._samples([record])]
        if len(times) != len(group):
            raise MeasurementError(f"the timer returned {len(times)} samples for {len(group)} candidates")
        samples = []
        for record, time_ms in zip(group, times, strict=True):
            if self._is_time(record, time_ms):
                # One sample, however many launches it is the mean of, but all of their time.
                record.allowance.charge(time_ms * self._timer.sample_launches(record.candidate))
                samples.append((record, time_ms))
        return samples

    def _is_time(self, record: Record[T], time_ms: float) -> bool:
        if _SHORTEST_MS <= time_ms <= _LONGEST_MS:
            return True
        self._drop(record, _no_duration(time_ms))
        return False

    def _drop(self, record: Record[T], error: Exception) -> None:
        if record is self.first:
            raise self._not_timed(error) from error
        record.is_broken = True
        record.dropped = f"cannot run: {error}" if isinstance(error, LaunchError) else str(error)

    def _not_timed(self, error: Exception) -> MeasurementError:
        return MeasurementError(f"the first choice {self.first.kernel} cannot be timed: {error}")


def _no_duration(time_ms: float) -> MeasurementError:
    return MeasurementError(f"timed as {time_ms} ms, which is no duration of a launch")
