"""What `tensorplay bench` multiplies: the text of a shape, lists of them, and the list for every machine."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tensorplay.database.line_file import read_settled
from tensorplay.gemm.dtype import DTYPES
from tensorplay.gemm.problem import LARGEST_SIZE

__all__ = ["DEFAULT_SHAPES", "BenchShape", "parse_shape", "read_shapes"]

_TEXT = re.compile(
    r"(?P<dtype>[a-z0-9_]+):(?P<m>[0-9]+)x(?P<n>[0-9]+)x(?P<k>[0-9]+)(?P<flags>(?::(?:T|bias))*)", re.ASCII
)
_NAMES = tuple(dtype.name for dtype in DTYPES)
_ALLOWED = "allowed: dtype:MxNxK, then :T for a transposed right operand and :bias, as in float32:16x1024x512:T:bias"


@dataclass(frozen=True, slots=True)
class BenchShape:
    """One product to time: left (m, k), right (k, n), and whether a bias (n,) is added.

    With `transposed`, the right operand is the transposed view of a weight stored as (n, k). Raises `ValueError`
    when a size is out of range or the data type is unknown.
    """

    dtype: str
    m: int
    n: int
    k: int
    transposed: bool = False
    bias: bool = False

    def __post_init__(self) -> None:
        if self.dtype not in _NAMES:
            raise ValueError(f"data type {self.dtype!r} is unknown; allowed: {', '.join(_NAMES)}")
        for name in ("m", "n", "k"):
            if not 1 <= getattr(self, name) <= LARGEST_SIZE:
                raise ValueError(f"{name} is {getattr(self, name)}; allowed: 1 to {LARGEST_SIZE}")

    def __str__(self) -> str:
        flags = (":T" if self.transposed else "") + (":bias" if self.bias else "")
        return f"{self.dtype}:{self.m}x{self.n}x{self.k}{flags}"


def parse_shape(text: str) -> BenchShape:
    """Return the shape that the text names; `ValueError` when it names none."""
    match = _TEXT.fullmatch(text)
    if match is None or max(map(len, match.group("m", "n", "k"))) > len(str(LARGEST_SIZE)):
        raise ValueError(f"{text[:80]!r} is no shape; {_ALLOWED}")
    flags = match["flags"].split(":")
    return BenchShape(
        match["dtype"], int(match["m"]), int(match["n"]), int(match["k"]), transposed="T" in flags, bias="bias" in flags
    )


def read_shapes(path: str) -> list[BenchShape]:
    """Return the shapes of a JSON file: `[dtype, m, n, k, bias]` rows, alone or as `shapes` of an object.

    The right operand of each is a transposed weight, as in a neural network's linear layer.

    Raises
    ------
    ValueError
        When the file is no such list; the message says which row.
    OSError
        When it cannot be read.
    """
    try:
        document = json.loads(read_settled(path)[0])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path!r} is no JSON: {error}") from None
    rows = document.get("shapes") if isinstance(document, dict) else document
    if not isinstance(rows, list) or not rows:
        raise ValueError(f"{path!r} holds no list of shapes; allowed: [[dtype, m, n, k, bias], ...]")
    return [_shape_of_row(path, number, row) for number, row in enumerate(rows, 1)]


def _shape_of_row(path: str, number: int, row: object) -> BenchShape:
    expected = (str, int, int, int, bool)
    # The exact type: True is an int, and a size of True is a slip.
    if not isinstance(row, list) or tuple(map(type, row)) != expected:
        raise ValueError(f"row {number} of {path!r} is {row!r:.80}; allowed: [dtype, m, n, k, bias]")
    dtype, m, n, k, bias = row
    try:
        return BenchShape(dtype, m, n, k, transposed=True, bias=bias)
    except ValueError as error:
        raise ValueError(f"row {number} of {path!r}: {error}") from None


# Small ones, where a call costs more than the arithmetic; few rows or columns, which a BLAS shares out badly among
# its threads; transposed weights; half precision; and squares, where the first choice is hard to beat.
DEFAULT_SHAPES: Sequence[BenchShape] = tuple(
    map(
        parse_shape,
        (
            "float32:16x16x64",
            "float32:4x1024x1024:T",
            "float32:16x1024x1024:T",
            "float32:64x768x768:T",
            "float32:8x512x2048:T:bias",
            "float64:192x320x128",
            "float32:512x512x64:T",
            "float32:512x512x512",
            "float16:32x128x64:T:bias",
        ),
    )
)
