"""Products with something added, and an activation: `addmm` and `linear`.

The host does both after the product, the same way for every kernel, so that kernels differ in the product alone. On a
device the product's own kernel does them: `ops.device`.
"""

# What `route` returns is of whatever kind the operands are.
# mypy: disable-error-code="no-any-return"

from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensorplay.ops.activation import NONE, activate, check_activation, check_real
from tensorplay.ops.arrays import DeviceArrayT
from tensorplay.ops.device import route
from tensorplay.ops.products import Out, run_matrix_product
from tensorplay.ops.shapes import check_broadcast, check_linear, check_matrices, check_out
from tensorplay.runtime.process import get_tuning_context, state

__all__ = ["addmm", "linear"]

Array = NDArray[Any]


@overload
def addmm(
    bias_or_c: Array,
    a: Array,
    b: Array,
    *,
    alpha: complex = 1,
    beta: complex = 1,
    activation: str = "none",
    out: Out = None,
) -> Array: ...


@overload
def addmm(
    bias_or_c: DeviceArrayT,
    a: DeviceArrayT,
    b: DeviceArrayT,
    *,
    alpha: complex = 1,
    beta: complex = 1,
    activation: str = "none",
    out: DeviceArrayT | None = None,
) -> DeviceArrayT: ...


@overload
def addmm(
    bias_or_c: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    alpha: complex = 1,
    beta: complex = 1,
    activation: str = "none",
    out: Out = None,
) -> Array: ...


def addmm(
    bias_or_c: Any,
    a: Any,
    b: Any,
    *,
    alpha: complex = 1,
    beta: complex = 1,
    activation: str = "none",
    out: Any = None,
) -> Any:
    """Return `activation(beta * bias_or_c + alpha * (a @ b))`.

    Parameters
    ----------
    bias_or_c : array
        A vector (n,), a matrix (m, n), or anything that broadcasts to that. Not read when `beta` is 0, so that
        NaN in it does not spread.
    a : array (m, k)
        Left operand.
    b : array (k, n)
        Right operand.
    alpha, beta : number
        Factors. They are no part of the signature. Their types take part in NumPy's promotion, whatever their values:
        a `numpy.float64` makes the sum of float32 matrices float64, a number of Python leaves it float32.
    activation : str
        `none`, `relu`, or `gelu` in the tanh approximation. Complex numbers and integers have none.
    out : array (m, n), optional
        Where the result goes. It may be `bias_or_c` itself, or overlap an operand.

    Returns
    -------
    array (m, n)
        `out` if given.

    Raises
    ------
    ShapeError, OperandError
        As `mm`.
    """
    if not type(a) is type(b) is type(bias_or_c) is np.ndarray:
        context = state.context or get_tuning_context()
        product: Any = route.addmm(context, bias_or_c, a, b, out, alpha=alpha, beta=beta, activation=activation)
        if product is not NotImplemented:
            return product
    a, b, c = np.asanyarray(a), np.asanyarray(b), np.asanyarray(bias_or_c)
    result = check_matrices("addmm", a.shape, b.shape)
    check_broadcast("addmm", "bias_or_c", c.shape, result)
    check_out("addmm", out, result)
    check_activation("addmm", activation)
    if not _is_plain(a, b, c, out, alpha, beta):
        product = _times(alpha, np.matmul(a, b))
        added = _times(beta, c) if beta != 0 else None
        if added is None:
            # The type is that of the sum, which is not computed: NaN is not to spread.
            unread = _times(beta, np.ones_like(c, shape=(1,)))
            product = product.astype(np.result_type(product, unread.dtype), copy=False)
        return _as_numpy("addmm", product, added, out, activation)
    check_real("addmm", activation, a.dtype.name)
    if beta == 0:
        product = _product("addmm", a, b, out)
        return activate(product if alpha == 1 else np.multiply(product, alpha, out=product), activation)
    is_bias = c.shape == (result[1],)
    overlapping = out is not None and np.may_share_memory(out, c)
    product = _product("addmm", a, b, None if overlapping else out, bias=is_bias, accumulate=not is_bias)
    if alpha != 1:
        np.multiply(product, alpha, out=product)
    product = np.add(product, c if beta == 1 else c * beta, out=out if overlapping else product)
    return activate(product, activation)


