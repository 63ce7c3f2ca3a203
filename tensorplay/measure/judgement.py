"""The judgement: what pairs of times say about replacing the library's first choice, and nothing else decides it."""

import math
from collections.abc import Sequence

from tensorplay.measure.report import Confirmation, Verdict
from tensorplay.measure.statistics import fewest_samples, gain_spread, mean_without_worst, median, paired_gain

__all__ = [
    "CONFIDENCE",
    "FEWEST_PAIRS",
    "FEWEST_SEPARATED",
    "NOISE_SHARE",
    "PAIRS_FOR_BLOCKS",
    "SEPARATED_SHARE",
    "UNSTABLE_WIDTH",
    "WORST_SHARE",
    "judge",
]

CONFIDENCE = 0.99
"""Of the lower bound of the gain, one-sided: a kernel that is no faster passes it once in a hundred times at most."""

FEWEST_PAIRS = fewest_samples(CONFIDENCE)
"""Below this many pairs there is no such bound."""

FEWEST_SEPARATED = 5
"""So many pairs decide where they are separated: all samples of one below all of the other.

Of two kernels that are equally fast that happens once in 252 times with five pairs, in 924 with six. Without it,
kernels of more than four milliseconds could not be confirmed within the default budget at all.
"""

SEPARATED_SHARE = 0.5
"""The part of `min_gain` that each of a few separated pairs must gain.

`min_gain` covers what a measurement cannot know, such as where a program's operands will lie. The kernels that get
few pairs take milliseconds, and depend on that by far less than those of microseconds do.
"""

NOISE_SHARE = 0.5
"""The margin is at least this part of the distance between the quartiles of the pairs' gains.

The bound takes pairs to be independent. Where a kernel's times wander, as on a host that other programs use, they
are not, and what wanders in one measurement is as large as what differs between two.
"""

UNSTABLE_WIDTH = 0.10
"""An interval of the gain wider than this, around zero, tells neither a gain of 5 % nor a loss of 5 %."""

WORST_SHARE = 0.1
"""Part of the samples, and one more, that may be an interruption's fault; a kernel slow more often is slow."""

PAIRS_FOR_BLOCKS = 40
"""From here on there are enough pairs to make one observation of two, which cancels what the place in a pair does."""


def judge(pairs: Sequence[tuple[float, float]], min_gain: float) -> tuple[Verdict, Confirmation]:
    """Return what pairs of (first choice, challenger) times, at least `FEWEST_SEPARATED`, say.

    The challenger wins when its median gain is at least the margin, the lower bound of the gain is above zero, and its
    mean without the worst samples is not worse. With fewer pairs than a bound needs, it wins when they are separated
    and each gains half of `min_gain`.
    """
    if len(pairs) < FEWEST_PAIRS:
        return _judge_few(pairs, min_gain)
    first, challenger = zip(*pairs, strict=True)
    block = 2 if len(pairs) >= PAIRS_FOR_BLOCKS else 1
    gain = paired_gain(pairs, CONFIDENCE, block=block)
    confirmation = Confirmation(
        pairs=len(pairs),
        first_choice_ms=median(first),
        winner_ms=median(challenger),
        gain=gain.median,
        gain_low=gain.low,
        gain_high=gain.high,
        margin=max(min_gain, NOISE_SHARE * gain_spread(pairs, block=block)),
    )
    if gain.median >= confirmation.margin and gain.low > 0.0:
        worst = math.ceil(WORST_SHARE * len(pairs)) + 1
        is_slow_often = mean_without_worst(challenger, worst) > mean_without_worst(first, worst)
        return (Verdict.UNSTABLE if is_slow_often else Verdict.WINNER), confirmation
    if gain.high <= 0.0:
        return Verdict.FIRST_CHOICE, confirmation
    is_wide = gain.low <= 0.0 and gain.high - gain.low > UNSTABLE_WIDTH
    if is_wide or (gain.low > 0.0 and gain.median >= min_gain):
        return Verdict.UNSTABLE, confirmation
    return Verdict.WITHIN_NOISE, confirmation


def _judge_few(pairs: Sequence[tuple[float, float]], min_gain: float) -> tuple[Verdict, Confirmation]:
    first, challenger = zip(*pairs, strict=True)
    gains = [one / other - 1.0 for one, other in pairs]
    margin = SEPARATED_SHARE * min_gain
    confirmation = Confirmation(
        pairs=len(pairs),
        first_choice_ms=median(first),
        winner_ms=median(challenger),
        gain=median(gains),
        gain_low=min(gains),
        gain_high=max(gains),
        margin=margin,
    )
    if max(challenger) < min(first) and min(gains) >= margin:
        return Verdict.WINNER, confirmation
    return (Verdict.FIRST_CHOICE if max(gains) <= 0.0 else Verdict.INSUFFICIENT_BUDGET), confirmation
