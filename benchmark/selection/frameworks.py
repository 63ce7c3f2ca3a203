"""Contestants that are array libraries as people use them, except JAX: torch and CuPy."""

import warnings
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

from harness.cuda_shapes import CudaOperands

from selection.contestant import Ready
from selection.shapes import SelectionShape

__all__ = ["cupy", "torch_mm"]


def torch_mm(shape: SelectionShape, sets: Sequence[CudaOperands]) -> Ready:
    """Return torch's own product, `mm` or `addmm` with `out`; what `F.linear` runs too."""
    import torch

    if shape.bias:
        calls = [partial(torch.addmm, bias, left, right.T, out=out) for left, right, bias, out in sets]
        return Ready(calls=calls, detail="torch.addmm")
    return Ready(calls=[partial(torch.mm, left, right.T, out=out) for left, right, _, out in sets], detail="torch.mm")


def cupy(shape: SelectionShape, sets: Sequence[CudaOperands]) -> Ready:
    """Return CuPy's `matmul`, and its sum with the bias where there is one, as a user of CuPy writes it."""
    cp = import_module("cupy")
    _allow_tf32(cp, is_allowed=shape.dtype == "tf32")
    calls = [_on_torch_stream(cp, [None if each is None else cp.from_dlpack(each) for each in one]) for one in sets]
    return Ready(calls=calls, detail="cupy.matmul, cupy.add" if shape.bias else "cupy.matmul")


def _on_torch_stream(cp: Any, operands: list[Any]) -> partial[None]:
    left, right, bias, out = operands
    return partial(_multiply, cp, left, right.T, bias, out)


def _multiply(cp: Any, left: Any, right: Any, bias: Any, out: Any) -> None:
    import torch

    with _stream(cp, torch.cuda.current_stream().cuda_stream):
        cp.matmul(left, right, out=out)
        if bias is not None:
            cp.add(out, bias, out=out)


def _stream(cp: Any, address: int) -> Any:
    with warnings.catch_warnings():
        # Newer versions would rather have another way to name the same stream.
        warnings.simplefilter("ignore")
        return cp.cuda.ExternalStream(address)


def _allow_tf32(cp: Any, *, is_allowed: bool) -> None:
    linalg = import_module("cupy._core._routines_linalg")
    linalg.set_compute_type(cp.float32, linalg.COMPUTE_TYPE_TF32 if is_allowed else linalg.COMPUTE_TYPE_DEFAULT)