@overload
def linear(
    x: Array, weight: Array, bias: Array | None = None, *, activation: str = "none", out: Out = None
) -> Array: ...


@overload
def linear(
    x: DeviceArrayT,
    weight: DeviceArrayT,
    bias: DeviceArrayT | None = None,
    *,
    activation: str = "none",
    out: DeviceArrayT | None = None,
) -> DeviceArrayT: ...


@overload
def linear(
    x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, *, activation: str = "none", out: Out = None
) -> Array: ...


def linear(x: Any, weight: Any, bias: Any = None, *, activation: str = "none", out: Any = None) -> Any:
    """Return `activation(x @ weight.T + bias)`, the weight used in place as its transposed view.

    Parameters
    ----------
    x : array (..., k)
        Rows of input; leading dimensions are folded into one.
    weight : array (n, k)
        One row for each output.
    bias : array (n,), optional
        Added to each row.
    activation : str
        As `addmm`.
    out : array (..., n), optional
        Where the result goes.

    Returns
    -------
    array (..., n)
        `out` if given.

    Raises
    ------
    ShapeError, OperandError
        As `mm`.
    """
    if not type(x) is type(weight) is np.ndarray or (bias is not None and type(bias) is not np.ndarray):
        product: Any = route.linear(state.context or get_tuning_context(), x, weight, bias, out, activation)
        if product is not NotImplemented:
            return product
    x, weight = np.asanyarray(x), np.asanyarray(weight)
    added = None if bias is None else np.asanyarray(bias)
    result = check_linear(x.shape, weight.shape, None if added is None else added.shape)
    outputs, inputs = weight.shape
    check_out("linear", out, result)
    check_activation("linear", activation)
    if not _is_plain(x, weight, added, out, 1, 1) or 0 in (*result, inputs):
        return _as_numpy("linear", np.matmul(x, weight.T), added, out, activation)
    check_real("linear", activation, x.dtype.name)
    # A view of `out` when its rows allow one; else the result is copied there at the end.
    rows = None if out is None or not (out.ndim == 2 or out.flags.c_contiguous) else out.reshape(-1, outputs)
    if rows is not None and added is not None and np.may_share_memory(rows, added):
        added = added.copy()
    product = _product("linear", x.reshape(-1, inputs), weight.T, rows, bias=added is not None)
    if added is not None:
        np.add(product, added, out=product)
    activate(product, activation)
    if out is None:
        return product.reshape(result)
    if rows is None:
        out[...] = product.reshape(result)
    return out


def _product(name: str, a: Array, b: Array, out: Out, *, bias: bool = False, accumulate: bool = False) -> Array:
    context = state.context or get_tuning_context()
    return run_matrix_product(context, name, a, b, out, bias=bias, accumulate=accumulate)


def _is_plain(a: Array, b: Array, c: Array | None, out: Out, alpha: object, beta: object) -> bool:
    """Return whether everything is an ndarray of one inexact type, and the factors leave that type as it is."""
    arrays = [array for array in (a, b, c, out) if array is not None]
    if not (_is_weak(alpha, a) and _is_weak(beta, a)):
        return False
    return all(type(array) is np.ndarray and array.dtype == a.dtype for array in arrays) and a.dtype.kind in "fcV"


def _is_weak(factor: object, array: Array) -> bool:
    """Return whether NumPy multiplies `array` by `factor` in the array's own type."""
    return type(factor) in (int, float, bool) or (isinstance(factor, np.generic) and factor.dtype == array.dtype)


def _times(factor: Any, array: Array) -> Array:
    """Return `factor * array`, its type whatever the factor's value is; a factor of 1 leaves infinite numbers alone."""
    if factor == 1:
        try:
            return array.astype(np.result_type(array, factor), copy=False)
        except TypeError:
            # A number that NumPy knows no type for, such as a fraction.
            pass
    product: Array = factor * array
    return product


def _as_numpy(name: str, product: Array, added: Array | None, out: Out, activation: str) -> Array:
    """Add, activate and store with NumPy's own promotion, for operands that no plan takes."""
    value = product if added is None else product + added
    if activation != NONE:
        check_real(name, activation, value.dtype.name)
        value = activate(np.array(value, subok=True), activation)
    if out is None:
        return value
    np.copyto(out, value, casting="same_kind")
    return out
