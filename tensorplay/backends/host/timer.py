"""Times plans by the processor's clock: what a caller waits for, call overhead included."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from math import ceil
from time import perf_counter_ns

from tensorplay.backends.base import Plan
from tensorplay.backends.host.operands import Operands
from tensorplay.errors import LaunchError, MeasurementError
from tensorplay.interrupts import is_of_a_handler

__all__ = ["HostTimer"]

# A sample shorter than this is mostly the clock's own cost and the first launch's cold caches.
_SAMPLE_NS = 50_000
_CALIBRATING_LAUNCHES = 8
_NS_PER_MS = 1e6


class HostTimer:
    """Launches plans on sets of operands in turn; implements `tensorplay.typing.Timer` for plans.

    A sample is the mean of as many launches as take about 50 us, of one when that takes longer. The garbage
    collector rests during a sample.

    Parameters
    ----------
    sets : sequence of Operands
        Each launch uses the next; at least one.
    clock_ns : callable
        Nanoseconds that only go forward.
    """

    def __init__(self, sets: Sequence[Operands], clock_ns: Callable[[], int] = perf_counter_ns) -> None:
        self._turns = cycle(sets)
        self._clock_ns = clock_ns
        self._launches: dict[Plan, int] = {}

    def warm_up(self, candidate: Plan) -> None:
        """Run once, untimed; raises `LaunchError` when that fails."""
        self._mean_ns(candidate, 1)

    def screen(self, candidate: Plan, launches: int) -> float:
        """Return the mean of `launches` launches, in milliseconds; raises `LaunchError` when one fails."""
        return self._mean_ns(candidate, launches) / _NS_PER_MS

    def sample(self, order: Sequence[Plan]) -> list[float]:
        """Return a sample for each place of `order`, in milliseconds; raises `LaunchError` when a launch fails."""
        for plan in order:
            if plan not in self._launches:
                self._launches[plan] = self._calibrated(plan)
        return [self._mean_ns(plan, self._launches[plan]) / _NS_PER_MS for plan in order]

    def sample_launches(self, candidate: Plan) -> int:
        """Return how many launches a sample of the plan is the mean of; 1 before the first."""
        return self._launches.get(candidate, 1)

    def close(self) -> None:
        """Let go of the operands; every later launch raises `MeasurementError`."""
        self._turns = cycle(())

    def _calibrated(self, plan: Plan) -> int:
        """Return how many launches make a sample."""
        once = self._mean_ns(plan, 1)
        if once >= _SAMPLE_NS:
            # The first may have been interrupted, or have woken threads.
            once = min(once, self._mean_ns(plan, 1))
        mean = once if once >= _SAMPLE_NS else self._mean_ns(plan, _CALIBRATING_LAUNCHES)
        return max(1, ceil(_SAMPLE_NS / max(mean, 1.0)))

    def _mean_ns(self, plan: Plan, launches: int) -> float:
        run, clock_ns = plan.run, self._clock_ns
        turns = list(islice(self._turns, launches))
        if not turns:
            raise MeasurementError("this trial is closed, or was asked for no launch")
        with _resting_collector():
            try:
                start = clock_ns()
                for left, right, out in turns:
                    run(left, right, out)
                end = clock_ns()
            except Exception as error:  # f2py raises a class of its own
                if is_of_a_handler(error):
                    raise
                raise LaunchError(f"{plan.kernel} failed: {type(error).__name__}: {error}") from error
        return (end - start) / launches


@contextmanager
def _resting_collector() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
