"""The backends of this process: each is imported and made at its first use, once."""

import os
from functools import cache

from tensorplay.backends.base import Backend
from tensorplay.backends.presence import is_cuda_present
from tensorplay.errors import TensorPlayError
from tensorplay.gemm.problem import CPU
from tensorplay.locks import ForkSafeLock, imported

__all__ = ["NAMES", "backend", "backend_of", "default_backend"]

# Module and class of each.
_PATHS = {
    "host": ("tensorplay.backends.host.backend", "HostBackend"),
    "cublaslt": ("tensorplay.backends.cublaslt.backend", "CublasLtBackend"),
}

NAMES = tuple(_PATHS)
"""Names that `backend` knows."""

_made: dict[str, Backend] = {}
_lock = ForkSafeLock()


def backend(name: str) -> Backend:
    """Return the process's backend of that name; any number of threads may ask.

    Raises
    ------
    TensorPlayError
        When there is no such backend; the message lists those there are.
    """
    made = _made.get(name)
    if made is not None:
        return made
    if name not in _PATHS:
        raise TensorPlayError(f"backend {name!r} is unknown; known: {', '.join(NAMES)}")
    with _lock:
        if name not in _made:
            module, maker = _PATHS[name]
            # A signal handler may have made it while this thread imported.
            _made.setdefault(name, getattr(imported(module), maker)())
        return _made[name]


def default_backend() -> Backend:
    """Return the backend of this machine's best device: of a GPU where one can be used, else the host's.

    A machine without a GPU, or without the packages for it, is known by its files, as `presence` says. Elsewhere the
    driver is started, since whoever asks goes on to ask for the current device; no package is imported. A program
    that multiplies on the host alone is never asked: its products name the host's backend.
    """
    return backend("cublaslt" if _why_no_cuda() is None else "host")


def backend_of(device: str) -> Backend:
    """Return the backend for a device, `cpu` or an ordinal.

    Raises
    ------
    TensorPlayError
        When nothing here can use a GPU; the message is the reason.
    """
    if device == CPU:
        return backend("host")
    reason = _reason()
    if reason is not None:
        raise TensorPlayError(reason)
    return backend("cublaslt")


@cache
def _why_no_cuda() -> str | None:
    return _reason() if is_cuda_present(os.environ) else "no CUDA device is visible"


@cache
def _reason() -> str | None:
    reason: str | None = imported("tensorplay.backends.cublaslt.library").available()
    return reason
