"""cuBLASLt's attributes: the number of each, and the C type that the library takes for it.

The bindings' own helpers are wrong for some types, and a wrong size is refused with a status that does not say so.
So the sizes stand here, and `verify_sizes` asks the library for its own, once.
"""

from collections.abc import Callable
from ctypes import (
    Structure,
    addressof,
    c_float,
    c_int8,
    c_int32,
    c_int64,
    c_size_t,
    c_uint16,
    c_uint32,
    c_uint64,
    sizeof,
)
from enum import Enum
from typing import Any

from tensorplay.backends.cublaslt.library import cublaslt
from tensorplay.errors import KernelUnavailableError

__all__ = [
    "AlgorithmAttribute",
    "Attribute",
    "Capability",
    "HeuristicResult",
    "LayoutAttribute",
    "OperationAttribute",
    "PreferenceAttribute",
    "get_attribute",
    "set_attribute",
    "verify_sizes",
]

# Of cuBLASLt's bindings: (object, attribute, buffer, bytes) and (object, attribute, buffer, bytes, written).
Setter = Callable[[int, int, int, int], None]
Getter = Callable[[int, int, int, int, int], None]


class Attribute(Enum):
    """One attribute: its number, and the C type of its value."""

    def __init__(self, number: int, kind: Any) -> None:
        self.number = number
        self.kind = kind


class OperationAttribute(Attribute):
    """Attributes of a matmul descriptor."""

    COMPUTE_TYPE = (0, c_int32)
    SCALE_TYPE = (1, c_int32)
    POINTER_MODE = (2, c_int32)
    TRANSA = (3, c_int32)
    TRANSB = (4, c_int32)
    EPILOGUE = (7, c_uint32)
    BIAS_POINTER = (8, c_uint64)
    A_SCALE_POINTER = (17, c_uint64)
    B_SCALE_POINTER = (18, c_uint64)
    D_SCALE_POINTER = (20, c_uint64)
    FAST_ACCUM = (25, c_int8)
    BIAS_DATA_TYPE = (26, c_int32)


class LayoutAttribute(Attribute):
    """Attributes of a matrix layout; the batch's offset is in elements."""

    TYPE = (0, c_uint32)
    ORDER = (1, c_int32)
    ROWS = (2, c_uint64)
    COLS = (3, c_uint64)
    LD = (4, c_int64)
    BATCH_COUNT = (5, c_int32)
    STRIDED_BATCH_OFFSET = (6, c_int64)


class PreferenceAttribute(Attribute):
    """Attributes of what a heuristic query prefers."""

    SEARCH_MODE = (0, c_uint32)
    MAX_WORKSPACE_BYTES = (1, c_uint64)
    REDUCTION_SCHEME_MASK = (3, c_uint32)
    MIN_ALIGNMENT_A_BYTES = (5, c_uint32)
    MIN_ALIGNMENT_B_BYTES = (6, c_uint32)
    MIN_ALIGNMENT_C_BYTES = (7, c_uint32)
    MIN_ALIGNMENT_D_BYTES = (8, c_uint32)
    MAX_WAVES_COUNT = (9, c_float)
    IMPL_MASK = (12, c_uint64)


class AlgorithmAttribute(Attribute):
    """Attributes that configure an algorithm, in the order of a kernel id's text; the first is read-only."""

    ID = (0, c_int32)
    TILE_ID = (1, c_uint32)
    STAGES_ID = (6, c_uint32)
    SPLITK_NUM = (2, c_int32)
    REDUCTION_SCHEME = (3, c_uint32)
    CTA_SWIZZLING = (4, c_uint32)
    CUSTOM_OPTION = (5, c_uint32)
    INNER_SHAPE_ID = (7, c_uint16)
    CLUSTER_SHAPE_ID = (8, c_uint16)


class Capability(Attribute):
    """What an algorithm says about itself; only an initialised one answers."""

    SPLITK_SUPPORT = (0, c_int32)
    REDUCTION_SCHEME_MASK = (1, c_uint32)
    MIN_ALIGNMENT_A_BYTES = (16, c_uint32)
    MIN_ALIGNMENT_B_BYTES = (17, c_uint32)
    MIN_ALIGNMENT_C_BYTES = (18, c_uint32)
    MIN_ALIGNMENT_D_BYTES = (19, c_uint32)


class HeuristicResult(Structure):
    """What the library fills in for a candidate: 96 bytes, of which the first 64 are the opaque algorithm."""

    _fields_ = (
        ("algorithm", c_uint64 * 8),
        ("workspace_size", c_size_t),
        ("state", c_int32),
        ("waves_count", c_float),
        ("reserved", c_int32 * 4),
    )


def set_attribute(setter: Setter, target: int, attribute: Attribute, value: int) -> None:
    """Set an attribute of an object; the library copies the value."""
    buffer = attribute.kind(value)
    setter(target, attribute.number, addressof(buffer), sizeof(buffer))


def get_attribute(getter: Getter, target: int, attribute: Attribute) -> int:
    """Return an attribute of an object."""
    buffer, written = attribute.kind(), c_size_t()
    getter(target, attribute.number, addressof(buffer), sizeof(buffer), addressof(written))
    value: int = buffer.value
    return value


def verify_sizes() -> None:
    """Compare the sizes above with what the loaded library says of itself; needs no device.

    Raises
    ------
    KernelUnavailableError
        When they differ: this is a library whose attributes are not the ones we know.
    """
    lt = cublaslt()
    operation = lt.matmul_desc_create(68, 0)
    layout = lt.matrix_layout_create(0, 4, 4, 4)
    preference = lt.matmul_preference_create()
    algorithm = (c_uint64 * 8)()
    try:
        for getter, target, attributes in (
            (lt.matmul_desc_get_attribute, operation, OperationAttribute),
            (lt.matrix_layout_get_attribute, layout, LayoutAttribute),
            (lt.matmul_preference_get_attribute, preference, PreferenceAttribute),
            (lt.matmul_algo_config_get_attribute, addressof(algorithm), AlgorithmAttribute),
        ):
            for attribute in attributes:
                _verify_size(getter, target, attribute)
    finally:
        lt.matmul_preference_destroy(preference)
        lt.matrix_layout_destroy(layout)
        lt.matmul_desc_destroy(operation)


def _verify_size(getter: Getter, target: int, attribute: Attribute) -> None:
    written = c_size_t()
    try:
        # A get of no bytes answers how many there are.
        getter(target, attribute.number, 0, 0, addressof(written))
    except cublaslt().cuBLASLtError as error:
        raise KernelUnavailableError(f"cuBLASLt does not know {attribute}: {error}") from error
    if written.value != sizeof(attribute.kind):
        raise KernelUnavailableError(
            f"{attribute} takes {written.value} bytes in the loaded cuBLASLt, known are {sizeof(attribute.kind)}"
        )
