"""Several products of different sizes in one call of classic cuBLAS.

Sizes are read on the host, addresses in device memory. Products that are alike in everything but their addresses
are one group to the library; when all are alike, its batched call does them.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from ctypes import Array, addressof, c_double, c_float, c_int
from operator import itemgetter
from typing import Any, NamedTuple

from tensorplay.backends.cublaslt import grouped_limits
from tensorplay.backends.cublaslt.classic import LEAST_BYTES
from tensorplay.backends.cublaslt.classic_handle import classic_handles
from tensorplay.backends.cublaslt.library import cublas
from tensorplay.backends.cublaslt.member import GROUPED_TYPES, Member
from tensorplay.backends.cublaslt.number_types import R_64F, NumberTypes, number_types
from tensorplay.backends.cublaslt.on_device import on_device
from tensorplay.backends.cublaslt.pointer_arrays import MOST_ADDRESSES, PointerArrays
from tensorplay.backends.cublaslt.status import reason_of
from tensorplay.backends.cublaslt.workspace import DEFAULT_BYTES
from tensorplay.errors import KernelUnavailableError, LaunchError
from tensorplay.gemm import GemmProblem, dtype_of_name

__all__ = ["MOST_PRODUCTS", "GroupedCall"]

MOST_PRODUCTS = MOST_ADDRESSES // (3 * 2)
"""Of one call of the library's; more are several calls. Two lists of the longest kind find room beside each other."""

_ANY_ALGORITHM = -1
_ITEM = 8
# To a library that stores by columns, a matrix by rows is the transposed one: `operation` says more.
_SIZES = ("transpose_right", "transpose_left", "n", "m", "k", "ld_right", "ld_left", "ld_out")

_pointers: dict[int, PointerArrays] = {}


class _Factors(NamedTuple):
    """Alpha and beta of each group, in host memory."""

    alpha: Array[Any]
    beta: Array[Any]


class _Part(NamedTuple):
    """What one call of the library's does.

    Attributes
    ----------
    pick : callable
        Takes all lefts, rights and outs one after another; returns the addresses of this part's rights, lefts, outs.
    products : int
        How many there are.
    sizes : sequence of array
        Of each group: the two transposes, m, n, k, and the leading dimensions of A, B and C, as the library has them.
    groups : array
        The number of products of each.
    """

    pick: Callable[[tuple[int, ...]], tuple[int, ...]]
    products: int
    sizes: tuple[Array[c_int], ...]
    groups: Array[c_int]


class GroupedCall:
    """Products of one device and type, made ready to be enqueued by one call, whatever their addresses are.

    Parameters
    ----------
    members : sequence of Member
        One for each product; nothing is empty.
    dtype : str
        Of all operands and results.
    ordinal : int
        The device.
    workspace_bytes : int
        Ceiling of scratch memory.

    Raises
    ------
    KernelUnavailableError
        When the library does not multiply the type so, or cannot be used on the device.
    LaunchError
        When the kernel that writes lists of addresses does not compile.
    """

    __slots__ = ("_factors", "_handles", "_nbytes", "_ordinal", "_parts", "_pointers", "_types", "run")

    def __init__(
        self, members: Sequence[Member], *, dtype: str, ordinal: int, workspace_bytes: int = DEFAULT_BYTES
    ) -> None:
        self._types = _types(dtype)
        self._ordinal = ordinal
        self._nbytes = max(LEAST_BYTES, min(DEFAULT_BYTES, workspace_bytes))
        self._parts = _parts(members)
        self._factors = [_factors(self._types, len(part.groups), 1.0, 0.0) for part in self._parts]
        self._handles = classic_handles(ordinal)
        self._pointers = _pointers.get(ordinal) or _pointers.setdefault(ordinal, PointerArrays(ordinal))
        self.run = on_device(ordinal, self._run)

    def _run(
        self,
        lefts: Sequence[int],
        rights: Sequence[int],
        outs: Sequence[int],
        alpha: Any = 1.0,
        beta: Any = 0.0,
        stream: int = 0,
    ) -> None:
        """Enqueue `out = alpha * left @ right + beta * out` for each; addresses are multiples of 16.

        No result may overlap anything else: the products run at once.
        """
        addresses = (*lefts, *rights, *outs)
        factors = self._factors
        if alpha != 1.0 or beta != 0.0:
            factors = [_factors(self._types, len(part.groups), alpha, beta) for part in self._parts]
        refused = cublas().cuBLASError
        for part, each in zip(self._parts, factors, strict=True):
            with self._handles.lock:
                handle = self._handles.take()
                try:
                    raw = handle.bound(stream, self._nbytes, strict=False)
                    self._enqueue(raw, part, each, self._pointers.address(raw, stream, part.pick(addresses)))
                except refused as error:
                    raise LaunchError(f"classic cuBLAS did not launch a group: {reason_of(error)}") from error
                finally:
                    self._handles.give_back(handle)

    def _enqueue(self, raw: int, part: _Part, factors: _Factors, pointers: int) -> None:
        library, (compute, operand) = cublas(), (self._types.compute, self._types.operand)
        step = _ITEM * part.products
        alpha, beta = addressof(factors.alpha), addressof(factors.beta)
        if grouped_limits.UNIFORM_IS_BATCHED and len(part.groups) == 1:
            ta, tb, m, n, k, lda, ldb, ldc = (array[0] for array in part.sizes)
            library.gemm_batched_ex(
                raw, ta, tb, m, n, k, alpha, pointers, operand, lda, pointers + step, operand, ldb,
                beta, pointers + 2 * step, operand, ldc, part.products, compute, _ANY_ALGORITHM,
            )  # fmt: skip
        else:
            ta, tb, m, n, k, lda, ldb, ldc = map(addressof, part.sizes)
            library.gemm_grouped_batched_ex(
                raw, ta, tb, m, n, k, alpha, pointers, operand, lda, pointers + step, operand, ldb,
                beta, pointers + 2 * step, operand, ldc, len(part.groups), addressof(part.groups), compute,
            )  # fmt: skip


def _types(dtype: str) -> NumberTypes:
    known = dtype_of_name(dtype)
    if known is None or dtype not in GROUPED_TYPES:
        raise KernelUnavailableError(
            f"classic cuBLAS multiplies no groups of {dtype}; allowed: {', '.join(sorted(GROUPED_TYPES))}"
        )
    return number_types(GemmProblem(dtype=known, m=1, n=1, k=1))


def _factors(types: NumberTypes, groups: int, alpha: Any, beta: Any) -> _Factors:
    number = c_double if types.scale == R_64F else c_float
    return _Factors((number * groups)(*[alpha] * groups), (number * groups)(*[beta] * groups))


def _parts(members: Sequence[Member]) -> list[_Part]:
    """Return products that are alike next to each other, in calls of so many as fit."""
    alike: dict[Member, list[int]] = {}
    for place, member in enumerate(members):
        alike.setdefault(member, []).append(place)
    places = [place for group in alike.values() for place in group]
    count = len(members)
    return [_part(members, places[first : first + MOST_PRODUCTS], count) for first in range(0, count, MOST_PRODUCTS)]


def _part(members: Sequence[Member], places: list[int], count: int) -> _Part:
    """Return the call that does the products at these places, of `count` in all."""
    groups = Counter(members[place] for place in places)
    integers = c_int * len(groups)
    columns = dict(zip(Member._fields, zip(*groups, strict=True), strict=True))
    return _Part(
        itemgetter(*(place + count for place in places), *places, *(place + 2 * count for place in places)),
        len(places),
        tuple(integers(*columns[name]) for name in _SIZES),
        integers(*groups.values()),
    )
