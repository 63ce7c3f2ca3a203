"""Plans: everything about a product that can be made ready before its operands are known.

`run(left, right, out, c, bias, alpha, beta, stream)` takes addresses as integers, enqueues the product on the stream
and returns `out`. `c` is what beta multiplies, lying as `out` does; 0 stands for `out` itself. A bias is read only by
problems that have one, and must not be 0 there.

Plans of FP8 take the addresses of three scales more, `scale_left`, `scale_right` and `scale_out`: float32 numbers in
device memory, 0 for none. The products are multiplied by the first two before anything is added, a result of FP8 by
the third in the end. Such a result is not added to: there `c` must be given where beta is not 0.
"""

from collections.abc import Callable
from typing import Any

from tensorplay.backends.base import Plan, Run
from tensorplay.backends.cublaslt.algorithm import Algorithm, keeps_order
from tensorplay.backends.cublaslt.device import device
from tensorplay.backends.cublaslt.handle import handle_of
from tensorplay.backends.cublaslt.launch import launch_of
from tensorplay.backends.cublaslt.library import cublaslt, driver
from tensorplay.backends.cublaslt.on_device import on_device
from tensorplay.backends.cublaslt.operation import Operation
from tensorplay.backends.cublaslt.scalars import scalars
from tensorplay.backends.cublaslt.status import library_error, reason_of
from tensorplay.backends.cublaslt.workspace import DEFAULT_BYTES, workspaces
from tensorplay.errors import KernelUnavailableError, LaunchError
from tensorplay.gemm import DEFAULT, GemmProblem

__all__ = ["algorithm_plan", "library_plan", "workspace_ceiling"]

Workspace = Callable[[int, int], int]
"""Returns the address of a stream's scratch memory of at least so many bytes, 0 for none."""

_MIB = 1 << 20
# The library's makers add this to what an algorithm says it needs, where it has an epilogue.
_EPILOGUE_BYTES = 16


def workspace_ceiling(problem: GemmProblem) -> int:
    """Return how much scratch memory a problem's kernels may take."""
    mib = problem.workspace_mib
    return DEFAULT_BYTES if mib is None else mib * _MIB


def algorithm_plan(operation: Operation, algorithm: Algorithm) -> Plan:
    """Return the plan that runs one algorithm, named by its kernel id.

    Its `run` raises `KernelUnavailableError` for a stream that is first met under a capture when there is no
    workspace left, and `LaunchError` when the library refuses.
    """
    ordinal = int(operation.problem.device)
    needed = algorithm.workspace_bytes
    if needed and (operation.problem.bias or operation.problem.activation != "none"):
        needed += _EPILOGUE_BYTES
    run = _runner(operation, algorithm, workspaces(ordinal).address, needed)
    kernel_id = algorithm.kernel_id
    is_plain = not (operation.problem.bias or operation.scale_count)
    launch = launch_of(operation, algorithm, needed, run) if is_plain else None
    return Plan(operation.problem, str(kernel_id), run, algorithm.workspace_bytes, keeps_order(kernel_id), launch)


def library_plan(operation: Operation) -> Plan:
    """Return the plan that lets the library choose in each call, for where it will not say what it would choose.

    Its kernel is `Default`. It never asks for memory under a capture: then the library chooses among kernels that
    need none.
    """
    ceiling, buffers = workspace_ceiling(operation.problem), workspaces(int(operation.problem.device))

    def address(stream: int, nbytes: int) -> int:
        try:
            return buffers.address(stream, nbytes)
        except (KernelUnavailableError, MemoryError):
            return 0

    return Plan(operation.problem, DEFAULT, _runner(operation, None, address, ceiling), ceiling, is_deterministic=False)


