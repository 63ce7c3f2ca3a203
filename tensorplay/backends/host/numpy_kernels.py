"""Kernels that are one function of NumPy: the first choice, and two that skip its dispatch or its BLAS."""

from functools import partial

import numpy as np

from tensorplay.backends.host.kernel import Kernel, require, require_aligned, require_plain_result, require_single
from tensorplay.gemm import GemmProblem

__all__ = ["DOT", "MATMUL", "OUTER", "dot_kernel", "outer_kernel"]

MATMUL = Kernel(np.matmul)
"""The first choice: the function itself, so that a hit costs what NumPy costs."""

DOT = Kernel(np.ndarray.dot)
"""The unbound method: half the call overhead of `numpy.matmul`, and no dispatch to other array types."""

# Broadcasting may otherwise lay a new result out by columns.
OUTER = Kernel(partial(np.multiply, order="C"))
"""Columns times rows is broadcasting: no BLAS needed."""


def dot_kernel(problem: GemmProblem) -> Kernel:
    """Return `ndarray.dot`, which computes in BLAS what is dense, and handles overlap itself."""
    require_single(problem, "dot")
    require(holds=problem.ld_out is None, reason="dot writes dense results, the problem's is padded")
    require_aligned(problem, "dot")
    require_plain_result(problem, "dot")
    # It multiplies anything by one number with BLAS's axpy, which skips a factor of 0, and with it NaN and infinity.
    is_scaling = problem.k == 1 and (problem.m == 1) != (problem.n == 1)
    require(holds=not is_scaling, reason="dot loses NaN and infinity where one operand is a single number")
    return DOT


def outer_kernel(problem: GemmProblem) -> Kernel:
    """Return the broadcast product of a column and a row."""
    require(holds=problem.k == 1, reason=f"outer is for k = 1, the problem has k = {problem.k}")
    require_plain_result(problem, "outer")
    return OUTER
