"""The confirmation: those who lead the race against the first choice, in fresh alternating rounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tensorplay.measure.histogram import SampleHistogram, histogram_of
from tensorplay.measure.judgement import FEWEST_PAIRS, FEWEST_SEPARATED, judge
from tensorplay.measure.report import Confirmation, Verdict
from tensorplay.measure.sampler import Record, Sampler

__all__ = ["FUTILITY_LOOKS", "RESERVED_SAMPLES", "Ruling", "confirm"]

T = TypeVar("T")

RESERVED_SAMPLES = FEWEST_PAIRS + 1
"""What a candidate keeps for the confirmation: enough pairs even if one is interrupted."""

FUTILITY_LOOKS = (16, 32, 64)
"""After so many pairs the leader gives up where it surely gains less than it must: a stop that no winner comes from."""

Pairs = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Ruling(Generic[T]):
    """What the confirmation says of one challenger; without a confirmation, too few pairs fitted or somebody broke."""

    verdict: Verdict
    challenger: Record[T]
    confirmation: Confirmation | None
    histogram: SampleHistogram | None = None


def confirm(sampler: Sampler[T], finalists: Sequence[Record[T]], *, min_gain: float) -> Ruling[T]:
    """Compare the finalists with the first choice in as many rounds as the budget allows, and judge.

    Each round times the first choice and every finalist once, in this order and the other way round in turn, so
    that drift and place favour nobody. The number of rounds is fixed by the budget of the first choice and of the
    leader, the first of the finalists, and never by how well they do, for looking until it fits would find a gain in
    any noise; where only the last of the fewest pairs does not quite fit, it is taken all the same. Only a leader that
    surely gains less than `min_gain` ends them early, after `FUTILITY_LOOKS`: most confirmations are of near ties.

    The leader alone decides whether the first choice is replaced. When it is, a runner-up that was confirmed too, in
    the same rounds, takes the leader's place if it has the higher median gain: the race has fewer samples to tell
    near ties apart. Nobody wins whose best sample is worse than the first choice's. A launch that fails may drop the
    leader: then the verdict says nothing, and `dropped` everything.
    """
    leader = finalists[0]
    planned = _affordable_rounds(sampler, leader)
    if planned < FEWEST_SEPARATED:
        return Ruling(Verdict.INSUFFICIENT_BUDGET, leader, None)
    field = _field(sampler, finalists, planned)
    pairs: dict[Record[T], Pairs] = {record: [] for record in field[1:]}
    for turn in range(planned):
        standing = [record for record in field if record in field[:2] or _goes_on(sampler, record, pairs[record], turn)]
        order = standing if turn % 2 == 0 else standing[::-1]
        if not _can_go_on(sampler, order, overrun=turn < min(planned, FEWEST_PAIRS)):
            break
        times = sampler.together(order)
        if sampler.first not in times or leader not in times:
            return Ruling(Verdict.FIRST_CHOICE, leader, None)
        for record in standing[1:]:
            if record in times:
                pairs[record].append((times[sampler.first], times[record]))
        if turn + 1 in FUTILITY_LOOKS and _is_futile(pairs[leader], min_gain):
            break
    if len(pairs[leader]) < FEWEST_SEPARATED:
        return Ruling(Verdict.INSUFFICIENT_BUDGET, leader, None)
    return _best(sampler, leader, pairs, min_gain)


def _best(sampler: Sampler[T], leader: Record[T], pairs: dict[Record[T], Pairs], min_gain: float) -> Ruling[T]:
    ruling = _ruling(sampler, leader, pairs[leader], min_gain)
    if ruling.verdict is not Verdict.WINNER:
        return ruling
    # Whoever broke on the way has fewer pairs than the leader.
    complete = [record for record in pairs if len(pairs[record]) == len(pairs[leader])]
    confirmed = [_ruling(sampler, record, pairs[record], min_gain) for record in complete]
    return max(
        (each for each in confirmed if each.verdict is Verdict.WINNER),
        key=lambda each: each.confirmation.gain if each.confirmation else 0.0,
    )


def _is_futile(pairs: Pairs, min_gain: float) -> bool:
    _, so_far = judge(pairs, min_gain)
    return so_far.gain_high < min_gain


def _ruling(sampler: Sampler[T], challenger: Record[T], pairs: Pairs, min_gain: float) -> Ruling[T]:
    verdict, confirmation = judge(pairs, min_gain)
    if verdict is Verdict.WINNER and not _is_faster_at_best(challenger, sampler.first):
        verdict = Verdict.UNSTABLE
    first, other = zip(*pairs, strict=True)
    return Ruling(verdict, challenger, confirmation, histogram_of(first, other))


def _is_faster_at_best(challenger: Record[T], first: Record[T]) -> bool:
    """Return whether the challenger's fastest sample beats the first choice's, over race and confirmation.

    What disturbs a sample only ever adds time. A challenger that is ahead in the median but not at best is ahead
    because something disturbs the first choice more, as other programs disturb kernels of many threads; when
    that ends, so does the gain.
    """
    return min(challenger.careful_ms) < min(first.careful_ms)


def _affordable_rounds(sampler: Sampler[T], leader: Record[T]) -> int:
    contestants = (sampler.first, leader)
    affordable = _affordable(sampler, contestants, overrun=False)
    if affordable < FEWEST_PAIRS:
        affordable = min(FEWEST_PAIRS, _affordable(sampler, contestants, overrun=True))
    fewest_seconds = FEWEST_SEPARATED * sum(map(sampler.cost_ms, contestants)) / 1000.0
    return affordable if fewest_seconds <= sampler.deadline.remaining_seconds() else 0


def _field(sampler: Sampler[T], finalists: Sequence[Record[T]], planned: int) -> list[Record[T]]:
    """Return the first choice, the leader, and those runners-up that can stay to the end without costing a round."""
    field = [sampler.first, finalists[0]]
    left_ms = sampler.deadline.remaining_seconds() * 1000.0
    for record in finalists[1:]:
        round_ms = sum(map(sampler.cost_ms, (*field, record)))
        if _affordable(sampler, (record,), overrun=False) >= planned and planned * round_ms <= left_ms:
            field.append(record)
    return field


def _goes_on(sampler: Sampler[T], runner_up: Record[T], pairs: Pairs, turn: int) -> bool:
    """Return whether a runner-up took part so far, and can be timed once more."""
    return runner_up.dropped is None and len(pairs) == turn and _affordable(sampler, (runner_up,), overrun=False) > 0


def _affordable(sampler: Sampler[T], contestants: Sequence[Record[T]], *, overrun: bool) -> int:
    return min(
        each.allowance.remaining_samples(sampler.cost_ms(each), last_may_overrun=overrun) for each in contestants
    )


def _can_go_on(sampler: Sampler[T], order: Sequence[Record[T]], *, overrun: bool) -> bool:
    """Return whether all may be timed once more, and at most the last of them crosses the deadline."""
    if _affordable(sampler, order, overrun=overrun) < 1:
        return False
    return sampler.deadline.remaining_seconds() * 1000.0 > sum(map(sampler.cost_ms, order[:-1]))
