"""Products in more precision than their type has, to judge kernels by.

Narrow types are multiplied in float64 or complex128. For float64 itself there is no wider type that BLAS knows, and
NumPy multiplies long doubles a thousand times slower, so operands are split: ``A = A1 + A2 + A3`` and likewise B, each
part a multiple of its own power of two with so few bits that any sum of k products of two parts is exact in float64,
whatever the order of summation. Then

``A B = A1 B1 + (A1 B2 + A2 B1) + (A1 B3 + A2 (B2 + B3) + A3 B)``

of which the first three products are exact and the last three, smaller by twice the bits of a part, are rounded: 95
bits or so where float64 has 53, for six products at BLAS speed. The six are added smallest first with their rounding
errors carried along, and rounded once. (The splitting is that of T. Ozaki, T. Ogita, S. Oishi and S. M. Rump,
"Error-free transformations of matrix multiplication by using fast routines of matrix multiplication and its
applications", Numerical Algorithms 59 (2012).)
"""

from math import ceil, log2
from typing import NamedTuple

import numpy as np

from tensorplay.backends.host.kernel import Array

__all__ = ["reference_product"]

_MANTISSA_BITS = 53


def reference_product(left: Array, right: Array) -> Array:
    """Return `left @ right`, single matrices or stacks, correct to at least twice the operands' precision.

    The result is rounded once, to float64 or complex128.
    """
    kind = np.complex128 if left.dtype.kind == "c" else np.float64
    if left.dtype != kind:
        product: Array = np.matmul(left.astype(kind), right.astype(kind))
        return product
    if kind is np.float64:
        return _product(left, right)
    # (a + bi)(c + di) = [a -b][c; d] + [b a][c; d] i, each with sums twice as long.
    stacked = np.concatenate((right.real, right.imag), axis=-2)
    product = np.empty((*left.shape[:-1], right.shape[-1]), kind)
    product.real = _product(np.concatenate((left.real, -left.imag), axis=-1), stacked)
    product.imag = _product(np.concatenate((left.imag, left.real), axis=-1), stacked)
    return product


class _Parts(NamedTuple):
    first: Array
    second: Array
    rest: Array


def _product(left: Array, right: Array) -> Array:
    bits = (_MANTISSA_BITS - ceil(log2(max(left.shape[-1], 2)))) // 2
    a, b = _split(left, bits), _split(right, bits)
    high: Array = np.matmul(a.first, b.rest)
    low = np.zeros_like(high)
    high += np.matmul(a.second, b.second + b.rest)
    high += np.matmul(a.rest, right)
    for exact in ((a.second, b.first), (a.first, b.second), (a.first, b.first)):
        high, error = _sum(high, np.matmul(*exact))
        low += error
    high += low
    return high


def _split(matrix: Array, bits: int) -> _Parts:
    """Return two parts of `bits` bits each and what is left, counted from the largest element on."""
    first = _leading_bits(matrix, bits)
    remaining = matrix - first
    second = _leading_bits(remaining, bits)
    return _Parts(first, second, remaining - second)


def _leading_bits(matrix: Array, bits: int) -> Array:
    """Return the elements rounded to multiples of the largest one's power of two, `bits` bits below it."""
    largest = float(np.abs(matrix).max())
    if largest == 0.0:
        return np.zeros_like(matrix)
    # Adding a number this much larger rounds to what its last bit stands for; subtracting it again is exact.
    shift = 0.75 * 2.0 ** (ceil(log2(largest)) + _MANTISSA_BITS - bits)
    rounded: Array = (matrix + shift) - shift
    return rounded


def _sum(one: Array, other: Array) -> tuple[Array, Array]:
    """Return the rounded sum and its rounding error, exactly (D. Knuth's two-sum)."""
    total = one + other
    share = total - one
    return total, (one - (total - share)) + (other - share)
