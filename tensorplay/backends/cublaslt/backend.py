"""The NVIDIA backend: products of matrices in device memory, by cuBLASLt's algorithms and further sources."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import ClassVar

from tensorplay.backends.base import Backend, CandidateQuery, Plan, Trial
from tensorplay.backends.cublaslt.algorithm import Algorithm
from tensorplay.backends.cublaslt.capture import is_any_capture_seen
from tensorplay.backends.cublaslt.classic import classic_plan
from tensorplay.backends.cublaslt.classic_source import CLASSIC, ClassicSource
from tensorplay.backends.cublaslt.clocks import clocks
from tensorplay.backends.cublaslt.device import current_ordinal, relaxed_capture
from tensorplay.backends.cublaslt.device import device as cuda_device
from tensorplay.backends.cublaslt.families import is_tunable_problem
from tensorplay.backends.cublaslt.gemv import gemv_plan
from tensorplay.backends.cublaslt.idle import is_idle, note_call
from tensorplay.backends.cublaslt.offers import (
    checked_algorithm,
    first_algorithm,
    library_algorithms,
    wide_algorithms,
)
from tensorplay.backends.cublaslt.operation import Operation
from tensorplay.backends.cublaslt.plan import algorithm_plan, library_plan, workspace_ceiling
from tensorplay.backends.cublaslt.plan_cache import PlanCache
from tensorplay.backends.cublaslt.source import further_sources
from tensorplay.backends.cublaslt.trial import cuda_trial
from tensorplay.backends.cublaslt.validators import device_validators
from tensorplay.backends.cublaslt.workspace import workspaces
from tensorplay.database.record import Validator
from tensorplay.errors import KernelIdError, KernelUnavailableError, LaunchError, OperandError
from tensorplay.gemm import DEFAULT, GemmProblem, HostKernelId, LtKernelId, SourceKernelId, parse_kernel_id
from tensorplay.locks import imported
from tensorplay.typing import Pending

__all__ = ["CublasLtBackend"]


class CublasLtBackend(Backend):
    """Multiplies matrices in device memory; `plan.run` takes addresses, as `tensorplay.backends.cublaslt.plan` says.

    Plans are kept, so that a product which was resolved before a graph capture needs no question to the library
    under it.
    """

    name = "cublaslt"
    sources: ClassVar[tuple[str, ...]] = ("cublaslt", "cublas", "skinny")
    captures = True

    def __init__(self) -> None:
        self._cache = PlanCache()

    def current_device(self) -> str:
        """Return the ordinal of the thread's current device."""
        return str(current_ordinal())

    def validators(self, device: str) -> tuple[Validator, ...]:
        """Return device model, and version and identity of the loaded library."""
        return device_validators(int(device))

    def is_tunable(self, problem: GemmProblem, families: str) -> bool:
        """Return whether the problem is tuned; `families.is_tunable_problem` lists what is."""
        return is_tunable_problem(problem, families)

    def first_choice(self, problem: GemmProblem) -> Plan:
        """Return cuBLASLt's first answer for the problem.

        Where it fails to answer, as it may under a graph capture, the library chooses in each call, under the name
        `Default`. Where cuBLASLt has nothing, it is the classic call, named `cublas` where that alone does it.

        Raises
        ------
        OperandError
            When no library multiplies such operands; the message is the reason.
        """
        return self._cache.plan("first", problem, lambda: self._first_choice(problem))

    def deterministic_choice(self, problem: GemmProblem) -> Plan:
        """Return the first choice if it splits no sum, else cuBLASLt's first answer that splits none.

        It is the first choice all the same where cuBLASLt has no such answer.
        """
        return self._cache.plan("deterministic", problem, lambda: self._deterministic_choice(problem))

    def fixed_dispatch(self, problem: GemmProblem) -> Plan:
        """Return what runs a product of no tunable family: a kernel of ours, classic cuBLAS, or the first choice.

        Half precision of one row or one column runs on a kernel of ours; half precision, complex numbers and stacks
        on classic cuBLAS, unless they have an epilogue that only cuBLASLt has.
        """
        return self._cache.plan("fixed", problem, lambda: self._fixed_dispatch(problem))

    def library_choices(self, problem: GemmProblem) -> Sequence[Plan]:
        """Return the library's own list for the problem, its first answer first."""
        first = self.first_choice(problem)
        if not isinstance(parse_kernel_id(first.kernel), LtKernelId):
            return (first,)
        operation = self._cache.operation(problem)
        listed = library_algorithms(operation, ceiling=workspace_ceiling(problem))
        return (first, *(algorithm_plan(operation, each) for each in listed if str(each.kernel_id) != first.kernel))

    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterator[Plan]:
        """Yield plans other than the first choice, cuBLASLt's before those of the further sources.

        Of cuBLASLt `heuristic` offers the library's list, and nothing else takes part; `wide` and `search` offer the
        union of many queries. Kernels that need operands better aligned than the problem's are left out.
        """
        first = self.first_choice(problem).kernel
        is_heuristic = query.breadth == "heuristic"
        sources = () if is_heuristic else tuple(further_sources().items())
        # Asked for first, since some are compiled while cuBLASLt's are tried.
        further = [source.candidates(problem, query) for name, source in sources if _takes_part(name, query)]
        if _takes_part(self.name, query) and first != DEFAULT:
            yield from (plan for plan in self._offered(problem, query) if plan.kernel != first)
        for plans in further:
            yield from (plan for plan in plans if plan.kernel != first)

    def neighbours(self, problem: GemmProblem, plan: Plan, query: CandidateQuery) -> Iterator[Plan | Pending]:
        """Yield plans of the same source that differ from a plan of the problem in little; none for `Default`."""
        kernel_id = parse_kernel_id(plan.kernel)
        if isinstance(kernel_id, LtKernelId) and _takes_part(self.name, query):
            module = imported("tensorplay.backends.cublaslt.neighbours")
            operation = self._cache.operation(problem)
            ceiling = min(query.workspace_bytes, workspace_ceiling(problem))
            yield from _plans(
                operation,
                module.neighbour_algorithms(operation, kernel_id, ceiling=ceiling, deterministic=query.deterministic),
            )
        elif isinstance(kernel_id, SourceKernelId) and _takes_part(kernel_id.source, query):
            yield from further_sources()[kernel_id.source].neighbours(problem, kernel_id, query)

    def rebuild(self, problem: GemmProblem, kernel: str) -> Plan:
        """Return the plan that `kernel` names; `Default` names the first choice."""
        try:
            kernel_id = parse_kernel_id(kernel)
        except KernelIdError as error:
            raise KernelUnavailableError(str(error)) from error
        if kernel_id is None:
            return self.first_choice(problem)
        if isinstance(kernel_id, HostKernelId):
            raise KernelUnavailableError(f"{kernel} runs on the host, this is a GPU")
        return self._cache.plan(kernel, problem, lambda: (self._rebuilt(problem, kernel_id), True))

    def default_rotating_bytes(self, device: str) -> int:
        """Return twice the second-level cache of the device."""
        return 2 * cuda_device(int(device)).l2_bytes

    def open_trial(self, problem: GemmProblem, *, rotating_bytes: int) -> AbstractContextManager[Trial]:
        """Return a trial on random operands; entering it raises `MemoryError` when these would not fit."""
        return cuda_trial(problem, rotating_bytes=rotating_bytes)

    def is_capturing(self, stream: int | None, device: str | None = None) -> bool:
        """Return whether a capture is live on the stream, or where it can be seen; `capture` says what cannot."""
        return is_any_capture_seen(stream, None if device is None else int(device))

    def is_idle(self, device: str) -> bool:
        """Return whether the callers' work on the device is done, and no capture is seen."""
        return is_idle(int(device))

    def note_call(self, device: str, stream: int | None) -> None:
        """Remember that a caller has just enqueued work on the stream."""
        note_call(int(device), stream)

    def beside_captures(self) -> AbstractContextManager[None]:
        """Return relaxed capture mode, in which what this thread does invalidates no other thread's capture."""
        return relaxed_capture()

    def clocks(self, device: str) -> dict[str, int] | None:
        """Return the clocks of the device now, in MHz, None where they cannot be read."""
        return clocks(int(device))

    def forget_plans(self) -> None:
        """Let go of all plans kept here; those in use elsewhere live on."""
        self._cache.clear()

    def _first_choice(self, problem: GemmProblem) -> tuple[Plan, bool]:
        """Return the plan, and whether it may be kept."""
        try:
            operation = self._cache.operation(problem)
        except KernelUnavailableError as error:
            return _classic(problem, error), True
        _prepare(operation)
        try:
            algorithm = first_algorithm(operation, ceiling=workspace_ceiling(problem))
        except LaunchError:
            return library_plan(operation), False
        if algorithm is not None:
            return algorithm_plan(operation, algorithm), True
        return _classic(problem, KernelUnavailableError("cuBLASLt has no kernel for it")), True

    def _deterministic_choice(self, problem: GemmProblem) -> tuple[Plan, bool]:
        first = self.first_choice(problem)
        if first.is_deterministic or not isinstance(parse_kernel_id(first.kernel), LtKernelId):
            # The library's choice in each call, for want of an answer, is not to be kept.
            return first, first.kernel != DEFAULT
        operation = self._cache.operation(problem)
        try:
            algorithm = first_algorithm(operation, ceiling=workspace_ceiling(problem), deterministic=True)
        except LaunchError:
            return first, False
        return (first if algorithm is None else algorithm_plan(operation, algorithm)), True

    def _fixed_dispatch(self, problem: GemmProblem) -> tuple[Plan, bool]:
        is_plain = not problem.bias and problem.activation == "none"
        if is_plain and (problem.dtype.name in _CLASSIC_TYPES or problem.batch > 1):
            for offer in (gemv_plan, classic_plan):
                try:
                    return offer(problem), True
                except (KernelUnavailableError, LaunchError):
                    # The second where a kernel of ours does not compile here.
                    continue
        return self.first_choice(problem), False

    def _offered(self, problem: GemmProblem, query: CandidateQuery) -> Iterator[Plan]:
        """Yield plans of what cuBLASLt offers, nothing where it does not know such products."""
        try:
            operation = self._cache.operation(problem)
        except KernelUnavailableError:
            return
        ceiling = min(query.workspace_bytes, workspace_ceiling(problem))
        ask = library_algorithms if query.breadth == "heuristic" else wide_algorithms
        yield from _plans(operation, ask(operation, ceiling=ceiling, deterministic=query.deterministic))

    def _rebuilt(self, problem: GemmProblem, kernel_id: LtKernelId | SourceKernelId) -> Plan:
        if isinstance(kernel_id, SourceKernelId):
            return further_sources()[kernel_id.source].rebuild(problem, kernel_id)
        operation = self._cache.operation(problem)
        _prepare(operation)
        return algorithm_plan(operation, checked_algorithm(operation, kernel_id, ceiling=workspace_ceiling(problem)))


def _takes_part(source: str, query: CandidateQuery) -> bool:
    return query.sources is None or source in query.sources


def _plans(operation: Operation, algorithms: Iterable[Algorithm]) -> Iterator[Plan]:
    """Yield the plans of algorithms that run on operands aligned as the problem's are."""
    for algorithm in algorithms:
        if algorithm.alignment <= operation.problem.alignment:
            yield algorithm_plan(operation, algorithm)


def _classic(problem: GemmProblem, reason: KernelUnavailableError) -> Plan:
    """Return the classic call's plan; where it cannot do it either, cuBLASLt's reason is told."""
    try:
        return ClassicSource().rebuild(problem, CLASSIC)
    except KernelUnavailableError:
        pass
    try:
        return classic_plan(problem)
    except KernelUnavailableError as error:
        raise OperandError(f"no library multiplies this on a GPU: {reason}; {error}") from reason


_CLASSIC_TYPES = frozenset({"float16", "bfloat16", "complex64", "complex128"})


def _prepare(operation: Operation) -> None:
    """Make a workspace ready for a stream that will be captured, since under the capture it is too late."""
    workspaces(int(operation.problem.device)).prepare()
