"""The skinny products: which problems they are, and what they look like with the weight's rows first.

`out = left @ right` of few rows reads every element of `right` once: that is the *weight*, and `left` is *x*. A product
of few columns is the same one transposed, `out.T = right.T @ left.T`: there `left` is the weight.
"""

from dataclasses import dataclass

from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import DType, GemmProblem

__all__ = ["MOST_COLUMNS", "Shape", "skinny_shape"]

MOST_COLUMNS = 16
"""As many rows, or columns, of the result make a product skinny."""

_TYPES = frozenset({"float16", "bfloat16", "float32"})
# Rows and depth are counted in 32 bits on the device.
_LARGEST = 2**30


@dataclass(frozen=True, slots=True)
class Shape:
    """`out[row, column] = sum over i of weight[row, i] * x[column, i]`; steps are in elements.

    Attributes
    ----------
    dtype, out_dtype : DType
        Of weight and x, and of the result, its addend and its bias.
    rows, columns, depth : int
        Many, few, and what is summed over.
    weight_is_right : bool
        Whether the weight is the right operand, and x the left one.
    is_along : bool
        Whether elements that follow one another along the depth lie side by side in the weight, else those of one
        step of the depth.
    weight_ld : int
        From one stored row of the weight to the next.
    x_column_step, x_depth_step, out_row_step, out_column_step : int
        From one to the next.
    bias_row_step, bias_column_step : int
        One of them is 1: the bias has a value for each column of the row-major result.
    weight_alignment, x_alignment : int
        Bytes that every stored row of the weight, and every column of x, begins at a multiple of, 16 at most; the
        latter is 0 where x is not contiguous along the depth.
    """

    dtype: DType
    out_dtype: DType
    rows: int
    columns: int
    depth: int
    weight_is_right: bool
    is_along: bool
    weight_ld: int
    x_column_step: int
    x_depth_step: int
    out_row_step: int
    out_column_step: int
    bias_row_step: int
    bias_column_step: int
    weight_alignment: int
    x_alignment: int

    @property
    def weight_bytes(self) -> int:
        """Return how much of the weight is read."""
        return self.rows * self.depth * self.dtype.itemsize


def skinny_shape(problem: GemmProblem) -> Shape:
    """Return the skinny product that a problem is.

    Raises
    ------
    KernelUnavailableError
        When it is none; the message is the reason.
    """
    _check(problem)
    is_right = problem.m <= MOST_COLUMNS
    ld_left, ld_right = problem.ld_left or problem.left_columns, problem.ld_right or problem.right_columns
    ld_out = problem.ld_out or problem.n
    if is_right:
        rows, columns, weight_ld, x_ld = problem.n, problem.m, ld_right, ld_left
        is_along, is_strided = problem.transpose_right, problem.transpose_left
    else:
        rows, columns, weight_ld, x_ld = problem.m, problem.n, ld_left, ld_right
        is_along, is_strided = not problem.transpose_left, not problem.transpose_right
    x_column_step, x_depth_step = (1, x_ld) if is_strided else (x_ld, 1)
    stored_rows = rows if is_along else problem.k
    return Shape(
        dtype=problem.dtype,
        out_dtype=problem.out_dtype or problem.dtype,
        rows=rows,
        columns=columns,
        depth=problem.k,
        weight_is_right=is_right,
        is_along=is_along,
        weight_ld=weight_ld,
        x_column_step=x_column_step,
        x_depth_step=x_depth_step,
        out_row_step=1 if is_right else ld_out,
        out_column_step=ld_out if is_right else 1,
        bias_row_step=int(is_right),
        bias_column_step=int(not is_right),
        weight_alignment=_row_alignment(problem, weight_ld, stored_rows),
        x_alignment=_row_alignment(problem, x_column_step, columns) if x_depth_step == 1 else 0,
    )


def _check(problem: GemmProblem) -> None:
    if problem.dtype.name not in _TYPES:
        raise KernelUnavailableError(
            f"the skinny kernels multiply {', '.join(sorted(_TYPES))}, not {problem.dtype.name}"
        )
    if problem.out_dtype is not None and problem.out_dtype.name not in {problem.dtype.name, "float32"}:
        raise KernelUnavailableError(
            f"the skinny kernels write {problem.dtype.name} or float32, not {problem.out_dtype.name}"
        )
    if problem.accumulation is not None and problem.accumulation.name != "float32":
        raise KernelUnavailableError(f"the skinny kernels sum in float32, not in {problem.accumulation.name}")
    if min(problem.m, problem.n) > MOST_COLUMNS or problem.batch > 1:
        raise KernelUnavailableError(
            f"the skinny kernels multiply single products of at most {MOST_COLUMNS} rows or columns; this is "
            f"{problem.batch} of {problem.m} x {problem.n}"
        )
    if max(problem.m, problem.n, problem.k) > _LARGEST:
        raise KernelUnavailableError(f"the skinny kernels count to {_LARGEST}, a size of the problem is beyond that")
    if problem.alignment < problem.dtype.itemsize:
        raise KernelUnavailableError(
            f"the skinny kernels need elements to be aligned, these are to {problem.alignment}"
        )
    if problem.device == "cpu":
        raise KernelUnavailableError("the skinny kernels run on NVIDIA devices")


def _row_alignment(problem: GemmProblem, step: int, count: int) -> int:
    """Return the bytes that the first element of each of `count` stored rows is aligned to."""
    step_bytes = step * problem.dtype.itemsize
    return problem.alignment if count == 1 else min(problem.alignment, step_bytes & -step_bytes)
