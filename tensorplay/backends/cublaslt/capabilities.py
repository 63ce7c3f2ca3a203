"""What may be set of cuBLASLt's algorithms, as they say themselves.

No capability lists cluster shapes and inner shapes: those that run are learnt by asking for each.
"""

import re
from ctypes import addressof, c_int32, c_size_t, c_uint32, c_uint64, sizeof
from dataclasses import dataclass
from functools import lru_cache

from tensorplay.backends.cublaslt.attributes import Attribute, get_attribute
from tensorplay.backends.cublaslt.device import current
from tensorplay.backends.cublaslt.handle import handle_of
from tensorplay.backends.cublaslt.library import cublaslt
from tensorplay.backends.cublaslt.number_types import NumberTypes
from tensorplay.backends.cublaslt.status import library_error

__all__ = ["Capabilities", "algorithm_ids", "capabilities_of", "tile_size"]

_MOST_IDS = 256
_TILE_NAME = re.compile(r"TILE_(\d+)x(\d+)", re.ASCII)


class _Setting(Attribute):
    """Capabilities of one value each."""

    SPLITK_SUPPORT = (0, c_int32)
    REDUCTION_SCHEME_MASK = (1, c_uint32)
    CTA_SWIZZLING_SUPPORT = (2, c_uint32)
    CUSTOM_OPTION_MAX = (7, c_int32)


class _Listing(Attribute):
    """Capabilities of many values; the type is that of one."""

    TILE_IDS = (6, c_uint32)
    STAGES_IDS = (13, c_uint32)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What may be set of one algorithm, in the library's own numbers.

    Attributes
    ----------
    tiles, stages : tuple of int
        Identifiers, empty where there is nothing to set.
    splits : bool
        Whether sums may be split.
    reductions : int
        Mask of the schemes that add up the parts of split sums.
    swizzles : bool
        Whether blocks may be numbered in another order.
    custom_max : int
        The largest custom option.
    """

    tiles: tuple[int, ...] = ()
    stages: tuple[int, ...] = ()
    splits: bool = False
    reductions: int = 0
    swizzles: bool = False
    custom_max: int = 0


@lru_cache(maxsize=64)
def algorithm_ids(ordinal: int, types: NumberTypes) -> tuple[int, ...]:
    """Return the ids of all algorithms that multiply such numbers, none when the library does not say."""
    handle = handle_of(ordinal)
    try:
        with current(ordinal):
            found = cublaslt().matmul_algo_get_ids(handle, *_numbers(types), _MOST_IDS)
    except library_error():
        return ()
    return tuple(int(each) for each in found)


@lru_cache(maxsize=1024)
def capabilities_of(ordinal: int, types: NumberTypes, algorithm_id: int) -> Capabilities | None:
    """Return what may be set of an algorithm; None where it does not multiply such numbers."""
    lt, handle = cublaslt(), handle_of(ordinal)
    memory = (c_uint64 * 8)()
    address = addressof(memory)
    with current(ordinal):
        try:
            lt.matmul_algo_init(handle, *_numbers(types), algorithm_id, address)
        except library_error():
            return None
        return Capabilities(
            tiles=_listed(address, _Listing.TILE_IDS),
            stages=_listed(address, _Listing.STAGES_IDS),
            splits=_value(address, _Setting.SPLITK_SUPPORT) != 0,
            reductions=_value(address, _Setting.REDUCTION_SCHEME_MASK),
            swizzles=_value(address, _Setting.CTA_SWIZZLING_SUPPORT) != 0,
            custom_max=max(0, _value(address, _Setting.CUSTOM_OPTION_MAX)),
        )


@lru_cache(maxsize=4096)
def tile_size(tile: int) -> tuple[int, int] | None:
    """Return the rows and columns of a tile, None for one that the bindings do not know."""
    try:
        match = _TILE_NAME.fullmatch(cublaslt().MatmulTile(tile).name)
    except (ValueError, AttributeError):
        return None
    return (int(match[1]), int(match[2])) if match else None


def _numbers(types: NumberTypes) -> tuple[int, ...]:
    # The library's A is our right operand, its B our left one.
    return types.compute, types.scale, types.operand, types.left, types.c, types.out


def _value(address: int, which: _Setting) -> int:
    try:
        return get_attribute(cublaslt().matmul_algo_cap_get_attribute, address, which)
    except library_error():
        return 0


def _listed(address: int, which: _Listing) -> tuple[int, ...]:
    getter, written = cublaslt().matmul_algo_cap_get_attribute, c_size_t()
    try:
        # A get of no bytes answers how many there are.
        getter(address, which.number, 0, 0, addressof(written))
        values = (which.kind * (written.value // sizeof(which.kind)))()
        if not len(values):
            return ()
        getter(address, which.number, addressof(values), sizeof(values), addressof(written))
    except library_error():
        return ()
    return tuple(int(each) for each in values)
