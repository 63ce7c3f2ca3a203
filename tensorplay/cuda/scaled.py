"""Products of FP8 numbers with a scale for each operand."""

from ctypes import c_float, c_uint32
from functools import cache
from importlib import import_module
from math import prod
from numbers import Real
from typing import Any, NamedTuple, cast

from tensorplay.backends.cublaslt.device import current
from tensorplay.backends.cublaslt.library import driver
from tensorplay.backends.cublaslt.number_types import float8_results, is_float8
from tensorplay.backends.cublaslt.status import check
from tensorplay.database.record import Validator
from tensorplay.errors import OperandError, ShapeError
from tensorplay.ops.arrays import DeviceArrayT
from tensorplay.ops.device.kind import Kind
from tensorplay.ops.device.kinds import device_kind, shortcuts
from tensorplay.ops.device.launch import backend_of
from tensorplay.ops.device.operand import Operand, operand, seen
from tensorplay.ops.device.problem import VECTOR, dtype_of, named_dtype
from tensorplay.ops.device.product import Addend, Outcome, multiply
from tensorplay.ops.device.products import as_is, shape_of
from tensorplay.ops.device.view import DeviceView, stored
from tensorplay.ops.shapes import check_matrices
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import get_tuning_context, state

__all__ = ["scaled_mm"]

_NAME = "scaled_mm"
_FIRST_CAPABILITY = (8, 9)
_CAPABILITY = "CUDA_DEVICE"


class _Scales(NamedTuple):
    """Scales on the device, of left, right and the result; None where there is none, or it is a number."""

    left: Any
    right: Any
    out: Any


class _Epilogue(NamedTuple):
    """What follows the product; `number_out` is a scale that must be on the device, and is not there yet."""

    bias: Any
    scales: _Scales
    number_out: float | None
    has_scale_out: bool


def scaled_mm(
    a: DeviceArrayT,
    b: DeviceArrayT,
    *,
    scale_a: DeviceArrayT | float | None = None,
    scale_b: DeviceArrayT | float | None = None,
    scale_out: DeviceArrayT | float | None = None,
    bias: DeviceArrayT | None = None,
    out_dtype: Any = None,
    out: DeviceArrayT | None = None,
) -> DeviceArrayT:
    """Return `scale_out * (scale_a * scale_b * (a @ b) + bias)` of FP8 matrices on a GPU.

    Parameters
    ----------
    a : array (m, k)
        Left operand, of float8_e4m3fn or float8_e5m2, stored by rows.
    b : array (k, n)
        Right operand, the transposed view of a matrix (n, k) that is stored by rows. k and n are multiples of 16, and
        at most one operand is of float8_e5m2.
    scale_a, scale_b : array of one float32, or number, optional
        What the numbers of each operand are multiplied by; 1 unless given. An array is read on the device, when the
        product runs.
    scale_out : array of one float32, or number, optional
        What the result is multiplied by before it is rounded to FP8; for such results only.
    bias : array (n,), optional
        Added to each row; of the result's type, but of bfloat16 where that is FP8 or float32.
    out_dtype : str or data type, optional
        Of the result: bfloat16 unless given, float16, float32, float8_e4m3fn, or float8_e5m2 where one operand is.
    out : array (m, n), optional
        Where the result goes, in its own type.

    Returns
    -------
    array (m, n)
        `out` if given.

    Raises
    ------
    ShapeError
        When the shapes do not fit; the message names them.
    OperandError
        When anything else does not fit, or the device has no FP8: its compute capability is below 8.9.

    Notes
    -----
    One scale is for a whole matrix; scales of rows, columns or blocks are not supported, nor are stacks. Sums are
    kept in float32, without cuBLASLt's fast accumulation. Tuned when `FAMILIES` is `all`.
    """
    context = state.context or get_tuning_context()
    given: tuple[Any, ...] = (scale_a, scale_b, scale_out)
    are_numbers = [isinstance(scale, Real) for scale in given]
    names = ("scale_a", "scale_b", "scale_out")
    numbers = [
        _number(name, scale) if isinstance(scale, Real) else None for name, scale in zip(names, given, strict=True)
    ]
    scales = _Scales(*(None if is_number else scale for scale, is_number in zip(given, are_numbers, strict=True)))
    # A number of the result is a factor like the others, unless a bias comes in between.
    number_out = None if bias is None else numbers.pop()
    alpha = prod(number for number in numbers if number is not None)
    epilogue = _Epilogue(bias, scales, number_out, has_scale_out=scale_out is not None)
    hot = _hot_path() if type(a) in shortcuts and number_out is None else None
    call = hot.scaled_call(a, b, bias, scales, out, (out_dtype, epilogue.has_scale_out)) if hot else None
    if hot is None or call is None:
        return cast("DeviceArrayT", _multiplied(context, a, b, epilogue, alpha, out_dtype, out).array)
    plans = context.plans
    found = hot.run_known(context, call, alpha)
    if found is None:
        outcome = _multiplied(context, a, b, epilogue, alpha, out_dtype, out)
        hot.keep_outcome(context, plans, call, outcome)
        found = outcome.array
    return cast("DeviceArrayT", found)


@cache
def _hot_path() -> Any:
    """Return the module for tensors, which is imported once there are some."""
    return import_module("tensorplay.ops.device.torch_scaled")


