"""Classic cuBLAS: fixed dispatch of half precision, complex numbers and stacks, and a candidate of the others.

Its call chooses a kernel itself, by a heuristic of its own. What the call does not do, a bias, an addend elsewhere, an
activation, kernels of our own do (`epilogue`).
"""

from typing import Any

from tensorplay.backends.base import Plan, Run
from tensorplay.backends.cublaslt.classic_handle import ClassicHandles, classic_handles
from tensorplay.backends.cublaslt.epilogue import activation, addend_writer
from tensorplay.backends.cublaslt.library import cublas
from tensorplay.backends.cublaslt.number_types import R_32F, is_float8, is_half, number_types
from tensorplay.backends.cublaslt.on_device import on_device
from tensorplay.backends.cublaslt.operation import check_alignment
from tensorplay.backends.cublaslt.plan import workspace_ceiling
from tensorplay.backends.cublaslt.scalars import scalars
from tensorplay.backends.cublaslt.status import reason_of
from tensorplay.backends.cublaslt.workspace import DEFAULT_BYTES, workspaces
from tensorplay.backends.host.layout import left_layout, out_layout, right_layout
from tensorplay.errors import KernelUnavailableError, LaunchError
from tensorplay.gemm import DEFAULT, GemmProblem

__all__ = ["LEAST_BYTES", "classic_plan"]

LEAST_BYTES = 16 << 10
"""Scratch memory without which some of its calls fail, as its makers say; taken whatever the ceiling is."""

_NO, _TRANSPOSED = 0, 1
# The library's own choice; what it will be is not told.
_ANY_ALGORITHM = -1
_INT32 = 2**31 - 1


def classic_plan(problem: GemmProblem, *, kernel: str = DEFAULT, strict: bool = False) -> Plan:
    """Return the plan of the classic call, single or strided-batched, under the name `kernel`.

    As array libraries call it, it may round parts of a split sum to the 16 bits of its result; `strict` ones are
    kept in the type that is summed in.

    Raises
    ------
    KernelUnavailableError
        When the call cannot do it: FP8, a result of another type, an activation of complex numbers.
    OperandError
        When operands begin in the middle of an element.
    """
    check_alignment(problem)
    _check_types(problem)
    ordinal = int(problem.device)
    workspaces(ordinal).prepare()
    out_dtype, out = problem.out_dtype or problem.dtype, out_layout(problem)
    add = addend_writer(ordinal, out_dtype, out) if problem.bias or problem.accumulate else None
    activate = activation(ordinal, out_dtype, out, problem.activation) if problem.activation != "none" else None
    nbytes = max(LEAST_BYTES, min(DEFAULT_BYTES, workspace_ceiling(problem)))
    multiply = _multiplier(problem, classic_handles(ordinal), nbytes, strict=strict)
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
        if add is not None:
            if has_bias:
                add(result, (c or result) if beta != 0.0 else 0, bias, beta, stream)
                beta = 1.0
            elif beta != 0.0 and c not in {0, result}:
                # A plain copy: scaled here, the addend would be rounded once more than it has to be.
                add(result, c, 0, 1.0, stream)
        multiply(left, right, result, alpha, beta, stream)
        if activate is not None:
            activate(result, stream)
        return result

    # It does not say how it sums.
    return Plan(problem, kernel, on_device(ordinal, run), nbytes, is_deterministic=False)


def _check_types(problem: GemmProblem) -> None:
    out = problem.out_dtype or problem.dtype
    if is_float8(problem.dtype) or is_float8(out):
        raise KernelUnavailableError("classic cuBLAS multiplies no FP8")
    types = number_types(problem)
    is_widened = is_half(problem.dtype) and (types.scale, types.out) == (R_32F, R_32F)
    if types.out != types.operand and not is_widened:
        raise KernelUnavailableError(f"classic cuBLAS makes no {out.name} from {problem.dtype.name}")


def _multiplier(problem: GemmProblem, handles: ClassicHandles, nbytes: int, *, strict: bool) -> Run:
    """Return `multiply(left, right, out, alpha, beta, stream)`, with operands swapped as `operation` explains."""
    library, types = cublas(), number_types(problem)
    refused, constants = library.cuBLASError, scalars(types.scale)
    zero, one = constants.zero, constants.one
    a, b, out = right_layout(problem), left_layout(problem), out_layout(problem)
    is_long = max(problem.m, problem.n, problem.k, a.ld, b.ld, out.ld, problem.batch) > _INT32
    transposes = (_TRANSPOSED if problem.transpose_right else _NO, _TRANSPOSED if problem.transpose_left else _NO)
    sizes, batch = (problem.n, problem.m, problem.k), problem.batch
    single = library.gemm_ex_64 if is_long else library.gemm_ex
    stacked = library.gemm_strided_batched_ex_64 if is_long else library.gemm_strided_batched_ex
    operand, result, compute = types.operand, types.out, types.compute

    def multiply(left: int, right: int, out_at: int, alpha: Any, beta: Any, stream: int) -> None:
        factors = None
        with handles.lock:
            handle = handles.take()
            try:
                if alpha == 1.0 and beta in {0.0, 1.0}:
                    alpha_at, beta_at = one, (one if beta else zero)
                else:
                    factors = constants.pair(alpha, beta)
                    alpha_at, beta_at = factors.addresses
                raw = handle.bound(stream, nbytes, strict=strict)
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
            finally:
                handles.give_back(handle)
        if factors is not None:
            constants.give_back(factors)

    return multiply
