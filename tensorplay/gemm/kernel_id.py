"""Kernel ids: the text that names one algorithm, complete enough to build it again in another process."""

import re
from dataclasses import dataclass
from functools import lru_cache
from operator import le

from tensorplay.errors import KernelIdError

__all__ = [
    "DEFAULT",
    "HostKernelId",
    "KernelId",
    "LtKernelId",
    "SourceKernelId",
    "is_kernel_id",
    "parse_kernel_id",
]

DEFAULT = "Default"

_COUNT = r"(?:0|[1-9]\d{0,9})"
_LT_NAMES = ("id", "tile", "stages", "splitk", "red", "swizzle", "custom", "inner", "cluster")
# Some of the library's algorithms say -1 for split-K: they choose the number of splits themselves.
_LT = re.compile(
    "lt_" + "_".join(rf"{name}({'-1|' if name == 'splitk' else ''}{_COUNT})" for name in _LT_NAMES), re.ASCII
)
_HOST = re.compile(rf"host_(?P<source>[a-z]+)(?P<options>(?:_[a-z]+{_COUNT})*)", re.ASCII)
# What runs on a device beside cuBLASLt: the classic cuBLAS call, and kernels of our own for skinny products.
_SOURCE = re.compile(rf"(?P<source>cublas|skinny)(?P<options>(?:_[a-z]+{_COUNT})*)", re.ASCII)
_OPTION = re.compile(rf"_([a-z]+)({_COUNT})", re.ASCII)
_INT32, _UINT32, _UINT16 = 2**31 - 1, 2**32 - 1, 2**16 - 1
# The widths of cuBLASLt's algorithm attributes, in the order of `_LT_NAMES`.
_LT_LARGEST = (_INT32, _UINT32, _UINT32, _INT32, _UINT32, _UINT32, _UINT32, _UINT16, _UINT16)
_LT_LARGEST_BY_NAME = tuple(zip(_LT_NAMES, _LT_LARGEST, strict=True))


@dataclass(frozen=True, slots=True)
class LtKernelId:
    """A cuBLASLt algorithm: its id and the eight attributes that configure it, in the library's own numbers."""

    id: int
    tile: int
    stages: int
    splitk: int
    red: int
    swizzle: int
    custom: int
    inner: int
    cluster: int

    def __post_init__(self) -> None:
        # A search makes thousands, so `fields` and `astuple` would take most of its time.
        for name, largest in _LT_LARGEST_BY_NAME:
            value = getattr(self, name)
            least = -1 if name == "splitk" else 0
            if not least <= value <= largest:
                raise KernelIdError(f"{name} of a cuBLASLt kernel id is {value}; allowed: {least} to {largest}")

    def __str__(self) -> str:
        return "lt_" + "_".join(f"{name}{getattr(self, name)}" for name in _LT_NAMES)


@dataclass(frozen=True, slots=True)
class HostKernelId:
    """A way of the host to multiply: the library it comes from, and what is done differently there.

    The text is `host_` and the source, then `_name value` for each option, in the order they were given.
    """

    source: str
    options: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        # Compared as parts, since `numpy_threads2` as a source would read as a source and an option.
        if _parts(_HOST, str(self)) != (self.source, self.options):
            raise KernelIdError(f"{self} is no host kernel id; names are lower-case letters, values from 0 up")
        if len(dict(self.options)) < len(self.options):
            raise KernelIdError(f"{self} gives an option twice")

    def __str__(self) -> str:
        return f"host_{self.source}" + "".join(f"_{name}{value}" for name, value in self.options)


@dataclass(frozen=True, slots=True)
class SourceKernelId:
    """A kernel on a device that is none of cuBLASLt's: the source that it comes from, and how it is configured.

    The text is the source, then `_name value` for each option, in the order they were given: `cublas`,
    `skinny_tile8_split4`.
    """

    source: str
    options: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        if _parts(_SOURCE, str(self)) != (self.source, self.options):
            raise KernelIdError(
                f"{self} is no kernel id of a source; sources are cublas and skinny, names are lower-case letters, "
                "values from 0 up"
            )
        if len(dict(self.options)) < len(self.options):
            raise KernelIdError(f"{self} gives an option twice")

    def __str__(self) -> str:
        return self.source + "".join(f"_{name}{value}" for name, value in self.options)


def _parts(pattern: re.Pattern[str], text: str) -> tuple[str, tuple[tuple[str, int], ...]] | None:
    """Return the source and the options that the text names, None when it does not match."""
    if (match := pattern.fullmatch(text)) is None:
        return None
    return match["source"], tuple((name, int(value)) for name, value in _OPTION.findall(match["options"]))


KernelId = LtKernelId | HostKernelId | SourceKernelId


def parse_kernel_id(text: str) -> KernelId | None:
    """Return what the text names, None for `Default`; its `str` is the text again.

    Raises
    ------
    KernelIdError
        When the text is neither `Default` nor a kernel id.
    """
    if text == DEFAULT:
        return None
    if (match := _LT.fullmatch(text)) is not None:
        return LtKernelId(*map(int, match.groups()))
    if (parts := _parts(_HOST, text)) is not None:
        return HostKernelId(*parts)
    if (parts := _parts(_SOURCE, text)) is not None:
        return SourceKernelId(*parts)
    raise KernelIdError(
        f"{text!r} is no kernel id; allowed: {DEFAULT}, lt_ with its nine fields, host_ and a source, cublas, "
        "skinny with its fields"
    )


@lru_cache(maxsize=4096)
def is_kernel_id(text: str) -> bool:
    """Return whether `parse_kernel_id` would accept the text; a large file asks for many, so no id is built."""
    if (match := _LT.fullmatch(text)) is not None:
        return all(map(le, map(int, match.groups()), _LT_LARGEST))
    try:
        parse_kernel_id(text)
    except KernelIdError:
        return False
    return True
