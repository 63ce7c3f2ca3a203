"""From views of device memory to the problem they pose. Pure."""

from tensorplay.backends.cublaslt.number_types import is_float8
from tensorplay.errors import OperandError
from tensorplay.gemm import DType, GemmProblem, dtype_of_name
from tensorplay.gemm.problem import ALIGNMENTS
from tensorplay.ops.device.view import DeviceView, stored

__all__ = [
    "VECTOR",
    "alignment_of",
    "batch_step",
    "dtype_of",
    "in_vectors",
    "is_usable",
    "is_writable",
    "named_dtype",
    "pose",
    "result_dtype",
]

VECTOR = 16
"""Bytes that products of FP8 load and store at once, and nothing less."""

# What a product may be stored as beside its operands' own type.
_WIDER = {
    "float16": ("float16", "float32"),
    "bfloat16": ("bfloat16", "float32"),
    "float8_e4m3fn": ("bfloat16", "float16", "float32", "float8_e4m3fn"),
    "float8_e5m2": ("bfloat16", "float16", "float32", "float8_e5m2"),
}


def dtype_of(view: DeviceView) -> DType:
    """Return the data type of an operand; `OperandError` for one that no product on a device has."""
    return named_dtype(view.dtype)


def named_dtype(name: str) -> DType:
    """Return the data type that array libraries call so; `OperandError` for one that no product on a device has."""
    dtype = dtype_of_name(name)
    if dtype is None or dtype.name == "tf32":
        raise OperandError(
            f"products of {name} are not done on a device; allowed: float16, bfloat16, float32, float64, "
            "complex64, complex128, float8_e4m3fn, float8_e5m2"
        )
    return dtype


def result_dtype(left: DeviceView, right: DeviceView, given: str | None) -> str:
    """Return the name of the result's type: of `out` if that is given, else the operands' own, bfloat16 for FP8.

    Raises
    ------
    OperandError
        When the operands differ in type, since nothing is converted in silence, or `out` has another one.
    """
    name = dtype_of(left).name
    if right.dtype != name:
        raise OperandError(f"operands are {left.dtype} and {right.dtype}; convert one, nothing is converted in silence")
    allowed = _WIDER.get(name, (name,))
    if given is None:
        return allowed[0]
    if given not in allowed:
        raise OperandError(f"out is {given}; the product of {name} is stored as {' or '.join(allowed)}")
    return given


def in_vectors(view: DeviceView) -> bool:
    """Return whether each stored row of a matrix begins at a multiple of 16 bytes, as products of FP8 need it."""
    item = dtype_of(view).itemsize
    steps = [step for size, step in zip(view.shape, view.strides, strict=True) if size > 1 and step != 1]
    return view.pointer % VECTOR == 0 and all(step * item % VECTOR == 0 for step in steps)


def is_usable(view: DeviceView) -> bool:
    """Return whether a matrix, or stack of them, is read in place: right steps, and addresses of whole elements.

    FP8 is read in whole vectors.
    """
    dtype = dtype_of(view)
    if view.pointer % (dtype.itemsize // (2 if dtype.is_complex else 1)):
        return False
    if is_float8(dtype) and not in_vectors(view):
        return False
    return (len(view.shape) == 2 or view.strides[0] >= 0) and stored(view.shape[-2:], view.strides[-2:]) is not None


def is_writable(view: DeviceView) -> bool:
    """Return whether a result is written in place: it is usable, stored by rows, and no two elements share memory."""
    if view.is_readonly or not is_usable(view):
        return False
    shape, strides = view.shape[-2:], view.strides[-2:]
    how = stored(shape, strides)
    if how is None or how.transposed:
        return False
    rows = shape[0] * (how.ld or shape[1])
    return len(view.shape) == 2 or view.shape[0] == 1 or view.strides[0] >= rows - (how.ld or shape[1]) + shape[1]


def alignment_of(pointers: int) -> int:
    """Return the alignment class of addresses that were joined by `|`."""
    return next(alignment for alignment in ALIGNMENTS if pointers % alignment == 0)


def batch_step(view: DeviceView) -> int | None:
    """Return the elements from one matrix of a stack to the next, None when they follow at once, row gaps included."""
    how = stored(view.shape[1:], view.strides[1:])
    rows, columns = (view.shape[2], view.shape[1]) if how and how.transposed else view.shape[1:]
    is_next = how is not None and view.strides[0] == rows * (how.ld or columns)
    return None if is_next else view.strides[0]


def pose(
    left: DeviceView,
    right: DeviceView,
    out: DeviceView,
    *,
    alignment: int,
    bias: bool = False,
    accumulate: bool = False,
    activation: str = "none",
    tf32: bool = False,
    workspace_mib: int | None = None,
) -> GemmProblem:
    """Return the problem of usable operands and a writable result, either all matrices or all equal stacks.

    The operands' types are equal, or both FP8.
    """
    is_stack = len(out.shape) == 3 and out.shape[0] > 1
    (m, k), n = left.shape[-2:], right.shape[-1]
    lies = [stored(view.shape[-2:], view.strides[-2:]) for view in (left, right, out)]
    left_lies, right_lies, out_lies = lies
    if left_lies is None or right_lies is None or out_lies is None:
        raise OperandError(f"operands of strides {left.strides}, {right.strides} and {out.strides} are no matrices")
    dtype = dtype_of(right)
    return GemmProblem(
        dtype=_TF32 if tf32 and dtype.name == "float32" else dtype,
        m=m,
        n=n,
        k=k,
        transpose_right=right_lies.transposed,
        transpose_left=left_lies.transposed,
        bias=bias,
        device=str(out.device),
        ld_left=left_lies.ld,
        ld_right=right_lies.ld,
        ld_out=out_lies.ld,
        batch=out.shape[0] if is_stack else 1,
        stride_left=batch_step(left) if is_stack else None,
        stride_right=batch_step(right) if is_stack else None,
        stride_out=batch_step(out) if is_stack else None,
        activation=activation,
        accumulate=accumulate,
        out_dtype=None if out.dtype == right.dtype else dtype_of(out),
        alignment=alignment,
        workspace_mib=workspace_mib,
        left_dtype=None if left.dtype == right.dtype else dtype_of(left),
    )


def _named(name: str) -> DType:
    dtype = dtype_of_name(name)
    if dtype is None:
        raise OperandError(f"{name} is no data type")
    return dtype


_TF32 = _named("tf32")
