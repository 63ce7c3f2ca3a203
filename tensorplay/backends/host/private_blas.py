"""Private instances of an OpenBLAS library, each with a thread count of its own.

OpenBLAS keeps one thread count for the whole process, so setting it on the library that NumPy uses would change what
other threads' products do. Instead the library's file is copied to memory and loaded again: a separate image, with its
own threads and its own count, which is set once and never changed. All plans of one thread count share one image.

An image takes as much memory as the file, 25 MB for NumPy's wheels, and is never unloaded: its threads may be anywhere
in its code.
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from tensorplay.backends.host.fortran_blas import FortranBlas, fortran_blas
from tensorplay.backends.host.library import Blas
from tensorplay.errors import KernelUnavailableError
from tensorplay.locks import ForkSafeLock

__all__ = ["private_blas"]

# OpenBLAS's threads spin for 2**28 processor cycles after each product, in case another follows. Two such pools
# beside each other take each other's processors: NumPy's own 30 us product then took 4 ms on two cores. With 2**16
# cycles, some 25 us, both keep their speed.
_SPIN_VARIABLE, _SPIN_EXPONENT = "OPENBLAS_THREAD_TIMEOUT", "16"

# Symbols must be the image's own, even where another BLAS was preloaded for everybody; not every linker knows how.
_MODE = getattr(os, "RTLD_NOW", 0) | getattr(os, "RTLD_DEEPBIND", 0)

_serial = count()
_images: dict[tuple[Path, int], FortranBlas] = {}
_lock = ForkSafeLock()


def private_blas(blas: Blas, threads: int) -> FortranBlas:
    """Return the private instance of `blas` that uses `threads` threads, loaded at its first use.

    Raises
    ------
    KernelUnavailableError
        When this system or this library does not allow one; the message is the reason.
    """
    if blas.path is None or blas.name != "openblas" or blas.threading != "pthreads":
        raise KernelUnavailableError(
            f"a thread count of its own needs OpenBLAS with its own threads, not {blas.name} with {blas.threading}"
        )
    key = (blas.path, threads)
    image = _images.get(key)
    if image is None:
        with _lock:
            image = _images.get(key)
            if image is None:
                image = _images[key] = _load(blas.path, threads)
    return image


def _load(path: Path, threads: int) -> FortranBlas:
    if not hasattr(os, "memfd_create"):
        raise KernelUnavailableError("a private BLAS needs files in memory, which only Linux has")
    try:
        with _in_memory(path) as descriptor, _on_one_processor(), _spinning_briefly():
            # A repeated name would give the earlier image, and descriptors' numbers do repeat.
            library = ctypes.CDLL(f"/proc/self/fd/{'./' * next(_serial)}{descriptor}", mode=_MODE)
    except OSError as error:
        raise KernelUnavailableError(f"{path.name} cannot be loaded a second time: {error}") from error
    image = fortran_blas(library)
    if image is None or not image.has_control("openblas_set_num_threads") or not _is_separate(image, path):
        raise KernelUnavailableError(f"{path.name} has no functions by which threads can be set for it alone")
    image.control("openblas_set_num_threads")(threads)
    given = image.control("openblas_get_num_threads")()
    if given != threads:
        raise KernelUnavailableError(f"{path.name} allows {given} threads, not {threads}")
    return image


@contextmanager
def _in_memory(path: Path) -> Iterator[int]:
    """Copy the file to memory and give its descriptor; what was mapped from it stays when it is closed."""
    descriptor = os.memfd_create("tensorplay-blas")
    try:
        with path.open("rb") as source:
            offset, size = 0, os.fstat(source.fileno()).st_size
            while offset < size:
                sent = os.sendfile(descriptor, source.fileno(), offset, size - offset)
                if sent == 0:
                    raise OSError(f"{path} became shorter while it was read")
                offset += sent
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _on_one_processor() -> Iterator[None]:
    """Keep the calling thread on one processor: a library that is loaded then starts no threads by itself.

    It would start one for each processor of the machine. Those that are asked for are started afterwards, and run
    where the caller may.
    """
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        yield
    finally:
        os.sched_setaffinity(0, allowed)


@contextmanager
def _spinning_briefly() -> Iterator[None]:
    """Set how long threads spin in the C environment, where OpenBLAS reads it when it is loaded, and nowhere else."""
    try:
        os.putenv(_SPIN_VARIABLE, _SPIN_EXPONENT)
        yield
    finally:
        before = os.environ.get(_SPIN_VARIABLE)
        if before is None:
            os.unsetenv(_SPIN_VARIABLE)
        else:
            os.putenv(_SPIN_VARIABLE, before)


def _is_separate(image: FortranBlas, path: Path) -> bool:
    """Return whether the image's thread count is its own: its functions are not those of another image."""
    name = image.control_spelling.format("openblas_set_num_threads")
    others = [ctypes.CDLL(str(path)), *(other.library for other in _images.values())]
    return _address(image.library, name) not in {_address(other, name) for other in others if hasattr(other, name)}


def _address(library: ctypes.CDLL, name: str) -> int | None:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
