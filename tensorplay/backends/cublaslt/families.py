"""Which products are tuned: the families that `FAMILIES` names."""

from tensorplay.backends.cublaslt.number_types import is_float8, number_types
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem

__all__ = ["is_tunable_problem"]

_PLANNED = frozenset({"float32", "tf32", "float64"})


def is_tunable_problem(problem: GemmProblem, families: str) -> bool:
    """Return whether the problem belongs to the tunable family `plan` or `all`.

    `plan`: single products of float32, TF32 and float64, and single products with a bias of every type, without an
    activation. `all`: half types without a bias, stacks, complex numbers, FP8 and activations too. Never tuned are
    what cuBLASLt cannot multiply: complex products with a bias or an activation, FP8 other than `left @ right.T` in
    whole vectors, e5m2 by e5m2, operands that begin in the middle of an element.
    """
    if problem.device == "cpu" or not _is_multiplied(problem):
        return False
    if families == "all":
        return True
    if problem.batch > 1 or problem.activation != "none" or is_float8(problem.dtype):
        return False
    return problem.bias or problem.dtype.name in _PLANNED


def _is_multiplied(problem: GemmProblem) -> bool:
    if problem.dtype.is_complex and (problem.bias or problem.activation != "none"):
        return False
    if problem.alignment < problem.dtype.itemsize:
        return False
    try:
        number_types(problem)
    except KernelUnavailableError:
        return False
    return True
