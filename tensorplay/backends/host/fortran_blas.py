"""The Fortran interface of a loaded BLAS library, whatever prefix, suffix and integer size it was built with."""

import ctypes
from dataclasses import dataclass
from typing import Any

__all__ = ["FortranBlas", "fortran_blas"]

Integer = type[ctypes.c_int32] | type[ctypes.c_int64]

# Routines, the library's own functions, and integers: NumPy's and SciPy's wheels, distributions with 64-bit
# integers, and everybody else.
_SPELLINGS: tuple[tuple[str, str, Integer], ...] = (
    ("scipy_{}_64_", "scipy_{}64_", ctypes.c_int64),
    ("scipy_{}_", "scipy_{}", ctypes.c_int32),
    ("{}_64_", "{}64_", ctypes.c_int64),
    ("{}_", "{}", ctypes.c_int32),
)


@dataclass(frozen=True, slots=True, eq=False)
class FortranBlas:
    """How to call one library.

    Attributes
    ----------
    library : ctypes.CDLL
        The loaded library; its functions run without the GIL.
    routine_spelling, control_spelling : str
        Names of its routines, and of functions of its own, with `{}` for the plain name.
    integer : ctypes type
        What sizes are passed as, by reference.
    """

    library: ctypes.CDLL
    routine_spelling: str
    control_spelling: str
    integer: Integer

    @property
    def largest_size(self) -> int:
        """Return the largest size that an integer of this library holds."""
        return int(2 ** (8 * ctypes.sizeof(self.integer) - 1) - 1)

    def routine(self, name: str) -> Any:
        """Return the routine, `sgemm` for example; without types, so that prepared arguments pass unconverted."""
        routine = getattr(self.library, self.routine_spelling.format(name))
        routine.restype = None
        return routine

    def control(self, name: str) -> Any:
        """Return a function of the library's own, `openblas_set_num_threads` for example."""
        return getattr(self.library, self.control_spelling.format(name))

    def has_control(self, name: str) -> bool:
        """Return whether the library has that function."""
        return hasattr(self.library, self.control_spelling.format(name))


def fortran_blas(library: ctypes.CDLL) -> FortranBlas | None:
    """Return how to call the library, None when it has no Fortran interface that is known here."""
    for routine, control, integer in _SPELLINGS:
        if hasattr(library, routine.format("sgemm")):
            return FortranBlas(library, routine, control, _integer_of(library, control, integer))
    return None


def _integer_of(library: ctypes.CDLL, control: str, usual: Integer) -> Integer:
    """Return the size of integers: a build with long ones need not say so in its symbols."""
    name = control.format("openblas_get_config")
    if not hasattr(library, name):
        return usual
    config = getattr(library, name)
    config.restype = ctypes.c_char_p
    return ctypes.c_int64 if b"USE64BITINT" in config() else usual
