"""A backend that says what it is about to run, leaves known killers out, and notices when its device is lost.

A bad kernel may kill its process, hang it, or poison the device's context so that every later launch fails. Whoever
watches the process then knows the last kernel that was announced.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from numpy.typing import NDArray

from tensorplay.backends.base import Backend, CandidateQuery, Plan, Trial
from tensorplay.database.record import Validator
from tensorplay.errors import KernelUnavailableError, LaunchError
from tensorplay.gemm import GemmProblem, Signature, signature_of
from tensorplay.typing import Pending, Timer

__all__ = ["Announce", "GuardedBackend", "Lost"]

T = TypeVar("T")

Announce = Callable[[str], None]
"""Takes the kernel id of what runs next."""

Lost = Callable[[str, Exception], None]
"""Takes the kernel after which nothing runs any more, and what said so; it should end the process."""

Killers = frozenset[tuple[Signature, str]]


class GuardedBackend(Backend):
    """Another backend, watched.

    Parameters
    ----------
    backend : Backend
        Who does the work.
    killers : frozenset of (Signature, str)
        Kernels that are never run for a signature.
    announce : callable
        Called before each kernel is run in a trial.
    lost : callable
        Called when a kernel failed and the first choice, which ran before, fails since.
    """

    def __init__(self, backend: Backend, *, killers: Killers, announce: Announce, lost: Lost) -> None:
        self._backend = backend
        self._killers = killers
        self._announce = announce
        self._lost = lost
        # Class variables of a backend, so they are set where instances are looked up first.
        self.name, self.sources, self.captures = backend.name, backend.sources, backend.captures  # type: ignore[misc] # a wrapper has those of what it wraps

    def current_device(self) -> str:
        """Return the wrapped backend's."""
        return self._backend.current_device()

    def validators(self, device: str) -> tuple[Validator, ...]:
        """Return the wrapped backend's."""
        return self._backend.validators(device)

    def is_tunable(self, problem: GemmProblem, families: str) -> bool:
        """Return what the wrapped backend says."""
        return self._backend.is_tunable(problem, families)

    def first_choice(self, problem: GemmProblem) -> Plan:
        """Return the wrapped backend's."""
        return self._backend.first_choice(problem)

    def deterministic_choice(self, problem: GemmProblem) -> Plan:
        """Return the wrapped backend's."""
        return self._backend.deterministic_choice(problem)

    def fixed_dispatch(self, problem: GemmProblem) -> Plan:
        """Return the wrapped backend's."""
        return self._backend.fixed_dispatch(problem)

    def library_choices(self, problem: GemmProblem) -> Sequence[Plan]:
        """Return the wrapped backend's."""
        return self._backend.library_choices(problem)

    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterable[Plan]:
        """Yield the wrapped backend's, without killers."""
        killers = self._killers_of(problem)
        return (plan for plan in self._backend.candidates(problem, query) if plan.kernel not in killers)

    def neighbours(self, problem: GemmProblem, plan: Plan, query: CandidateQuery) -> Iterable[Plan | Pending]:
        """Yield the wrapped backend's, without killers."""
        killers, found = self._killers_of(problem), self._backend.neighbours(problem, plan, query)
        return (each for each in found if isinstance(each, Pending) or each.kernel not in killers)

    def rebuild(self, problem: GemmProblem, kernel: str) -> Plan:
        """Return the wrapped backend's; a killer is not available."""
        if kernel in self._killers_of(problem):
            raise KernelUnavailableError(f"{kernel} took down the process that measured it")
        return self._backend.rebuild(problem, kernel)

    def default_rotating_bytes(self, device: str) -> int:
        """Return the wrapped backend's."""
        return self._backend.default_rotating_bytes(device)

    def is_capturing(self, stream: int | None, device: str | None = None) -> bool:
        """Return what the wrapped backend says."""
        return self._backend.is_capturing(stream, device)

    def is_idle(self, device: str) -> bool:
        """Return what the wrapped backend says."""
        return self._backend.is_idle(device)

    def note_call(self, device: str, stream: int | None) -> None:
        """Let the wrapped backend remember it."""
        self._backend.note_call(device, stream)

    def beside_captures(self) -> AbstractContextManager[None]:
        """Return the wrapped backend's."""
        return self._backend.beside_captures()

    def clocks(self, device: str) -> dict[str, int] | None:
        """Return the wrapped backend's."""
        return self._backend.clocks(device)

    @contextmanager
    def open_trial(self, problem: GemmProblem, *, rotating_bytes: int) -> Iterator[Trial]:
        """Return the wrapped backend's, watched."""
        first = self._backend.first_choice(problem)
        with self._backend.open_trial(problem, rotating_bytes=rotating_bytes) as trial:
            yield _GuardedTrial(trial, _Guard(trial, first, self._announce, self._lost))

    def _killers_of(self, problem: GemmProblem) -> frozenset[str]:
        # Once for all candidates: a search sees thousands of them.
        signature = signature_of(problem)
        return frozenset(kernel for killed, kernel in self._killers if killed == signature)


class _Guard:
    """Runs one thing for one plan: announced before, and looked at when it fails."""

    def __init__(self, trial: Trial, first: Plan, announce: Announce, lost: Lost) -> None:
        self._trial = trial
        self._first = first
        self._announce = announce
        self._lost = lost

    def run(self, plans: Sequence[Plan], action: Callable[[], T]) -> T:
        for plan in plans:
            self._announce(plan.kernel)
        try:
            return action()
        except LaunchError:
            suspects = [plan.kernel for plan in plans if plan.kernel != self._first.kernel]
            if len(suspects) == 1:
                self._probe(suspects[0])
            raise

    def _probe(self, suspect: str) -> None:
        try:
            self._trial.output(self._first)
        except Exception as error:  # noqa: BLE001 - whatever it is, the first choice ran before
            self._lost(suspect, error)


class _GuardedTrial(Trial):
    def __init__(self, trial: Trial, guard: _Guard) -> None:
        self._trial = trial
        self._guard = guard
        self.timer = _GuardedTimer(trial.timer, guard)

    def output(self, plan: Plan) -> NDArray[Any]:
        return self._guard.run([plan], lambda: self._trial.output(plan))

    def reference(self) -> NDArray[Any]:
        return self._trial.reference()

    def closeness(self, first: Plan, *, atol: float, rtol: float) -> Callable[[Plan], bool] | None:
        is_close = self._trial.closeness(first, atol=atol, rtol=rtol)
        if is_close is None:
            return None
        return lambda plan: self._guard.run([plan], lambda: is_close(plan))


class _GuardedTimer:
    def __init__(self, timer: Timer[Plan], guard: _Guard) -> None:
        self._timer = timer
        self._guard = guard

    def warm_up(self, candidate: Plan) -> None:
        self._guard.run([candidate], lambda: self._timer.warm_up(candidate))

    def screen(self, candidate: Plan, launches: int) -> float:
        return self._guard.run([candidate], lambda: self._timer.screen(candidate, launches))

    def sample(self, order: Sequence[Plan]) -> Sequence[float]:
        return self._guard.run(order, lambda: self._timer.sample(order))

    def sample_launches(self, candidate: Plan) -> int:
        return self._timer.sample_launches(candidate)
