"""From a host kernel id to the kernel: a way to multiply, and around it what is done to the operands.

The first option may say how to multiply (`dot1`, `outer1`, `threads2`); each further one wraps all before it, so
`host_numpy_dot1_rows1_swap1` takes the transposed product, one row at a time, by `dot`:

=============  ========================================================================
`dot1`         `ndarray.dot`: less call overhead (numpy)
`outer1`       broadcasting, for k = 1 (numpy)
`threads{t}`   BLAS with t threads of its own (numpy, scipy, mkl)
`swap1`        the transposed product, copied over
`packa1`       the left operand copied to dense rows first; `packb1` the right one
`upcast1`      half types computed in float32
`rows{b}`      blocks of b rows; `cols{b}` of b columns
`loop1`        a stack one by one; `fold1` as one tall product
=============  ========================================================================
"""

from collections.abc import Callable
from functools import partial

from tensorplay.backends.host.blocks import column_blocks, folded, looped, row_blocks
from tensorplay.backends.host.kernel import Build, Kernel
from tensorplay.backends.host.library import numpy_blas
from tensorplay.backends.host.mkl_kernels import mkl_kernel
from tensorplay.backends.host.numpy_kernels import MATMUL, dot_kernel, outer_kernel
from tensorplay.backends.host.scipy_kernels import scipy_kernel, scipy_threaded_kernel
from tensorplay.backends.host.threaded_kernels import threaded_kernel
from tensorplay.backends.host.transforms import packed_left, packed_right, swapped, upcast
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem, HostKernelId

__all__ = ["SOURCES", "build_kernel"]

SOURCES = ("numpy", "scipy", "mkl")
"""Who multiplies."""

_WRAPPERS: dict[str, Callable[[GemmProblem, Build], Kernel]] = {
    "swap": swapped,
    "packa": packed_left,
    "packb": packed_right,
    "upcast": upcast,
    "loop": looped,
    "fold": folded,
}
_BLOCKS: dict[str, Callable[[GemmProblem, int, Build], Kernel]] = {"rows": row_blocks, "cols": column_blocks}


def build_kernel(kernel: HostKernelId, problem: GemmProblem) -> Kernel:
    """Return the kernel that the id names, made for the problem.

    Raises
    ------
    KernelUnavailableError
        When this build has no such kernel, or the problem cannot be run by it; the message is the reason.
    """
    if not kernel.options:
        return _plain(kernel.source, problem)
    *earlier, (name, value) = kernel.options
    build = partial(build_kernel, HostKernelId(kernel.source, tuple(earlier)))
    if name in _BLOCKS:
        return _BLOCKS[name](problem, value, build)
    if name in _WRAPPERS:
        _check_switch(name, value)
        return _WRAPPERS[name](problem, build)
    if earlier:
        raise KernelUnavailableError(f"option {name} is unknown, or does not stand first")
    return _optioned(kernel.source, name, value, problem)


def _plain(source: str, problem: GemmProblem) -> Kernel:
    if source == "numpy":
        return MATMUL
    if source == "scipy":
        return scipy_kernel(problem)
    if source == "mkl":
        raise KernelUnavailableError("host_mkl needs a thread count, as in host_mkl_threads1")
    raise KernelUnavailableError(f"source {source} is unknown; known: {', '.join(SOURCES)}")


def _optioned(source: str, name: str, value: int, problem: GemmProblem) -> Kernel:
    if source not in SOURCES:
        raise KernelUnavailableError(f"source {source} is unknown; known: {', '.join(SOURCES)}")
    if name == "threads":
        return _threaded(source, value, problem)
    if source == "numpy" and name in {"dot", "outer"}:
        _check_switch(name, value)
        return dot_kernel(problem) if name == "dot" else outer_kernel(problem)
    raise KernelUnavailableError(f"option {name} of {source} is unknown")


def _threaded(source: str, threads: int, problem: GemmProblem) -> Kernel:
    if source == "numpy":
        return threaded_kernel(problem, numpy_blas(), threads)
    if source == "scipy":
        return scipy_threaded_kernel(problem, threads)
    return mkl_kernel(problem, threads)


def _check_switch(name: str, value: int) -> None:
    if value != 1:
        raise KernelUnavailableError(f"option {name} is 1 or left out, not {value}")
