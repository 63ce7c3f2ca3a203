"""Products by one call of a BLAS routine, past NumPy: everything but the three addresses is prepared beforehand.

BLAS stores matrices by columns. A row-major matrix is its own transpose stored by columns, so for
`out = left @ right` the routine is asked for `out^T = right^T @ left^T`, and nothing is moved.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorplay.backends.host.dtypes import BLAS_LETTERS
from tensorplay.backends.host.fortran_blas import FortranBlas
from tensorplay.backends.host.kernel import Array, Multiply, require, require_aligned, require_single
from tensorplay.backends.host.layout import left_layout, out_layout, right_layout
from tensorplay.backends.host.pointer import pointer_to
from tensorplay.gemm import GemmProblem

__all__ = ["direct_multiply"]

_AS_STORED, _TRANSPOSED = ctypes.c_char_p(b"N"), ctypes.c_char_p(b"T")
_SCALARS: dict[str, Callable[[float], Any]] = {
    "s": ctypes.c_float,
    "d": ctypes.c_double,
    "c": lambda value: (ctypes.c_float * 2)(value, 0.0),
    "z": lambda value: (ctypes.c_double * 2)(value, 0.0),
}


def direct_multiply(problem: GemmProblem, blas: FortranBlas, name: str) -> Multiply:
    """Return a function that overwrites `out`, which must lie as the problem says and share memory with nothing.

    Vectors go to `gemv`, which is several times faster for them than `gemm`. Operands that turn out to be
    misaligned, which the problem need not say, go to NumPy.

    Raises
    ------
    KernelUnavailableError
        When the library cannot take the problem; `name` is what the reason calls the kernel.
    """
    require_single(problem, name)
    require_aligned(problem, name)
    letter = BLAS_LETTERS.get(problem.dtype.name)
    require(holds=letter is not None, reason=f"{name} multiplies no {problem.dtype.name}")
    largest = max(max(layout[1:4]) for layout in (left_layout(problem), right_layout(problem), out_layout(problem)))
    require(holds=largest <= blas.largest_size, reason=f"{name} takes sizes up to {blas.largest_size}, not {largest}")
    prepare = _vector_call if 1 in (problem.m, problem.n) else _matrix_call
    call = prepare(problem, blas, str(letter))
    plain: Any = np.matmul

    def multiply(left: Array, right: Array, out: Array) -> None:
        if left.flags.aligned and right.flags.aligned and out.flags.aligned:
            call(left, right, out)
        else:
            plain(left, right, out)

    return multiply


def _matrix_call(problem: GemmProblem, blas: FortranBlas, letter: str) -> Multiply:
    routine = blas.routine(f"{letter}gemm")
    integer, by = blas.integer, ctypes.byref
    rows, columns, depth = by(integer(problem.n)), by(integer(problem.m)), by(integer(problem.k))
    one, zero = by(_SCALARS[letter](1.0)), by(_SCALARS[letter](0.0))
    first = _TRANSPOSED if problem.transpose_right else _AS_STORED
    second = _TRANSPOSED if problem.transpose_left else _AS_STORED
    ld_first, ld_second, ld_out = (
        by(integer(layout(problem).ld)) for layout in (right_layout, left_layout, out_layout)
    )

    def call(left: Array, right: Array, out: Array) -> None:
        routine(
            first,
            second,
            rows,
            columns,
            depth,
            one,
            pointer_to(right),
            ld_first,
            pointer_to(left),
            ld_second,
            zero,
            pointer_to(out),
            ld_out,
        )

    return call


def _vector_call(problem: GemmProblem, blas: FortranBlas, letter: str) -> Multiply:
    """Return a call of gemv: `out = right^T @ left` for one row, `out = left @ right` for one column."""
    routine = blas.routine(f"{letter}gemv")
    integer, by = blas.integer, ctypes.byref
    is_row = problem.m == 1
    matrix = right_layout(problem) if is_row else left_layout(problem)
    vector = left_layout(problem) if is_row else right_layout(problem)
    # The row case multiplies by the transpose of the right operand, which is what BLAS sees when it is stored plainly.
    operation = _AS_STORED if matrix.transposed != is_row else _TRANSPOSED
    rows, columns, ld = by(integer(matrix.columns)), by(integer(matrix.rows)), by(integer(matrix.ld))
    one, zero = by(_SCALARS[letter](1.0)), by(_SCALARS[letter](0.0))
    vector_step = by(integer(1 if vector.rows == 1 else vector.ld))
    out_step = by(integer(1 if is_row else out_layout(problem).ld))

    def call(left: Array, right: Array, out: Array) -> None:
        stored, factor = (right, left) if is_row else (left, right)
        routine(
            operation,
            rows,
            columns,
            one,
            pointer_to(stored),
            ld,
            pointer_to(factor),
            vector_step,
            zero,
            pointer_to(out),
            out_step,
        )

    return call
