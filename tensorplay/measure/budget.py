"""How much measuring is allowed: per candidate in samples and milliseconds, per shape or process in seconds."""

import math
from dataclasses import dataclass, fields

from tensorplay.typing import Clock

__all__ = [
    "LATER_SHARE",
    "MOST_WARMUP_MS",
    "MOST_WARMUP_SAMPLES",
    "OWN_MAX_SAMPLES",
    "Allowance",
    "Budget",
    "Deadline",
]

OWN_MAX_SAMPLES = 200
"""Samples per candidate at most, whatever limit the user sets: more would not change a decision."""

MOST_WARMUP_SAMPLES = 1000
"""Warm-up launches per candidate at most."""

MOST_WARMUP_MS = 250.0
"""Milliseconds of warm-up per candidate at most: clocks and caches are at rest long before."""

LATER_SHARE = 0.6
"""Part of each allowance that the confirmation gets: the bound that it needs tightens quickly up to twenty pairs."""

# A limit that no measurement reaches, and that a float still holds exactly.
_LARGEST_LIMIT = 2**53


@dataclass(frozen=True, slots=True)
class Budget:
    """Ceilings of what measuring one candidate may take; zero means no limit, and the smaller one wins.

    They cover screening, race and confirmation together. At least one timed sample is always taken, and never more than
    `OWN_MAX_SAMPLES`; a warm-up ends at `MOST_WARMUP_SAMPLES` or `MOST_WARMUP_MS`.

    Attributes
    ----------
    max_duration_ms : int
        Milliseconds of timed launches.
    max_samples : int
        Timed launches.
    warmup_duration_ms, warmup_samples : int
        Launches before the first timed one, on top of the one that proves that the candidate launches; they
        count against none of the ceilings above. Both zero: only that one. One zero: only the other bounds.

    Raises
    ------
    ValueError
        When a value is negative or not an integer.
    """

    max_duration_ms: int = 30
    max_samples: int = 100
    warmup_duration_ms: int = 0
    warmup_samples: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value: object = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ValueError(f"{field.name} is {value!r}; allowed: an integer from 0 up, 0 meaning no limit")


class Allowance:
    """What one candidate has spent of its budget, and what is left.

    Parameters
    ----------
    budget : Budget
        The ceilings.
    reserved_samples : int
        What `remaining_before_reserve` keeps back at least, for the confirmation.
    """

    __slots__ = ("_max_ms", "_max_samples", "_reserved_samples", "samples", "spent_ms")

    def __init__(self, budget: Budget, reserved_samples: int = 0) -> None:
        self._max_ms = float(min(budget.max_duration_ms, _LARGEST_LIMIT)) or math.inf
        self._max_samples = min(budget.max_samples or OWN_MAX_SAMPLES, OWN_MAX_SAMPLES)
        self._reserved_samples = reserved_samples
        self.samples = 0
        self.spent_ms = 0.0

    def charge(self, duration_ms: float, samples: int = 1) -> None:
        """Count `samples` timed launches that took `duration_ms` in all."""
        self.samples += samples
        self.spent_ms += duration_ms

    def remaining_samples(self, estimated_ms: float, *, last_may_overrun: bool = False) -> int:
        """Return how many more samples of about `estimated_ms` fit; at least one while none was taken.

        With `last_may_overrun`, how many can begin before the ceiling is reached.
        """
        left_ms = self._max_ms - self.spent_ms
        left = float(self._max_samples - self.samples)
        if left_ms <= 0.0:
            left = 0.0
        elif estimated_ms > 0.0:
            left = min(left, left_ms / estimated_ms)
        return max(int(self.samples == 0), math.ceil(left) if last_may_overrun else math.floor(left))

    def remaining_before_reserve(self, estimated_ms: float) -> int:
        """Return how many more samples fit when three of five, and the reserved ones, are kept for later."""
        total = self.samples + self.remaining_samples(estimated_ms)
        reserve = max(math.ceil(LATER_SHARE * total), self._reserved_samples)
        return max(int(self.samples == 0), total - reserve - self.samples)


class Deadline:
    """A moment after which no further sample is begun.

    Parameters
    ----------
    clock : Clock
        Seconds that only go forward; the only clock that measuring ever looks at.
    seconds : float or None
        From now on; None or zero for no deadline.

    Raises
    ------
    ValueError
        When `seconds` is negative or not a number.
    """

    __slots__ = ("_clock", "_end", "_start")

    def __init__(self, clock: Clock, seconds: float | None = None) -> None:
        if seconds is not None and not seconds >= 0.0:
            raise ValueError(f"a deadline of {seconds!r} seconds; allowed: seconds from 0 up, 0 or None for none")
        self._clock = clock
        self._start = clock()
        self._end = self._start + seconds if seconds else math.inf

    def remaining_seconds(self, share: float = 1.0) -> float:
        """Return the seconds until the first `share` of the whole time has passed: negative after, or infinite."""
        if math.isinf(self._end):
            return math.inf
        return self._start + share * (self._end - self._start) - self._clock()

    def now(self) -> float:
        """Return what its clock shows, in seconds."""
        return self._clock()

    def within(self, seconds: float, share: float = 1.0) -> "Deadline":
        """Return the deadline that comes first: `seconds` from now, or the first `share` of this one."""
        earlier = Deadline(self._clock)
        earlier._end = earlier._start + min(seconds, self.remaining_seconds(share))
        return earlier

    def has_passed(self, share: float = 1.0) -> bool:
        """Return whether the first `share` of the whole time has passed."""
        return self.remaining_seconds(share) <= 0.0
