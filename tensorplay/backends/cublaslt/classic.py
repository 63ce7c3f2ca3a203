"""Classic cuBLAS: fixed dispatch of half precision, complex numbers and stacks, where nothing is chosen.

What its call does not do, a bias, an addend elsewhere, an activation, kernels of our own do (`epilogue`).
"""

from functools import cache
from threading import Lock
from typing import Any

from tensorplay.backends.base import Plan, Run
from tensorplay.backends.cublaslt.capture import PER_THREAD
from tensorplay.backends.cublaslt.device import current, relaxed_capture
from tensorplay.backends.cublaslt.epilogue import activation, addend_writer
from tensorplay.backends.cublaslt.library import cublas
from tensorplay.backends.cublaslt.number_types import is_float8, number_types
from tensorplay.backends.cublaslt.on_device import on_device
from tensorplay.backends.cublaslt.operation import check_alignment
from tensorplay.backends.cublaslt.scalars import scalars
from tensorplay.backends.cublaslt.status import reason_of
from tensorplay.backends.cublaslt.workspace import DEFAULT_BYTES, workspaces
from tensorplay.backends.host.layout import left_layout, out_layout, right_layout
from tensorplay.errors import KernelUnavailableError, LaunchError
from tensorplay.gemm import DEFAULT, GemmProblem

__all__ = ["ClassicHandle", "classic_handle", "classic_plan"]

_NO, _TRANSPOSED = 0, 1
# The library's own choice; what it will be is not told.
_ANY_ALGORITHM = -1
_INT32 = 2**31 - 1


class ClassicHandle:
    """The library's handle of one device: its stream is part of its state, so `lock` is held over each call."""

    __slots__ = ("_bound", "_handle", "_ordinal", "lock")

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal
        self._bound: tuple[int, int] | None = None
        self.lock = Lock()
        with current(ordinal), relaxed_capture():
            self._handle: int = cublas().create()

    def on_stream(self, stream: int) -> int:
        """Return the handle, its work going to the stream and its scratch memory being the stream's.

        A stream that has none under a capture uses the library's own.
        """
        try:
            address = workspaces(self._ordinal).address(stream, DEFAULT_BYTES)
        except KernelUnavailableError:
            address = 0
        # The address is compared too: a trial's stream outlives the memory that was lent to it.
        if (stream, address) != self._bound or stream == PER_THREAD:
            self._bound = None
            # Setting the stream also takes the workspace away.
            cublas().set_stream(self._handle, stream)
            if address:
                cublas().set_workspace(self._handle, address, DEFAULT_BYTES)
            self._bound = (stream, address)
        return self._handle


@cache
def classic_handle(ordinal: int) -> ClassicHandle:
    """Return the handle of a device, made at its first use and kept."""
    return ClassicHandle(ordinal)


def classic_plan(problem: GemmProblem) -> Plan:
    """Return the plan of the classic call, single or strided-batched; its kernel is `Default`.

    Raises
    ------
    KernelUnavailableError
        When the call cannot do it: FP8, an activation of complex numbers.
    OperandError
        When operands begin in the middle of an element.
    """
    check_alignment(problem)
    if is_float8(problem.dtype) or (problem.out_dtype is not None and is_float8(problem.out_dtype)):
        raise KernelUnavailableError("classic cuBLAS multiplies no FP8")
    ordinal = int(problem.device)
    out_dtype = problem.out_dtype or problem.dtype
    out = out_layout(problem)
    add = addend_writer(ordinal, out_dtype, out) if problem.bias or problem.accumulate else None
    activate = activation(ordinal, out_dtype, out, problem.activation) if problem.activation != "none" else None
    multiply = _multiplier(problem, classic_handle(ordinal))
    has_bias = problem.bias

    def run(
        left: int,
        right: int,
        result: int,
        c: int = 0,
        bias: int = 0,
        alpha: Any = 1.0,
        beta: Any = 0.0,
        stream: int = 0,
    ) -> int:
        if add is not None and (has_bias or (beta != 0.0 and c not in {0, result})):
            addend = (c or result) if beta != 0.0 else 0
            add(result, addend, bias if has_bias else 0, beta, stream)
            beta = 1.0
        multiply(left, right, result, alpha, beta, stream)
        if activate is not None:
            activate(result, stream)
        return result

    return Plan(problem, DEFAULT, on_device(ordinal, run), DEFAULT_BYTES)


def _multiplier(problem: GemmProblem, handle: ClassicHandle) -> Run:
    """Return `multiply(left, right, out, alpha, beta, stream)`, with operands swapped as `operation` explains."""
    library, types = cublas(), number_types(problem)
    refused, numbers = library.cuBLASError, scalars(types.scale)
    a, b, out = right_layout(problem), left_layout(problem), out_layout(problem)
    is_long = max(problem.m, problem.n, problem.k, a.ld, b.ld, out.ld, problem.batch) > _INT32
    transposes = (_TRANSPOSED if problem.transpose_right else _NO, _TRANSPOSED if problem.transpose_left else _NO)
    sizes, batch = (problem.n, problem.m, problem.k), problem.batch
    single = library.gemm_ex_64 if is_long else library.gemm_ex
    stacked = library.gemm_strided_batched_ex_64 if is_long else library.gemm_strided_batched_ex
    operand, result, compute = types.operand, types.out, types.compute

    def multiply(left: int, right: int, out_at: int, alpha: Any, beta: Any, stream: int) -> None:
        alpha_at, beta_at = numbers.pair(alpha, beta)
        try:
            with handle.lock:
                raw = handle.on_stream(stream)
                if batch == 1:
                    single(
                        raw, *transposes, *sizes, alpha_at, right, operand, a.ld, left, operand, b.ld,
                        beta_at, out_at, result, out.ld, compute, _ANY_ALGORITHM,
                    )  # fmt: skip
                else:
                    stacked(
                        raw, *transposes, *sizes, alpha_at, right, operand, a.ld, a.stride,
                        left, operand, b.ld, b.stride, beta_at, out_at, result, out.ld, out.stride,
                        batch, compute, _ANY_ALGORITHM,
                    )  # fmt: skip
        except refused as error:
            raise LaunchError(f"classic cuBLAS did not launch: {reason_of(error)}") from error

    return multiply
