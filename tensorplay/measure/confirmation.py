"""The confirmation: the leader of the race against the first choice, in fresh alternating pairs."""

import math
from collections.abc import Sequence
from typing import TypeVar

from tensorplay.measure.report import Confirmation, Verdict
from tensorplay.measure.sampler import Record, Sampler
from tensorplay.measure.statistics import fewest_samples, mean_without_worst, median, paired_gain

__all__ = ["CONFIDENCE", "FEWEST_PAIRS", "RESERVED_SAMPLES", "UNSTABLE_WIDTH", "WORST_SHARE", "confirm", "judge"]

T = TypeVar("T")

CONFIDENCE = 0.99
"""Of the lower bound of the gain, one-sided: a kernel that is no faster passes it once in a hundred times at most."""

FEWEST_PAIRS = fewest_samples(CONFIDENCE)
"""Below this many pairs there is no such bound."""

UNSTABLE_WIDTH = 0.10
"""An interval of the gain wider than this, around zero, tells neither a gain of 5 % nor a loss of 5 %."""

RESERVED_SAMPLES = FEWEST_PAIRS + 1
"""What a candidate keeps for the confirmation: enough pairs even if one is interrupted."""

WORST_SHARE = 0.1
"""Part of the samples, and one more, that may be an interruption's fault; a kernel slow more often is slow."""

_PAIRS_FOR_BLOCKS = 40
"""From here on there are enough pairs to make one observation of two, which cancels what the place in a pair does."""


def confirm(sampler: Sampler[T], challenger: Record[T], *, min_gain: float) -> tuple[Verdict, Confirmation | None]:
    """Compare the challenger with the first choice in as many pairs as the budget allows, and judge.

    The pairs alternate, A B, B A, A B, so that drift and place favour neither. Their number is fixed by the
    budget and never by what they show, for looking until it fits would find a gain in any noise; where only the
    last of the fewest pairs does not quite fit, it is taken all the same. The challenger wins when its median
    gain is at least `min_gain`, the lower bound of the gain is above zero, and neither its mean without the
    worst samples nor its best sample is worse. A launch that fails may drop the challenger: then the verdict says
    nothing, and `challenger.dropped` everything.
    """
    first = sampler.first
    planned = _affordable_pairs(sampler, challenger)
    if planned < FEWEST_PAIRS:
        return Verdict.INSUFFICIENT_BUDGET, None
    pairs: list[tuple[float, float]] = []
    for turn in range(planned):
        order = (first, challenger) if turn % 2 == 0 else (challenger, first)
        if not _can_go_on(sampler, order, overrun=len(pairs) < FEWEST_PAIRS):
            break
        times = sampler.pair(*order)
        if times is None:
            return Verdict.FIRST_CHOICE, None
        pairs.append(times if turn % 2 == 0 else times[::-1])
    if len(pairs) < FEWEST_PAIRS:
        return Verdict.INSUFFICIENT_BUDGET, None
    verdict, confirmation = judge(pairs, min_gain)
    if verdict is Verdict.WINNER and not _is_faster_at_best(challenger, first):
        return Verdict.UNSTABLE, confirmation
    return verdict, confirmation


def _is_faster_at_best(challenger: Record[T], first: Record[T]) -> bool:
    """Return whether the challenger's fastest sample beats the first choice's, over race and confirmation.

    What disturbs a sample only ever adds time. A challenger that is ahead in the median but not at best is ahead
    because something disturbs the first choice more, as other programs disturb kernels of many threads; when
    that ends, so does the gain.
    """
    return min(challenger.careful_ms) < min(first.careful_ms)


def judge(pairs: Sequence[tuple[float, float]], min_gain: float) -> tuple[Verdict, Confirmation]:
    """Return what pairs of (first choice, challenger) times, at least `FEWEST_PAIRS`, say."""
    first, challenger = zip(*pairs, strict=True)
    gain = paired_gain(pairs, CONFIDENCE, block=2 if len(pairs) >= _PAIRS_FOR_BLOCKS else 1)
    confirmation = Confirmation(
        pairs=len(pairs),
        first_choice_ms=median(first),
        winner_ms=median(challenger),
        gain=gain.median,
        gain_low=gain.low,
        gain_high=gain.high,
    )
    if gain.median >= min_gain and gain.low > 0.0:
        worst = math.ceil(WORST_SHARE * len(pairs)) + 1
        is_slow_often = mean_without_worst(challenger, worst) > mean_without_worst(first, worst)
        return (Verdict.UNSTABLE if is_slow_often else Verdict.WINNER), confirmation
    if gain.high <= 0.0:
        return Verdict.FIRST_CHOICE, confirmation
    if gain.low <= 0.0 and gain.high - gain.low > UNSTABLE_WIDTH:
        return Verdict.UNSTABLE, confirmation
    return Verdict.WITHIN_NOISE, confirmation


def _affordable_pairs(sampler: Sampler[T], challenger: Record[T]) -> int:
    contestants = (sampler.first, challenger)
    affordable = _affordable(contestants, overrun=False)
    if affordable < FEWEST_PAIRS:
        affordable = min(FEWEST_PAIRS, _affordable(contestants, overrun=True))
    fewest_seconds = FEWEST_PAIRS * sum(each.estimate_ms for each in contestants) / 1000.0
    return affordable if fewest_seconds <= sampler.deadline.remaining_seconds() else 0


def _affordable(contestants: tuple[Record[T], Record[T]], *, overrun: bool) -> int:
    return min(each.allowance.remaining_samples(each.estimate_ms, last_may_overrun=overrun) for each in contestants)


def _can_go_on(sampler: Sampler[T], order: tuple[Record[T], Record[T]], *, overrun: bool) -> bool:
    """Return whether both may be timed once more, and at most the second of them crosses the deadline."""
    if _affordable(order, overrun=overrun) < 1:
        return False
    return sampler.deadline.remaining_seconds() * 1000.0 > order[0].estimate_ms
