"""What a product's result should be: computed in more precision, from the very operands that the device has."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorplay.backends.cublaslt.host_copy import from_device
from tensorplay.backends.cublaslt.scratch import Scratch, ScratchSet
from tensorplay.backends.host.reference import reference_product
from tensorplay.gemm import GemmProblem

__all__ = ["activated", "check_results", "expected_result", "reference_result"]

# What is beyond the largest number of an FP8 type is stored as that.
_LARGEST_FLOAT8 = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}


def reference_result(scratch: Scratch, stream: int) -> NDArray[Any]:
    """Return the result of the first set's operands in float64 or complex128; the context must be current."""
    return _results(scratch, scratch.sets[:1], stream)[0]


def check_results(scratch: Scratch, stream: int) -> NDArray[Any]:
    """Return the results of all `checks` of scratch operands, one after the other, as `reference_result` does.

    Computed on the host, so it takes seconds for the largest products: it is asked for where two kernels differ by
    more than rounding explains.
    """
    return np.stack(_results(scratch, scratch.checks, stream))


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
    """Return `activation(alpha * left @ right + beta * c + bias)` in float64 or complex128.

    No larger than what a result of FP8 can be.
    """
    return _finished(problem, reference_product(left, right), c=c, bias=bias, alpha=alpha, beta=beta)


def _results(scratch: Scratch, ways: Iterable[ScratchSet], stream: int) -> list[NDArray[Any]]:
    problem = scratch.problem
    product = reference_product(*(from_device(*scratch.part(name), stream) for name in ("left", "right")))
    c = from_device(*scratch.part("c"), stream) if problem.accumulate else None
    parts = [scratch.part(name) for name in ("bias", "negated bias")] if problem.bias else []
    biases = {part[0]: from_device(*part, stream)[0] for part in parts}
    return [_finished(problem, product, c=c, bias=biases.get(way.bias), alpha=way.alpha, beta=way.beta) for way in ways]


def _finished(
    problem: GemmProblem,
    product: NDArray[Any],
    *,
    c: NDArray[Any] | None,
    bias: NDArray[Any] | None,
    alpha: complex,
    beta: complex,
) -> NDArray[Any]:
    result = product if alpha == 1.0 else product * alpha
    if c is not None:
        result = result + np.multiply(c, beta, dtype=result.dtype)
    if bias is not None:
        result = result + bias.astype(result.dtype)
    result = activated(result, problem.activation)
    largest = _LARGEST_FLOAT8.get(problem.result_type.name)
    return result if largest is None else np.clip(result, -largest, largest)


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
