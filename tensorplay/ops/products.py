"""The plain products: `mm`, `bmm` and `matmul`, on NumPy arrays here, and on a device's by `ops.device`.

A hit does one dictionary look-up and one attribute write, then runs the plan: no string, no lock, no allocation
but the key and the result. The key is the operands' layout, so everything that a plan was prepared for is in it. Where
the extension was built, that makes it, and `mm` is `_short_mm`. Where it was not, the key is written out in `mm`, and
takes one data type for all operands, since each name or tuple more costs a small product a percent.
"""

# A plan's run is typed for every backend's operands at once; here they are NumPy's, and so are the results.
# mypy: disable-error-code="no-any-return"

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensorplay.gemm.problem import CPU, GemmProblem
from tensorplay.ops.arrays import DeviceArrayT
from tensorplay.ops.device import route
from tensorplay.ops.device.kinds import shortcuts
from tensorplay.ops.keyed import layout_key
from tensorplay.ops.layout import batch_problem, matrix_problem
from tensorplay.ops.shapes import check_batch, check_matrices, check_out, explain_mismatch
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import get_tuning_context, state

__all__ = ["bmm", "matmul", "mm", "run_matrix_product"]

Array = NDArray[Any]
Out = Array | None
Product = TypeVar("Product", bound=Callable[..., Any])

_ndarray = np.ndarray
_matmul: Any = np.matmul
_layout_key: Any = layout_key


def _short_mm(a: Any, b: Any, *, out: Any = None) -> Any:
    context = state.context or get_tuning_context()
    if type(a) is not _ndarray:
        return shortcuts.get(type(a), route).mm(context, a, b, out)
    if context.enabled:
        key = _layout_key(a, b, out)
        if key is not None:
            resolved = context.plans.get(key)
            if resolved is None:
                return _first_mm(context, key, a, b, out)
            resolved.tally.calls += 1
            # A name of its own: called as a method, what a slot holds is searched for each time.
            run = resolved.run
            try:
                return run(a, b, out)
            except Exception as error:  # noqa: BLE001 - the first choice decides whose fault it was
                return context.recover(resolved, error, a, b, out)
    elif type(b) is _ndarray and a.ndim == 2 and b.ndim == 2:
        try:
            return _matmul(a, b, out)
        except (TypeError, ValueError) as error:
            check_out("mm", out, check_matrices("mm", a.shape, b.shape))
            raise error from None
    return _plain_mm(a, b, out=out)


def _shortened(plain: Product) -> Product:
    """Put the short way before `mm` where there is one."""
    return plain if layout_key is None else wraps(plain)(_short_mm)  # type: ignore[return-value]  # a `mm` too


@overload
def mm(a: Array, b: Array, *, out: Out = None) -> Array: ...


@overload
def mm(a: DeviceArrayT, b: DeviceArrayT, *, out: DeviceArrayT | None = None) -> DeviceArrayT: ...


