"""The address of an array's first element, as an argument of a C function, at the least cost.

`array.ctypes.data` and `array.__array_interface__` take about 1 us each, which is as long as a small product. CPython
objects lie at their `id`, and NumPy's stable ABI puts the data pointer first after the object header; that is
read in 0.1 us. It is tried once on probes, and the slow way is taken where it does not hold.
"""

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["pointer_to"]

_read_pointer = ctypes.c_void_p.from_address
_HEADER_BYTES = object.__basicsize__


def _pointer_in_object(array: NDArray[Any]) -> ctypes.c_void_p:
    return _read_pointer(id(array) + _HEADER_BYTES)


def _pointer_by_interface(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.__array_interface__["data"][0])


def _holds(probe: NDArray[Any]) -> bool:
    return _pointer_in_object(probe).value == _pointer_by_interface(probe).value


def _fastest() -> Callable[[NDArray[Any]], ctypes.c_void_p]:
    numbers = np.arange(12.0).reshape(3, 4)
    read_only = np.frombuffer(bytes(64), np.float32)
    # Another interpreter's `id` is no address: reading there could end the process.
    if sys.implementation.name == "cpython" and all(map(_holds, (numbers, numbers.T[1:], read_only))):
        return _pointer_in_object
    return _pointer_by_interface


pointer_to = _fastest()
"""Return the address of the first element; it is valid while the array lives and is not resized."""
