"""One product of arrays on a device, from arrays to the result: what `mm`, `linear` and the others come down to."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tensorplay.backends.cublaslt.number_types import bias_dtype, is_float8
from tensorplay.errors import OperandError
from tensorplay.gemm import DType
from tensorplay.ops.activation import check_real
from tensorplay.ops.device.kind import Kind
from tensorplay.ops.device.launch import launch
from tensorplay.ops.device.operand import Operand, Result, are_apart, check_devices, check_shape, result, seen
from tensorplay.ops.device.problem import VECTOR, dtype_of, named_dtype, result_dtype
from tensorplay.ops.device.view import DeviceView
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.resolved import Resolved

__all__ = ["Addend", "Outcome", "multiply"]

Shape = tuple[int, ...]
Turn = Callable[[DeviceView], DeviceView | None]


class Addend(NamedTuple):
    """What is added: `beta * array`, along rows if it `is_bias`, else broadcast to the result."""

    array: Any
    beta: Any = 1.0
    is_bias: bool = False


class Outcome(NamedTuple):
    """The result of a product, and how it was done.

    `resolved` is what ran on exactly the caller's arrays, seen as `left`, `right` and `out`; None where something
    was copied, or nothing ran. `tf32` is whether TF32 was allowed for it.
    """

    array: Any
    resolved: Resolved | None
    left: DeviceView
    right: DeviceView
    out: DeviceView
    tf32: bool = False


def multiply(
    context: TuningContext,
    kind: Kind,
    name: str,
    left: Operand,
    right: Operand,
    out: Any,
    shape: Shape,
    turn: Turn,
    *,
    dtype: str | None = None,
    alpha: Any = 1.0,
    addend: Addend | None = None,
    activation: str = "none",
    scales: Sequence[DeviceView | None] = (),
    given: DeviceView | None = None,
) -> Outcome:
    """Return `alpha * left @ right` and the addend, in an array of `shape` that `turn` looks at as matrices.

    `dtype` is the result's, that of `out` or the operands unless given; `launch` says what `scales` are. `given` is the
    view of `out` where the caller has looked at it already.

    Raises
    ------
    ShapeError
        When `out` has another shape.
    OperandError
        When data types or devices differ, or nothing here multiplies such operands.
    """
    if out is not None and given is None:
        given = seen(kind, kind.plain(out))
    if given is not None:
        check_devices(left.view, given)
        check_shape(name, given, shape)
    if dtype is None:
        dtype = result_dtype(left.view, right.view, given.dtype if given else None)
    check_real(name, activation, dtype)
    operand_dtype = dtype_of(right.view)
    bias, c = _addend(kind, addend, operand_dtype, named_dtype(dtype))
    read = (left.view, right.view, *((bias.view,) if bias else ()), *(scale for scale in scales if scale))
    check_devices(*read, *((c.view,) if c else ()))
    is_vectored = is_float8(operand_dtype)
    where = result(kind, left.array, out, shape, turn, dtype=dtype, read=read, view=given, is_vectored=is_vectored)
    if 0 in shape:
        return _outcome(kind, where, None, left, right, out)
    added: Operand | None = None
    if c is not None:
        added = _with_c(kind, c, where, shape, turn)
    left, right = _not_hollow(kind, left, right)
    tf32 = left.view.dtype == "float32" and kind.allows_tf32()
    resolved = launch(
        context,
        kind,
        left.view,
        right.view,
        where.view,
        bias=bias.view if bias else None,
        c=added.view if added else None,
        accumulate=c is not None,
        activation=activation,
        tf32=tf32,
        alpha=alpha,
        beta=addend.beta if addend and c else 0.0,
        scales=scales,
    )
    # An addend that was copied into the result is not read directly either.
    is_direct = c is None or added is not None
    is_direct &= not any(each.is_copy for each in (left, right, bias, added) if each)
    return _outcome(kind, where, resolved if is_direct else None, left, right, out)._replace(tf32=tf32)


def _outcome(kind: Kind, where: Result, resolved: Resolved | None, left: Operand, right: Operand, out: Any) -> Outcome:
    if where.target is not None:
        kind.assign(where.target, where.array)
        return Outcome(where.target, None, left.view, right.view, where.view)
    if out is not None:
        kind.note_written((out,))
    return Outcome(kind.finished(where.array), resolved, left.view, right.view, where.view)


def _addend(
    kind: Kind, addend: Addend | None, operand_dtype: DType, result: DType
) -> tuple[Operand | None, Operand | None]:
    """Return the bias, or the matrix to add, as an operand of the type that it must have; a bias is dense."""
    if addend is None:
        return None, None
    plain = kind.plain(addend.array)
    view = seen(kind, plain)
    wanted = bias_dtype(operand_dtype, result) if addend.is_bias else result
    if view.dtype != wanted.name:
        raise OperandError(
            f"what is added is {view.dtype}; to a result of {result.name} {wanted.name} is added: convert it first"
        )
    if not addend.is_bias:
        if is_float8(result):
            raise OperandError(f"no matrix is added to a result of {result.name}; let it be bfloat16")
        return None, Operand(plain, view, plain is not addend.array)
    alignment = VECTOR if is_float8(operand_dtype) else wanted.itemsize
    if (view.shape[0] > 1 and view.strides[0] != 1) or view.pointer % alignment:
        plain = kind.dense(plain, view.shape)
        view = kind.view(plain)
    return Operand(plain, view, plain is not addend.array), None


def _with_c(kind: Kind, c: Operand, where: Result, shape: Shape, turn: Turn) -> Operand | None:
    """Return the matrix to add as it must be read, lying as the result does; None when it is in the result already.

    Where it lies otherwise, a dense result takes a dense copy, and any other has it copied into itself.
    """
    wanted = where.view
    turned = turn(c.view) if c.view.shape == shape else None
    if turned is not None and (turned.shape, turned.strides) == (wanted.shape, wanted.strides):
        if turned.pointer == wanted.pointer:
            return None
        if are_apart(turned, wanted):
            return c._replace(view=turned)
    copied = kind.dense(c.array, shape)
    turned = turn(kind.view(copied))
    if turned is not None and turned.strides == wanted.strides:
        return Operand(copied, turned, is_copy=True)
    kind.assign(where.array, copied)
    return None


def _not_hollow(kind: Kind, left: Operand, right: Operand) -> tuple[Operand, Operand]:
    """Return operands with the same product that have something to multiply: zeros, for sums of no products."""
    if left.view.shape[-1]:
        return left, right
    rows, columns = left.view.shape, right.view.shape
    zeros = [
        kind.zeros(left.array, shape, left.view.dtype) for shape in ((*rows[:-1], 1), (*columns[:-2], 1, columns[-1]))
    ]
    first, second = (Operand(array, kind.view(array), is_copy=True) for array in zeros)
    return first, second
