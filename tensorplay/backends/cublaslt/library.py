"""The adapter to NVIDIA's libraries: every module that is not ours is imported here, at its first use.

Names of nvmath's low-level bindings are said to be experimental, so nobody else imports them.
"""

import ctypes
import hashlib
import os
import re
import sys
from functools import cache
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tensorplay.errors import KernelUnavailableError
from tensorplay.locks import imported

__all__ = [
    "available",
    "cublas",
    "cublaslt",
    "driver",
    "driver_function",
    "library_file",
    "library_function",
    "library_identity",
    "library_version",
    "nvrtc",
]

_HOW_TO_INSTALL = "pip install '.[cuda]' in a clone of TensorPlay"
_DRIVER = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
# The wheels that hold cuBLASLt, newest naming first.
_WHEELS = ("nvidia-cublas", "nvidia-cublas-cu13", "nvidia-cublas-cu12")
_FOUR_PARTS = re.compile(r"\d+\.\d+\.\d+\.\d+")
_HASHED_BYTES = 1 << 20


def available() -> str | None:
    """Return why no product can run on a GPU here, None when it can; imports nothing heavy and never raises."""
    for module, package in (("cuda.bindings", "cuda-bindings"), ("nvmath", "nvmath-python")):
        try:
            is_installed = find_spec(module) is not None
        except (ImportError, ValueError, AttributeError):
            is_installed = False
        if not is_installed:
            return f"{package} is not installed; {_HOW_TO_INSTALL}"
    return _why_no_device()


@cache
def driver() -> Any:
    """Return the bindings of the CUDA driver."""
    return _imported("cuda.bindings.driver", "cuda-bindings")


@cache
def nvrtc() -> Any:
    """Return the bindings of the run-time compiler."""
    return _imported("cuda.bindings.nvrtc", "cuda-bindings")


@cache
def cublaslt() -> Any:
    """Return the bindings of cuBLASLt, the library loaded.

    torch is imported first where it is installed, since it ships the libraries that it must run with: then both
    use one copy of cuBLASLt, whatever else a search would find.

    Raises
    ------
    KernelUnavailableError
        When the bindings or the library cannot be loaded.
    """
    _import_torch()
    module = _imported("nvmath.bindings.cublasLt", "nvmath-python")
    try:
        module.get_version()
    except Exception as error:
        raise KernelUnavailableError(f"cuBLASLt cannot be loaded: {type(error).__name__}: {error}") from error
    return module


@cache
def cublas() -> Any:
    """Return the bindings of classic cuBLAS."""
    cublaslt()
    return _imported("nvmath.bindings.cublas", "nvmath-python")


@cache
def library_version() -> str:
    """Return what the library calls its version, such as `130100`: it leaves out the fourth number."""
    return str(cublaslt().get_version())


@cache
def library_file() -> Path | None:
    """Return the loaded cuBLASLt file, None where it cannot be found out."""
    cublaslt()
    try:
        return Path(import_module("cuda.pathfinder").load_nvidia_dynamic_lib("cublasLt").abs_path)
    except (ImportError, RuntimeError, TypeError, OSError):
        return None


@cache
def library_function(name: str) -> int:
    """Return the address of one of cuBLASLt's functions, in the file that is loaded; 0 where it cannot be told."""
    file = library_file()
    return 0 if file is None else _address_in(str(file), name)


@cache
def driver_function(name: str) -> int:
    """Return the address of one of the driver's functions, 0 where it cannot be told."""
    return _address_in(_DRIVER, name)


@cache
def library_identity() -> str:
    """Return the loaded file's base name and its four-part version, since fixes ship in the fourth number.

    The version is that of the wheel the file belongs to, or in the file's real name; where neither tells, the
    size and a hash of the file's beginning and end stand for it.
    """
    file = library_file()
    if file is None:
        return f"cublasLt {library_version()}"
    version = _wheel_version(file) or _version_in_name(file) or _fingerprint(file)
    return f"{file.name} {version}"


def _address_in(file: str, name: str) -> int:
    try:
        return ctypes.cast(getattr(ctypes.CDLL(file), name), ctypes.c_void_p).value or 0
    except (OSError, AttributeError):
        return 0


def _import_torch() -> None:
    if "torch" in sys.modules or find_spec("torch") is None:
        return
    try:
        import_module("torch")
    except (ImportError, OSError, RuntimeError):
        # A torch that does not start brings no library along.
        return


def _imported(module: str, package: str) -> Any:
    try:
        # On a compiling thread too, so a fork waits for it.
        return imported(module)
    except (ImportError, OSError, RuntimeError) as error:
        raise KernelUnavailableError(f"{module} cannot be imported ({error}); {_HOW_TO_INSTALL} ({package})") from error


def _why_no_device() -> str | None:
    try:
        library = ctypes.CDLL(_DRIVER)
        status = library.cuInit(0)
        count = ctypes.c_int()
        if status == 0:
            status = library.cuDeviceGetCount(ctypes.byref(count))
    except (OSError, AttributeError) as error:
        return f"no NVIDIA driver: {error}"
    if status != 0:
        return f"the NVIDIA driver found no usable device: it returned status {status}"
    return None if count.value > 0 else "no CUDA device is visible"


def _wheel_version(file: Path) -> str | None:
    for name in _WHEELS:
        try:
            wheel = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        for entry in wheel.files or ():
            if entry.name == file.name and Path(str(wheel.locate_file(entry))).resolve() == file.resolve():
                return wheel.version
    return None


def _version_in_name(file: Path) -> str | None:
    match = _FOUR_PARTS.search(file.resolve().name)
    return match[0] if match else None


def _fingerprint(file: Path) -> str:
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            digest = hashlib.sha256(stream.read(_HASHED_BYTES))
            stream.seek(max(0, size - _HASHED_BYTES))
            digest.update(stream.read(_HASHED_BYTES))
    except OSError:
        return library_version()
    return f"{size}-{digest.hexdigest()[:12]}"
