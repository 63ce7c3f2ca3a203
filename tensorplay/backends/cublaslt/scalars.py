"""Alpha and beta in host memory, where the library reads them before its call returns."""

import math
import struct
from ctypes import addressof, c_char
from typing import Any

from tensorplay.backends.cublaslt.number_types import C_32F, C_64F, R_16F, R_32F, R_64F

__all__ = ["Factors", "Scalars", "scalars"]

# Of one number: complex ones have two parts. Every number has room for the longest.
_FORMATS = {R_16F: "e", R_32F: "f", R_64F: "d", C_32F: "ff", C_64F: "dd"}
_LENGTH = 16


class Factors:
    """Room for the alpha and beta of one call.

    Attributes
    ----------
    memory : array of c_char
        Where they are.
    addresses : tuple of int
        Of alpha and of beta, as long as this object lives.
    """

    __slots__ = ("addresses", "memory")

    def __init__(self) -> None:
        self.memory = (c_char * (2 * _LENGTH))()
        begin = addressof(self.memory)
        self.addresses = (begin, begin + _LENGTH)


class Scalars:
    """Addresses of scalars of one type; safe in any number of threads, and in a signal handler that multiplies.

    Attributes
    ----------
    zero, one : int
        Addresses of constants.
    """

    __slots__ = ("_both", "_constants", "_idle", "_is_complex", "_part", "one", "zero")

    def __init__(self, scale_type: int) -> None:
        parts = _FORMATS[scale_type]
        self._part = struct.Struct(f"<{parts[0]}")
        self._both = struct.Struct(f"<{parts}{_LENGTH - len(parts) * self._part.size}x{parts}")
        self._is_complex = scale_type in {C_32F, C_64F}
        self._idle: list[Factors] = []
        self._constants = Factors()
        self._write(self._constants, 0.0, 1.0)
        self.zero, self.one = self._constants.addresses

    def pair(self, alpha: Any, beta: Any) -> Factors:
        """Return two numbers in memory that nobody else has until it is given back, or let go."""
        try:
            factors = self._idle.pop()
        except IndexError:
            factors = Factors()
        self._write(factors, alpha, beta)
        return factors

    def give_back(self, factors: Factors) -> None:
        """Let another call have the memory."""
        self._idle.append(factors)

    def _write(self, factors: Factors, alpha: Any, beta: Any) -> None:
        try:
            if self._is_complex:
                one, two = complex(alpha), complex(beta)
                self._both.pack_into(factors.memory, 0, one.real, one.imag, two.real, two.imag)
            else:
                self._both.pack_into(factors.memory, 0, alpha, beta)
        except OverflowError:
            for place, value in enumerate((alpha, beta)):
                self._write_parts(factors, place * _LENGTH, complex(value))

    def _write_parts(self, factors: Factors, begin: int, number: complex) -> None:
        for place, part in enumerate((number.real, number.imag) if self._is_complex else (number.real,)):
            at = begin + place * self._part.size
            try:
                self._part.pack_into(factors.memory, at, part)
            except OverflowError:
                # What is beyond the type is infinite in it, as it would be in C.
                self._part.pack_into(factors.memory, at, math.copysign(math.inf, part))


_scalars: dict[int, Scalars] = {}


def scalars(scale_type: int) -> Scalars:
    """Return the scalars of a scale type; they live as long as the process."""
    return _scalars.setdefault(scale_type, _scalars.get(scale_type) or Scalars(scale_type))
