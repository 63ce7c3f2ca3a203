"""`mm`, `bmm` and `matmul` of arrays on a device."""

from typing import Any

from tensorplay.errors import OperandError, ShapeError
from tensorplay.ops.device.cuda_array_interface import shape_of_interface
from tensorplay.ops.device.kind import Kind
from tensorplay.ops.device.operand import operand
from tensorplay.ops.device.product import Outcome, multiply
from tensorplay.ops.device.view import DeviceView
from tensorplay.ops.shapes import check_batch, check_matrices
from tensorplay.runtime.context import TuningContext

__all__ = ["as_is", "bmm", "matmul", "mm", "shape_of"]

Shape = tuple[int, ...]


def shape_of(array: Any) -> Shape:
    """Return the shape of an array of any kind; `OperandError` for one that tells none."""
    shape = getattr(array, "shape", None)
    if shape is None:
        interface = getattr(array, "__cuda_array_interface__", None)
        if interface is None:
            raise OperandError(f"an operand of type {type(array).__name__} has no shape; allowed: arrays that have one")
        return shape_of_interface(interface)
    try:
        return tuple(shape)
    except TypeError:
        raise OperandError(
            f"an operand of type {type(array).__name__} has a shape of type {type(shape).__name__}; allowed: a tuple"
        ) from None


def as_is(view: DeviceView) -> DeviceView:
    """Return the view."""
    return view


def mm(context: TuningContext, kind: Kind, a: Any, b: Any, out: Any) -> Outcome:
    """Multiply two matrices."""
    shape = check_matrices("mm", shape_of(a), shape_of(b))
    return multiply(context, kind, "mm", operand(kind, a, as_is), operand(kind, b, as_is), out, shape, as_is)


def bmm(context: TuningContext, kind: Kind, a: Any, b: Any, out: Any) -> Outcome:
    """Multiply two stacks of matrices, one by one."""
    shape = check_batch(shape_of(a), shape_of(b))
    return multiply(context, kind, "bmm", operand(kind, a, as_is), operand(kind, b, as_is), out, shape, as_is)


def matmul(context: TuningContext, kind: Kind, a: Any, b: Any, out: Any) -> Outcome:
    """Multiply as `numpy.matmul` does: vectors, matrices, and stacks that broadcast.

    A stack by one matrix is one tall matrix where its rows follow each other by equal steps.
    """
    left, right = shape_of(a), shape_of(b)
    stack, shape = _matmul_shape(left, right)
    if len(right) <= 2 and len(left) > 2:
        tall = operand(kind, a, _rows)
        single = operand(kind, b, _column if len(right) == 1 else as_is)
        return multiply(context, kind, "matmul", tall, single, out, shape, _result_rows(len(right)))
    first = operand(kind, a, lambda view: _stacked(_row(view), stack), (*stack, *left[-2:]) if len(left) > 1 else left)
    second = operand(
        kind, b, lambda view: _stacked(_column(view), stack), (*stack, *right[-2:]) if len(right) > 1 else right
    )
    return multiply(
        context, kind, "matmul", first, second, out, shape, lambda view: _as_matrices(view, len(left), len(right))
    )


def _matmul_shape(left: Shape, right: Shape) -> tuple[Shape, Shape]:
    """Return the shape of the stack, and of the whole result."""
    if not left or not right:
        raise ShapeError(f"matmul: operands are {left} and {right}; a scalar is not multiplied as a matrix, use *")
    inner = right[0] if len(right) == 1 else right[-2]
    if left[-1] != inner:
        raise ShapeError(f"matmul: {left} and {right} do not fit: {left[-1]} columns against {inner} rows")
    first, second = left[:-2], right[:-2]
    longest = max(len(first), len(second))
    first, second = (1,) * (longest - len(first)) + first, (1,) * (longest - len(second)) + second
    if any(one != other and 1 not in {one, other} for one, other in zip(first, second, strict=True)):
        raise ShapeError(f"matmul: the stacks of {left} and {right} do not broadcast")
    stack = tuple(other if one == 1 else one for one, other in zip(first, second, strict=True))
    return stack, (*stack, *left[-2:-1], *(right[-1:] if len(right) > 1 else ()))


def _row(view: DeviceView) -> DeviceView:
    """Return a vector as a matrix of one row, anything else as it is."""
    if len(view.shape) > 1:
        return view
    return view._replace(shape=(1, *view.shape), strides=(0, *view.strides))


def _column(view: DeviceView) -> DeviceView:
    """Return a vector as a matrix of one column, anything else as it is."""
    if len(view.shape) > 1:
        return view
    return view._replace(shape=(*view.shape, 1), strides=(*view.strides, 0))


def _rows(view: DeviceView) -> DeviceView | None:
    """Return a stack of matrices as one tall one."""
    return view.folded(len(view.shape) - 1)


def _stacked(view: DeviceView, stack: Shape) -> DeviceView | None:
    """Return matrices broadcast to a stack, and that as one dimension; a matrix where there is no stack."""
    if not stack:
        return view
    return view.expanded((*stack, *view.shape[-2:])).folded(len(stack))


def _result_rows(right_dimensions: int) -> Any:
    def turn(view: DeviceView) -> DeviceView | None:
        if right_dimensions == 1:
            folded = view.folded(len(view.shape))
            return None if folded is None else _column(folded)
        return _rows(view)

    return turn


def _as_matrices(view: DeviceView, left_dimensions: int, right_dimensions: int) -> DeviceView | None:
    """Return a result of matmul as the matrices that were multiplied."""
    if right_dimensions == 1:
        view = view._replace(shape=(*view.shape, 1), strides=(*view.strides, 0))
    if left_dimensions == 1:
        view = view._replace(
            shape=(*view.shape[:-1], 1, view.shape[-1]), strides=(*view.strides[:-1], 0, view.strides[-1])
        )
    stack = len(view.shape) - 2
    return view.folded(stack) if stack else view
