"""SciPy's BLAS: through its own wrappers where that starts no threads, else by private instances."""

from functools import cache
from importlib.util import find_spec
from typing import Any

from tensorplay.backends.host.dtypes import BLAS_LETTERS
from tensorplay.backends.host.kernel import Array, Kernel, guarded, require, require_aligned, require_single
from tensorplay.backends.host.library import Blas, blas_behind, numpy_blas
from tensorplay.backends.host.threaded_kernels import threaded_kernel
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem
from tensorplay.locks import imported

__all__ = ["has_scipy", "scipy_kernel", "scipy_threaded_kernel"]

# Up to this many multiply-adds OpenBLAS computes a matrix product on the calling thread; vectors from a few
# thousand elements on are divided among threads.
_ONE_THREAD_MATRIX, _ONE_THREAD_VECTOR = 1 << 18, 1 << 13
_LARGEST_SIZE = 2**31 - 1


def has_scipy() -> bool:
    """Return whether SciPy is installed, without importing it."""
    return find_spec("scipy") is not None


def scipy_kernel(problem: GemmProblem) -> Kernel:
    """Return the call of SciPy's gemm wrapper, which costs less than NumPy's dispatch.

    Only for what runs on the calling thread, unless SciPy's BLAS is NumPy's: two pools of threads that both
    spin, as OpenBLAS's do, take each other's processors, which makes *NumPy's* products slow.
    """
    require_single(problem, "SciPy's gemm")
    require_aligned(problem, "SciPy's gemm")
    letter = BLAS_LETTERS.get(problem.dtype.name)
    require(holds=letter is not None, reason=f"SciPy's BLAS multiplies no {problem.dtype.name}")
    require(
        holds=problem.ld_left is problem.ld_right is problem.ld_out is None,
        reason="SciPy's gemm copies padded operands, the problem has some",
    )
    require(
        holds=max(problem.m, problem.n, problem.k) <= _LARGEST_SIZE,
        reason=f"SciPy's gemm takes sizes up to {_LARGEST_SIZE}",
    )
    require(
        holds=_runs_on_caller(problem),
        reason="SciPy's BLAS would start threads beside those of NumPy's; use a thread count",
    )
    gemm = getattr(_blas_module(), f"{letter}gemm")
    # To BLAS, which stores by columns, out^T = right^T @ left^T, and a plain row-major operand is its transpose.
    is_right_transposed, is_left_transposed = problem.transpose_right, problem.transpose_left

    def multiply(left: Array, right: Array, out: Array) -> None:
        target = out.T
        product = gemm(
            1.0,
            right if is_right_transposed else right.T,
            left if is_left_transposed else left.T,
            0.0,
            target,
            is_right_transposed,
            is_left_transposed,
            1,
        )
        # A wrapper that finds anything unusual about an array works on a copy, and says so only by this.
        if product is not target:
            target[...] = product

    return Kernel(guarded(problem, multiply))


def scipy_threaded_kernel(problem: GemmProblem, threads: int) -> Kernel:
    """Return the product by a private instance of SciPy's BLAS, where that is another library than NumPy's."""
    blas = _scipy_blas()
    if blas is None:
        raise KernelUnavailableError("the BLAS that SciPy uses could not be found")
    require(holds=not _is_numpys(blas), reason="SciPy uses the BLAS that NumPy uses; see host_numpy_threads")
    return threaded_kernel(problem, blas, threads)


def _runs_on_caller(problem: GemmProblem) -> bool:
    blas = _scipy_blas()
    if blas is not None and (blas.threads == 1 or _is_numpys(blas)):
        return True
    work = problem.m * problem.n * problem.k
    return work <= (_ONE_THREAD_VECTOR if 1 in (problem.m, problem.n) else _ONE_THREAD_MATRIX)


def _is_numpys(blas: Blas) -> bool:
    return blas.path == numpy_blas().path


def _blas_module() -> Any:
    if not has_scipy():
        raise KernelUnavailableError("SciPy is not installed")
    return imported("scipy.linalg.blas")


@cache
def _scipy_blas() -> Blas | None:
    _blas_module()
    return blas_behind(str(imported("scipy.linalg._fblas").__file__))
