"""A trial that says what it is about to run, and looks at its device when a kernel fails."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from numpy.typing import NDArray

from tensorplay.backends.base import Plan, Trial
from tensorplay.distributed.message import Running
from tensorplay.errors import LaunchError
from tensorplay.typing import Timer

__all__ = ["Announce", "Guard", "GuardedTrial", "Lost"]

T = TypeVar("T")

Announce = Callable[[Running], None]
"""Takes what runs next."""

Lost = Callable[[Running, Exception], None]
"""Takes what ran when the device was found lost, and what said so; it should end the process."""


class Guard:
    """Runs one thing for some plans: announced before, and the device is looked at when it fails.

    Parameters
    ----------
    trial : Trial
        Where the first choice shows whether the device still runs anything.
    first : Plan
        The first choice: what fails where it runs no more is no result.
    announce : callable
        Called before anything runs.
    lost : callable
        Called when the first choice fails.
    """

    def __init__(self, trial: Trial, first: Plan, *, announce: Announce, lost: Lost) -> None:
        self._trial = trial
        self._first = first
        self._announce = announce
        self._lost = lost

    def run(self, plans: Sequence[Plan], action: Callable[[], T]) -> T:
        """Return what `action` does, which runs the plans in one call."""
        running = self._running(plans)
        self._announce(running)
        try:
            return action()
        except LaunchError as error:
            if any(plan.kernel != self._first.kernel for plan in plans):
                self.probe(running)
            else:
                self._lost(running, error)
            raise

    def probe(self, running: Running) -> None:
        """Run the first choice, after something failed."""
        try:
            self._trial.output(self._first)
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing can be measured here any more
            self._lost(running, error)

    def _running(self, plans: Sequence[Plan]) -> Running:
        kernels = tuple(plan.kernel for plan in plans)
        return Running(kernels, kernels[0] if len(kernels) == 1 and kernels[0] != self._first.kernel else None)


class GuardedTrial(Trial):
    """Another trial, each of its runs under a guard; `apart` says that kernels are sampled one at a time."""

    def __init__(self, trial: Trial, guard: Guard, *, apart: bool) -> None:
        self._trial = trial
        self._guard = guard
        self.timer = _GuardedTimer(trial.timer, guard, apart=apart)

    def output(self, plan: Plan) -> NDArray[Any]:
        """Return the wrapped trial's."""
        return self._guard.run([plan], lambda: self._trial.output(plan))

    def reference(self) -> NDArray[Any]:
        """Return the wrapped trial's."""
        return self._trial.reference()

    def closeness(self, first: Plan, *, atol: float, rtol: float) -> Callable[[Plan], bool] | None:
        """Return the wrapped trial's, which runs `first` here."""
        is_close = self._guard.run([first], lambda: self._trial.closeness(first, atol=atol, rtol=rtol))
        if is_close is None:
            return None
        return lambda plan: self._guard.run([plan], lambda: is_close(plan))


class _GuardedTimer:
    def __init__(self, timer: Timer[Plan], guard: Guard, *, apart: bool) -> None:
        self._timer = timer
        self._guard = guard
        self._apart = apart

    def warm_up(self, candidate: Plan) -> None:
        self._guard.run([candidate], lambda: self._timer.warm_up(candidate))

    def screen(self, candidate: Plan, launches: int) -> float:
        return self._guard.run([candidate], lambda: self._timer.screen(candidate, launches))

    def sample(self, order: Sequence[Plan]) -> Sequence[float]:
        if self._apart:
            return [time_ms for plan in order for time_ms in self._sample([plan])]
        return self._sample(order)

    def sample_launches(self, candidate: Plan) -> int:
        return self._timer.sample_launches(candidate)

    def _sample(self, order: Sequence[Plan]) -> Sequence[float]:
        return self._guard.run(order, lambda: self._timer.sample(order))
