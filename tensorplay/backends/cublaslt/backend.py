"""The NVIDIA backend: products of matrices in device memory, by cuBLASLt's algorithms."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import ClassVar

from tensorplay.backends.base import Backend, CandidateQuery, Plan, Trial
from tensorplay.backends.cublaslt.algorithm import required_alignment
from tensorplay.backends.cublaslt.capture import is_any_capture_seen
from tensorplay.backends.cublaslt.classic import classic_plan
from tensorplay.backends.cublaslt.device import current_ordinal
from tensorplay.backends.cublaslt.device import device as cuda_device
from tensorplay.backends.cublaslt.families import is_tunable_problem
from tensorplay.backends.cublaslt.gemv import gemv_plan
from tensorplay.backends.cublaslt.library import library_identity, library_version
from tensorplay.backends.cublaslt.offers import (
    checked_algorithm,
    first_algorithm,
    library_algorithms,
    wide_algorithms,
)
from tensorplay.backends.cublaslt.operation import Operation
from tensorplay.backends.cublaslt.plan import algorithm_plan, library_plan, workspace_ceiling
from tensorplay.backends.cublaslt.plan_cache import PlanCache
from tensorplay.backends.cublaslt.trial import cuda_trial
from tensorplay.backends.cublaslt.workspace import workspaces
from tensorplay.database.record import Validator
from tensorplay.errors import KernelIdError, KernelUnavailableError, LaunchError, OperandError
from tensorplay.gemm import DEFAULT, GemmProblem, LtKernelId, parse_kernel_id

__all__ = ["CublasLtBackend"]


class CublasLtBackend(Backend):
    """Multiplies matrices in device memory; `plan.run` takes addresses, as `tensorplay.backends.cublaslt.plan` says.

    Plans are kept, so that a product which was resolved before a graph capture needs no question to the library
    under it.
    """

    name = "cublaslt"
    sources: ClassVar[tuple[str, ...]] = ("cublaslt",)
    captures = True

    def __init__(self) -> None:
        self._cache = PlanCache()

    def current_device(self) -> str:
        """Return the ordinal of the thread's current device."""
        return str(current_ordinal())

    def validators(self, device: str) -> tuple[Validator, ...]:
        """Return device model, and version and identity of the loaded library."""
        return _validators(int(device))

    def is_tunable(self, problem: GemmProblem, families: str) -> bool:
        """Return whether the problem is tuned; `families.is_tunable_problem` lists what is."""
        return is_tunable_problem(problem, families)

    def first_choice(self, problem: GemmProblem) -> Plan:
        """Return cuBLASLt's first answer for the problem.

        Where it fails to answer, as it may under a graph capture, the library chooses in each call, under the name
        `Default`; so does classic cuBLAS where cuBLASLt has nothing.

        Raises
        ------
        OperandError
            When no library multiplies such operands; the message is the reason.
        """
        return self._cache.plan("first", problem, lambda: self._first_choice(problem))

    def fixed_dispatch(self, problem: GemmProblem) -> Plan:
        """Return what runs a product of no tunable family: a kernel of ours, classic cuBLAS, or the first choice.

        Half precision of one row or one column runs on a kernel of ours; half precision, complex numbers and stacks
        on classic cuBLAS, unless they have an epilogue that only cuBLASLt has.
        """
        return self._cache.plan("fixed", problem, lambda: self._fixed_dispatch(problem))

    def library_choices(self, problem: GemmProblem) -> Sequence[Plan]:
        """Return the library's own list for the problem, its first answer first."""
        first = self.first_choice(problem)
        if first.kernel == DEFAULT:
            return (first,)
        operation = self._cache.operation(problem)
        listed = library_algorithms(operation, ceiling=workspace_ceiling(problem))
        return (first, *(algorithm_plan(operation, each) for each in listed if str(each.kernel_id) != first.kernel))

    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterator[Plan]:
        """Yield checked algorithms other than the first choice: the library's list, or the union of many queries.

        `search` offers what `wide` does. Kernels that need operands better aligned than the problem's are left out.
        """
        first = self.first_choice(problem).kernel
        if first == DEFAULT or (query.sources is not None and self.name not in query.sources):
            return
        operation = self._cache.operation(problem)
        ceiling = min(query.workspace_bytes, workspace_ceiling(problem))
        offered = library_algorithms if query.breadth == "heuristic" else wide_algorithms
        for algorithm in offered(operation, ceiling=ceiling, deterministic=query.deterministic):
            if str(algorithm.kernel_id) != first and required_alignment(algorithm) <= problem.alignment:
                yield algorithm_plan(operation, algorithm)

    def rebuild(self, problem: GemmProblem, kernel: str) -> Plan:
        """Return the plan that `kernel` names; `Default` names the first choice."""
        if kernel == DEFAULT:
            return self.first_choice(problem)
        return self._cache.plan(kernel, problem, lambda: (self._rebuilt(problem, kernel), True))

    def default_rotating_bytes(self, device: str) -> int:
        """Return twice the second-level cache of the device."""
        return 2 * cuda_device(int(device)).l2_bytes

    def open_trial(self, problem: GemmProblem, *, rotating_bytes: int) -> AbstractContextManager[Trial]:
        """Return a trial on random operands; entering it raises `MemoryError` when these would not fit."""
        return cuda_trial(problem, rotating_bytes=rotating_bytes)

    def is_capturing(self, stream: int | None) -> bool:
        """Return whether a capture is live on the stream, or where it can be seen; `capture` says what cannot."""
        return is_any_capture_seen(stream)

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

    def _rebuilt(self, problem: GemmProblem, kernel: str) -> Plan:
        try:
            kernel_id = parse_kernel_id(kernel)
        except KernelIdError as error:
            raise KernelUnavailableError(str(error)) from error
        if not isinstance(kernel_id, LtKernelId):
            raise KernelUnavailableError(f"{kernel} runs on the host, this is a GPU")
        operation = self._cache.operation(problem)
        _prepare(operation)
        return algorithm_plan(operation, checked_algorithm(operation, kernel_id, ceiling=workspace_ceiling(problem)))


def _classic(problem: GemmProblem, reason: KernelUnavailableError) -> Plan:
    """Return the classic call's plan; where it cannot do it either, cuBLASLt's reason is told."""
    try:
        return classic_plan(problem)
    except KernelUnavailableError as error:
        raise OperandError(f"no library multiplies this on a GPU: {reason}; {error}") from reason


_CLASSIC_TYPES = frozenset({"float16", "bfloat16", "complex64", "complex128"})


def _prepare(operation: Operation) -> None:
    """Make a workspace ready for a stream that will be captured, since under the capture it is too late."""
    workspaces(int(operation.problem.device)).prepare()


@cache
def _validators(ordinal: int) -> tuple[Validator, ...]:
    here = cuda_device(ordinal)
    return (
        Validator("CUDA_DEVICE", f"{here.capability[0]}.{here.capability[1]}:{here.name}"),
        Validator("CUBLASLT_VERSION", library_version()),
        Validator("CUBLASLT_LIBRARY", library_identity()),
    )
