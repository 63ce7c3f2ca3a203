"""The arrays of a group, read: as one call of a library is told of them, or not at all where anything is unusual."""

from functools import lru_cache
from typing import Any, NamedTuple

from tensorplay.backends.cublaslt.member import EMPTY, Member
from tensorplay.ops.device.kind import Kind
from tensorplay.ops.device.view import Stored, stored

__all__ = ["GroupArrays", "members_of", "read"]

Shape = tuple[int, ...]
_DENSE = Stored(transposed=False, ld=None)


class GroupArrays(NamedTuple):
    """All left operands of a group, then all right ones, then the results where they are given.

    They are of one data type, on one device, and used on one stream.

    Attributes
    ----------
    pointers, shapes, strides : tuple
        Of each array.
    dtype : str
        As NumPy and ml_dtypes spell it.
    device, stream : int
        Ordinal and handle.
    owners : object
        What must live until the product is enqueued.
    """

    pointers: tuple[int, ...]
    shapes: tuple[Shape, ...]
    strides: tuple[Shape, ...]
    dtype: str
    device: int
    stream: int
    owners: object = None


def read(kind: Kind, arrays: tuple[Any, ...], inputs: int) -> GroupArrays | None:
    """Return what arrays of a kind have in common, the first `inputs` being read and the others written.

    None where one is unusual: values put off, another type, device or stream, or nothing to write to.

    Raises
    ------
    OperandError
        When one cannot be described.
    """
    if any(kind.plain(array) is not array for array in arrays):
        return None
    views = [kind.view(array) for array in arrays]
    first = views[0]
    if any((view.dtype, view.device, view.stream) != (first.dtype, first.device, first.stream) for view in views):
        return None
    if any(view.is_readonly for view in views[inputs:]):
        return None
    pointers, shapes, strides = zip(*((view.pointer, view.shape, view.strides) for view in views), strict=True)
    return GroupArrays(pointers, shapes, strides, first.dtype, first.device, first.stream, views)


def members_of(shapes: tuple[Shape, ...], strides: tuple[Shape, ...], count: int) -> list[Member] | None:
    """Return what the library is told of each of `count` products, `EMPTY` of those that have nothing to do.

    Without results these are dense. None where one cannot be done in place, or is wrong.
    """
    lefts, rights = slice(count), slice(count, 2 * count)
    given = len(shapes) > 2 * count
    outs = zip(shapes[2 * count :], strides[2 * count :], strict=True) if given else [(None, None)] * count
    members: list[Member] = []
    of = zip(shapes[lefts], strides[lefts], shapes[rights], strides[rights], outs, strict=True)
    for left_shape, left_strides, right_shape, right_strides, (out_shape, out_strides) in of:
        member = _member(left_shape, left_strides, right_shape, right_strides, out_shape, out_strides)
        if member is None:
            return None
        members.append(member)
    return members


@lru_cache(maxsize=1 << 12)
def _member(
    left: Shape, left_strides: Shape, right: Shape, right_strides: Shape, out: Shape | None, out_strides: Shape | None
) -> Member | None:
    if not len(left) == len(right) == 2 or left[1] != right[0]:
        return None
    (m, k), n = left, right[1]
    if out is not None and out != (m, n):
        return None
    if 0 in {m, n}:
        return EMPTY
    if not k:
        return None
    left_lies, right_lies = stored(left, left_strides), stored(right, right_strides)
    out_lies = _DENSE if out is None or out_strides is None else stored(out, out_strides)
    if left_lies is None or right_lies is None or out_lies is None or out_lies.transposed:
        return None
    return Member(
        transpose_left=left_lies.transposed,
        transpose_right=right_lies.transposed,
        m=m,
        n=n,
        k=k,
        ld_left=left_lies.ld or (m if left_lies.transposed else k),
        ld_right=right_lies.ld or (k if right_lies.transposed else n),
        ld_out=out_lies.ld or n,
    )
