"""Kernels that change the operands first: the transposed product, dense copies, wider types."""

from dataclasses import replace
from typing import Literal

import numpy as np

from tensorplay.backends.host.dtypes import is_half, result_dtype
from tensorplay.backends.host.kernel import Array, Build, Kernel, require, require_single
from tensorplay.gemm import GemmProblem, dtype_of_word

__all__ = ["packed_left", "packed_right", "swapped", "upcast"]

_FLOAT32 = dtype_of_word("Float32")


def swapped(problem: GemmProblem, build: Build) -> Kernel:
    """Return the product computed as its transpose, `right^T @ left^T`, in scratch memory and copied over.

    BLAS divides and packs its two operands differently, so a product with few rows can be faster as one with few
    columns.
    """
    require_single(problem, "swap")
    transpose = build(
        replace(
            problem,
            m=problem.n,
            n=problem.m,
            transpose_left=not problem.transpose_right,
            transpose_right=not problem.transpose_left,
            ld_left=problem.ld_right,
            ld_right=problem.ld_left,
            ld_out=None,
        )
    )
    inner = transpose.run

    def run(left: Array, right: Array, out: Array | None = None) -> Array:
        product: Array = inner(right.T, left.T, None).T
        if out is None:
            return np.ascontiguousarray(product)
        out[...] = product
        return out

    return Kernel(run, transpose.workspace_bytes + problem.m * problem.n * problem.dtype.itemsize)


def packed_left(problem: GemmProblem, build: Build) -> Kernel:
    """Return the product with the left operand copied to dense rows first."""
    require_single(problem, "packa")
    require(
        holds=problem.transpose_left or problem.ld_left is not None,
        reason="packa is for a transposed or padded left operand, the problem's is dense",
    )
    dense = build(replace(problem, transpose_left=False, ld_left=None))
    inner = dense.run

    def run(left: Array, right: Array, out: Array | None = None) -> Array:
        product: Array = inner(np.ascontiguousarray(left), right, out)
        return product

    return Kernel(run, dense.workspace_bytes + problem.m * problem.k * problem.dtype.itemsize)


def packed_right(problem: GemmProblem, build: Build) -> Kernel:
    """Return the product with the right operand copied to dense rows first."""
    require_single(problem, "packb")
    require(
        holds=problem.transpose_right or problem.ld_right is not None,
        reason="packb is for a transposed or padded right operand, the problem's is dense",
    )
    dense = build(replace(problem, transpose_right=False, ld_right=None))
    inner = dense.run

    def run(left: Array, right: Array, out: Array | None = None) -> Array:
        product: Array = inner(left, np.ascontiguousarray(right), out)
        return product

    return Kernel(run, dense.workspace_bytes + problem.k * problem.n * problem.dtype.itemsize)


def upcast(problem: GemmProblem, build: Build) -> Kernel:
    """Return the product of a half type computed in float32 by BLAS and rounded once.

    NumPy sums float16 products in float32 too, but one after the other, without BLAS.
    """
    require(holds=is_half(problem.dtype), reason=f"upcast is for float16 and bfloat16, not {problem.dtype.name}")
    made, wide = result_dtype(problem.dtype), np.dtype(np.float32)
    is_stack = problem.batch > 1
    # Copies of a matrix keep the order it is stored in; those of a stack, which may repeat, are plain.
    kept = build(
        replace(
            problem,
            dtype=_FLOAT32,
            transpose_left=problem.transpose_left and not is_stack,
            transpose_right=problem.transpose_right and not is_stack,
            ld_left=None,
            ld_right=None,
            ld_out=None,
            stride_left=None,
            stride_right=None,
            stride_out=None,
            alignment=16,
        )
    )
    inner = kept.run
    order: Literal["C", "K"] = "C" if is_stack else "K"

    def run(left: Array, right: Array, out: Array | None = None) -> Array:
        product: Array = inner(left.astype(wide, order), right.astype(wide, order), None)
        if out is None:
            return product.astype(made, copy=False)
        out[...] = product
        return out

    m, n, k = problem.m, problem.n, problem.k
    return Kernel(run, kept.workspace_bytes + problem.batch * (m * k + k * n + m * n) * wide.itemsize)
