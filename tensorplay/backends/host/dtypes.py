"""The NumPy types of the products that the host tunes, and how BLAS calls them."""

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import DType
from tensorplay.locks import imported

__all__ = ["BLAS_LETTERS", "is_half", "numpy_dtype", "result_dtype"]

BLAS_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
"""First letter of each type's BLAS routines."""

_HALVES = frozenset({"float16", "bfloat16"})


def is_half(dtype: DType) -> bool:
    """Return whether the type has 16 bits, so that no BLAS of the host multiplies it."""
    return dtype.name in _HALVES


@cache
def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """Return the NumPy type; bfloat16 comes from ml_dtypes, imported at its first use.

    Raises
    ------
    KernelUnavailableError
        When the host has no such type: TF32, FP8, or bfloat16 without ml_dtypes.
    """
    if dtype.name in BLAS_LETTERS or dtype.name == "float16":
        return np.dtype(dtype.name)
    if dtype.name != "bfloat16":
        raise KernelUnavailableError(f"the host multiplies no {dtype.name}")
    if find_spec("ml_dtypes") is None:
        raise KernelUnavailableError("bfloat16 on the host needs ml_dtypes, which is not installed")
    bfloat16: np.dtype[Any] = np.dtype(imported("ml_dtypes").bfloat16)
    return bfloat16


@cache
def result_dtype(dtype: DType) -> np.dtype[Any]:
    """Return the type of what `numpy.matmul` makes when it is given no result: ml_dtypes leaves bfloat16 wide."""
    one = np.ones((1, 1), numpy_dtype(dtype))
    made: np.dtype[Any] = np.matmul(one, one).dtype
    return made