@overload
def mm(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> Array: ...


@_shortened
def mm(a: Any, b: Any, *, out: Any = None) -> Any:  # noqa: C901, PLR0912 - written out, see the module
    """Multiply two matrices, with the kernel that was measured fastest for them when tuning is on.

    Parameters
    ----------
    a : array (m, k)
        Left operand, of NumPy, or on a device. Transposed views and padded rows are used in place. Tensors on the host
        are multiplied by torch, and never tuned.
    b : array (k, n)
        Right operand, of the same data type for a tuned product; otherwise NumPy's promotion applies. Types on a
        device, and of tensors, are never converted.
    out : array (m, n), optional
        Where the result goes. It may overlap an operand.

    Returns
    -------
    array (m, n)
        `out` if given; otherwise of the operands' library, on their device.

    Raises
    ------
    ShapeError
        When the shapes do not fit; the message names them.
    OperandError
        When operands are on different devices, on the host and a device, or of different libraries; when no backend
        multiplies their data type; when `out` is of another kind than they are.

    Notes
    -----
    Any number of threads may call it. The first call of a signature measures it when tuning is on.
    """
    context = state.context or get_tuning_context()
    if type(a) is _ndarray and type(b) is _ndarray:
        if not context.enabled:
            if a.ndim == 2 and b.ndim == 2:
                try:
                    return _matmul(a, b, out)
                except (TypeError, ValueError) as error:
                    check_out("mm", out, check_matrices("mm", a.shape, b.shape))
                    raise error from None
        elif out is None:
            dtype = a.dtype
            if dtype is b.dtype:
                key: tuple[object, ...] = (dtype, a.shape, a.strides, b.shape, b.strides)
                resolved = context.plans.get(key)
                if resolved is None:
                    return _first_mm(context, key, a, b, None)
                resolved.tally.calls += 1
                run = resolved.run
                try:
                    return run(a, b, None)
                except Exception as error:  # noqa: BLE001 - the first choice decides whose fault it was
                    return context.recover(resolved, error, a, b, None)
        elif type(out) is _ndarray:
            dtype = a.dtype
            if dtype is b.dtype and dtype is out.dtype:
                if a.flags.c_contiguous and b.flags.c_contiguous and out.flags.carray:
                    key = (dtype, a.shape, b.shape, out.shape)
                elif not out.flags.aligned:
                    return _first_mm(context, None, a, b, out)
                else:
                    key = (dtype, a.shape, a.strides, b.shape, b.strides, out.shape, out.strides)
                resolved = context.plans.get(key)
                if resolved is None:
                    return _first_mm(context, key, a, b, out)
                resolved.tally.calls += 1
                run = resolved.run
                try:
                    return run(a, b, out)
                except Exception as error:  # noqa: BLE001 - as above
                    return context.recover(resolved, error, a, b, out)
        if context.enabled and (out is None or type(out) is _ndarray):
            # Data types that differ, or are equal but two objects, as those of unpickled arrays are.
            return _first_mm(context, _key("mm", a, b, out), a, b, out)
    return shortcuts.get(type(a), route).mm(context, a, b, out)


_plain_mm: Any = getattr(mm, "__wrapped__", mm)


@overload
def bmm(a: Array, b: Array, *, out: Out = None) -> Array: ...


@overload
def bmm(a: DeviceArrayT, b: DeviceArrayT, *, out: DeviceArrayT | None = None) -> DeviceArrayT: ...


@overload
def bmm(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> Array: ...


def bmm(a: Any, b: Any, *, out: Any = None) -> Any:
    """Multiply two stacks of matrices, (b, m, k) by (b, k, n), one by one.

    Tuned when `FAMILIES` is `all`. Raises and returns as `mm` does.
    """
    context = state.context or get_tuning_context()
    product = NotImplemented if type(a) is type(b) is _ndarray else route.bmm(context, a, b, out)
    if product is not NotImplemented:
        return product
    check_out("bmm", out, check_batch(np.shape(a), np.shape(b)))
    if not (context.enabled and type(a) is _ndarray and type(b) is _ndarray and (out is None or type(out) is _ndarray)):
        return _matmul(a, b, out=out)
    key = _key("bmm", a, b, out)
    return _run(context, key, a, b, out, lambda: batch_problem(a, b, out))


@overload
def matmul(a: Array, b: Array, *, out: Out = None) -> Array: ...


@overload
def matmul(a: DeviceArrayT, b: DeviceArrayT, *, out: DeviceArrayT | None = None) -> DeviceArrayT: ...


@overload
def matmul(a: ArrayLike, b: ArrayLike, *, out: Out = None) -> Array: ...


def matmul(a: Any, b: Any, *, out: Any = None) -> Any:
    """Multiply as `numpy.matmul` does, 1-D operands and broadcast stacks included, tuned where a matrix is met.

    Two matrices go the way of `mm`, a stack by one matrix as one tall matrix, two equal stacks the way of `bmm`;
    everything else is NumPy's own. Raises `ShapeError` where NumPy raises ValueError for shapes.
    """
    try:
        if type(a) is _ndarray and type(b) is _ndarray:
            if a.ndim == 2 and b.ndim == 2:
                return mm(a, b, out=out)
            if a.ndim > 2 and b.ndim == 2 and out is None and a.flags.c_contiguous and a.size and a.shape[-1] == len(b):
                return mm(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[1])
            if a.ndim == 3 and b.ndim == 3 and len(a) == len(b) and a.shape[2] == b.shape[1]:
                return bmm(a, b, out=out)
        else:
            product = route.matmul(state.context or get_tuning_context(), a, b, out)
            if product is not NotImplemented:
                return product
        return _matmul(a, b, out=out)
    except ValueError as error:
        raise explain_mismatch(a, b, error) from None


def run_matrix_product(
    context: TuningContext,
    name: str,
    a: Array,
    b: Array,
    out: Out,
    *,
    bias: bool = False,
    accumulate: bool = False,
) -> Array:
    """Run the (m, k) by (k, n) product of an operation that adds something to it; shapes are checked already."""
    if not context.enabled:
        return _matmul(a, b, out)
    key = (bias, accumulate, *_key(name, a, b, out))
    return _run(context, key, a, b, out, lambda: matrix_problem(a, b, out, bias=bias, accumulate=accumulate))


def _first_mm(context: TuningContext, key: object, a: Array, b: Array, out: Out) -> Array:
    check_out("mm", out, check_matrices("mm", a.shape, b.shape))
    return _run(context, key, a, b, out, lambda: matrix_problem(a, b, out))


def _key(name: str, a: Array, b: Array, out: Out) -> tuple[object, ...]:
    where = None if out is None else (out.shape, out.strides, out.dtype)
    return (name, a.shape, a.strides, a.dtype, b.shape, b.strides, b.dtype, where)


def _run(context: TuningContext, key: object, a: Array, b: Array, out: Out, pose: Any) -> Array:
    """Run what the layout `key` resolved to, resolving it first when it is new; `pose` makes its problem."""
    if out is not None and not out.flags.aligned:
        # Several kernels refuse what begins in the middle of an element, which would not be their fault.
        return _matmul(a, b, out)
    plans = context.plans
    resolved = plans.get(key)
    if resolved is None:
        problem: GemmProblem | None = pose()
        resolved = context.fixed(_matmul) if problem is None else context.resolve(problem, context.backend(CPU))
        context.keep(plans, key, resolved)
    else:
        resolved.tally.calls += 1
    try:
        return resolved.run(a, b, out)
    except Exception as error:  # noqa: BLE001 - the first choice decides whose fault it was
        return context.recover(resolved, error, a, b, out)
