"""cuBLAS's numbers for data types, and which of them multiply a problem."""

from typing import NamedTuple

from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import DType, GemmProblem
from tensorplay.gemm.dtype import DTYPES

__all__ = [
    "C_32F",
    "C_64F",
    "R_16F",
    "R_32F",
    "R_64F",
    "NumberTypes",
    "addend_dtype",
    "bias_dtype",
    "data_type",
    "float8_results",
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

_E4M3, _E5M2 = "float8_e4m3fn", "float8_e5m2"
_FLOAT8_RESULTS = ("bfloat16", "float16", "float32", _E4M3)
# Bytes that an FP8 kernel loads at once: its operands' sizes are whole numbers of these.
_FLOAT8_VECTOR = 16
_BFLOAT16 = next(dtype for dtype in DTYPES if dtype.name == "bfloat16")

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
    """In which types a problem is multiplied, in the library's numbers.

    `operand` is the right operand's, `left` the left one's; `c` is what beta multiplies.
    """

    compute: int
    scale: int
    operand: int
    c: int
    out: int
    left: int
    bias: int


def data_type(dtype: DType) -> int:
    """Return the library's number of a data type."""
    return _DATA_TYPES[dtype.name]


def is_half(dtype: DType) -> bool:
    """Return whether the type has 16 bits."""
    return dtype.name in {"float16", "bfloat16"}


def is_float8(dtype: DType) -> bool:
    """Return whether the type has 8 bits."""
    return dtype.name.startswith("float8")


def addend_dtype(result: DType) -> DType:
    """Return the type of what beta multiplies: the result's, but bfloat16 where that is FP8, which is not added."""
    return _BFLOAT16 if is_float8(result) else result


def bias_dtype(operand: DType, result: DType) -> DType:
    """Return the type of a bias: the result's, but bfloat16 where FP8 operands have a result of FP8 or float32."""
    is_other = is_float8(operand) and (is_float8(result) or result.name == "float32")
    return _BFLOAT16 if is_other else result


def float8_results(left: DType, right: DType) -> tuple[str, ...]:
    """Return the names of the types that a product of two FP8 types is stored as; none where it is not multiplied."""
    if left.name == right.name == _E5M2:
        return ()
    return _FLOAT8_RESULTS if left == right else (*_FLOAT8_RESULTS, _E5M2)


def number_types(problem: GemmProblem) -> NumberTypes:
    """Return the types of a problem.

    Raises
    ------
    KernelUnavailableError
        When the library has no such product.
    """
    dtype = problem.dtype
    compute, scale = _COMPUTE[dtype.name]
    if problem.accumulation is not None and problem.accumulation.name != "float32":
        if (problem.accumulation.name, dtype.name) != ("float16", "float16"):
            raise KernelUnavailableError(f"cuBLASLt does not sum {dtype.name} products in {problem.accumulation.name}")
        compute, scale = _COMPUTE_16F, R_16F
    if is_float8(dtype):
        _check_float8(problem)
    return NumberTypes(
        compute=compute,
        scale=scale,
        operand=data_type(dtype),
        c=data_type(addend_dtype(problem.result_type)),
        out=data_type(problem.result_type),
        left=data_type(problem.left_type),
        bias=data_type(bias_dtype(dtype, problem.result_type)),
    )


def _check_float8(problem: GemmProblem) -> None:
    left, right, result = problem.left_type, problem.dtype, problem.result_type.name
    results = float8_results(left, right)
    if not results:
        raise KernelUnavailableError(f"cuBLASLt multiplies no {_E5M2} by itself, only by {_E4M3}")
    if result not in results:
        raise KernelUnavailableError(f"cuBLASLt stores no product of {left.name} and {right.name} as {result}")
    if problem.transpose_left or not problem.transpose_right:
        raise KernelUnavailableError("cuBLASLt multiplies FP8 only as left @ right.T of two row-major matrices")
    if problem.n % _FLOAT8_VECTOR or problem.k % _FLOAT8_VECTOR:
        raise KernelUnavailableError(
            f"cuBLASLt multiplies FP8 only where n and k are multiples of 16, these are {problem.n} and {problem.k}"
        )
    steps = (problem.ld_left, problem.ld_right, problem.stride_left, problem.stride_right)
    out_steps = [(step or 0) * problem.result_type.itemsize for step in (problem.ld_out, problem.stride_out)]
    if problem.alignment < _FLOAT8_VECTOR or any((step or 0) % _FLOAT8_VECTOR for step in (*steps, *out_steps)):
        raise KernelUnavailableError(
            "cuBLASLt multiplies FP8 only where each stored row begins at multiples of 16 bytes"
        )