def _runner(operation: Operation, algorithm: Algorithm | None, workspace: Workspace, workspace_bytes: int) -> Run:
    if operation.scale_count:
        return _scaled_runner(operation, algorithm, workspace, workspace_bytes)
    ordinal, cuda = int(operation.problem.device), driver()
    context, current_context = device(ordinal).context, cuda.cuCtxGetCurrent
    context_at, enter, leave = int(context), cuda.cuCtxPushCurrent, cuda.cuCtxPopCurrent
    handle, matmul, refused = handle_of(ordinal), cublaslt().matmul, library_error()
    numbers = scalars(operation.types.scale)
    zero, one, pair, give_back = numbers.zero, numbers.one, numbers.pair, numbers.give_back
    descriptor, d = operation.descriptor.handle, operation.d.handle
    a, b, addend = operation.a.handle, operation.b.handle, operation.c.handle
    has_bias, idle, further = operation.problem.bias, operation.idle, operation.further
    chosen = algorithm.address if algorithm else 0

    def run(
        left: int,
        right: int,
        out: int,
        c: int = 0,
        bias: int = 0,
        alpha: Any = 1.0,
        beta: Any = 0.0,
        stream: int = 0,
    ) -> int:
        factors = None
        is_elsewhere = int(current_context()[1]) != context_at
        if is_elsewhere:
            enter(context)
        c = c or out
        try:
            if alpha == 1.0 and beta in {0.0, 1.0}:
                alpha_at, beta_at = one, (one if beta else zero)
            else:
                factors = pair(alpha, beta)
                alpha_at, beta_at = factors.addresses
            scratch = workspace(stream, workspace_bytes) if workspace_bytes else 0
            size = workspace_bytes if scratch else 0
            if not has_bias:
                matmul(
                    handle, descriptor, alpha_at, right, a, left, b, beta_at, c, addend, out, d,
                    chosen, scratch, size, stream,
                )  # fmt: skip
            else:
                try:
                    pointed = idle.pop()
                except IndexError:
                    pointed = further()
                pointed.set_bias(bias)
                matmul(
                    handle, pointed.handle, alpha_at, right, a, left, b, beta_at, c, addend, out, d,
                    chosen, scratch, size, stream,
                )  # fmt: skip
                # Not where it failed: an interrupted one may hold another address than it remembers.
                idle.append(pointed)
        except refused as error:
            # Named here so that this function keeps the algorithm, as `further` keeps the operation.
            name = algorithm.kernel_id if algorithm else "the library's own choice"
            raise LaunchError(f"{name} did not launch: {reason_of(error)}") from error
        finally:
            if is_elsewhere:
                leave()
        if factors is not None:
            give_back(factors)
        return out

    return run


def _scaled_runner(
    operation: Operation, algorithm: Algorithm | None, workspace: Workspace, workspace_bytes: int
) -> Run:
    """Return the `run` of an FP8 problem: a function of its own, so that no other pays for the scales."""
    ordinal, numbers = int(operation.problem.device), scalars(operation.types.scale)
    handle, matmul, refused = handle_of(ordinal), cublaslt().matmul, library_error()
    idle, further, d = operation.idle, operation.further, operation.d.handle
    a, b, addend = operation.a.handle, operation.b.handle, operation.c.handle
    has_bias, count = operation.problem.bias, operation.scale_count
    chosen = algorithm.address if algorithm else 0

    def run(
        left: int,
        right: int,
        out: int,
        c: int = 0,
        bias: int = 0,
        alpha: Any = 1.0,
        beta: Any = 0.0,
        stream: int = 0,
        scale_left: int = 0,
        scale_right: int = 0,
        scale_out: int = 0,
    ) -> int:
        if beta == 0.0:
            # The library takes the result's own address for an addend's only where both have one type.
            c = 0
        elif c == 0 and addend == d:
            c = out
        factors = numbers.pair(alpha, beta)
        alpha_at, beta_at = factors.addresses
        scratch = workspace(stream, workspace_bytes) if workspace_bytes else 0
        try:
            try:
                pointed = idle.pop()
            except IndexError:
                pointed = further()
            pointed.set_scales((scale_right, scale_left, scale_out)[:count])
            if has_bias:
                pointed.set_bias(bias)
            matmul(
                handle, pointed.handle, alpha_at, right, a, left, b, beta_at, c, addend, out, d,
                chosen, scratch, workspace_bytes if scratch else 0, stream,
            )  # fmt: skip
            idle.append(pointed)
        except refused as error:
            # As above: this function keeps the algorithm, by naming it.
            name = algorithm.kernel_id if algorithm else "the library's own choice"
            raise LaunchError(f"{name} did not launch: {reason_of(error)}") from error
        numbers.give_back(factors)
        return out

    return on_device(ordinal, run)
