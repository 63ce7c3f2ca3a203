"""Kernels that divide the product: blocks of rows or columns, a stack one by one, a stack as one tall matrix."""

from collections.abc import Iterator
from dataclasses import replace

from tensorplay.backends.host.kernel import Array, Build, Kernel, guarded, require, require_single
from tensorplay.backends.host.layout import left_layout, out_layout
from tensorplay.errors import LaunchError
from tensorplay.gemm import GemmProblem

__all__ = ["column_blocks", "folded", "looped", "row_blocks"]

# More blocks than this spend their time in Python.
_MOST_BLOCKS = 4096


def row_blocks(problem: GemmProblem, size: int, build: Build) -> Kernel:
    """Return the product made `size` rows at a time, so that a block's operands stay in cache."""
    require_single(problem, "rows")
    _check_blocks("row", "rows", problem.m, size)
    # Rows of a transposed operand are parts of its stored rows.
    ld_left = problem.ld_left or (problem.m if problem.transpose_left else None)
    kernels = [build(replace(problem, m=rows, ld_left=ld_left)) for rows in _sizes(problem.m, size)]
    steps = [(step, kernels[index].run) for step, index in _steps(problem.m, size)]

    def multiply(left: Array, right: Array, out: Array) -> None:
        for rows, run in steps:
            run(left[rows], right, out[rows])

    return Kernel(guarded(problem, multiply), max(kernel.workspace_bytes for kernel in kernels))


def column_blocks(problem: GemmProblem, size: int, build: Build) -> Kernel:
    """Return the product made `size` columns at a time."""
    require_single(problem, "cols")
    _check_blocks("column", "columns", problem.n, size)
    ld_right = problem.ld_right or (None if problem.transpose_right else problem.n)
    ld_out = problem.ld_out or problem.n
    kernels = [
        build(replace(problem, n=columns, ld_right=ld_right, ld_out=ld_out)) for columns in _sizes(problem.n, size)
    ]
    steps = [(step, kernels[index].run) for step, index in _steps(problem.n, size)]

    def multiply(left: Array, right: Array, out: Array) -> None:
        for columns, run in steps:
            run(left, right[:, columns], out[:, columns])

    return Kernel(guarded(problem, multiply), max(kernel.workspace_bytes for kernel in kernels))


def looped(problem: GemmProblem, build: Build) -> Kernel:
    """Return the products of a stack, one after the other."""
    require(holds=problem.batch > 1, reason="loop is for stacks, the problem is one product")
    require(holds=problem.batch <= _MOST_BLOCKS, reason=f"loop is for up to {_MOST_BLOCKS}, not {problem.batch}")
    single = build(_single(problem))
    inner = single.run

    def multiply(left: Array, right: Array, out: Array) -> None:
        for left_matrix, right_matrix, out_matrix in zip(left, right, out, strict=True):
            inner(left_matrix, right_matrix, out_matrix)

    return Kernel(guarded(problem, multiply), single.workspace_bytes)


def folded(problem: GemmProblem, build: Build) -> Kernel:
    """Return the products of a dense stack by one shared right operand, as one tall product."""
    require(holds=problem.batch > 1, reason="fold is for stacks, the problem is one product")
    require(holds=problem.stride_right == 0, reason="fold is for a shared right operand, the problem has several")
    left_stack, out_stack = left_layout(problem), out_layout(problem)
    is_dense = left_stack.stride == problem.m * problem.k and out_stack.stride == problem.m * problem.n
    is_plain = left_stack.ld == problem.k and out_stack.ld == problem.n and not problem.transpose_left
    require(holds=is_dense and is_plain, reason="fold is for dense stacks, stored by rows")
    rows = problem.batch * problem.m
    tall = build(replace(_single(problem), m=rows))
    inner, shape = tall.run, (problem.batch, problem.m, problem.n)

    def run(left: Array, right: Array, out: Array | None = None) -> Array:
        if out is None:
            product: Array = inner(left.reshape(rows, -1), right[0], None)
            return product.reshape(shape)
        if not out.flags.c_contiguous:
            # Reshaped, it would be a copy, and the result would be lost.
            raise LaunchError(f"the result is to be dense, its strides are {out.strides}")
        inner(left.reshape(rows, -1), right[0], out.reshape(rows, -1))
        return out

    return Kernel(run, tall.workspace_bytes)


def _single(problem: GemmProblem) -> GemmProblem:
    return replace(problem, batch=1, stride_left=None, stride_right=None, stride_out=None)


def _check_blocks(kind: str, plural: str, length: int, size: int) -> None:
    require(holds=0 < size < length, reason=f"is for {kind} blocks of {size}, the problem has {length} {plural}")
    require(
        holds=length <= size * _MOST_BLOCKS,
        reason=f"{length} {plural} in blocks of {size} are more than {_MOST_BLOCKS} blocks",
    )


def _sizes(length: int, size: int) -> list[int]:
    """Return the size of a whole block, and of the rest where there is one."""
    rest = length % size
    return [size, rest] if rest else [size]


def _steps(length: int, size: int) -> Iterator[tuple[slice, int]]:
    """Yield each block and which of `_sizes` it has."""
    for start in range(0, length, size):
        yield slice(start, min(start + size, length)), 0 if start + size <= length else 1
