"""Products as people ask a host for them: the shapes on which the tuner is judged.

They were chosen by where they come from, before any was timed, and none was left out since. Each kind that a
host meets is there, also those where there is little to gain or a look-up weighs much:

- *tiny* and *square*: what tutorials and tests multiply, from a few microseconds, where the look-up shows, to
  1024, where a BLAS is at its best;
- *decode*: one to sixteen rows against a large weight, as language models generate text and servers answer single
  requests; the weight is stored (n, k) and used as its transposed view, as `linear` does, or the other way;
- *layer*: the products of a small transformer over 128 tokens (768 wide, 3072 inside);
- *tall*: many rows against few columns, as in regression, clustering and features times weights;
- *gram*: the left operand transposed, as X.T @ X and weight gradients;
- *padded*: operands and results that are windows of larger arrays, so that rows lie further apart than they are long;
- *odd*: sizes that no vector width divides.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["HOST_SHAPES", "Operands", "Shape"]

Array = NDArray[Any]


class Operands(NamedTuple):
    """Two operands filled with random numbers, and where the result goes."""

    left: Array
    right: Array
    out: Array


class Shape(NamedTuple):
    """One product: (m, k) by (k, n).

    Attributes
    ----------
    kind : str
        Where it comes from; see the module.
    dtype : str
        As NumPy names it.
    m, n, k : int
        Sizes.
    left_transposed, right_transposed : bool
        The operand is the transposed view of row-major storage.
    padding : int
        Elements between the rows of all three arrays.
    """

    kind: str
    dtype: str
    m: int
    n: int
    k: int
    left_transposed: bool = False
    right_transposed: bool = False
    padding: int = 0

    def __str__(self) -> str:
        left = ".T" if self.left_transposed else ""
        right = ".T" if self.right_transposed else ""
        padding = f" +{self.padding}" if self.padding else ""
        return f"{self.dtype} ({self.m},{self.k}){left} @ ({self.k},{self.n}){right}{padding}"

    def operands(self, rng: np.random.Generator) -> Operands:
        """Return new operands."""
        left = self._matrix(self.m, self.k, rng, transposed=self.left_transposed)
        right = self._matrix(self.k, self.n, rng, transposed=self.right_transposed)
        return Operands(left, right, self._matrix(self.m, self.n, rng, transposed=False))

    def _matrix(self, rows: int, columns: int, rng: np.random.Generator, *, transposed: bool) -> Array:
        stored = (columns, rows) if transposed else (rows, columns)
        wide = rng.standard_normal((stored[0], stored[1] + self.padding)).astype(self.dtype)
        matrix: Array = wide[:, : stored[1]]
        return matrix.T if transposed else matrix


HOST_SHAPES = (
    Shape("tiny", "float32", 32, 32, 32),
    Shape("tiny", "float32", 64, 64, 64),
    Shape("tiny", "float64", 96, 96, 96),
    Shape("square", "float32", 256, 256, 256),
    Shape("square", "float64", 384, 384, 384),
    Shape("square", "float32", 1024, 1024, 1024),
    Shape("square", "float64", 1024, 1024, 1024),
    Shape("decode", "float32", 1, 4096, 1024, right_transposed=True),
    Shape("decode", "float32", 1, 1024, 4096),
    Shape("decode", "float32", 4, 4096, 1024, right_transposed=True),
    Shape("decode", "float32", 8, 1024, 4096, right_transposed=True),
    Shape("decode", "float64", 16, 2048, 512),
    Shape("decode", "float32", 16, 3072, 768, right_transposed=True),
    Shape("layer", "float32", 128, 768, 768, right_transposed=True),
    Shape("layer", "float32", 128, 3072, 768, right_transposed=True),
    Shape("layer", "float32", 128, 768, 3072),
    Shape("tall", "float64", 20000, 8, 32),
    Shape("tall", "float32", 8192, 64, 64),
    Shape("gram", "float64", 50, 50, 10000, left_transposed=True),
    Shape("gram", "float32", 768, 256, 512, left_transposed=True),
    Shape("padded", "float32", 256, 256, 256, padding=16),
    Shape("padded", "float64", 192, 320, 128, padding=24),
    Shape("odd", "float32", 127, 129, 131),
    Shape("odd", "float64", 333, 251, 509),
)
