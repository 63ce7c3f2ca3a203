"""Which BLAS library NumPy multiplies with, and how many threads it uses.

Several BLAS libraries can be loaded at once (SciPy's wheels bring their own), so NumPy's is found by asking the
dynamic linker where the symbols come from that NumPy's extension module uses.
"""

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tensorplay.backends.host.machine import usable_cpus
from tensorplay.locks import imported

__all__ = ["Blas", "blas_behind", "current_threads", "numpy_blas", "thread_limit"]

# One symbol of each spelling in which a BLAS library may offer its C interface.
_SYMBOLS = ("scipy_cblas_sgemm64_", "scipy_cblas_sgemm", "cblas_sgemm64_", "cblas_sgemm_64", "cblas_sgemm")

_THREAD_GETTERS = (
    "scipy_openblas_get_num_threads64_",
    "scipy_openblas_get_num_threads",
    "openblas_get_num_threads64_",
    "openblas_get_num_threads",
)


@dataclass(frozen=True, slots=True)
class Blas:
    """One BLAS library in this process.

    Attributes
    ----------
    name : str
        `openblas`, `mkl`, `blis`, or what NumPy was built with.
    version : str
        As the library says.
    path : Path or None
        Its file, where it is a file of its own.
    threading : str
        `pthreads`, `openmp`, ..., or `unknown`.
    architecture : str
        The kind of processor that its kernels are for, as the library says.
    threads : int
        How many it used when it was first asked: what the user, or the library, has set for this process.
    """

    name: str
    version: str
    path: Path | None = None
    threading: str = "unknown"
    architecture: str = "unknown"
    threads: int = 1


class _SymbolInfo(ctypes.Structure):
    """What `dladdr` fills in: `Dl_info` of dlfcn.h."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


@cache
def numpy_blas() -> Blas:
    """Return what NumPy multiplies with."""
    return blas_behind(_numpy_extension()) or _built_with(np.show_config(mode="dicts"))


def blas_behind(extension: str) -> Blas | None:
    """Return the BLAS that the extension module in this file calls, None where that cannot be found out."""
    path = _file_behind(extension)
    if path is None:
        return None
    for library in imported("threadpoolctl").threadpool_info():
        if library["user_api"] == "blas" and _is_same_file(Path(library["filepath"]), path):
            return Blas(
                name=str(library["internal_api"]),
                version=str(library["version"] or "unknown"),
                path=Path(library["filepath"]),
                threading=str(library.get("threading_layer", "unknown")),
                architecture=str(library.get("architecture", "unknown")),
                threads=int(library["num_threads"]),
            )
    return None


def thread_limit() -> int:
    """Return the most threads that a kernel may use: no more than NumPy's BLAS was set to, nor than processors."""
    return max(1, min(usable_cpus(), numpy_blas().threads))


@cache
def current_threads() -> Callable[[], int] | None:
    """Return a function that says how many threads NumPy's BLAS uses now, None where only OpenBLAS could say."""
    path = numpy_blas().path
    if path is None:
        return None
    library = ctypes.CDLL(str(path))
    for symbol in _THREAD_GETTERS:
        if hasattr(library, symbol):
            getter: Callable[[], int] = getattr(library, symbol)
            return getter
    return None


def _numpy_extension() -> str:
    package = "numpy._core" if int(np.__version__.split(".")[0]) >= 2 else "numpy.core"
    return str(imported(f"{package}._multiarray_umath").__file__)


def _file_behind(extension: str) -> Path | None:
    """Return the file that the extension's BLAS symbols come from."""
    try:
        library, linker = ctypes.CDLL(extension), ctypes.CDLL(None)
    except (OSError, TypeError):
        return None
    for symbol in _SYMBOLS:
        if not (hasattr(library, symbol) and hasattr(linker, "dladdr")):
            continue
        info = _SymbolInfo()
        if linker.dladdr(ctypes.cast(getattr(library, symbol), ctypes.c_void_p), ctypes.byref(info)) and info.file:
            return Path(info.file.decode())
    return None


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _built_with(config: Mapping[str, Any] | None) -> Blas:
    """Return the BLAS by what NumPy's build says, where the library itself cannot be asked."""
    found: Any = ((config or {}).get("Build Dependencies") or {}).get("blas") or {}
    return Blas(name=str(found.get("name") or "unknown"), version=str(found.get("version") or "unknown"))
