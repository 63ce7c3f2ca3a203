"""Timing while nobody else computes.

A product on all cores waits for its slowest thread: one other busy process makes it ten times slower, and says
nothing about kernels. So rounds are run in stretches of a fraction of a second, and a stretch in which others took
much of the processors' time is dropped, whatever its values are.
"""

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

from harness.timing import Contestant, interleave

__all__ = ["FEWEST_ROUNDS", "QUIET_SHARE", "Bystanders", "Measured", "measure_quietly"]

FEWEST_ROUNDS = 7
"""Fewer say nothing about a spread, however little time there is."""

QUIET_SHARE = 0.1
"""What others may take of the processors' time in a stretch that counts."""

# Shorter ones could not be judged: the system counts in hundredths of a second.
_STRETCH_SECONDS = 0.4
# Columns of /proc/stat after the processor's name that are not work: idle and waiting for a disk.
_IDLE = (3, 4)
_COUNTED = 8


class Bystanders:
    """Tells how much of the processors' time others took.

    Parameters
    ----------
    processors : set of int, optional
        Those that count; all that this process may run on unless given.
    processor_times : callable
        The text of /proc/stat.
    own_seconds : callable
        What this process has computed for so far.
    """

    def __init__(
        self,
        processors: AbstractSet[int] | None = None,
        processor_times: Callable[[], str] = lambda: Path("/proc/stat").read_text(encoding="ascii"),
        own_seconds: Callable[[], float] = time.process_time,
    ) -> None:
        self._processor_times = processor_times
        self._own_seconds = own_seconds
        self._names = {f"cpu{number}" for number in processors or os.sched_getaffinity(0)}
        self._last = self._now()

    def share(self) -> float:
        """Return the others' share since the last call, or since this was made; 0 is nobody, 1 is everything."""
        before, self._last = self._last, self._now()
        total, busy, own = (now - then for now, then in zip(self._last, before, strict=True))
        return min(1.0, max(0.0, (busy - own) / total)) if total > 0 else 0.0

    def _now(self) -> tuple[float, float, float]:
        """Return the seconds that passed on all processors, that they worked, and that they worked for us."""
        total = idle = 0
        for line in self._processor_times().splitlines():
            name, *columns = line.split()
            if name in self._names:
                ticks = [int(column) for column in columns[:_COUNTED]]
                total += sum(ticks)
                idle += sum(ticks[column] for column in _IDLE)
        tick = 1 / os.sysconf("SC_CLK_TCK")
        return total * tick, (total - idle) * tick, self._own_seconds()


class Measured(NamedTuple):
    """Seconds per call of each contestant, one value a round, and the share that others took meanwhile."""

    values: dict[str, list[float]]
    others: float

    @property
    def rounds(self) -> int:
        """Return how many rounds there were."""
        return len(next(iter(self.values.values())))


def measure_quietly(
    contestants: Mapping[str, Contestant],
    *,
    rounds: int,
    loops: int,
    seconds: float,
    bystanders: Bystanders | None = None,
) -> Measured:
    """Return what `interleave` gives in quiet stretches: `rounds` rounds, fewer when they take `seconds`.

    When twice that time has passed and there was too little quiet, every stretch counts, and `others` tells.
    """
    rng = random.Random(0)  # noqa: S311 - an order, not a secret
    bystanders = bystanders or Bystanders()
    fewest = min(FEWEST_ROUNDS, rounds)
    every: list[Measured] = []
    quiet: list[Measured] = []
    begin, quiet_seconds = time.monotonic(), 0.0
    while True:
        stretch_begin = time.monotonic()
        bystanders.share()
        values = interleave(contestants, rounds=rounds - _rounds(quiet), loops=loops, rng=rng, seconds=_STRETCH_SECONDS)
        every.append(Measured(values, bystanders.share()))
        if every[-1].others <= QUIET_SHARE:
            quiet.append(every[-1])
            quiet_seconds += time.monotonic() - stretch_begin
        is_over = time.monotonic() - begin >= 2 * seconds
        if _rounds(quiet) >= (fewest if is_over or quiet_seconds >= seconds else rounds):
            return _joined(quiet)
        if is_over and _rounds(every) >= fewest:
            return _joined(every)


def _rounds(stretches: Sequence[Measured]) -> int:
    return sum(stretch.rounds for stretch in stretches)


def _joined(stretches: Sequence[Measured]) -> Measured:
    values = {name: [value for stretch in stretches for value in stretch.values[name]] for name in stretches[0].values}
    # A mean over rounds: stretches are about equally long.
    others = sum(stretch.others * stretch.rounds for stretch in stretches) / _rounds(stretches)
    return Measured(values, others)
