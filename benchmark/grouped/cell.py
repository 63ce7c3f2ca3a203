"""Cells of the table: groups of one type, size and number, their products alike, of mixed rows, or of few rows."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tensorplay.backends.cublaslt.member import Member

__all__ = ["COUNTS", "DTYPES", "MIXES", "SIZES", "Cell", "Operands", "cells"]

DTYPES = ("float32", "bfloat16")
COUNTS = (2, 4, 8, 16, 32, 64)
SIZES = (16, 32, 64, 128, 256, 512, 1024, 2048)
MIXES = ("alike", "mixed", "skinny")
# In a mixed group rows differ as those of experts do, from an eighth of the size to all of it; a skinny one has from
# one row to eight, as experts have in decoding.
_STEPS = 8
_MOST_BYTES = 8 << 30


class Operands(NamedTuple):
    """Tensors of one group."""

    left: list[Any]
    right: list[Any]
    out: list[Any]


class Cell(NamedTuple):
    """One group: so many products of (size, size) by (size, size), with fewer rows in some or all."""

    dtype: str
    mix: str
    size: int
    products: int

    def __str__(self) -> str:
        return f"{self.products} x {self.size} {self.mix} {self.dtype}"

    @property
    def rows(self) -> list[int]:
        """Return the rows of each product."""
        if self.mix == "alike":
            return [self.size] * self.products
        steps = [_STEPS - place % _STEPS for place in range(self.products)]
        if self.mix == "skinny":
            return [_STEPS + 1 - step for step in steps]
        return [max(1, self.size * step // _STEPS) for step in steps]

    @property
    def members(self) -> list[Member]:
        """Return the products as the choice between one call and a loop sees them."""
        size = self.size
        return [
            Member(
                transpose_left=False,
                transpose_right=False,
                m=rows,
                n=size,
                k=size,
                ld_left=size,
                ld_right=size,
                ld_out=size,
            )
            for rows in self.rows
        ]

    @property
    def multiplications(self) -> int:
        """Return those of the largest product."""
        return max(self.rows) * self.size**2

    @property
    def nbytes(self) -> int:
        """Return the bytes of all operands."""
        item = 4 if self.dtype == "float32" else 2
        return sum(item * self.size * (2 * rows + self.size) for rows in self.rows)

    def operands(self) -> Operands:
        """Return random operands."""
        import torch

        dtype = getattr(torch, self.dtype)

        def random(rows: int) -> Any:
            return (torch.rand(rows, self.size, device="cuda") * 2 - 1).to(dtype)

        left, right = [random(rows) for rows in self.rows], [random(self.size) for _ in self.rows]
        return Operands(left, right, [torch.empty_like(each) for each in left])


def cells(
    dtypes: Sequence[str] = DTYPES, counts: Sequence[int] = COUNTS, sizes: Sequence[int] = SIZES
) -> Iterator[Cell]:
    """Yield every combination that a device has room for, small ones first."""
    for dtype in dtypes:
        for mix in MIXES:
            for size in sizes:
                for count in counts:
                    cell = Cell(dtype, mix, size, count)
                    if cell.nbytes <= _MOST_BYTES:
                        yield cell
