"""Groups of torch's tensors, of which there are so many that reading each attribute of each would cost too much.

Addresses that ran before are found at once; what is left to check then is that the tensors are just like those of
that time. For others the compiler's check in C++ says that all tensors are plain matrices of one type on one device,
so that only addresses, sizes and steps are read.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from tensorplay.ops.device.group import Group
from tensorplay.ops.device.group_arrays import GroupArrays
from tensorplay.ops.device.groups import Arrays, Groups
from tensorplay.ops.device.kind import Kind, library
from tensorplay.ops.device.torch_guard import guard_of
from tensorplay.ops.device.torch_kind import dtype_names, raw_stream
from tensorplay.runtime.context import TuningContext

__all__ = ["TorchGroups", "torch_groups"]

Tensors = tuple[Any, ...]
Check = Callable[[Tensors], bool]

# What tensors raise that are none, or have no memory of their own; the loop says so in our words.
_UNUSUAL = (AttributeError, RuntimeError, TypeError)
# Checks hold a few hundred bytes for each tensor.
_MOST_KNOWN = 128
_MOST_SEEN = 4096
_MOST_PLAIN = 64


class _Known(NamedTuple):
    """A group at certain addresses."""

    group: Group
    check: Check
    arrays: GroupArrays
    workspace_mib: int | None
    tf32: bool


class TorchGroups(Groups):
    """As `Groups`, for tensors of torch."""

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        torch = library("torch").Tensor
        self._kind = kind
        self._address_of, self._steps_of = torch.data_ptr, torch.stride
        self._stream_of = raw_stream()
        self._known: dict[tuple[bool, tuple[int, ...]], _Known] = {}
        self._seen: set[int] = set()
        self._plain: dict[tuple[int, Any], Check] = {}

    def multiply(self, context: TuningContext, left: Arrays, right: Arrays, out: Arrays | None) -> list[Any] | None:
        """Return all products, enqueued in one call; None where they are to run one by one."""
        tensors = (*left, *right) if out is None else (*left, *right, *out)
        try:
            pointers = tuple(map(self._address_of, tensors))
            known = self._known.get((out is None, pointers))
            if known is None or not self._is_as_known(context, known, tensors):
                return self._found(context, tensors, pointers, left, out)
        except _UNUSUAL:
            return None
        stream = self._stream_of(known.arrays.device)
        if known.group.retires_on(stream):
            return None
        return self.run(context, self._kind, known.group, known.arrays._replace(stream=stream), left, out)

    def _made(
        self, kind: Kind, left: Arrays, sizes: list[tuple[int, int]], dtype: str
    ) -> tuple[list[Any], tuple[int, ...]]:
        del kind, dtype
        results = [like.new_empty(size) for like, size in zip(left, sizes, strict=True)]
        return results, tuple(map(self._address_of, results))

    def _is_as_known(self, context: TuningContext, known: _Known, tensors: Tensors) -> bool:
        return (
            known.check(tensors)
            and known.workspace_mib == context.workspace_mib
            and (known.arrays.dtype != "float32" or self._kind.allows_tf32() is known.tf32)
        )

    def _found(
        self, context: TuningContext, tensors: Tensors, pointers: tuple[int, ...], left: Arrays, out: Arrays | None
    ) -> list[Any] | None:
        """Multiply by what is found by sizes, and let it be found by addresses when these come again."""
        arrays = self._read(tensors, pointers)
        group = None if arrays is None else self.find(context, self._kind, arrays, len(left))
        if arrays is None or group is None or not group.is_usable(pointers):
            return None
        self._note(context, group, arrays, tensors, is_new=out is None)
        return self.run(context, self._kind, group, arrays, left, out)

    def _read(self, tensors: Tensors, pointers: tuple[int, ...]) -> GroupArrays | None:
        """Return the tensors as they lie, None unless they are plain matrices of one type on one device.

        Raises
        ------
        OperandError
            When torch would be expected to differentiate, or a tensor's values are not in one dense memory.
        """
        first = tensors[0]
        key = (len(tensors), first.dtype)
        check = self._plain.get(key)
        if check is None or not check(tensors):
            check = self._plain_check(tensors)
            if check is None:
                return None
            if len(self._plain) >= _MOST_PLAIN:
                self._plain.clear()
            self._plain[key] = check
        device, name = first.get_device(), dtype_names().get(first.dtype)
        if device < 0 or name is None:
            return None
        shapes, strides = tuple([tensor.shape for tensor in tensors]), tuple(map(self._steps_of, tensors))
        return GroupArrays(pointers, shapes, strides, name, device, self._stream_of(device))

    def _plain_check(self, tensors: Tensors) -> Check | None:
        """Return the check that plain matrices like these pass, None when they are none."""
        first = tensors[0]
        if any(tensor.ndim != 2 or not tensor.is_cuda for tensor in tensors):
            return None
        alike = (first.dtype, first.get_device())
        if any((tensor.dtype, tensor.get_device()) != alike for tensor in tensors):
            return None
        if any(self._kind.plain(tensor) is not tensor for tensor in tensors):
            return None
        check = of_distinct(tensors, _matrices)
        return check if check(tensors) else None

    def _note(
        self, context: TuningContext, group: Group, arrays: GroupArrays, tensors: Tensors, *, is_new: bool
    ) -> None:
        key = (is_new, arrays.pointers)
        # Making the check is worth it for what comes again.
        if (mark := hash(key)) not in self._seen:
            if len(self._seen) >= _MOST_SEEN:
                self._seen.clear()
            self._seen.add(mark)
            return
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        check = of_distinct(tensors, guard_of)
        tf32 = arrays.dtype == "float32" and self._kind.allows_tf32()
        self._known[key] = _Known(group, check, arrays, context.workspace_mib, tf32)


def of_distinct(tensors: Tensors, made: Callable[..., Callable[..., bool]]) -> Check:
    """Return the check of tensors, some of which may be the same, by one that is `made` of distinct ones."""
    places: dict[int, int] = {}
    repeated = []
    for place, tensor in enumerate(tensors):
        first = places.setdefault(id(tensor), place)
        if first != place:
            repeated.append((place, first))
    if not repeated:
        plain = made(*tensors)
        return lambda given: plain(*given)
    distinct = list(places.values())
    check = made(*[tensors[place] for place in distinct])

    def checked(given: Tensors) -> bool:
        same = all(given[place] is given[first] for place, first in repeated)
        return same and check(*[given[place] for place in distinct])

    return checked


def _matrices(*tensors: Any) -> Callable[..., bool]:
    """Return the check that matrices of these tensors' types pass, whatever their sizes; by torch's compiler."""
    torch = library("torch")
    anything = [[None, None]] * len(tensors)
    try:
        guards = torch._C._dynamo.guards
        check: Callable[..., bool] = guards.TensorGuards(
            *tensors, dynamic_dims_sizes=anything, dynamic_dims_strides=anything
        ).check
    except (AttributeError, TypeError, RuntimeError):
        return _compared(*tensors)
    if not any(tensor.requires_grad for tensor in tensors):
        return check
    grad_is_enabled = torch.is_grad_enabled
    # It looks at what tensors require, but not at whether gradients are recorded.
    return lambda *given: not grad_is_enabled() and check(*given)


def _compared(*tensors: Any) -> Callable[..., bool]:
    torch = library("torch")

    def described(tensor: Any) -> tuple[object, ...]:
        is_lazy = tensor.is_neg() or tensor.is_conj()
        is_recorded = tensor.requires_grad and torch.is_grad_enabled()
        return type(tensor), tensor.dtype, tensor.get_device(), tensor.ndim, tensor.layout, is_lazy, is_recorded

    wanted = [described(tensor) for tensor in tensors]
    return lambda *given: [described(tensor) for tensor in given] == wanted


@cache
def torch_groups(kind: Kind) -> TorchGroups:
    """Return the process's groups of tensors."""
    return TorchGroups(kind)
