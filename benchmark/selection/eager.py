"""How a naive tuner times: every launch from Python, between two events of its own, whatever the host adds."""

from collections.abc import Callable, Sequence

from tensorplay.backends.base import Plan

__all__ = ["EagerTimer", "launches_within"]

_MOST_LAUNCHES, _MOST_MS = 100, 30.0


def launches_within(one_ms: float) -> int:
    """Return how many launches PyTorch's tuner takes by default: 100, or fewer in 30 ms; one at least."""
    return max(1, min(_MOST_LAUNCHES, int(_MOST_MS / max(one_ms, 1e-6))))


class EagerTimer:
    """Implements `tensorplay.typing.Timer` for plans; a sample is the mean of many launches.

    Parameters
    ----------
    sets : sequence
        The operands that launches rotate through.
    runs_of : callable
        Returns the runs of a plan, one for each set.
    """

    def __init__(self, sets: Sequence[object], runs_of: Callable[[Plan], Sequence[Callable[[], object]]]) -> None:
        self._runs_of = runs_of
        self._count = len(sets)

    def warm_up(self, candidate: Plan) -> None:
        """Run once, untimed, and wait."""
        import torch

        self._runs_of(candidate)[0]()
        torch.cuda.synchronize()

    def screen(self, candidate: Plan, launches: int) -> float:
        """Return the mean of so many launches in milliseconds, each between events of its own."""
        import torch

        runs = self._runs_of(candidate)
        pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(launches)]
        for place, (begin, end) in enumerate(pairs):
            begin.record()
            runs[place % self._count]()
            end.record()
        torch.cuda.synchronize()
        return sum(float(begin.elapsed_time(end)) for begin, end in pairs) / launches

    def sample(self, order: Sequence[Plan]) -> list[float]:
        """Return the mean launch of each in milliseconds, of as many launches as fit."""
        return [self.screen(plan, launches_within(self.screen(plan, 3))) for plan in order]

    def sample_launches(self, candidate: Plan) -> int:
        """Return 1: what limits the naive tuner is no budget of ours."""
        del candidate
        return 1
