"""Algorithms that the library offers for an operation, each rebuilt from its kernel id and checked.

Rebuilt, since that is what another process will run: what is measured is then what is replayed.
"""

from collections.abc import Iterable, Iterator

from tensorplay.backends.cublaslt.algorithm import Algorithm, build, keeps_order
from tensorplay.backends.cublaslt.device import current
from tensorplay.backends.cublaslt.handle import handle_of
from tensorplay.backends.cublaslt.heuristics import library_list, wide_list
from tensorplay.backends.cublaslt.operation import Operation
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import LtKernelId

__all__ = ["checked_algorithm", "first_algorithm", "library_algorithms", "wide_algorithms"]


def checked_algorithm(operation: Operation, kernel_id: LtKernelId, *, ceiling: int) -> Algorithm:
    """Return the algorithm of a kernel id; `KernelUnavailableError`, with the reason, when it does not run here."""
    handle = handle_of(_ordinal(operation))
    with current(_ordinal(operation)):
        return build(handle, operation, kernel_id, ceiling=ceiling)


def first_algorithm(operation: Operation, *, ceiling: int, deterministic: bool = False) -> Algorithm | None:
    """Return the library's first answer, None when it has none; `LaunchError` when it fails to answer."""
    handle = handle_of(_ordinal(operation))
    with current(_ordinal(operation)):
        offered = library_list(handle, operation, workspace_bytes=ceiling, deterministic=deterministic)
        allowed = _allowed(offered, deterministic=deterministic)
        return next(iter(_runnable(handle, operation, allowed, ceiling, most=1)), None)


def library_algorithms(operation: Operation, *, ceiling: int, deterministic: bool = False) -> list[Algorithm]:
    """Return the library's own list, best first by its estimate; `LaunchError` when it fails to answer."""
    handle = handle_of(_ordinal(operation))
    with current(_ordinal(operation)):
        offered = library_list(handle, operation, workspace_bytes=ceiling, deterministic=deterministic)
        return _runnable(handle, operation, _allowed(offered, deterministic=deterministic), ceiling)


def wide_algorithms(operation: Operation, *, ceiling: int, deterministic: bool = False) -> list[Algorithm]:
    """Return the union of many queries, the library's own list first; `LaunchError` when it fails to answer."""
    handle = handle_of(_ordinal(operation))
    with current(_ordinal(operation)):
        offered = wide_list(handle, operation, workspace_bytes=ceiling, deterministic=deterministic)
        return _runnable(handle, operation, _allowed(offered, deterministic=deterministic), ceiling)


def _allowed(kernel_ids: Iterable[LtKernelId], *, deterministic: bool) -> Iterator[LtKernelId]:
    # The mask of reductions that the library is asked with says nothing of kernels that divide sums themselves.
    return (each for each in kernel_ids if not deterministic or keeps_order(each))


def _runnable(
    handle: int, operation: Operation, kernel_ids: Iterable[LtKernelId], ceiling: int, most: int | None = None
) -> list[Algorithm]:
    algorithms: list[Algorithm] = []
    for kernel_id in kernel_ids:
        if len(algorithms) == most:
            break
        try:
            algorithms.append(build(handle, operation, kernel_id, ceiling=ceiling))
        except KernelUnavailableError:
            # An answer that cannot be rebuilt could never be replayed.
            continue
    return algorithms


def _ordinal(operation: Operation) -> int:
    return int(operation.problem.device)
