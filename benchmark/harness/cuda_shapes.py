"""Products as people ask a GPU for them: the seed's five shapes, and those on which replay is judged.

All are of the families that are tuned by default: float32 and float64, and half precision with a bias.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from tensorplay import linear, mm
from tensorplay.gemm import GemmProblem, dtype_of_name

__all__ = ["PRIMING", "REACH_SHAPES", "SEED_SHAPES", "CudaOperands", "CudaShape", "product_of"]


class CudaOperands(NamedTuple):
    """Tensors filled with random numbers; `right` is the weight (n, k) where the shape has a bias."""

    left: Any
    right: Any
    bias: Any
    out: Any


class CudaShape(NamedTuple):
    """One product: (m, k) by (k, n); with a bias, x (m, k) by the transpose of a weight (n, k), plus bias."""

    dtype: str
    m: int
    n: int
    k: int
    bias: bool = False

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k} {self.dtype}{' + bias' if self.bias else ''}"

    @property
    def problem(self) -> GemmProblem:
        """Return what the shape poses on device 0."""
        dtype = dtype_of_name(self.dtype)
        if dtype is None:
            raise ValueError(f"{self.dtype} is no data type")
        return GemmProblem(
            dtype=dtype, m=self.m, n=self.n, k=self.k, transpose_right=self.bias, bias=self.bias, device="0"
        )

    @property
    def nbytes(self) -> int:
        """Return the bytes of one set of operands."""
        return self.problem.dtype.itemsize * (self.m * self.k + self.k * self.n + self.m * self.n)

    def operands(self, seed: int = 0) -> CudaOperands:
        """Return new operands, the same numbers for the same seed."""
        import torch

        generator = torch.Generator("cuda").manual_seed(seed)
        dtype = getattr(torch, self.dtype)

        def random(*sizes: int) -> Any:
            return torch.rand(sizes, device="cuda", dtype=dtype, generator=generator) * 2 - 1

        right = random(self.n, self.k) if self.bias else random(self.k, self.n)
        out = torch.zeros(self.m, self.n, device="cuda", dtype=dtype)
        return CudaOperands(random(self.m, self.k), right, random(self.n) if self.bias else None, out)


def product_of(operands: CudaOperands) -> Callable[[], Any]:
    """Return the call of TensorPlay that computes the product into `out`."""
    left, right, bias, out = operands
    if bias is None:
        return lambda: mm(left, right, out=out)
    return lambda: linear(left, right, bias, out=out)


PRIMING = CudaShape("float32", 96, 160, 64)
"""Multiplied before anything is timed, so that CUDA and the library are up."""

SEED_SHAPES = (
    CudaShape("float32", 4096, 4096, 4096),
    CudaShape("float32", 8192, 4096, 4096, bias=True),
    CudaShape("float16", 4096, 11008, 4096, bias=True),
    CudaShape("float16", 512, 4096, 4096, bias=True),
    CudaShape("float64", 256, 256, 256, bias=True),
)

REACH_SHAPES = (
    *SEED_SHAPES,
    CudaShape("float32", 256, 64, 1024),
    CudaShape("float32", 64, 10, 784),
    CudaShape("float32", 16, 1024, 4096),
    CudaShape("float32", 512, 512, 512),
    CudaShape("float32", 1, 4096, 4096),
    CudaShape("float32", 1024, 4096, 1024),
    CudaShape("float32", 8192, 512, 512),
    CudaShape("float32", 100, 3000, 1000),
    CudaShape("float64", 1000, 1000, 1000),
    CudaShape("float64", 64, 4096, 4096),
    CudaShape("float16", 512, 2304, 768, bias=True),
    CudaShape("float16", 197, 1024, 4096, bias=True),
    CudaShape("float16", 128, 1000, 2048, bias=True),
    CudaShape("bfloat16", 64, 512, 4096, bias=True),
    CudaShape("bfloat16", 1024, 3840, 1280, bias=True),
)
