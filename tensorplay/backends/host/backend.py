"""The host backend: products of NumPy arrays on this machine's processors."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from itertools import islice
from typing import ClassVar

import numpy as np

from tensorplay.backends.base import Backend, CandidateQuery, Plan, Trial
from tensorplay.backends.host.dtypes import is_half, numpy_dtype
from tensorplay.backends.host.kernels import SOURCES, build_kernel
from tensorplay.backends.host.layout import out_layout
from tensorplay.backends.host.library import numpy_blas
from tensorplay.backends.host.machine import cpu_model, private_cache_bytes, usable_cpus
from tensorplay.backends.host.offers import MOST_OFFERED, offers
from tensorplay.backends.host.steps import steps
from tensorplay.backends.host.trial import host_trial
from tensorplay.database.record import Validator
from tensorplay.errors import KernelIdError, KernelUnavailableError
from tensorplay.gemm import GemmProblem, HostKernelId, parse_kernel_id
from tensorplay.gemm.problem import CPU

__all__ = ["HostBackend"]

_FIRST_CHOICE = str(HostKernelId("numpy"))
_MIB = 1 << 20


class HostBackend(Backend):
    """Multiplies NumPy arrays by NumPy's BLAS, SciPy's and MKL, in ways that differ.

    Kernels compute the plain product: alpha, beta and bias are applied afterwards, the same for every candidate,
    so they tell problems apart but not kernels. Operands of a stack are three-dimensional; one that is shared
    has the stride 0.
    """

    name = "host"
    sources: ClassVar[tuple[str, ...]] = SOURCES

    def current_device(self) -> str:
        """Return `cpu`."""
        return CPU

    def validators(self, device: str) -> tuple[Validator, ...]:
        """Return processor and BLAS, with the numbers of cores and threads: winners of other numbers are slow.

        NumPy's version is part of the second, since the dispatch around BLAS ships there.
        """
        del device
        return _validators()

    def is_tunable(self, problem: GemmProblem, families: str) -> bool:
        """Return whether the host tunes the problem.

        `plan`: single products of float32 and float64, and of the half types with a bias. `all`: half types
        without one, stacks and complex numbers too.
        """
        is_plain_result = problem.activation == "none" and problem.out_dtype is problem.accumulation is None
        if problem.device != CPU or not is_plain_result or not out_layout(problem).is_injective:
            return False
        try:
            numpy_dtype(problem.dtype)
        except KernelUnavailableError:
            return False
        if families == "all":
            return True
        is_planned = problem.bias if is_half(problem.dtype) else problem.dtype.name in {"float32", "float64"}
        return problem.batch == 1 and is_planned

    def first_choice(self, problem: GemmProblem) -> Plan:
        """Return `numpy.matmul` itself."""
        return Plan(problem, _FIRST_CHOICE, np.matmul)

    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterator[Plan]:
        """Yield other ways to multiply; none changes its order of summation from run to run except MKL's.

        MKL promises the same bits only for operands of the same alignment, so `deterministic` leaves it out.
        """
        return islice(_plans(problem, offers(problem, query.breadth), query), MOST_OFFERED[query.breadth])

    def neighbours(self, problem: GemmProblem, plan: Plan, query: CandidateQuery) -> Iterator[Plan]:
        """Yield plans of the same source with other blocks, thread counts or copies, and the transposed product."""
        kernel = parse_kernel_id(plan.kernel)
        return _plans(problem, steps(kernel, problem), query) if isinstance(kernel, HostKernelId) else iter(())

    def rebuild(self, problem: GemmProblem, kernel: str) -> Plan:
        """Return the plan that `kernel` names; `Default` names the first choice."""
        try:
            parsed = parse_kernel_id(kernel)
        except KernelIdError as error:
            raise KernelUnavailableError(str(error)) from error
        if parsed is None:
            return self.first_choice(problem)
        if not isinstance(parsed, HostKernelId):
            raise KernelUnavailableError(f"{kernel} runs on a GPU, this is the host")
        run, workspace_bytes = build_kernel(parsed, problem)
        if not _fits(problem, workspace_bytes):
            raise KernelUnavailableError(
                f"takes {workspace_bytes} bytes of scratch memory, the problem allows {problem.workspace_mib} MiB"
            )
        return Plan(problem, kernel, run, workspace_bytes, _keeps_order(parsed))

    def default_rotating_bytes(self, device: str) -> int:
        """Return twice a core's second-level cache."""
        del device
        return 2 * private_cache_bytes()

    def open_trial(self, problem: GemmProblem, *, rotating_bytes: int) -> AbstractContextManager[Trial]:
        """Return a trial on random operands; entering it raises `MemoryError` when these would not fit."""
        return host_trial(problem, rotating_bytes=rotating_bytes)


@cache
def _validators() -> tuple[Validator, ...]:
    blas = numpy_blas()
    library = f"{blas.name} {blas.version} {blas.threading} {blas.architecture} {blas.threads} threads"
    return (
        Validator("HOST_CPU", f"{cpu_model()}, {usable_cpus()} cores"),
        Validator("HOST_BLAS", f"{library}, numpy {np.__version__}"),
    )


def _plans(problem: GemmProblem, kernels: Iterable[HostKernelId], query: CandidateQuery) -> Iterator[Plan]:
    """Yield the plans of kernels that are available and that the query allows."""
    for kernel in kernels:
        if query.sources is not None and kernel.source not in query.sources:
            continue
        if query.deterministic and not _keeps_order(kernel):
            continue
        try:
            run, workspace_bytes = build_kernel(kernel, problem)
        except KernelUnavailableError:
            continue
        if workspace_bytes <= query.workspace_bytes and _fits(problem, workspace_bytes):
            yield Plan(problem, str(kernel), run, workspace_bytes, _keeps_order(kernel))


def _keeps_order(kernel: HostKernelId) -> bool:
    return kernel.source != "mkl"


def _fits(problem: GemmProblem, workspace_bytes: int) -> bool:
    return problem.workspace_mib is None or workspace_bytes <= problem.workspace_mib * _MIB
