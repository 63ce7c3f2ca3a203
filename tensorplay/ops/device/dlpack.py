"""DLPack, the C structure by which array libraries show each other their memory: written, and read.

Read here rather than by cuda.core, whose view takes no FP8 and half a second to import.
"""

import ctypes
from typing import Any, NamedTuple

from tensorplay.errors import OperandError

__all__ = ["CUDA", "HOST", "Tensor", "capsule_of", "tensor_of"]

HOST = 1
CUDA = 2
_MANAGED = 13
_NAME = b"dltensor"
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


_new_capsule = _function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_pointer_in = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
# The same on a capsule that is being destroyed, which must not be made a Python object again.
_is_unused = _function("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_pointer_in_dying = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)

# What is exported, until its user gives it back: the structure, its arrays and the memory's owner.
_exported: dict[int, tuple[object, ...]] = {}


def _give_back(address: int) -> None:
    _exported.pop(address, None)


def _end_capsule(capsule: int) -> None:
    # A consumer renames the capsule it has taken; then it is the one to give back.
    if _is_unused(capsule, _NAME):
        _exported.pop(_pointer_in_dying(capsule, _NAME), None)


# A consumer may call from a thread that holds no lock of Python's; the interpreter always holds it.
_deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_give_back)
_destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_end_capsule)


def capsule_of(tensor: Tensor, owner: object) -> object:
    """Return a capsule that shows the memory, which `owner` keeps alive as long as anybody uses it."""
    ndim = len(tensor.shape)
    numbers = ctypes.c_int64 * max(ndim, 1)
    shape, strides = numbers(*tensor.shape), numbers(*(tensor.strides or ()))
    code, bits = _TYPES[tensor.dtype]
    managed = _DLManagedTensor()
    managed.tensor = _DLTensor(
        data=tensor.pointer,
        device_type=tensor.device_type,
        device_id=tensor.device,
        ndim=ndim,
        code=code,
        bits=bits,
        lanes=1,
        shape=shape,
        strides=strides if tensor.strides is not None else None,
    )
    managed.deleter = ctypes.cast(_deleter, ctypes.c_void_p)
    address = ctypes.addressof(managed)
    _exported[address] = (managed, shape, strides, owner)
    capsule: object = _new_capsule(address, _NAME, ctypes.cast(_destructor, ctypes.c_void_p))
    return capsule


def tensor_of(capsule: object) -> Tensor:
    """Return what a capsule says; the memory may be used as long as the capsule lives.

    Raises
    ------
    OperandError
        When it is no unused capsule, or of numbers in vectors.
    """
    try:
        address = _pointer_in(capsule, _NAME)
    except (ValueError, TypeError) as error:
        raise OperandError(f"the operand's __dlpack__ returned no unused capsule: {error}") from error
    given = ctypes.cast(address, ctypes.POINTER(_DLManagedTensor)).contents.tensor
    if given.lanes != 1:
        raise OperandError(f"the operand has {given.lanes} numbers in one element; allowed: 1")
    code, bits, ndim = given.code, given.bits, given.ndim
    return Tensor(
        pointer=(given.data or 0) + given.byte_offset,
        shape=tuple(given.shape[:ndim]),
        strides=tuple(given.strides[:ndim]) if given.strides else None,
        dtype=_NAMES.get((code, bits)) or f"{_FAMILIES.get(code, f'type {code} of ')}{bits}",
        device_type=CUDA if given.device_type == _MANAGED else given.device_type,
        device=given.device_id,
    )
