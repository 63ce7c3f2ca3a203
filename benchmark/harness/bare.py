"""A call of cuBLASLt by nvmath's own bindings, as a program without a tuner would write it."""

from collections.abc import Callable
from ctypes import addressof, c_double, c_float, c_int32
from typing import Any, NamedTuple

from harness.cuda_shapes import CudaOperands, CudaShape
from tensorplay.backends.cublaslt.attributes import HeuristicResult
from tensorplay.backends.cublaslt.descriptors import Preference
from tensorplay.backends.cublaslt.library import cublaslt
from tensorplay.backends.cublaslt.operation import Operation

__all__ = ["WORKSPACE_BYTES", "BareArguments", "bare_arguments", "first_call", "handle_and_workspace"]

WORKSPACE_BYTES = 32 << 20
_EVERY_REDUCTION = 7


class BareArguments(NamedTuple):
    """The arguments of one call, and what must live as long as they are used."""

    arguments: tuple[int, ...]
    kept: tuple[object, ...]


def handle_and_workspace() -> tuple[int, Any]:
    """Return a handle of the library and scratch memory on device 0: what is made once in a process."""
    import torch

    torch.zeros(1, device="cuda")
    return cublaslt().create(), torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")


def chosen_by_library(handle: int, operation: Operation) -> HeuristicResult:
    """Return the library's first answer for an operation."""
    result, found = HeuristicResult(), c_int32()
    # Operands of torch are aligned to 256 bytes, which is what the library assumes too.
    preference = Preference(workspace_bytes=WORKSPACE_BYTES, reduction_mask=_EVERY_REDUCTION, alignment=256)
    parts = (operation.a.handle, operation.b.handle, operation.c.handle, operation.d.handle)
    cublaslt().matmul_algo_get_heuristic(
        handle, operation.descriptor.handle, *parts, preference.handle, 1, addressof(result), addressof(found)
    )
    preference.close()
    if not found.value:
        raise RuntimeError("the library offers nothing for this product")
    return result


def bare_arguments(
    handle: int, operation: Operation, algorithm: int, workspace: int, workspace_bytes: int, operands: CudaOperands
) -> BareArguments:
    """Return all arguments of the library's own matmul; `algorithm` is the address of its 64 bytes.

    Whoever owns the algorithm, the workspace and the tensors must keep them.
    """
    import torch

    left, right, bias, out = operands
    number = c_double if out.dtype == torch.float64 else c_float
    one, zero = number(1.0), number(0.0)
    if bias is not None:
        operation.descriptor.set_bias(bias.data_ptr())
    stream = torch.cuda.current_stream().cuda_stream
    arguments = (
        handle, operation.descriptor.handle, addressof(one), right.data_ptr(), operation.a.handle, left.data_ptr(),
        operation.b.handle, addressof(zero), out.data_ptr(), operation.c.handle, out.data_ptr(), operation.d.handle,
        algorithm, workspace, workspace_bytes, stream,
    )  # fmt: skip
    return BareArguments(arguments, (one, zero, operation))


def first_call(shape: CudaShape, operands: CudaOperands, handle: int, workspace: Any) -> Callable[[], None]:
    """Return the whole of it, for once: descriptors, the library's choice, and the product."""
    matmul = cublaslt().matmul

    def call() -> None:
        operation = Operation(shape.problem)
        chosen = chosen_by_library(handle, operation)
        ready = bare_arguments(handle, operation, addressof(chosen), workspace.data_ptr(), WORKSPACE_BYTES, operands)
        matmul(*ready.arguments)

    return call
