"""cuBLAS's numbers for data types, and which of them multiply a problem."""

from typing import NamedTuple

from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import DType, GemmProblem

__all__ = [
    "C_32F",
    "C_64F",
    "R_16F",
    "R_32F",
    "R_64F",
    "NumberTypes",
    "data_type",
    "is_float8",
    "is_half",
    "number_types",
]

R_32F, R_64F, R_16F, C_32F, C_64F, R_16BF, R_8F_E4M3, R_8F_E5M2 = 0, 1, 2, 4, 5, 14, 28, 29
_DATA_TYPES = {
    "float32": R_32F,
    "tf32": R_32F,
    "float64": R_64F,
    "float16": R_16F,
    "bfloat16": R_16BF,
    "complex64": C_32F,
    "complex128": C_64F,
    "float8_e4m3fn": R_8F_E4M3,
    "float8_e5m2": R_8F_E5M2,
}

_COMPUTE_16F, _COMPUTE_32F, _COMPUTE_64F, _COMPUTE_TF32 = 64, 68, 70, 77
# Compute type and scale type: alpha and beta are read as the latter.
_COMPUTE = {
    "float32": (_COMPUTE_32F, R_32F),
    "tf32": (_COMPUTE_TF32, R_32F),
    "float64": (_COMPUTE_64F, R_64F),
    "float16": (_COMPUTE_32F, R_32F),
    "bfloat16": (_COMPUTE_32F, R_32F),
    "complex64": (_COMPUTE_32F, C_32F),
    "complex128": (_COMPUTE_64F, C_64F),
    "float8_e4m3fn": (_COMPUTE_32F, R_32F),
    "float8_e5m2": (_COMPUTE_32F, R_32F),
}


class NumberTypes(NamedTuple):
    """In which types a problem is multiplied, in the library's numbers; `c` is what beta multiplies."""

    compute: int
    scale: int
    operand: int
    c: int
    out: int


def data_type(dtype: DType) -> int:
    """Return the library's number of a data type."""
    return _DATA_TYPES[dtype.name]


def is_half(dtype: DType) -> bool:
    """Return whether the type has 16 bits."""
    return dtype.name in {"float16", "bfloat16"}


def is_float8(dtype: DType) -> bool:
    """Return whether the type has 8 bits."""
    return dtype.name.startswith("float8")


def number_types(problem: GemmProblem) -> NumberTypes:
    """Return the types of a problem.

    A result of FP8 has its addend `c` in bfloat16, since the library adds no FP8.

    Raises
    ------
    KernelUnavailableError
        When the library has no such product.
    """
    dtype, out = problem.dtype, problem.out_dtype or problem.dtype
    compute, scale = _COMPUTE[dtype.name]
    if problem.accumulation is not None and problem.accumulation.name != "float32":
        if (problem.accumulation.name, dtype.name) != ("float16", "float16"):
            raise KernelUnavailableError(f"cuBLASLt does not sum {dtype.name} products in {problem.accumulation.name}")
        compute, scale = _COMPUTE_16F, R_16F
    if is_float8(dtype):
        _check_float8(problem)
    c = R_16BF if is_float8(out) else data_type(out)
    return NumberTypes(compute, scale, data_type(dtype), c, data_type(out))


def _check_float8(problem: GemmProblem) -> None:
    if problem.dtype.name == "float8_e5m2":
        raise KernelUnavailableError("cuBLASLt multiplies no float8_e5m2 by itself, only by float8_e4m3fn")
    if problem.transpose_left or not problem.transpose_right:
        raise KernelUnavailableError("cuBLASLt multiplies FP8 only as left @ right.T of two row-major matrices")
    if problem.m % 16 or problem.n % 16 or problem.k % 16:
        raise KernelUnavailableError(
            f"cuBLASLt multiplies FP8 only in sizes of multiples of 16, these are {(problem.m, problem.n, problem.k)}"
        )
