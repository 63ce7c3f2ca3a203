"""Half-precision products of one row or one column, on kernels of our own: they are bound by memory alone.

Which kernel runs depends on how the matrix is stored: where the sum runs along stored rows, a warp or a block takes
one row, with 16-byte loads where everything is aligned; where it runs across them, a thread takes adjacent columns.
Sums are in float32, in an order that is the same each time.
"""

from ctypes import c_float, c_int, c_longlong, c_void_p
from typing import Any, NamedTuple

from tensorplay.backends.base import Plan, Run
from tensorplay.backends.cublaslt.device import device
from tensorplay.backends.cublaslt.gemv_source import SOURCES
from tensorplay.backends.cublaslt.number_types import is_half
from tensorplay.backends.cublaslt.nvrtc import Kernel, kernel
from tensorplay.backends.cublaslt.on_device import on_device
from tensorplay.backends.cublaslt.operation import check_alignment
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import DEFAULT, GemmProblem

__all__ = ["Shape", "gemv_plan", "gemv_shape"]

_ITEM = 2
_WIDE = 16
_POINTERS = (c_void_p, c_void_p, c_void_p, c_void_p)
_COLUMN_PARAMETERS = (*_POINTERS, *(c_longlong,) * 5, c_float, c_float)
_ROW_PARAMETERS = (*_COLUMN_PARAMETERS, c_int)
_WARP = 32
# Rows of one block where a warp takes one, and threads of a block that takes one alone.
_ROWS, _ROW_THREADS = 8, 256
_BLOCK_ROWS = 16


class Shape(NamedTuple):
    """A matrix-vector product: so many `results`, each a sum of `length` products.

    Attributes
    ----------
    along_rows : bool
        Whether a result sums along one stored row of the matrix, else across all of them.
    matrix_is_right : bool
        Whether the matrix is the right operand, and the vector the left one.
    ld, x_step, out_step : int
        Elements from one stored row, vector element and result to the next.
    """

    results: int
    length: int
    along_rows: bool
    matrix_is_right: bool
    ld: int
    x_step: int
    out_step: int


def gemv_shape(problem: GemmProblem) -> Shape:
    """Return the matrix-vector product that a problem of one row or one column is; `m` is 1 or `n` is."""
    if problem.m == 1:
        return Shape(
            results=problem.n,
            length=problem.k,
            along_rows=problem.transpose_right,
            matrix_is_right=True,
            ld=problem.ld_right or problem.right_columns,
            x_step=(problem.ld_left or 1) if problem.transpose_left else 1,
            out_step=1,
        )
    return Shape(
        results=problem.m,
        length=problem.k,
        along_rows=not problem.transpose_left,
        matrix_is_right=False,
        ld=problem.ld_left or problem.left_columns,
        x_step=1 if problem.transpose_right else (problem.ld_right or 1),
        out_step=problem.ld_out or 1,
    )


def gemv_plan(problem: GemmProblem) -> Plan:
    """Return the plan of such a product; its kernel is `Default`.

    Raises
    ------
    KernelUnavailableError
        When the problem is another, or the kernels do not compile for the device.
    OperandError
        When operands begin in the middle of an element.
    """
    check_alignment(problem)
    is_plain = not problem.bias and problem.activation == "none" and problem.out_dtype in {None, problem.dtype}
    if not (is_half(problem.dtype) and 1 in {problem.m, problem.n} and problem.batch == 1 and is_plain):
        raise KernelUnavailableError("the matrix-vector kernels are for half precision, one row or column, no epilogue")
    if problem.accumulation is not None and problem.accumulation.name != "float32":
        raise KernelUnavailableError("the matrix-vector kernels sum in float32")
    shape, ordinal = gemv_shape(problem), int(problem.device)
    launch = (_along_rows if shape.along_rows else _across_rows)(problem, shape, ordinal)

    def run(
        left: int, right: int, out: int, c: int = 0, bias: int = 0, alpha: Any = 1.0, beta: Any = 0.0, stream: int = 0
    ) -> int:
        del bias
        matrix, x = (right, left) if shape.matrix_is_right else (left, right)
        launch(matrix, x, out, c or out, alpha, beta, stream)
        return out

    return Plan(problem, DEFAULT, on_device(ordinal, run))


def _along_rows(problem: GemmProblem, shape: Shape, ordinal: int) -> Run:
    rows = kernel(ordinal, SOURCES[problem.dtype.name], f"rows_{problem.dtype.name}", _ROW_PARAMETERS)
    sizes = (shape.results, shape.length, shape.ld, shape.x_step, shape.out_step)
    is_wide = shape.x_step == 1 and shape.ld * _ITEM % _WIDE == 0
    # Few rows would leave multiprocessors idle if a warp took each.
    if shape.results >= device(ordinal).multiprocessors * _ROWS:
        grid, block = (-(-shape.results // _ROWS), 1, 1), (_WARP, _ROWS, 1)
    else:
        grid, block = (shape.results, 1, 1), (_ROW_THREADS, 1, 1)

    def launch(matrix: int, x: int, out: int, c: int, alpha: Any, beta: Any, stream: int) -> None:
        is_aligned = int(is_wide and (matrix | x) % _WIDE == 0)
        rows.launch(grid, block, stream, out, matrix, x, c, *sizes, float(alpha), float(beta), is_aligned)

    return launch


def _across_rows(problem: GemmProblem, shape: Shape, ordinal: int) -> Run:
    name = problem.dtype.name
    widths = {width: _columns(ordinal, name, width) for width in (1, 2, 8)}
    sizes = (shape.results, shape.length, shape.ld, shape.x_step, shape.out_step)
    most = 8 if shape.results >= device(ordinal).multiprocessors * _WARP * 8 else 2

    def launch(matrix: int, x: int, out: int, c: int, alpha: Any, beta: Any, stream: int) -> None:
        width = most
        while width > 1 and (matrix | shape.ld * _ITEM) % (width * _ITEM):
            width = 2 if width == 8 else 1
        grid = (-(-shape.results // (_WARP * width)), 1, 1)
        arguments = (out, matrix, x, c, *sizes, float(alpha), float(beta))
        widths[width].launch(grid, (_WARP, _BLOCK_ROWS, 1), stream, *arguments)

    return launch


def _columns(ordinal: int, name: str, width: int) -> Kernel:
    return kernel(ordinal, SOURCES[name], f"columns{width}_{name}", _COLUMN_PARAMETERS)
