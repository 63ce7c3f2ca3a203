"""Operands of one product: arrays of one kind, as views that a plan can take, copied only where they must be."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tensorplay.errors import OperandError, ShapeError
from tensorplay.ops.device.kind import Kind
from tensorplay.ops.device.problem import dtype_of, in_vectors, is_usable, is_writable
from tensorplay.ops.device.view import DeviceView, span

__all__ = ["Operand", "Result", "are_apart", "check_devices", "check_shape", "operand", "result", "seen"]

Shape = tuple[int, ...]
Turn = Callable[[DeviceView], DeviceView | None]


class Operand(NamedTuple):
    """An array and the view of it that a product reads; `is_copy` when neither is the caller's."""

    array: Any
    view: DeviceView
    is_copy: bool = False


class Result(NamedTuple):
    """Where a product is written: `array` as its library's, seen as `view`.

    `target` is the caller's output where the result must be copied there afterwards, None where it is in place.
    """

    array: Any
    view: DeviceView
    target: Any = None


def seen(kind: Kind, plain: Any) -> DeviceView:
    """Return the view of an array; `OperandError` when it has elements but no memory, its storage being freed."""
    view = kind.view(plain)
    if not view.pointer and 0 not in view.shape:
        raise OperandError(
            f"an operand of type {type(plain).__name__} has the shape {view.shape} and no memory: its address is 0; "
            "perhaps its storage was freed or resized"
        )
    return view


def operand(kind: Kind, array: Any, turn: Turn, shape: Shape | None = None) -> Operand:
    """Return an array as `turn` looks at it; where that cannot be read in place, a dense copy of it.

    `shape` is what the copy is broadcast to; `turn` returns a view for every dense array of that shape.
    """
    plain = kind.plain(array)
    view = seen(kind, plain)
    turned = turn(view)
    if turned is not None and (0 in turned.shape or is_usable(turned)):
        return Operand(plain, turned, plain is not array)
    copied = kind.dense(plain, view.shape if shape is None else shape)
    turned = turn(kind.view(copied))
    if turned is None:
        raise OperandError(f"an operand of shape {view.shape} cannot be looked at as a matrix")
    return Operand(copied, turned, is_copy=True)


def result(
    kind: Kind,
    like: Any,
    out: Any,
    shape: Shape,
    turn: Turn,
    *,
    dtype: str,
    read: tuple[DeviceView, ...],
    view: DeviceView | None = None,
    is_vectored: bool = False,
) -> Result:
    """Return where a product of that shape goes; `view` is that of `out`, since some arrays are shown once only.

    That is `out` itself, unless it overlaps one of the operands that are `read` while it is written, or is not
    stored by rows, or not in vectors where it must be: then it is a new array, to be copied there.
    """
    if out is None or view is None:
        made = kind.empty(like, shape, dtype)
        return Result(made, _turned(kind.view(made), turn))
    plain = kind.plain(out)
    if plain is not out:
        raise OperandError("out is a lazily conjugated or negated view, which cannot be written to")
    if view.is_readonly:
        raise OperandError(f"out is a {type(out).__name__} that cannot be written to; leave it out")
    turned = turn(view)
    if turned is not None and (0 in shape or _is_written(turned, read, is_vectored=is_vectored)):
        return Result(out, turned)
    made = kind.empty(like, shape, view.dtype)
    return Result(made, _turned(kind.view(made), turn), out)


def are_apart(one: DeviceView, other: DeviceView) -> bool:
    """Return whether two views without negative steps certainly share no memory; others count as sharing it."""
    if min((*one.strides, *other.strides), default=0) < 0:
        return False
    one_end = one.pointer + span(one.shape, one.strides) * dtype_of(one).itemsize
    other_end = other.pointer + span(other.shape, other.strides) * dtype_of(other).itemsize
    return one_end <= other.pointer or other_end <= one.pointer


def check_devices(*views: DeviceView) -> None:
    """Raise `OperandError` unless all are on one device."""
    devices = {view.device for view in views}
    if len(devices) > 1:
        raise OperandError(f"operands are on devices {sorted(devices)}; allowed: all on one")


def check_shape(name: str, out: DeviceView, shape: Shape) -> None:
    """Raise `ShapeError` unless an output has the shape of the result."""
    if out.shape != shape:
        raise ShapeError(f"{name}: out is {out.shape}, but the result is {shape}")


def _is_written(view: DeviceView, read: tuple[DeviceView, ...], *, is_vectored: bool) -> bool:
    """Return whether a product is written there while the views are read."""
    return is_writable(view) and (not is_vectored or in_vectors(view)) and all(are_apart(view, each) for each in read)


def _turned(view: DeviceView, turn: Turn) -> DeviceView:
    turned = turn(view)
    if turned is None:
        raise OperandError(f"a result of shape {view.shape} cannot be looked at as a matrix")
    return turned
