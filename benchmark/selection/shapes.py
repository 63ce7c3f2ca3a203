"""The products that are compared: x (m, k) by the transposed view of a weight (n, k), with or without a bias."""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import starmap
from pathlib import Path
from typing import Any, TypeVar

from harness.cuda_shapes import CudaOperands, CudaShape

from tensorplay.gemm import GemmProblem, dtype_of_name

__all__ = [
    "DECODE_SHAPES",
    "SHAPES",
    "SelectionShape",
    "parse_slice",
    "read_decode",
    "read_shapes",
    "sets_of",
    "sliced",
]

_HERE = Path(__file__).resolve().parents[1]
SHAPES = _HERE / "shapes_gpu.json"
"""57 products of language models, vision and the classics."""
DECODE_SHAPES = _HERE / "shapes_decode.json"
"""12 products of few rows by a large weight."""

_MOST_SETS = 1024
_SLICE = re.compile(r"(\d*):(\d*)(?::([1-9]\d*))?", re.ASCII)

T = TypeVar("T")


class SelectionShape(CudaShape):
    """One product; `tf32` is float32 storage whose factors may be rounded to TF32."""

    __slots__ = ()

    @property
    def problem(self) -> GemmProblem:
        """Return what the shape poses on device 0."""
        dtype = dtype_of_name(self.dtype)
        if dtype is None:
            raise ValueError(f"{self.dtype} is no data type")
        return GemmProblem(dtype=dtype, m=self.m, n=self.n, k=self.k, transpose_right=True, bias=self.bias, device="0")

    @property
    def weight_nbytes(self) -> int:
        """Return the bytes of the weight."""
        return self.problem.dtype.itemsize * self.n * self.k

    def operands(self, seed: int = 0) -> CudaOperands:
        """Return new operands, the same numbers for the same seed; the right one is the weight (n, k)."""
        import torch

        generator = torch.Generator("cuda").manual_seed(seed)
        dtype = torch.float32 if self.dtype == "tf32" else getattr(torch, self.dtype)

        def random(*sizes: int) -> Any:
            return torch.rand(sizes, device="cuda", dtype=dtype, generator=generator) * 2 - 1

        bias = random(self.n) if self.bias else None
        out = torch.zeros(self.m, self.n, device="cuda", dtype=dtype)
        return CudaOperands(random(self.m, self.k), random(self.n, self.k), bias, out)


def sets_of(shape: SelectionShape, cache_bytes: int) -> int:
    """Return how many sets of operands are more than twice a cache of that size, two at least."""
    return max(2, min(_MOST_SETS, 1 + 2 * cache_bytes // shape.nbytes))


def read_shapes(path: Path = SHAPES) -> tuple[SelectionShape, ...]:
    """Return the shapes of a file of lists `[dtype, m, n, k, bias]`, in its order."""
    return tuple(starmap(SelectionShape, _document(path)["shapes"]))


def read_decode(path: Path = DECODE_SHAPES) -> tuple[SelectionShape, ...]:
    """Return the shapes of a file of rows with m, n and k, in its order: bfloat16 without a bias."""
    return tuple(SelectionShape("bfloat16", row["m"], row["n"], row["k"]) for row in _document(path)["rows"])


def parse_slice(text: str) -> slice:
    """Return the slice that `A:B` or `A:B:STEP` means, each number left out as in Python; ValueError for others."""
    match = _SLICE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no slice; allowed: A:B or A:B:STEP, such as 0:29 or ::5")
    return slice(*(int(number) if number else None for number in match.groups()))


def sliced(items: Sequence[T], wanted: slice | None, default: slice | None = None) -> list[T]:
    """Return the items of a slice, of the default one unless another is wanted, of none of both all."""
    return list(items[wanted or default or slice(None)])


def _document(path: Path) -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document
