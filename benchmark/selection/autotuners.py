"""Contestants that tune: nvmath's `Matmul.autotune`, and cuBLAS's own, which one algorithm number asks for."""

import time
from collections.abc import Sequence
from ctypes import addressof, c_double, c_float
from functools import partial
from importlib import import_module
from typing import Any

from harness.cuda_shapes import CudaOperands

from selection.contestant import Ready, Unavailable
from selection.shapes import SelectionShape
from tensorplay.backends.cublaslt.algorithm import read_kernel_id
from tensorplay.backends.cublaslt.library import cublas, cublaslt
from tensorplay.backends.cublaslt.number_types import number_types

__all__ = ["GEMM_AUTOTUNE", "cublas_autotune", "nvmath_autotune"]

GEMM_AUTOTUNE = 999
"""`CUBLAS_GEMM_AUTOTUNE` of cublas_api.h, since cuBLAS 13.0: benchmarks in the first call, and keeps the choice."""

_WORKSPACE_BYTES = 32 << 20
# What nvmath adds to an algorithm's own figure where there is an epilogue, and some more.
_SPARE_BYTES = 256
_NO, _TRANSPOSED = 0, 1


def nvmath_autotune(shape: SelectionShape, sets: Sequence[CudaOperands]) -> Ready:
    """Return the algorithm that `Matmul.autotune()` puts first, planned and tuned with nvmath's defaults.

    It is launched through the same binding, with nvmath's own descriptors, but without the arrays and Python that
    `execute()` adds: only the kernel is compared.
    """
    import torch

    advanced = import_module("nvmath.linalg.advanced")
    options: dict[str, object] = {}
    if shape.dtype == "tf32":
        options["compute_type"] = advanced.MatmulComputeType.COMPUTE_32F_FAST_TF32
    left, right, bias, _ = sets[0]
    # A bias belongs to the rows there, so that with one the product is posed the other way round.
    product = (
        advanced.Matmul(left, right.T, options=options)
        if bias is None
        else advanced.Matmul(right, left.T, options=options)
    )
    begin = time.perf_counter()
    if bias is None:
        product.plan()
    else:
        product.plan(epilog=advanced.MatmulEpilog.BIAS, epilog_inputs={"bias": bias})
    product.autotune()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    best = product.algorithms_buffer[0]
    algorithm = best["algo"]
    workspace = torch.empty(int(best.workspace_size) + _SPARE_BYTES, dtype=torch.uint8, device="cuda")
    calls = [partial(_launch, product, algorithm, workspace, one, swapped=bias is not None) for one in sets]
    return Ready(
        calls=calls,
        detail=str(read_kernel_id(algorithm.ctypes.data)),
        seconds=seconds,
        close=product.free,
    )


def _launch(product: Any, algorithm: Any, workspace: Any, operands: CudaOperands, *, swapped: bool) -> None:
    import torch

    left, right, _, out = operands
    a, b = (right, left) if swapped else (left, right)
    cublaslt().matmul(
        product.handle, product.mm_desc, product.alpha.ctypes.data, a.data_ptr(), product.a_layout_ptr, b.data_ptr(),
        product.b_layout_ptr, product.beta.ctypes.data, 0, product.c_layout_ptr, out.data_ptr(), product.d_layout_ptr,
        algorithm.ctypes.data, workspace.data_ptr(), workspace.numel(), torch.cuda.current_stream().cuda_stream,
    )  # fmt: skip


def cublas_autotune(shape: SelectionShape, sets: Sequence[CudaOperands]) -> Ready:
    """Return `cublasGemmEx` with `CUBLAS_GEMM_AUTOTUNE`, with a handle of its own, tuned in its first call.

    Raises
    ------
    Unavailable
        Where the product has a bias: the call has none.
    """
    import torch

    if shape.bias:
        raise Unavailable("the classic call has no bias")
    library = cublas()
    handle = library.create()
    workspace = torch.empty(_WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")
    types = number_types(shape.problem)
    number = c_double if shape.dtype == "float64" else c_float
    one, zero = number(1.0), number(0.0)

    def call(operands: CudaOperands) -> None:
        left, right, _, out = operands
        # Setting the stream takes the workspace away.
        library.set_stream(handle, torch.cuda.current_stream().cuda_stream)
        library.set_workspace(handle, workspace.data_ptr(), _WORKSPACE_BYTES)
        library.gemm_ex(
            handle, _TRANSPOSED, _NO, shape.n, shape.m, shape.k, addressof(one), right.data_ptr(), types.operand,
            shape.k, left.data_ptr(), types.operand, shape.k, addressof(zero), out.data_ptr(), types.out, shape.n,
            types.compute, GEMM_AUTOTUNE,
        )  # fmt: skip

    begin = time.perf_counter()
    call(sets[0])
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    return Ready(
        calls=[partial(call, each) for each in sets],
        detail="CUBLAS_GEMM_AUTOTUNE",
        seconds=seconds,
        close=partial(library.destroy, handle),
    )