def _multiplied(
    context: TuningContext, a: Any, b: Any, epilogue: _Epilogue, alpha: float, out_dtype: Any, out: Any
) -> Outcome:
    bias = epilogue.bias
    kind = device_kind(a, b, bias, out, *epilogue.scales)
    if kind is None:
        raise OperandError(f"{_NAME}: the operands are on the host; allowed: FP8 arrays on a GPU")
    shape = check_matrices(_NAME, shape_of(a), shape_of(b))
    if bias is not None and shape_of(bias) != shape[1:]:
        raise ShapeError(f"{_NAME}: bias is {shape_of(bias)}; a result of {shape} asks for {shape[1:]}")
    left, right = operand(kind, a, as_is), operand(kind, b, as_is)
    into = None if out is None else seen(kind, kind.plain(out))
    dtype = _result_name(left.view, right.view, into, out_dtype)
    if epilogue.has_scale_out and not is_float8(named_dtype(dtype)):
        raise OperandError(f"{_NAME}: scale_out is given for a result of {dtype}; only a result of FP8 is scaled")
    _check_layout(left.view, right.view)
    _check_capability(backend_of(context, str(left.view.device)).validators(str(left.view.device)))
    # Held until the product is enqueued, copies and all.
    held = [
        None if scale is None else _scale(kind, f"scale_{which}", scale)
        for which, scale in zip(("a", "b", "out"), epilogue.scales, strict=True)
    ]
    views = [None if scale is None else scale.view for scale in held]
    if epilogue.number_out is not None:
        # A name of its own, so that its memory is kept until the product is enqueued.
        made = kind.empty(left.array, (1,), "float32")
        view = views[-1] = kind.view(made)
        _fill(view, epilogue.number_out)
    addend = None if bias is None else Addend(bias, is_bias=True)
    return multiply(
        context,
        kind,
        _NAME,
        left,
        right,
        out,
        shape,
        as_is,
        dtype=dtype,
        alpha=alpha,
        addend=addend,
        scales=views,
        given=into,
    )


def _result_name(left: DeviceView, right: DeviceView, out: DeviceView | None, out_dtype: Any) -> str:
    types = dtype_of(left), dtype_of(right)
    if not all(map(is_float8, types)):
        raise OperandError(
            f"{_NAME}: operands are {left.dtype} and {right.dtype}; allowed: float8_e4m3fn and float8_e5m2"
        )
    allowed = float8_results(*types)
    if not allowed:
        raise OperandError(f"{_NAME}: both operands are {left.dtype}; one of them must be float8_e4m3fn")
    wanted = None if out_dtype is None else _dtype_name(out_dtype)
    if out is not None and wanted not in {None, out.dtype}:
        raise OperandError(f"{_NAME}: out is {out.dtype}, out_dtype {wanted}; they must be equal")
    name = wanted or (allowed[0] if out is None else out.dtype)
    if name not in allowed:
        raise OperandError(
            f"{_NAME}: the result is {name}; a product of {left.dtype} and {right.dtype} is stored as "
            f"{', '.join(allowed)}"
        )
    return name


def _dtype_name(dtype: Any) -> str:
    """Return what a data type of NumPy, ml_dtypes or torch is called."""
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or dtype
    return str(name).removeprefix("torch.")


def _check_layout(left: DeviceView, right: DeviceView) -> None:
    (_, k), n = left.shape, right.shape[1]
    if k == 0 or k % VECTOR or n % VECTOR:
        raise OperandError(f"{_NAME}: k is {k} and n {n}; allowed in FP8: multiples of {VECTOR}")
    if n == 0:
        return
    left_lies, right_lies = stored(left.shape, left.strides), stored(right.shape, right.strides)
    if left_lies is None or left_lies.transposed:
        raise OperandError(f"{_NAME}: a {left.shape} is not stored by rows; copy it so")
    if right_lies is None or not right_lies.transposed:
        raise OperandError(
            f"{_NAME}: b {right.shape} is not the transposed view of a matrix {right.shape[::-1]} that is stored by "
            f"rows, each beginning at a multiple of {VECTOR} bytes; copy its transpose so, and give the view of that"
        )


def _number(name: str, scale: Real) -> float:
    try:
        return float(scale)
    except OverflowError as error:
        raise OperandError(f"{_NAME}: {name} is too large a {type(scale).__name__}: {error}") from error


def _scale(kind: Kind, name: str, scale: Any) -> Operand:
    """Return a scale where the library reads it: it refuses one that is not aligned to 16 bytes, so that is copied."""
    plain = kind.plain(scale)
    view = seen(kind, plain)
    if view.dtype != "float32" or prod(view.shape) != 1:
        raise OperandError(
            f"{_NAME}: {name} is {view.dtype} of shape {view.shape}; allowed: a number, or an array of one float32. "
            "Scales of rows, columns or blocks are not supported"
        )
    if view.pointer % VECTOR == 0:
        return Operand(plain, view)
    copied = kind.dense(plain, view.shape)
    return Operand(copied, kind.view(copied), is_copy=True)


@cache
def _check_capability(facts: tuple[Validator, ...]) -> None:
    """Raise `OperandError` where the validators of a device name a compute capability without FP8."""
    for fact in facts:
        if fact.name == _CAPABILITY:
            capability, _, model = fact.value.partition(":")
            if tuple(map(int, capability.split("."))) < _FIRST_CAPABILITY:
                first = ".".join(map(str, _FIRST_CAPABILITY))
                raise OperandError(
                    f"{_NAME}: {model} has no FP8: its compute capability is {capability}, FP8 begins at {first}"
                )


def _fill(view: DeviceView, number: float) -> None:
    """Write a number to the device, in the order of the view's stream; a graph capture takes it in."""
    bits = c_uint32.from_buffer(c_float(number)).value
    with current(view.device):
        check(driver().cuMemsetD32Async(view.pointer, bits, 1, view.stream), "writing a scale")
