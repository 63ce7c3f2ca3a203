"""The contract between the runtime and whoever can run a product.

A *backend* knows one library family on one kind of device: it says which problems it tunes, offers plans for
them, rebuilds a plan from its kernel id, and opens trials in which plans are timed. It keeps no winners, reads no
settings and decides nothing: the runtime does.

Rules that every backend keeps (`tensorplay.testing.BackendSuite` checks them):

- Nothing heavy is imported, no device is touched and no memory is taken before a method needs it.
- A plan is built once per problem and kernel id, is immutable, and may be run by any number of threads at once.
- `run` computes the whole product or raises; it never leaves a half-written result without raising.
- Rebuilding a plan's own kernel id for its own problem gives a plan that computes the same bits.
- The first choice is what the library would run by itself. It exists for every valid problem.
- A trial works on operands of its own, never on the caller's, and gives back all memory when it is closed.
- Nothing is measured, allocated or synchronised by `is_capturing`, or by anything called while it answers True.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from tensorplay.database.record import Validator
from tensorplay.gemm import GemmProblem
from tensorplay.typing import Pending, Timer

__all__ = ["Backend", "CandidateQuery", "Plan", "Trial"]

BREADTHS = ("heuristic", "wide", "search")
# Operand types differ per backend (an ndarray, a device pointer): the runtime passes them through unread.
Run = Callable[..., Any]
Launch = Callable[[int, int, int, int], object]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """One algorithm made ready for one problem.

    Attributes
    ----------
    problem : GemmProblem
        What it computes.
    kernel : str
        The kernel id that rebuilds it.
    run : callable
        `run(left, right, out)` writes the plain product and returns it, `out` being None for a new array; a
        backend may take further arguments of its own (bias, alpha, beta, stream). Raises
        `tensorplay.errors.LaunchError` when the library refuses.
    workspace_bytes : int
        Scratch memory that one run takes.
    is_deterministic : bool
        Whether it adds up in the same order in each run, as far as its makers tell.
    launch : callable or None
        `launch(left, right, out, stream)` does what `run` does for the plain product, a bias or an addend left out,
        on a thread whose current device is the problem's; None where that would be no shorter. Raises as `run` does.
    """

    problem: GemmProblem
    kernel: str
    run: Run
    workspace_bytes: int = 0
    is_deterministic: bool = True
    launch: Launch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateQuery:
    """Which candidates are wanted.

    Attributes
    ----------
    breadth : str
        `heuristic` (the library's own list), `wide` (all that the sources offer) or `search` (wide, and more).
    sources : frozenset of str or None
        The providers that take part; None for all.
    workspace_bytes : int
        Ceiling of scratch memory; a candidate that needs more is not offered.
    deterministic : bool
        Leave out plans that are not `is_deterministic`.
    """

    breadth: str = "wide"
    sources: frozenset[str] | None = None
    workspace_bytes: int = 32 << 20
    deterministic: bool = False

    def __post_init__(self) -> None:
        if self.breadth not in BREADTHS:
            raise ValueError(f"breadth is {self.breadth!r}; allowed: {', '.join(BREADTHS)}")


class Trial(ABC):
    """Scratch operands of one problem, filled with random data, and a timer that runs plans on them."""

    timer: Timer[Plan]

    @abstractmethod
    def output(self, plan: Plan) -> NDArray[Any]:
        """Run the plan on the check operands and return a host copy of what it computed, in the problem's dtype.

        Plans that take alpha and beta run twice, the second time with values other than 1 and 0, and both results come
        back, one after the other. bfloat16 and narrower come back as float32. The numbers are those of
        `tensorplay.measure.check_operands`. The result buffer is filled with NaN first, so an element that the plan
        does not write shows; so are gaps and surroundings of operands, so that reading these shows as well.

        Raises
        ------
        LaunchError
            When the plan fails, or has written beside its result.
        """

    @abstractmethod
    def reference(self) -> NDArray[Any]:
        """Return what `output` should be, in the same shape and a precision at least twice the problem's."""

    def closeness(self, first: Plan, *, atol: float, rtol: float) -> Callable[[Plan], bool] | None:
        """Return a quick test of plans, or None where there is none better than comparing outputs.

        The test runs a plan on the check operands and returns True only when `output` of it would surely be within
        `atol + rtol * |expected|` of that of `first`, in each element, and nothing was written beside it; False tells
        nothing. Both raise `LaunchError` when a plan fails.
        """
        del first, atol, rtol
        return None


class Backend(ABC):
    """One library family on one kind of device; see the module for the rules."""

    name: ClassVar[str]
    sources: ClassVar[tuple[str, ...]]
    """Providers of candidates that `SOURCES` can name."""
    captures: ClassVar[bool] = False
    """Whether the device has graph capture, so that calls which are not settled must ask each time."""

    @abstractmethod
    def current_device(self) -> str:
        """Return the device that a product runs on when nothing else is said: an ordinal, or `cpu`."""

    @abstractmethod
    def validators(self, device: str) -> tuple[Validator, ...]:
        """Return the facts about this build and `device` that a winner depends on; cheap after the first call."""

    @abstractmethod
    def is_tunable(self, problem: GemmProblem, families: str) -> bool:
        """Return whether the problem belongs to the tunable family, `families` being `plan` or `all`."""

    @abstractmethod
    def first_choice(self, problem: GemmProblem) -> Plan:
        """Return what the library would run by itself."""

    def deterministic_choice(self, problem: GemmProblem) -> Plan:
        """Return what takes the first choice's place where sums must keep their order: the first choice if its do.

        Else the first of the library's own candidates whose sums do, and the first choice all the same without any.
        """
        first = self.first_choice(problem)
        if first.is_deterministic:
            return first
        return next(iter(self.candidates(problem, CandidateQuery(breadth="heuristic", deterministic=True))), first)

    def fixed_dispatch(self, problem: GemmProblem) -> Plan:
        """Return what runs a problem outside the tunable family; the first choice unless there is something better."""
        return self.first_choice(problem)

    def library_choices(self, problem: GemmProblem) -> Sequence[Plan]:
        """Return what in-process selection times while the feature is off; the first choice comes first.

        A backend whose library offers one way only returns that alone, and nothing is timed.
        """
        return (self.first_choice(problem),)

    @abstractmethod
    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterable[Plan]:
        """Yield plans that differ from the first choice, most promising first; each is built and checked."""

    def neighbours(self, problem: GemmProblem, plan: Plan, query: CandidateQuery) -> Iterable[Plan | Pending]:
        """Yield plans that are one step away from a plan of the problem, most promising first.

        Each is built and checked, and the query allows it, as for `candidates`; it may be offered by several plans, and
        be the first choice. Asked for lazily, since there may be hundreds; where the next is still being made `Pending`
        comes, and the next answer may be the plan. Nothing, unless there are steps to take.
        """
        del problem, plan, query
        return ()

    @abstractmethod
    def rebuild(self, problem: GemmProblem, kernel: str) -> Plan:
        """Return the plan that `kernel` names.

        Raises
        ------
        KernelUnavailableError
            When this build, device or problem cannot run it; the message is the reason.
        """

    @abstractmethod
    def default_rotating_bytes(self, device: str) -> int:
        """Return the pool that operands rotate through unless told: twice the last private cache of `device`."""

    @abstractmethod
    def open_trial(self, problem: GemmProblem, *, rotating_bytes: int) -> AbstractContextManager[Trial]:
        """Return a trial whose operands rotate through `rotating_bytes`, bounded by free memory; 0 turns that off."""

    def is_capturing(self, stream: int | None, device: str | None = None) -> bool:
        """Return whether a graph capture is live on `stream`, or anywhere that would make measuring unsafe.

        The stream is one of `device`, which need not be the current one; None for that.
        """
        del stream, device
        return False

    def is_idle(self, device: str) -> bool:
        """Return whether measuring in the background would neither disturb the device's callers nor be disturbed.

        Asked on a thread that never multiplies; disturbs no stream and no capture, and takes nothing. False while
        a capture is seen.
        """
        del device
        return True

    def note_call(self, device: str, stream: int | None) -> None:
        """Remember that a caller has just enqueued work on the stream, for `is_idle`; raises nothing."""
        del device, stream

    def beside_captures(self) -> AbstractContextManager[None]:
        """Return what a thread holds while it measures and other threads may capture graphs."""
        return nullcontext()

    def clocks(self, device: str) -> dict[str, int] | None:
        """Return the clocks of the device now, in MHz by name, None where they cannot be read; raises nothing."""
        del device
        return None
