"""A kernel made for one problem, and what all kernels do about the result that they are given."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tensorplay.backends.base import Run
from tensorplay.backends.host.dtypes import numpy_dtype, result_dtype
from tensorplay.backends.host.layout import new_output
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem

__all__ = [
    "Array",
    "Build",
    "Kernel",
    "Multiply",
    "guarded",
    "require",
    "require_aligned",
    "require_plain_result",
    "require_single",
]

# Elements may be of any type that the problem names, so nothing can be said about them statically.
Array = NDArray[Any]
Multiply = Callable[[Array, Array, Array], object]

_empty = np.empty
_may_share_memory = np.may_share_memory


class Kernel(NamedTuple):
    """`run(left, right, out)` as `numpy.matmul` takes them, and the scratch memory that one run needs."""

    run: Run
    workspace_bytes: int = 0


Build = Callable[[GemmProblem], Kernel]
"""Makes the kernel of a part of a problem; `KernelUnavailableError` when it cannot."""


def require(*, holds: bool, reason: str) -> None:
    """Raise `KernelUnavailableError` for the reason unless it holds."""
    if not holds:
        raise KernelUnavailableError(reason)


def require_single(problem: GemmProblem, kernel: str) -> None:
    """Raise `KernelUnavailableError` for a stack of products."""
    require(holds=problem.batch == 1, reason=f"{kernel} multiplies one pair, the problem has {problem.batch}")


def require_aligned(problem: GemmProblem, kernel: str) -> None:
    """Raise `KernelUnavailableError` where an operand may begin in the middle of an element."""
    item = problem.dtype.itemsize // (2 if problem.dtype.is_complex else 1)
    require(
        holds=problem.alignment >= item,
        reason=f"{kernel} needs operands aligned to {item} bytes, the problem's are to {problem.alignment}",
    )


def require_plain_result(problem: GemmProblem, kernel: str) -> None:
    """Raise `KernelUnavailableError` where `numpy.matmul` makes results of another type than its operands."""
    require(
        holds=result_dtype(problem.dtype) == numpy_dtype(problem.dtype),
        reason=f"{kernel} makes results of {problem.dtype.name}, numpy.matmul of {result_dtype(problem.dtype)}",
    )


def guarded(problem: GemmProblem, multiply: Multiply) -> Run:
    """Return `multiply`, which overwrites a result that lies as the problem says, safe for every result.

    As `numpy.matmul` does it: no result given, a new one is made; a read-only one is refused with `ValueError`
    before anything is written; one that shares memory with an operand is written when the product is complete.
    """
    shape = (problem.m, problem.n) if problem.batch == 1 else (problem.batch, problem.m, problem.n)
    dtype = result_dtype(problem.dtype)
    is_dense = problem.ld_out is None and problem.stride_out is None

    def run(left: Array, right: Array, out: Array | None = None) -> Array:
        if out is None:
            fresh = _empty(shape, dtype) if is_dense else new_output(problem, dtype)
            multiply(left, right, fresh)
            return fresh if is_dense else np.ascontiguousarray(fresh)
        if not out.flags.writeable:
            raise ValueError("output array is read-only")
        if _may_share_memory(out, left) or _may_share_memory(out, right):
            out[...] = run(left, right)
        else:
            multiply(left, right, out)
        return out

    return run
