"""Intel's MKL, from the package `mkl`: its thread count can be set for the calling thread alone."""

import ctypes
import sys
from functools import cache
from pathlib import Path

from tensorplay.backends.host.direct_gemm import direct_multiply
from tensorplay.backends.host.fortran_blas import FortranBlas, fortran_blas
from tensorplay.backends.host.kernel import Array, Kernel, guarded
from tensorplay.backends.host.threaded_kernels import check_threads, within_limit
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem
from tensorplay.locks import imported

__all__ = ["has_mkl", "mkl_kernel"]

_LIBRARY = "libmkl_rt.so"


def has_mkl() -> bool:
    """Return whether MKL is installed, without loading it."""
    return _mkl_file() is not None


def mkl_kernel(problem: GemmProblem, threads: int) -> Kernel:
    """Return the product by MKL with at most `threads` threads.

    The count is set for the calling thread before each product and set back after it, so neither other threads'
    products nor later ones of this thread change.
    """
    check_threads(threads)
    mkl = _mkl()
    call = direct_multiply(problem, mkl, f"MKL with {threads} threads")
    # The lower-case name is the Fortran function, which takes the address of the count.
    set_threads = mkl.library.MKL_Set_Num_Threads_Local

    def multiply(left: Array, right: Array, out: Array) -> None:
        before = 0  # what stands for the global count
        try:
            before = set_threads(threads)
            call(left, right, out)
        finally:
            set_threads(before)

    return Kernel(within_limit(guarded(problem, multiply), threads))


@cache
def _mkl_file() -> Path | None:
    metadata = imported("importlib.metadata")  # takes longer to import than all of the host backend
    try:
        files = metadata.files("mkl") or []
    except metadata.PackageNotFoundError:
        files = []
    listed = [Path(str(file.locate())) for file in files if file.name.startswith(_LIBRARY)]
    folder = Path(sys.prefix) / "lib"
    return next((file.resolve() for file in [*listed, *sorted(folder.glob(f"{_LIBRARY}*"))] if file.exists()), None)


@cache
def _mkl() -> FortranBlas:
    file = _mkl_file()
    if file is None:
        raise KernelUnavailableError("MKL is not installed; the package is called mkl")
    try:
        mkl = fortran_blas(ctypes.CDLL(str(file)))
    except OSError as error:
        raise KernelUnavailableError(f"MKL cannot be loaded: {error}") from error
    if mkl is None or not hasattr(mkl.library, "MKL_Set_Num_Threads_Local"):
        raise KernelUnavailableError(f"{file.name} is no MKL whose threads can be set for one caller")
    return mkl
