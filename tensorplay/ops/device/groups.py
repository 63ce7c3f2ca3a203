"""Groups of arrays of any library: found by sizes and steps, made ready at the first use."""

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

from tensorplay.backends.cublaslt.capture import PER_THREAD
from tensorplay.backends.cublaslt.grouped import grouped_call
from tensorplay.backends.cublaslt.member import EMPTY
from tensorplay.backends.cublaslt.workspace import DEFAULT_BYTES
from tensorplay.errors import LaunchError
from tensorplay.ops.device import edge
from tensorplay.ops.device.group import Group
from tensorplay.ops.device.group_arrays import GroupArrays, members_of, read
from tensorplay.ops.device.kind import Kind
from tensorplay.ops.device.kinds import kind_of
from tensorplay.ops.device.launch import backend_of
from tensorplay.runtime.context import TuningContext

__all__ = ["Arrays", "Groups", "groups"]

Arrays = Sequence[Any]

_MIB = 1 << 20
_BACKEND = "cublaslt"
# Lists of sizes that are remembered; all are forgotten when there are more, but those that were captured.
_MOST_LAYOUTS = 512


class Groups:
    """What groups were resolved to in this process; safe in any number of threads."""

    def __init__(self) -> None:
        self._by_layout: dict[tuple[Any, ...], Group | None] = {}

    def multiply(self, context: TuningContext, left: Arrays, right: Arrays, out: Arrays | None) -> list[Any] | None:
        """Return all products, enqueued in one call; None where they are to run one by one, and nothing was done.

        Raises
        ------
        OperandError
            When an array cannot be described.
        """
        kind = kind_of(left[0])
        arrays = (*left, *right) if out is None else (*left, *right, *out)
        if kind is None or any(kind_of(array) is not kind for array in arrays):
            return None
        if not all(kind.is_on_device(array) for array in arrays):
            return None
        found = read(kind, arrays, 2 * len(left))
        group = None if found is None else self.find(context, kind, found, len(left))
        if found is None or group is None or not group.is_usable(found.pointers):
            return None
        return self.run(context, kind, group, found, left, out)

    def find(self, context: TuningContext, kind: Kind, arrays: GroupArrays, count: int) -> Group | None:
        """Return what arrays that lie so were resolved to, None where they are multiplied one by one."""
        dtype = "tf32" if arrays.dtype == "float32" and kind.allows_tf32() else arrays.dtype
        key = (dtype, arrays.device, count, context.workspace_mib, arrays.shapes, arrays.strides)
        if arrays.stream == PER_THREAD:
            # Its number stands for another stream on each thread.
            return None
        try:
            group = self._by_layout[key]
        except KeyError:
            try:
                group = self._resolved(context, arrays, dtype, count)
            except LaunchError:
                # A product says what is wrong with such a stream.
                return None
            self._keep(key, group)
        return None if group is None or group.retires_on(arrays.stream) else group

    def run(
        self, context: TuningContext, kind: Kind, group: Group, arrays: GroupArrays, left: Arrays, out: Arrays | None
    ) -> list[Any] | None:
        """Enqueue a group on arrays that are usable for it; None where that failed."""
        pointers, results = arrays.pointers, out
        if results is None:
            shapes = zip(arrays.shapes[: len(left)], arrays.shapes[len(left) :], strict=True)
            sizes = [(rows[0], columns[1]) for rows, columns in shapes]
            results, more = self._made(kind, left, sizes, arrays.dtype)
            pointers += more
        if not group.enqueue(context, pointers, arrays.stream):
            return None
        if not kind.is_ordered:
            edge.synchronize(arrays.device, arrays.stream)
        if out is None:
            return [kind.finished(result) for result in results]
        kind.note_written(out)
        return list(out)

    def _made(
        self, kind: Kind, left: Arrays, sizes: list[tuple[int, int]], dtype: str
    ) -> tuple[list[Any], tuple[int, ...]]:
        """Return new results like the left operands, and their addresses."""
        results = [kind.empty(like, size, dtype) for like, size in zip(left, sizes, strict=True)]
        return results, tuple([kind.view(result).pointer for result in results])

    @staticmethod
    def _resolved(context: TuningContext, arrays: GroupArrays, dtype: str, count: int) -> Group | None:
        members = members_of(arrays.shapes, arrays.strides, count)
        if members is None:
            return None
        backend = backend_of(context, str(arrays.device))
        if backend.name != _BACKEND:
            return None
        is_capturing = partial(backend.is_capturing, device=str(arrays.device))
        if is_capturing(arrays.stream):
            # Nothing is made ready under a capture.
            return Group(members, arrays.dtype, None, is_capturing)
        busy = tuple([member for member in members if member != EMPTY])
        mib = context.workspace_mib
        call = grouped_call(busy, dtype, arrays.device, DEFAULT_BYTES if mib is None else mib * _MIB)
        return None if call is None else Group(members, arrays.dtype, call.run, is_capturing)

    def _keep(self, key: tuple[Any, ...], group: Group | None) -> None:
        if len(self._by_layout) >= _MOST_LAYOUTS:
            known = list(self._by_layout.items())
            retired = [(each, other) for each, other in known if other is not None and other.is_retired]
            self._by_layout = dict(retired if len(retired) < _MOST_LAYOUTS // 2 else ())
        self._by_layout[key] = group


@cache
def groups() -> Groups:
    """Return the process's groups."""
    return Groups()
