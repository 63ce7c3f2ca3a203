"""What the doctor says of the machine: interpreter, array library, BLAS, cores, optional libraries."""

import os
import platform
import sys
from importlib import metadata
from typing import NamedTuple

import numpy as np

from tensorplay.backends.cublaslt.library import available
from tensorplay.backends.host.machine import cpu_model, usable_cpus
from tensorplay.extensions import EXTENSIONS, extension

__all__ = ["ON_A_GPU", "OPTIONAL", "BlasLibrary", "Machine", "this_machine"]

OPTIONAL = ("scipy", "mkl", "ml_dtypes", "nvmath-python", "cuda-bindings", "fastapi")
"""Distributions that bring candidates, data types, devices or the service when they are installed."""

ON_A_GPU = (
    "torch",
    *("cupy", "cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x"),
    *("jax", "numba", "numba-cuda"),
    *("nvidia-cublas", "nvidia-cublas-cu13", "nvidia-cublas-cu12"),
)
"""Distributions whose arrays are multiplied on a GPU, or that bring cuBLAS; only what is installed is shown."""


class BlasLibrary(NamedTuple):
    """A BLAS that is loaded in this process; what is not known is empty, or no threads."""

    name: str
    version: str
    threads: int | None
    architecture: str
    path: str


class Machine(NamedTuple):
    """The machine, as this process sees it.

    Attributes
    ----------
    optional : dict
        Versions of what TensorPlay can use, None for what is not installed.
    on_a_gpu : dict
        Versions of the libraries of arrays on a GPU and of cuBLAS, of what is installed.
    why_no_gpu : str or None
        Why no product can run on a GPU here.
    extensions : dict
        The extensions in C by full name, and whether each is in use.
    """

    python: str
    executable: str
    system: str
    processor: str
    cores: int
    usable_cores: int
    numpy: str
    blas: tuple[BlasLibrary, ...]
    optional: dict[str, str | None]
    on_a_gpu: dict[str, str]
    why_no_gpu: str | None
    extensions: dict[str, bool]


def this_machine() -> Machine:
    """Return the facts; no optional library is imported for them, but the driver of a GPU is asked for its devices."""
    versions = {name: _installed_version(name) for name in ON_A_GPU}
    return Machine(
        python=f"{platform.python_implementation()} {platform.python_version()}",
        executable=sys.executable,
        system=platform.platform(),
        processor=cpu_model(),
        cores=os.cpu_count() or 1,
        usable_cores=usable_cpus(),
        numpy=np.__version__,
        blas=_loaded_blas(),
        optional={name: _installed_version(name) for name in OPTIONAL},
        on_a_gpu={name: version for name, version in versions.items() if version is not None},
        why_no_gpu=available(),
        extensions={name: extension(name) is not None for name in EXTENSIONS},
    )


def _loaded_blas() -> tuple[BlasLibrary, ...]:
    from threadpoolctl import threadpool_info

    return tuple(
        BlasLibrary(
            name=str(library.get("internal_api") or "unknown"),
            version=str(library.get("version") or ""),
            threads=library.get("num_threads"),
            architecture=str(library.get("architecture") or ""),
            path=str(library.get("filepath") or ""),
        )
        for library in threadpool_info()
        if library.get("user_api") == "blas"
    )


def _installed_version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
    except (KeyError, TypeError):
        # Half-removed packages leave metadata without a version behind.
        return None
