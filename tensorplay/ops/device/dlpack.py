"""DLPack, the C structure by which array libraries show each other their memory: written, and read.

Read here rather than by cuda.core, whose view takes no FP8 and half a second to import.
"""

import ctypes
from typing import Any, NamedTuple

import numpy as np

from tensorplay.errors import OperandError

__all__ = ["CUDA", "HOST", "Tensor", "capsule_of", "tensor_of"]

HOST = 1
CUDA = 2
_MANAGED = 13
_NAME = b"dltensor"
# More than any library has; beyond, it is no structure of DLPack that we look at.
_MOST_DIMENSIONS = 64
_LARGEST_ADDRESS = 2**64 - 1
# Code and bits of each type.
_TYPES = {
    "float16": (2, 16),
    "float32": (2, 32),
    "float64": (2, 64),
    "bfloat16": (4, 16),
    "complex64": (5, 64),
    "complex128": (5, 128),
    "float8_e4m3fn": (10, 8),
    "float8_e5m2": (12, 8),
}
_FAMILIES = {0: "int", 1: "uint", 2: "float", 5: "complex", 6: "bool"}
_NAMES = {type_: name for name, type_ in _TYPES.items()}


class Tensor(NamedTuple):
    """What a capsule says; strides are in elements."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: str
    device_type: int
    device: int


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _DLManagedTensor(ctypes.Structure):
    _fields_ = (("tensor", _DLTensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


def _function(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_pointer_in = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)


class _Kept:
    """What an exported capsule keeps alive: the memory's owner, and the numbers that the structure points to.

    To NumPy it is the owner of one byte.
    """

    __slots__ = ("__array_interface__", "_byte", "owner", "shape", "strides")

    def __init__(self, owner: object, tensor: Tensor) -> None:
        numbers = ctypes.c_int64 * max(len(tensor.shape), 1)
        self.owner = owner
        self.shape, self.strides = numbers(*tensor.shape), numbers(*(tensor.strides or ()))
        self._byte = ctypes.c_uint8()
        data = (ctypes.addressof(self._byte), False)
        self.__array_interface__ = {"shape": (1,), "typestr": "|u1", "data": data, "version": 3}


def capsule_of(tensor: Tensor, owner: object) -> object:
    """Return a capsule that shows the memory, which `owner` keeps alive as long as anybody uses it.

    It is NumPy's capsule of another array, changed before anybody sees it. So what gives it back is C: a capsule may
    be dropped while an exception is under way, or by a thread that holds no lock, where no Python code could run.
    """
    kept = _Kept(owner, tensor)
    capsule: object = np.asarray(kept).__dlpack__()
    code, bits = _TYPES[tensor.dtype]
    shown = ctypes.cast(_pointer_in(capsule, _NAME), ctypes.POINTER(_DLManagedTensor)).contents.tensor
    shown.data, shown.byte_offset = tensor.pointer, 0
    shown.device_type, shown.device_id = tensor.device_type, tensor.device
    shown.code, shown.bits, shown.lanes = code, bits, 1
    shown.ndim, shown.shape = len(tensor.shape), kept.shape
    shown.strides = kept.strides if tensor.strides is not None else None
    return capsule


def tensor_of(capsule: object) -> Tensor:
    """Return what a capsule says; the memory may be used as long as the capsule lives.

    Raises
    ------
    OperandError
        When it is no unused capsule, of numbers in vectors, or shows what no memory can be.
    """
    try:
        address = _pointer_in(capsule, _NAME)
    except (ValueError, TypeError) as error:
        raise OperandError(f"the operand's __dlpack__ returned no unused capsule: {error}") from error
    given = ctypes.cast(address, ctypes.POINTER(_DLManagedTensor)).contents.tensor
    if given.lanes != 1:
        raise OperandError(f"the operand has {given.lanes} numbers in one element; allowed: 1")
    code, bits, ndim = given.code, given.bits, given.ndim
    if not 0 <= ndim <= _MOST_DIMENSIONS:
        raise OperandError(f"the operand's capsule shows {ndim} dimensions; allowed: 0 to {_MOST_DIMENSIONS}")
    pointer, shape = (given.data or 0) + given.byte_offset, tuple(given.shape[:ndim])
    if pointer > _LARGEST_ADDRESS or min(shape, default=0) < 0:
        raise OperandError(
            f"the operand's capsule shows the shape {shape} at {pointer:#x}; allowed: sizes from 0 up, and an address "
            "of 64 bits"
        )
    return Tensor(
        pointer=pointer,
        shape=shape,
        strides=tuple(given.strides[:ndim]) if given.strides else None,
        dtype=_NAMES.get((code, bits)) or f"{_FAMILIES.get(code, f'type {code} of ')}{bits}",
        device_type=CUDA if given.device_type == _MANAGED else given.device_type,
        device=given.device_id,
    )
