"""What a product's result should be: computed in more precision, from the very operands that the device has."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorplay.backends.cublaslt.host_copy import from_device
from tensorplay.backends.cublaslt.scratch import Scratch
from tensorplay.backends.host.reference import reference_product
from tensorplay.gemm import GemmProblem

__all__ = ["activated", "expected_result", "reference_result"]


def reference_result(scratch: Scratch, stream: int) -> NDArray[Any]:
    """Return the result of the first set's operands in float64 or complex128; the context must be current.

    Computed on the host, so it takes seconds for the largest products: it is asked for where two kernels differ by
    more than rounding explains.
    """
    problem = scratch.problem
    left, right = (from_device(*scratch.part(name), stream) for name in ("left", "right"))
    c = from_device(*scratch.part("c"), stream) if problem.accumulate else None
    bias = from_device(*scratch.part("bias"), stream)[0] if problem.bias else None
    operands = scratch.sets[0]
    return expected_result(problem, left, right, c=c, bias=bias, alpha=operands.alpha, beta=operands.beta)


def expected_result(
    problem: GemmProblem,
    left: NDArray[Any],
    right: NDArray[Any],
    *,
    c: NDArray[Any] | None = None,
    bias: NDArray[Any] | None = None,
    alpha: complex = 1.0,
    beta: complex = 1.0,
) -> NDArray[Any]:
    """Return `activation(alpha * left @ right + beta * c + bias)` in float64 or complex128."""
    result = reference_product(left, right)
    if alpha != 1.0:
        result = result * alpha
    if c is not None:
        result = result + np.multiply(c, beta, dtype=result.dtype)
    if bias is not None:
        result = result + bias.astype(result.dtype)
    return activated(result, problem.activation)


def activated(values: NDArray[Any], activation: str) -> NDArray[Any]:
    """Return the values after an activation; GELU in the tanh approximation, as cuBLASLt has it."""
    if activation == "relu":
        positive: NDArray[Any] = np.maximum(values, 0.0)
        return positive
    if activation == "gelu":
        inner = math.sqrt(2.0 / math.pi) * (values + 0.044715 * values**3)
        gelu: NDArray[Any] = 0.5 * values * (1.0 + np.tanh(inner))
        return gelu
    return values
