"""`addmm` and `linear` of arrays on a device: the product's own kernel adds what is added, and activates the sum."""

from numbers import Number, Real
from typing import Any

from tensorplay.errors import OperandError, ShapeError
from tensorplay.ops.activation import check_activation
from tensorplay.ops.device.kind import Kind
from tensorplay.ops.device.operand import operand
from tensorplay.ops.device.product import Addend, Outcome, multiply
from tensorplay.ops.device.products import as_is, shape_of
from tensorplay.ops.device.view import DeviceView
from tensorplay.ops.shapes import check_broadcast, check_matrices
from tensorplay.runtime.context import TuningContext

__all__ = ["addmm", "linear"]


def addmm(
    context: TuningContext,
    kind: Kind,
    bias_or_c: Any,
    a: Any,
    b: Any,
    out: Any,
    *,
    alpha: Any = 1,
    beta: Any = 1,
    activation: str = "none",
) -> Outcome:
    """Return `activation(beta * bias_or_c + alpha * (a @ b))`.

    A vector of a value for each column is the bias of the kernel when beta is 1; anything else is what its beta
    multiplies, broadcast to the result first.
    """
    shape = check_matrices("addmm", shape_of(a), shape_of(b))
    check_activation("addmm", activation)
    given = shape_of(bias_or_c)
    check_broadcast("addmm", "bias_or_c", given, shape)
    addend = None if beta == 0 else Addend(bias_or_c, beta, is_bias=given == shape[1:] and beta == 1)
    left, right = operand(kind, a, as_is), operand(kind, b, as_is)
    for name, factor in (("alpha", alpha), ("beta", beta)):
        _check_factor(name, factor, left.view.dtype)
    return multiply(
        context, kind, "addmm", left, right, out, shape, as_is, alpha=alpha, addend=addend, activation=activation
    )


def linear(
    context: TuningContext, kind: Kind, x: Any, weight: Any, bias: Any, out: Any, activation: str = "none"
) -> Outcome:
    """Return `activation(x @ weight.T + bias)`: the weight is used in place, leading dimensions of x are one."""
    inputs, rows = shape_of(x), shape_of(weight)
    if not inputs or len(rows) != 2 or inputs[-1] != rows[1]:
        raise ShapeError(f"linear: x is {inputs} and weight {rows}; allowed: (..., k) and (n, k)")
    if bias is not None and shape_of(bias) != rows[:1]:
        raise ShapeError(f"linear: bias is {shape_of(bias)}; weight {rows} asks for ({rows[0]},)")
    check_activation("linear", activation)
    left, right = operand(kind, x, _rows), operand(kind, weight, _transposed)
    addend = None if bias is None else Addend(bias, is_bias=True)
    shape = (*inputs[:-1], rows[0])
    return multiply(context, kind, "linear", left, right, out, shape, _rows, addend=addend, activation=activation)


def _check_factor(name: str, factor: Any, dtype: str) -> None:
    """Raise `OperandError` unless it is a number that the products of a type can be multiplied by."""
    is_complex = dtype.startswith("complex")
    if not isinstance(factor, Number if is_complex else Real):
        allowed = "a number of the host" if is_complex else f"a real number of the host, the products being {dtype}"
        raise OperandError(f"addmm: {name} is a {type(factor).__name__}; allowed: {allowed}")
    try:
        complex(factor)  # type: ignore[call-overload]  # numbers are told apart above
    except (OverflowError, TypeError, ValueError) as error:
        raise OperandError(f"addmm: {name} is too large a {type(factor).__name__}: {error}") from error


def _rows(view: DeviceView) -> DeviceView | None:
    return view.folded(len(view.shape) - 1)


def _transposed(view: DeviceView) -> DeviceView:
    return view.transposed
