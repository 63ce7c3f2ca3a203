"""Members: the products of a group, by what the library's grouped call is told of each. Pure."""

from typing import NamedTuple

__all__ = ["ALIGNMENT", "EMPTY", "GROUPED_TYPES", "Member"]

GROUPED_TYPES = frozenset({"float32", "tf32", "float64", "float16", "bfloat16"})
"""What classic cuBLAS multiplies in groups, operands and result being of one type."""

ALIGNMENT = 16
"""Bytes that every address is a multiple of: kernels for half precision and TF32 load so much at once."""

_INT32 = 2**31 - 1


class Member(NamedTuple):
    """One product of a group, row-major; leading dimensions are those of the stored rows, of dense ones too."""

    transpose_left: bool
    transpose_right: bool
    m: int
    n: int
    k: int
    ld_left: int
    ld_right: int
    ld_out: int

    @property
    def is_short(self) -> bool:
        """Return whether all sizes are ones that the library's call takes."""
        return max(self) <= _INT32

    @property
    def multiplications(self) -> int:
        """Return how many products of numbers there are."""
        return self.m * self.n * self.k

    @property
    def lengths(self) -> tuple[int, int, int]:
        """Return the elements from the first to the last of left, right and out, both included."""
        left = (self.k, self.m) if self.transpose_left else (self.m, self.k)
        right = (self.n, self.k) if self.transpose_right else (self.k, self.n)
        stored = ((*left, self.ld_left), (*right, self.ld_right), (self.m, self.n, self.ld_out))
        first, second, third = ((rows - 1) * ld + columns for rows, columns, ld in stored)
        return first, second, third


EMPTY = Member(transpose_left=False, transpose_right=False, m=0, n=0, k=0, ld_left=0, ld_right=0, ld_out=0)
"""A product whose result has no elements: nothing is done for it."""
