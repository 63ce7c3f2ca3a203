"""Alpha and beta in host memory, where the library reads them before its call returns."""

import math
import struct
import threading
from ctypes import addressof, c_char
from typing import Any

from tensorplay.backends.cublaslt.number_types import C_32F, C_64F, R_16F, R_32F, R_64F

__all__ = ["Scalars", "scalars"]

# Of one part: complex numbers have two. Every buffer is as long as the longest.
_FORMATS = {R_16F: "<e", R_32F: "<f", R_64F: "<d", C_32F: "<f", C_64F: "<d"}
_LENGTH = 16


class Scalars:
    """Addresses of scalars of one type; each thread writes to memory of its own.

    Attributes
    ----------
    zero, one : int
        Addresses of constants.
    """

    __slots__ = ("_constants", "_is_complex", "_local", "_part", "one", "zero")

    def __init__(self, scale_type: int) -> None:
        self._part = struct.Struct(_FORMATS[scale_type])
        self._is_complex = scale_type in {C_32F, C_64F}
        self._local = threading.local()
        self._constants = (_buffer(), _buffer())
        self._write(self._constants[0], 0.0)
        self._write(self._constants[1], 1.0)
        self.zero, self.one = map(addressof, self._constants)

    def pair(self, alpha: Any, beta: Any) -> tuple[int, int]:
        """Return the addresses of two numbers, valid until this thread asks again."""
        local = self._local
        try:
            first, second = local.buffers
        except AttributeError:
            first, second = local.buffers = (_buffer(), _buffer())
            local.addresses = (addressof(first), addressof(second))
        self._write(first, alpha)
        self._write(second, beta)
        addresses: tuple[int, int] = local.addresses
        return addresses

    def _write(self, buffer: Any, value: Any) -> None:
        if not self._is_complex:
            try:
                self._part.pack_into(buffer, 0, value)
            except OverflowError:
                self._write_parts(buffer, value)
        else:
            self._write_parts(buffer, value)

    def _write_parts(self, buffer: Any, value: Any) -> None:
        number = complex(value)
        for place, part in enumerate((number.real, number.imag) if self._is_complex else (number.real,)):
            try:
                self._part.pack_into(buffer, place * self._part.size, part)
            except OverflowError:
                # What is beyond the type is infinite in it, as it would be in C.
                self._part.pack_into(buffer, place * self._part.size, math.copysign(math.inf, part))


def _buffer() -> Any:
    return (c_char * _LENGTH)()


_scalars: dict[int, Scalars] = {}


def scalars(scale_type: int) -> Scalars:
    """Return the scalars of a scale type; they live as long as the process."""
    return _scalars.setdefault(scale_type, _scalars.get(scale_type) or Scalars(scale_type))
