"""Steps: packages, library, device, handle, kernels of our own, memory."""

# The names and docstrings of steps are findings' headings, no sentences.
# ruff: noqa: D401

import time
from importlib import metadata

from gpu_steps.common import step
from tensorplay.backends.cublaslt import epilogue, fill, gemv_source, library, spin
from tensorplay.backends.cublaslt.attributes import verify_sizes
from tensorplay.backends.cublaslt.compiler import compile_source
from tensorplay.backends.cublaslt.device import device, device_count
from tensorplay.backends.cublaslt.handle import handle_of
from tensorplay.backends.cublaslt.memory import DeviceBuffer


@step
def packages() -> str:
    """Packages."""
    found = []
    for name in ("torch", "nvmath-python", "cuda-bindings", "cuda-core", "cuda-pathfinder", "nvidia-cublas", "numpy"):
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"{name} MISSING")
    return ", ".join(found)


@step
def availability() -> str:
    """Available."""
    reason = library.available()
    if reason:
        raise RuntimeError(reason)
    return "yes"


@step
def loading() -> str:
    """Library."""
    start = time.perf_counter()
    version = library.library_version()
    return f"{library.library_identity()}, version {version}, first import {time.perf_counter() - start:.2f} s"


@step
def devices() -> str:
    """Device."""
    here = device(0)
    memory_mib, l2_mib = here.free_bytes >> 20, here.l2_bytes >> 20
    return f"{device_count()} x {here.name} {here.capability}, L2 {l2_mib} MiB, {memory_mib} MiB free"


@step
def attribute_sizes() -> str:
    """Attribute sizes."""
    verify_sizes()
    return "as known"


@step
def handles() -> str:
    """Handle."""
    start = time.perf_counter()
    handle_of(0)
    return f"{(time.perf_counter() - start) * 1e3:.1f} ms"


@step
def kernels() -> str:
    """Our kernels compile."""
    start = time.perf_counter()
    sources = [spin.SOURCE, *fill.SOURCES.values(), *gemv_source.SOURCES.values(), *epilogue.SOURCES.values()]
    sizes = [len(compile_source(source, device(0).capability)) for source in sources]
    return f"{len(sizes)} sources, {sum(sizes)} bytes, {time.perf_counter() - start:.2f} s"


@step
def buffers() -> str:
    """Plain memory."""
    buffer = DeviceBuffer(0, 1 << 20)
    buffer.free()
    return f"address aligned to {buffer.address & -buffer.address}"
