"""The shapes that the layers agree on: what each side must offer, and no more."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

__all__ = ["Clock", "Listener", "Operand", "Pending", "Timer"]

CandidateT_contra = TypeVar("CandidateT_contra", contravariant=True)


class Operand(Protocol):
    """A matrix or a stack of matrices, wherever it lives; strides are in bytes."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes, outermost first."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps in bytes, outermost first."""


class Clock(Protocol):
    """Seconds that only go forward, as `time.monotonic` gives them."""

    def __call__(self) -> float:
        """Return now, in seconds."""


class Pending(NamedTuple):
    """Comes in the place of a candidate that is still being made: ask for the next one again, others first.

    Attributes
    ----------
    wait : callable
        Waits for any that is being made, for whoever has nothing else to do: a few milliseconds at most, and no longer
        than the seconds it is given.
    """

    wait: Callable[[float], object]


class Timer(Protocol[CandidateT_contra]):
    """Runs candidates on scratch operands and says how long each took; all times are milliseconds.

    A timer belongs to one measurement, is used by one thread, and never touches the caller's operands.
    Each method may raise `tensorplay.errors.LaunchError`: the candidate cannot run here.
    """

    def warm_up(self, candidate: CandidateT_contra) -> None:
        """Run once, untimed: proves that it launches, and pays what only a first launch costs."""

    def screen(self, candidate: CandidateT_contra, launches: int) -> float:
        """Return the mean of `launches` back-to-back launches: cheap, good enough to drop the hopeless."""

    def sample(self, order: Sequence[CandidateT_contra]) -> Sequence[float]:
        """Return one careful sample for each place of `order`, run one after another in that order.

        A candidate may stand in several places. Samples of one call are comparable with one another
        more closely than with those of another call, since clocks and temperature drift.
        """

    def sample_launches(self, candidate: CandidateT_contra) -> int:
        """Return how many launches a careful sample of it is the mean of; 1 where that is not known yet."""


class Listener(Protocol):
    """Who wants to hear what the runtime does; called on the thread that does it, so it must return at once."""

    def __call__(self, event: str, detail: Mapping[str, object]) -> None:
        """Take one event: its name, and its facts as plain values. What it raises is logged and dropped."""
