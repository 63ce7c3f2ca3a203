"""Kernels with a thread count of their own: NumPy's or SciPy's OpenBLAS, loaded once more for it."""

from typing import Any

import numpy as np

from tensorplay.backends.base import Run
from tensorplay.backends.host.direct_gemm import direct_multiply
from tensorplay.backends.host.kernel import Array, Kernel, guarded, require
from tensorplay.backends.host.library import Blas, current_threads, thread_limit
from tensorplay.backends.host.private_blas import private_blas
from tensorplay.gemm import GemmProblem

__all__ = ["check_threads", "threaded_kernel", "within_limit"]


def check_threads(threads: int) -> None:
    """Raise `KernelUnavailableError` unless this process may use so many threads."""
    limit = thread_limit()
    require(holds=threads > 0, reason="asks for 0 threads, at least 1 is needed")
    require(holds=threads <= limit, reason=f"asks for {threads} threads, this process may use {limit}")


def threaded_kernel(problem: GemmProblem, blas: Blas, threads: int) -> Kernel:
    """Return the product by the private instance of `blas` with `threads` threads."""
    check_threads(threads)
    multiply = direct_multiply(problem, private_blas(blas, threads), f"{blas.name} with {threads} threads")
    return Kernel(within_limit(guarded(problem, multiply), threads))


def within_limit(run: Run, threads: int) -> Run:
    """Return `run`, replaced by `numpy.matmul` while NumPy's BLAS is limited to fewer threads.

    Who limits that, with threadpoolctl for example, wants fewer threads in use, whoever starts them.
    """
    allowed = current_threads()
    if threads == 1 or allowed is None:
        return run
    plain: Any = np.matmul

    def run_within_limit(left: Array, right: Array, out: Array | None = None) -> Array:
        product: Array = run(left, right, out) if allowed() >= threads else plain(left, right, out)
        return product

    return run_within_limit
