"""Choosers that trust a mean: what a library does for itself, and what a naive tuner does.

Neither is used to record a winner. They time each candidate in a row, so that drift and one interruption decide.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from tensorplay.errors import LaunchError, MeasurementError
from tensorplay.typing import Timer

__all__ = ["IN_PROCESS_LAUNCHES", "lowest_mean", "select_in_process"]

T = TypeVar("T")

IN_PROCESS_LAUNCHES = 3
"""Timed launches of each candidate when the library selects for one process."""


def select_in_process(candidates: Sequence[T], timer: Timer[T]) -> T:
    """Return the lowest mean of one untimed and three timed launches each, as while the feature is off.

    A single candidate is returned without being run. One that cannot be launched is passed over.

    Raises
    ------
    ValueError
        When there are no candidates.
    MeasurementError
        When none of several can be launched.
    """
    if len(candidates) == 1:
        return candidates[0]
    return _lowest(candidates, timer, lambda candidate: timer.screen(candidate, IN_PROCESS_LAUNCHES))


def lowest_mean(candidates: Sequence[T], timer: Timer[T], samples: int = 1) -> T:
    """Return the lowest mean of `samples` samples each: what benchmarks compare `choose` with.

    Raises
    ------
    ValueError
        When there are no candidates, or `samples` is below 1.
    MeasurementError
        When none can be launched.
    """
    if samples < 1:
        raise ValueError(f"samples is {samples}; allowed: 1 or more")
    return _lowest(
        candidates, timer, lambda candidate: sum(timer.sample([candidate])[0] for _ in range(samples)) / samples
    )


def _lowest(candidates: Sequence[T], timer: Timer[T], mean_ms: Callable[[T], float]) -> T:
    if len(candidates) == 0:
        raise ValueError("no candidates were given; the first must be the library's first choice")
    means: list[tuple[float, int]] = []
    reasons: list[str] = []
    for place, candidate in enumerate(candidates):
        try:
            timer.warm_up(candidate)
            means.append((mean_ms(candidate), place))
        except LaunchError as error:
            reasons.append(str(error))
    if not means:
        raise MeasurementError(f"none of {len(candidates)} candidates can be launched: {'; '.join(reasons)}")
    return candidates[min(means)[1]]
