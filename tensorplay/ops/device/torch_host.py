"""Products of torch's tensors on the host, or on whatever is no CUDA device: torch's own, which are never tuned.

Sizes are checked as for all arrays. Everything else that torch refuses is told as an `OperandError`.
"""

from collections.abc import Callable
from functools import partial
from numbers import Integral, Number, Real
from typing import Any

from tensorplay.errors import OperandError
from tensorplay.ops.activation import NONE, check_activation, check_real
from tensorplay.ops.device.kind import library
from tensorplay.ops.device.kinds import kind_of
from tensorplay.ops.shapes import (
    check_batch,
    check_broadcast,
    check_linear,
    check_matrices,
    check_out_shape,
    matmul_mismatch,
)
from tensorplay.runtime.context import TuningContext

__all__ = ["addmm", "bmm", "linear", "matmul", "mm"]

# Of what it cannot multiply, add or copy; memory that is lacking is told so too.
_REFUSALS = (OverflowError, RuntimeError, TypeError)


def mm(context: TuningContext, a: Any, b: Any, out: Any) -> Any:
    """Multiply two matrices."""
    _check_tensors((a, b), out)
    check_matrices("mm", tuple(a.shape), tuple(b.shape))
    return _multiply("mm", context, library("torch").mm, (a, b), out)


def bmm(context: TuningContext, a: Any, b: Any, out: Any) -> Any:
    """Multiply two stacks of matrices."""
    _check_tensors((a, b), out)
    check_batch(tuple(a.shape), tuple(b.shape))
    return _multiply("bmm", context, library("torch").bmm, (a, b), out)


def matmul(context: TuningContext, a: Any, b: Any, out: Any) -> Any:
    """Multiply as `numpy.matmul` does."""
    _check_tensors((a, b), out)
    mismatch = matmul_mismatch(tuple(a.shape), tuple(b.shape))
    if mismatch is not None:
        raise mismatch
    return _multiply("matmul", context, library("torch").matmul, (a, b), out)


def addmm(
    context: TuningContext, bias_or_c: Any, a: Any, b: Any, out: Any, *, alpha: Any, beta: Any, activation: str
) -> Any:
    """Return `activation(beta * bias_or_c + alpha * (a @ b))`."""
    _check_tensors((bias_or_c, a, b), out)
    result = check_matrices("addmm", tuple(a.shape), tuple(b.shape))
    check_broadcast("addmm", "bias_or_c", tuple(bias_or_c.shape), result)
    dtype = _name_of(a.dtype)
    factors = {"alpha": _factor("alpha", alpha, dtype), "beta": _factor("beta", beta, dtype)}
    return _multiply("addmm", context, partial(library("torch").addmm, **factors), (bias_or_c, a, b), out, activation)


def linear(context: TuningContext, x: Any, weight: Any, bias: Any, out: Any, activation: str) -> Any:
    """Return `activation(x @ weight.T + bias)`."""
    _check_tensors((x, weight), bias, out)
    check_linear(tuple(x.shape), tuple(weight.shape), None if bias is None else tuple(bias.shape))
    tensors = (x, weight) if bias is None else (x, weight, bias)
    return _multiply("linear", context, library("torch").nn.functional.linear, tensors, out, activation)


def _multiply(
    name: str,
    context: TuningContext,
    compute: Callable[..., Any],
    tensors: tuple[Any, ...],
    out: Any,
    activation: str = NONE,
) -> Any:
    """Return what `compute` makes of the tensors, in `out` where that is given, whatever it overlaps."""
    kind: Any = kind_of(tensors[0])
    check_activation(name, activation)
    check_real(name, activation, _name_of(tensors[0].dtype))
    plain = [kind.plain(tensor) for tensor in tensors]
    if out is not None and kind.plain(out) is not out:
        raise OperandError("out is a lazily conjugated or negated view, which cannot be written to")
    try:
        product = _activated(compute(*plain), activation)
    except _REFUSALS as error:
        raise _refusal(name, error) from error
    if out is not None:
        check_out_shape(name, tuple(out.shape), tuple(product.shape))
        if out.dtype != product.dtype:
            raise OperandError(f"{name}: out is {_name_of(out.dtype)}, but the result is {_name_of(product.dtype)}")
        try:
            kind.assign(out, product)
        except _REFUSALS as error:
            raise _refusal(name, error) from error
    if context.enabled:
        context.fixed(compute)
    return product if out is None else out


def _check_tensors(operands: tuple[Any, ...], *others: Any) -> None:
    """Raise `OperandError` unless all are tensors on one device; None among the others stands for none."""
    given = [*operands, *(other for other in others if other is not None)]
    kinds = [kind_of(operand) for operand in given]
    if any(kind is None or kind.name != "torch" for kind in kinds):
        names = ", ".join(f"{type(operand).__module__}.{type(operand).__qualname__}" for operand in given)
        raise OperandError(f"operands are {names} on the host; allowed: tensors of torch only, or none")
    # torch itself multiplies a tensor without values, of its device `meta`, by others, and returns numbers.
    devices = sorted({str(operand.device) for operand in given})
    if len(devices) > 1:
        raise OperandError(f"operands are on the devices {', '.join(devices)}; allowed: all on one")


def _activated(product: Any, activation: str) -> Any:
    if activation == NONE:
        return product
    functional = library("torch").nn.functional
    return functional.relu(product) if activation == "relu" else functional.gelu(product, approximate="tanh")


def _factor(name: str, factor: Any, dtype: str) -> Any:
    """Return a number that products of a type can be multiplied by; torch itself rounds one for integers to zero."""
    allowed: type = Integral
    number: Callable[[Any], Any] = int
    if dtype.startswith("complex"):
        allowed, number = Number, complex
    elif dtype.startswith(("float", "bfloat")):
        allowed, number = Real, float
    if not isinstance(factor, allowed):
        raise OperandError(
            f"addmm: {name} is a {type(factor).__name__}; allowed for products of {dtype}: a number of the host that "
            f"{number.__name__}() takes as it is"
        )
    try:
        return number(factor)
    except (OverflowError, TypeError, ValueError) as error:
        raise OperandError(f"addmm: {name} is too large a {type(factor).__name__}: {error}") from error


def _name_of(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _refusal(name: str, error: Exception) -> OperandError:
    # What follows the first line is a trace, or every signature that torch has.
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    return OperandError(f"{name}: torch does not multiply these tensors: {reason}")
