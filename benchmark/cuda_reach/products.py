"""Random products of all data types, with the exact result of each and how far off it may be."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorplay import addmm, bmm, linear, mm

__all__ = ["OPERATIONS", "Case", "Posed", "random_case"]

Array = NDArray[Any]

OPERATIONS = ("mm", "linear", "bias", "addmm", "bmm")
"""`bias` is `addmm` with a vector; `addmm` has a matrix, alpha and beta."""

_SIZES = (1, 2, 3, 8, 17, 64, 100, 255, 256, 511)
_REAL = ("float32", "tf32", "float64", "float16", "bfloat16")
_ALL = (*_REAL, "complex64", "complex128", "float8_e4m3fn")
# Roundoff of factors as they are multiplied, of sums, of the result.
_ROUNDOFF = {
    "float32": (0.0, 2.0**-24, 2.0**-24),
    "tf32": (2.0**-10, 2.0**-24, 2.0**-24),
    "float64": (0.0, 2.0**-53, 2.0**-53),
    "float16": (0.0, 2.0**-24, 2.0**-11),
    "bfloat16": (0.0, 2.0**-24, 2.0**-8),
    "complex64": (0.0, 2.0**-22, 2.0**-23),
    "complex128": (0.0, 2.0**-51, 2.0**-52),
    # Hopper keeps about 14 bits when it aligns addends of FP8 products; the result is bfloat16.
    "float8_e4m3fn": (0.0, 2.0**-13, 2.0**-8),
}
_FILLING = 7.0


@dataclass(frozen=True, slots=True, eq=False)
class Posed:
    """One product on the device: how to compute it, and its parts in float64.

    Attributes
    ----------
    compute : callable
        Writes the result into `storage`.
    storage : torch.Tensor
        What the result is a window of; everywhere else it holds a filling.
    out : torch.Tensor
        The window.
    product, magnitude, addend : array
        alpha times left times right; the same of absolute values; what is added.
    """

    compute: Callable[[], object]
    storage: Any
    out: Any
    product: Array
    magnitude: Array
    addend: Array

    def found(self) -> Array:
        """Return what was computed."""
        return _exact(self.out)

    def has_spilled(self) -> bool:
        """Return whether anything beside the result was written."""
        return bool((self.storage[..., self.out.shape[-1] :] != _FILLING).any())


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One random product.

    Attributes
    ----------
    operation, dtype : str
        Of `OPERATIONS`; as torch names it, or `tf32`.
    m, n, k : int
        Sizes.
    transposes : pair of bool
        Whether left and right are transposed views of what is stored.
    paddings : triple of int
        Elements between the stored rows of left, right and result.
    alpha, beta : float
        Factors of `addmm`.
    batch : int
        Of `bmm`.
    """

    operation: str
    dtype: str
    m: int
    n: int
    k: int
    transposes: tuple[bool, bool]
    paddings: tuple[int, int, int]
    alpha: float = 1.0
    beta: float = 1.0
    batch: int = 3

    def posed(self, seed: int) -> Posed:
        """Return it on the device."""
        import torch

        torch.manual_seed(seed)
        stack = (self.batch,) if self.operation == "bmm" else ()
        left = self._matrix(stack, self.m, self.k, 0, transposed=self.transposes[0])
        right = self._matrix(stack, self.k, self.n, 1, transposed=self.transposes[1])
        out_type = torch.bfloat16 if self.dtype == "float8_e4m3fn" else left.dtype
        storage = torch.full((*stack, self.m, self.n + self.paddings[2]), _FILLING, device="cuda", dtype=out_type)
        out = storage[..., : self.n]
        vector = self._random(self.n)
        matrix = self._random(self.m, self.n)
        compute: dict[str, Callable[[], object]] = {
            "mm": lambda: mm(left, right, out=out),
            "bmm": lambda: bmm(left, right, out=out),
            "linear": lambda: linear(left, right.T, vector, out=out),
            "bias": lambda: addmm(vector, left, right, out=out),
            "addmm": lambda: addmm(matrix, left, right, alpha=self.alpha, beta=self.beta, out=out),
        }
        a, b = _exact(left), _exact(right)
        factor = self.alpha if self.operation == "addmm" else 1.0
        added = {"linear": vector, "bias": vector, "addmm": matrix}.get(self.operation)
        addend = np.zeros(1) if added is None else _exact(added) * (self.beta if self.operation == "addmm" else 1.0)
        magnitude = abs(factor) * (np.abs(a) @ np.abs(b))
        return Posed(compute[self.operation], storage, out, factor * (a @ b), magnitude, addend)

    def share_of_bound(self, posed: Posed, found: Array) -> float:
        """Return the largest error as a share of what is allowed, infinite where something is not a number.

        Allowed is what rounding explains: of factors in full, of sums by their probable growth with the root of
        k, and of the result, which some kernels round once before they add, and once in each of a few split sums.
        """
        factors, sums, result = _ROUNDOFF[self.dtype]
        growth = min(self.k, 6 * self.k**0.5) + 8
        largest = float(np.abs(posed.product).max()) + float(np.abs(posed.addend).max())
        allowed = (
            (factors + growth * sums) * posed.magnitude
            + 8 * sums * (np.abs(posed.addend) + largest)
            + 2 * result * largest
            # Below the smallest normal number errors are absolute.
            + (2.0**-24 if self.dtype == "float16" else 0.0)
        )
        exact = posed.product + posed.addend
        if found.shape != exact.shape or not np.isfinite(found).all():
            return float("inf")
        return float((np.abs(found - exact) / np.maximum(allowed, 1e-300)).max())

    def _matrix(self, stack: tuple[int, ...], rows: int, columns: int, place: int, *, transposed: bool) -> Any:
        first, second = (columns, rows) if transposed else (rows, columns)
        stored = self._random(*stack, first, second + self.paddings[place])[..., :second]
        return stored.transpose(-1, -2) if transposed else stored

    def _random(self, *sizes: int) -> Any:
        import torch

        if self.dtype == "float8_e4m3fn":
            return (torch.rand(sizes, device="cuda") * 2 - 1).to(torch.float8_e4m3fn)
        if self.dtype.startswith("complex"):
            part = torch.float32 if self.dtype == "complex64" else torch.float64
            return torch.view_as_complex(torch.rand((*sizes, 2), device="cuda", dtype=part) * 2 - 1)
        dtype = torch.float32 if self.dtype == "tf32" else getattr(torch, self.dtype)
        return torch.rand(sizes, device="cuda", dtype=dtype) * 2 - 1


