"""What the parts share: contexts on a folder, and products under them."""

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from harness.cuda_shapes import PRIMING, CudaShape, product_of
from harness.kernels_run import kernels_run

from tensorplay.gemm import Signature
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context

__all__ = ["FILENAME", "context_of", "kernel_run", "prime", "recorded_kernel", "run_under"]

FILENAME = "winners.csv"


def context_of(
    folder: str | os.PathLike[str], settings: Mapping[str, str] | None = None, *, enabled: bool = True
) -> TuningContext:
    """Return a context on a folder; settings are TensorPlay's variables without their prefix."""
    wanted = {"ENABLED": str(int(enabled)), "FILENAME": FILENAME} | dict(settings or {})
    return TuningContext(environ={f"TP_TUNABLEOP_{name}": value for name, value in wanted.items()}, directory=folder)


def run_under(context: TuningContext, call: Callable[[], Any]) -> Any:
    """Return what the call does under a context, the device being done with it."""
    import torch

    with use_context(context):
        result = call()
    torch.cuda.synchronize()
    return result


def prime(context: TuningContext) -> None:
    """Multiply a shape that no part measures, so that CUDA, the library and our own kernels are loaded."""
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    run_under(context, product_of(PRIMING.operands()))


def kernel_run(context: TuningContext, shape: CudaShape) -> str:
    """Return the kernel id of what a shape runs under a context, empty when it has not run."""
    return next(iter(kernels_run(context, shape)), "")


def recorded_kernel(context: TuningContext, signature: Signature) -> str:
    """Return the kernel that is recorded for a signature, empty for none."""
    return next((kernel for op, params, kernel, _ in context.get_results() if (op, params) == signature), "")
