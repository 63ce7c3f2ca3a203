"""Asking the library for algorithms: its own list, and the union of what it answers to many questions."""

from collections.abc import Iterator
from ctypes import addressof, c_int32, sizeof

from tensorplay.backends.cublaslt.algorithm import read_kernel_id
from tensorplay.backends.cublaslt.attributes import HeuristicResult
from tensorplay.backends.cublaslt.descriptors import Preference
from tensorplay.backends.cublaslt.library import cublaslt
from tensorplay.backends.cublaslt.operation import Operation
from tensorplay.backends.cublaslt.status import NOT_SUPPORTED, library_error, reason_of
from tensorplay.errors import LaunchError
from tensorplay.gemm import LtKernelId

__all__ = ["LIBRARY_COUNT", "library_list", "wide_list"]

LIBRARY_COUNT = 8
"""Candidates of one plain query: what the library's users ask for by habit."""

_WIDE_COUNT = 64
_MIB = 1 << 20
_WORKSPACES_MIB = (0, 1, 4, 16, 32, 64)
# Masks of reduction schemes that an answer may use: none is 0, in place 1, in the compute type 2, in the output's 4.
# Sums in place are in the output's type as well.
_ALL, _NONE, _IN_PLACE, _COMPUTE_TYPE, _OUTPUT_TYPE = 7, 0, 1, 2, 4
_NARROW_BYTES = 2
_LIBRARY_ALIGNMENT = 256


def library_list(
    handle: int, operation: Operation, *, workspace_bytes: int, deterministic: bool = False
) -> list[LtKernelId]:
    """Return the library's own list for the problem, best first by its own estimate; empty when it has nothing.

    Where results have 16 bits or fewer, split sums whose parts are rounded to these are not asked for: with many
    parts they are off by tens of roundings, and the first answer is run unchecked.

    Raises
    ------
    LaunchError
        When the library fails to answer, as it may under a graph capture.
    """
    mask = _masks(operation, limit=workspace_bytes, deterministic=deterministic)[0]
    return _query(handle, operation, LIBRARY_COUNT, workspace_bytes, mask, operation.problem.alignment)


def wide_list(
    handle: int, operation: Operation, *, workspace_bytes: int, deterministic: bool = False
) -> Iterator[LtKernelId]:
    """Yield what the library answers to all combinations of limits, each algorithm once, its own list first.

    What `library_list` does not ask for is not asked for here either.
    """
    seen: set[LtKernelId] = set()
    problem = operation.problem
    # The library's plain assumption of 256 bytes brings others forward; who needs more than 16 is told by the caller.
    alignments = (problem.alignment, _LIBRARY_ALIGNMENT) if problem.alignment == 16 else (problem.alignment,)
    limits = {workspace_bytes: None}
    limits |= {mib * _MIB: None for mib in _WORKSPACES_MIB if mib * _MIB < workspace_bytes}
    for alignment in alignments:
        for limit in limits:
            for mask in _masks(operation, limit=limit, deterministic=deterministic):
                for kernel_id in _query(handle, operation, _WIDE_COUNT, limit, mask, alignment):
                    if kernel_id not in seen:
                        seen.add(kernel_id)
                        yield kernel_id


def _masks(operation: Operation, *, limit: int, deterministic: bool) -> tuple[int, ...]:
    """Return the masks to ask with, the one that allows most first."""
    if deterministic:
        return (_NONE,)
    if (operation.problem.out_dtype or operation.problem.dtype).itemsize <= _NARROW_BYTES:
        return (_COMPUTE_TYPE, _NONE)
    if limit == 0:
        return (_ALL, _NONE)
    return (_ALL, _NONE, _COMPUTE_TYPE, _IN_PLACE, _OUTPUT_TYPE)


def _query(
    handle: int, operation: Operation, count: int, workspace_bytes: int, mask: int, alignment: int
) -> list[LtKernelId]:
    preference = Preference(workspace_bytes=workspace_bytes, reduction_mask=mask, alignment=alignment)
    results, found = (HeuristicResult * count)(), c_int32()
    try:
        cublaslt().matmul_algo_get_heuristic(
            handle,
            operation.descriptor.handle,
            operation.a.handle,
            operation.b.handle,
            operation.c.handle,
            operation.d.handle,
            preference.handle,
            count,
            addressof(results),
            addressof(found),
        )
    except library_error() as error:
        if int(getattr(error, "status", 0)) == NOT_SUPPORTED:
            return []
        raise LaunchError(f"cuBLASLt's heuristic failed: {reason_of(error)}") from error
    finally:
        preference.close()
    start, step = addressof(results), sizeof(HeuristicResult)
    return [read_kernel_id(start + place * step) for place in range(found.value) if results[place].state == 0]
