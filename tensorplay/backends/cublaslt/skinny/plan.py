"""Plans of skinny kernels; `run` takes what `tensorplay.backends.cublaslt.plan` says, and needs no workspace."""

import math
import struct
from ctypes import addressof, c_char, c_void_p
from typing import Any

from tensorplay.backends.base import Plan, Run
from tensorplay.backends.cublaslt.device import device
from tensorplay.backends.cublaslt.library import driver
from tensorplay.backends.cublaslt.skinny.configuration import Configuration
from tensorplay.backends.cublaslt.skinny.launching import Launch, overlapping_launch, plain_launch
from tensorplay.backends.cublaslt.skinny.modules import loaded_function, most_shared_bytes
from tensorplay.backends.cublaslt.skinny.shape import Shape, skinny_shape
from tensorplay.backends.cublaslt.skinny.source_text import source_text
from tensorplay.backends.cublaslt.status import check
from tensorplay.errors import KernelUnavailableError, LaunchError
from tensorplay.gemm import GemmProblem

__all__ = ["arguments_of", "launch_grid", "skinny_plan"]

# The kernel's `Arguments`: what each run has its own of, then what the problem fixes.
_EACH = struct.Struct("<5Q2f")
_FIXED = struct.Struct("<5q6i")
_ACTIVATIONS = {"none": 0, "relu": 1, "gelu": 2}
_HOPPER, _AMPERE = (9, 0), (8, 0)
_LARGEST_GRID = 2**31 - 1


class _Buffer:
    """Room for the arguments of one launch, which the driver copies before its call returns."""

    __slots__ = ("memory", "place", "pointers")

    def __init__(self, fixed: bytes) -> None:
        self.memory = (c_char * (_EACH.size + len(fixed))).from_buffer_copy(bytes(_EACH.size) + fixed)
        self.pointers = (c_void_p * 1)(addressof(self.memory))
        self.place = addressof(self.pointers)


def skinny_plan(problem: GemmProblem, configuration: Configuration, *, is_overlapping: bool = True) -> Plan:
    """Return the plan of a problem and a configuration, its kernel compiled and loaded.

    Where the device can, the kernel begins before the one ahead of it has ended, unless `is_overlapping` is false.

    Raises
    ------
    KernelUnavailableError
        When the problem is not skinny, the attributes do not go together, the device has no such instructions, the
        kernel does not compile, or it would have to be loaded while a capture is live.
    """
    shape, ordinal = skinny_shape(problem), int(problem.device)
    configuration.check(shape)
    capability = device(ordinal).capability
    if capability < (_HOPPER if configuration.split > 1 else _AMPERE if configuration.mma else (0, 0)):
        raise KernelUnavailableError(f"{configuration.kernel_id} needs a later device than one of {capability}")
    if configuration.shared_bytes(shape) > most_shared_bytes(ordinal):
        raise KernelUnavailableError(
            f"{configuration.kernel_id} needs {configuration.shared_bytes(shape)} bytes of shared memory a block; "
            f"device {ordinal} has {most_shared_bytes(ordinal)}"
        )
    function = loaded_function(ordinal, source_text(configuration, shape))
    begin = overlapping_launch if is_overlapping and capability >= _HOPPER else plain_launch
    launch = begin(
        function,
        blocks=launch_grid(configuration, shape),
        threads=configuration.threads,
        shared_bytes=configuration.shared_bytes(shape),
    )
    return Plan(problem, str(configuration.kernel_id), _runner(problem, shape, launch, str(configuration.kernel_id)))


def launch_grid(configuration: Configuration, shape: Shape) -> int:
    """Return the number of blocks; `KernelUnavailableError` when it is more than a launch can have."""
    blocks = -(-shape.rows // configuration.tile) * configuration.split
    if blocks > _LARGEST_GRID:
        raise KernelUnavailableError(f"{configuration.kernel_id} would take {blocks} blocks; allowed: {_LARGEST_GRID}")
    return blocks


def arguments_of(shape: Shape, activation: str) -> bytes:
    """Return what the problem fixes of the kernel's arguments."""
    return _FIXED.pack(
        shape.weight_ld,
        shape.x_column_step,
        shape.x_depth_step,
        shape.out_row_step,
        shape.out_column_step,
        shape.rows,
        shape.columns,
        shape.depth,
        _ACTIVATIONS[activation],
        shape.bias_row_step,
        shape.bias_column_step,
    )


def _runner(problem: GemmProblem, shape: Shape, launch: Launch, name: str) -> Run:
    cuda, ordinal = driver(), int(problem.device)
    context, current_context = device(ordinal).context, cuda.cuCtxGetCurrent
    context_at, enter, leave = int(context), cuda.cuCtxPushCurrent, cuda.cuCtxPopCurrent
    pack, weight_is_right, has_bias = _EACH.pack_into, shape.weight_is_right, problem.bias
    fixed = arguments_of(shape, problem.activation)
    # Taken for one launch and given back: two threads, or a signal handler that multiplies, never share one.
    buffers: list[_Buffer] = []

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
        try:
            buffer = buffers.pop()
        except IndexError:
            buffer = _Buffer(fixed)
        weight, x = (right, left) if weight_is_right else (left, right)
        bias = bias if has_bias else 0
        try:
            pack(buffer.memory, 0, weight, x, out, c or out, bias, alpha, beta)
        except (OverflowError, struct.error):
            pack(buffer.memory, 0, weight, x, out, c or out, bias, _single(alpha), _single(beta))
        is_elsewhere = int(current_context()[1]) != context_at
        if is_elsewhere:
            enter(context)
        try:
            result = launch(stream, buffer.place)
        finally:
            if is_elsewhere:
                leave()
        if int(result[0]) != 0:
            try:
                check(result, f"launching {name}")
            except MemoryError as error:
                raise LaunchError(str(error)) from error
        buffers.append(buffer)
        return out

    return run


def _single(value: Any) -> float:
    """Return a number that a float32 holds: what is beyond it is infinite in it, as it would be in C."""
    real = complex(value).real
    try:
        struct.pack("<f", real)
    except OverflowError:
        return math.copysign(math.inf, real)
    return real
