"""A backend that says what it is about to run, leaves known killers out, and notices when its device is lost.

A bad kernel may kill its process, hang it, or poison the device's context so that every later launch fails. Whoever
watches the process then knows what was announced last.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from tensorplay.backends.base import Backend, CandidateQuery, Plan, Trial
from tensorplay.database.record import Validator
from tensorplay.distributed.guarded_trial import Announce, Guard, GuardedTrial, Lost
from tensorplay.distributed.message import NOTHING, Request
from tensorplay.errors import KernelUnavailableError, LaunchError
from tensorplay.gemm import GemmProblem, Signature, signature_of
from tensorplay.typing import Pending

__all__ = ["GuardedBackend"]

Killers = frozenset[tuple[Signature, str]]


class GuardedBackend(Backend):
    """Another backend, watched.

    Parameters
    ----------
    backend : Backend
        Who does the work.
    killers : frozenset of (Signature, str)
        Kernels that are never run for a signature, unless one is its first choice: that runs whatever is recorded.
    announce : callable
        Called before anything is run in a trial, and with `NOTHING` after each trial.
    lost : callable
        Called when the first choice fails, or a trial cannot be opened or closed: then nothing here is worth a result.
    """

    def __init__(self, backend: Backend, *, killers: Killers, announce: Announce, lost: Lost) -> None:
        self._backend = backend
        self._killers = killers
        self._announce = announce
        self._lost = lost
        self._apart: Signature | None = None
        self._deterministic = False
        # Class variables of a backend, so they are set where instances are looked up first.
        self.name, self.sources, self.captures = backend.name, backend.sources, backend.captures  # type: ignore[misc] # a wrapper has those of what it wraps

    def prepare(self, request: Request, *, deterministic: bool) -> None:
        """Heed what a request says of the signature that is measured next.

        Parameters
        ----------
        request : Request
            Its killers are left out too, and it says whether kernels are sampled one at a time.
        deterministic : bool
            Whether others are compared with the deterministic choice.
        """
        self._killers |= {(request.signature, kernel) for kernel in request.killers}
        self._apart = request.signature if request.apart else None
        self._deterministic = deterministic

    def is_killer(self, problem: GemmProblem, kernel: str) -> bool:
        """Return whether a kernel is never run for a problem."""
        return kernel in self._killers_of(problem) and kernel != self._compared_with(problem).kernel

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
        """Return the wrapped backend's; a killer is not available, unless it is the first choice."""
        if self.is_killer(problem, kernel):
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
        first, apart = self._compared_with(problem), signature_of(problem) == self._apart
        harmless: LaunchError | None = None
        try:
            with self._backend.open_trial(problem, rotating_bytes=rotating_bytes) as trial:
                guard = Guard(trial, first, announce=self._announce, lost=self._lost)
                try:
                    yield GuardedTrial(trial, guard, apart=apart)
                except LaunchError as error:
                    guard.probe(NOTHING)
                    harmless = error
                    raise
        except LaunchError as error:
            if error is not harmless:
                # Opening and closing run no candidate: what fails there is the device.
                self._lost(NOTHING, error)
            raise
        finally:
            # Whatever ends the process while it records is no fault of the kernel that ran last.
            self._announce(NOTHING)

    def _compared_with(self, problem: GemmProblem) -> Plan:
        if self._deterministic:
            return self._backend.deterministic_choice(problem)
        return self._backend.first_choice(problem)

    def _killers_of(self, problem: GemmProblem) -> frozenset[str]:
        # Once for all candidates: a search sees thousands of them.
        signature = signature_of(problem)
        return frozenset(kernel for killed, kernel in self._killers if killed == signature)
