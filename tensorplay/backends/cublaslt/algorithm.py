"""Algorithms: from a kernel id to the library's 64 bytes, and back."""

from ctypes import addressof, c_uint64
from dataclasses import astuple
from typing import Any

from tensorplay.backends.cublaslt.attributes import (
    AlgorithmAttribute,
    Attribute,
    Capability,
    HeuristicResult,
    get_attribute,
    set_attribute,
)
from tensorplay.backends.cublaslt.library import cublaslt
from tensorplay.backends.cublaslt.operation import Operation
from tensorplay.backends.cublaslt.status import library_error, reason_of
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import LtKernelId

__all__ = ["Algorithm", "build", "keeps_order", "read_kernel_id"]

_ALIGNMENTS = (
    Capability.MIN_ALIGNMENT_A_BYTES,
    Capability.MIN_ALIGNMENT_B_BYTES,
    Capability.MIN_ALIGNMENT_C_BYTES,
    Capability.MIN_ALIGNMENT_D_BYTES,
)


class Algorithm:
    """An algorithm that the library has checked for one operation.

    Attributes
    ----------
    kernel_id : LtKernelId
        What rebuilds it.
    address : int
        Of its 64 bytes, which live as long as this object and are never written again.
    workspace_bytes : int
        Scratch memory that it needs.
    waves : float
        How many times it fills the device.
    alignment : int
        The largest, in bytes, that it says it needs of an operand; 1 where it does not say.
    """

    __slots__ = ("_memory", "address", "alignment", "kernel_id", "waves", "workspace_bytes")

    def __init__(self, kernel_id: LtKernelId, memory: Any, checked: HeuristicResult) -> None:
        self.kernel_id = kernel_id
        self._memory = memory
        self.address = addressof(memory)
        self.workspace_bytes = int(checked.workspace_size)
        self.waves = float(checked.waves_count)
        # Asked for here, where the device is current: the library would make it so for a thread that has none.
        self.alignment = max(_capability(self.address, which) or 1 for which in _ALIGNMENTS)

    @property
    def opaque(self) -> bytes:
        """Return the 64 bytes."""
        return bytes(self._memory)


def build(handle: int, operation: Operation, kernel_id: LtKernelId, *, ceiling: int) -> Algorithm:
    """Return the algorithm, initialised, configured and checked by the library, on the current device.

    Raises
    ------
    KernelUnavailableError
        When the library does not know it, it does not run this operation, needs more than `ceiling` bytes of
        scratch memory, or operands that are better aligned; the message is the reason.
    """
    lt, types = cublaslt(), operation.types
    memory = (c_uint64 * 8)()
    address = addressof(memory)
    try:
        lt.matmul_algo_init(
            handle,
            types.compute,
            types.scale,
            types.operand,
            types.left,
            types.c,
            types.out,
            kernel_id.id,
            address,
        )
        for attribute, value in list(zip(AlgorithmAttribute, astuple(kernel_id), strict=True))[1:]:
            set_attribute(lt.matmul_algo_config_set_attribute, address, attribute, value)
        result = _checked(handle, operation, address)
    except library_error() as error:
        raise KernelUnavailableError(f"{kernel_id} does not run here: {reason_of(error)}") from error
    if result.state != 0:
        status = lt.get_status_name(result.state)
        raise KernelUnavailableError(f"{kernel_id} does not run this product: {status}")
    if result.workspace_size > ceiling:
        raise KernelUnavailableError(
            f"{kernel_id} needs {result.workspace_size} bytes of workspace, allowed: {ceiling}"
        )
    algorithm = Algorithm(kernel_id, memory, result)
    if operation.problem.alignment < 16:
        _check_alignment(algorithm, operation.problem.alignment)
    return algorithm


def keeps_order(kernel_id: LtKernelId) -> bool:
    """Return whether a configuration splits no sum: of split ones the makers do not promise the order of the parts.

    A negative number of splits leaves it to the kernel how it divides sums.
    """
    return kernel_id.red == 0 and kernel_id.splitk in {0, 1}


def read_kernel_id(address: int) -> LtKernelId:
    """Return the nine attributes of the algorithm at an address."""
    getter = cublaslt().matmul_algo_config_get_attribute
    return LtKernelId(*(get_attribute(getter, address, attribute) for attribute in AlgorithmAttribute))


def _checked(handle: int, operation: Operation, address: int) -> HeuristicResult:
    result = HeuristicResult()
    cublaslt().matmul_algo_check(
        handle,
        operation.descriptor.handle,
        operation.a.handle,
        operation.b.handle,
        operation.c.handle,
        operation.d.handle,
        address,
        addressof(result),
    )
    return result


def _check_alignment(algorithm: Algorithm, alignment: int) -> None:
    # Pointers are no argument of the library's check: a kernel that wants more would fault.
    if algorithm.alignment > alignment:
        raise KernelUnavailableError(
            f"{algorithm.kernel_id} needs operands aligned to {algorithm.alignment} bytes, these are to {alignment}"
        )


def _capability(address: int, which: Attribute) -> int | None:
    try:
        return get_attribute(cublaslt().matmul_algo_cap_get_attribute, address, which)
    except library_error():
        return None