def random_case(rng: random.Random, operation: str) -> Case:
    """Return a random product that the operation allows."""
    dtype = rng.choice(_REAL if operation in {"linear", "bias"} else _ALL)
    if dtype == "float8_e4m3fn" and operation != "mm":
        dtype = rng.choice(_REAL)
    m, n, k = (rng.choice(_SIZES) for _ in range(3))
    transposes = (rng.random() < 0.5, rng.random() < 0.5)
    paddings = (_padding(rng), _padding(rng), _padding(rng))
    if dtype == "float8_e4m3fn":
        # What the library has for FP8: sizes of whole vectors, the right operand stored (n, k).
        m, n, k = (16 * rng.randint(1, 24) for _ in range(3))
        transposes, paddings = (False, True), (0, 0, 0)
    return Case(
        operation=operation,
        dtype=dtype,
        m=m,
        n=n,
        k=k,
        transposes=transposes,
        paddings=paddings,
        alpha=rng.choice((1.0, -0.5, 2.25)),
        beta=rng.choice((0.0, 1.0, -1.5)),
        batch=rng.choice((1, 2, 5)),
    )


def _padding(rng: random.Random) -> int:
    return rng.randrange(1, 9) if rng.random() < 0.3 else 0


def _exact(tensor: Any) -> Array:
    """Return a tensor's values in double precision on the host."""
    if tensor.dtype.is_complex:
        return np.asarray(tensor.cpu().numpy(), dtype=np.complex128)
    # By way of float32, which every narrower type converts to.
    wide = tensor if str(tensor.dtype) == "torch.float64" else tensor.float()
    return np.asarray(wide.cpu().numpy(), dtype=np.float64)
