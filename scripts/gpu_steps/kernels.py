"""Steps: each kernel of our own alone, small and awkwardly placed; what `compute-sanitizer` is to look at."""

# The names and docstrings of steps are findings' headings, no sentences.

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from gpu_steps.common import posed, step
from tensorplay.backends.cublaslt.device import current
from tensorplay.backends.cublaslt.epilogue import activation, addend_writer
from tensorplay.backends.cublaslt.gemv import gemv_plan
from tensorplay.backends.cublaslt.host_copy import from_device
from tensorplay.backends.cublaslt.reference import activated, reference_result
from tensorplay.backends.cublaslt.scratch import Scratch
from tensorplay.backends.cublaslt.spin import spin, warm_clocks
from tensorplay.backends.cublaslt.stream import private_stream, synchronize
from tensorplay.gemm import GemmProblem

_EPILOGUE_TYPES = ("float32", "float64", "float16", "bfloat16", "complex64", "complex128")
_FILL_TYPES = (*_EPILOGUE_TYPES, "float8_e4m3fn", "float8_e5m2")


@step
def spinning() -> str:
    """Our kernels: spin."""
    with current(0):
        stream = private_stream(0)
        spin(0, stream, 50_000)
        warm_clocks(0, stream, 50_000)
        synchronize(stream)
    return "done"


@step
def filling() -> str:
    """Our kernels: fill."""
    for name in _FILL_TYPES:
        for problem in (posed(name, 3, 5, 7), posed(name, 3, 5, 7, batch=2, ld_left=9, ld_right=8)):
            with current(0):
                scratch = Scratch(problem, 0, 2, private_stream(0))
                values = from_device(*scratch.part("left"), private_stream(0))
                scratch.free()
            largest = float(np.abs(values.astype(np.complex128)).max())
            if not 0.1 < largest <= 1.5:
                raise AssertionError(f"{name}: the largest of {values.size} random numbers is {largest}")
    return f"{len(_FILL_TYPES)} types"


def _roundings(name: str) -> list[float]:
    """Return how far each epilogue of a type is off, in unit roundoffs."""
    problem = posed(name, 3, 5, 7, batch=2, ld_out=9, accumulate=True, bias=True)
    wide = np.complex128 if problem.dtype.is_complex else np.float64
    with current(0):
        stream = private_stream(0)
        scratch = Scratch(problem, 0, 1, stream)

        def fetched(part: str) -> Any:
            return from_device(*scratch.part(part), stream).astype(wide)

        (out, dtype, layout), (c, _, _), (bias, _, _) = (scratch.part(part) for part in ("out", "c", "bias"))
        addend_writer(0, dtype, layout)(out, c, bias, 0.5, stream)
        found = [np.abs(fetched("out") - (0.5 * fetched("c") + fetched("bias")[0])).max()]
        for which in () if dtype.is_complex else ("relu", "gelu"):
            before = fetched("out")
            activation(0, dtype, layout, which)(out, stream)
            found.append(np.abs(fetched("out") - activated(before, which)).max())
        scratch.free()
    return [float(each) / dtype.unit_roundoff for each in found]


@step
def epilogues() -> str:
    """Our kernels: addend and activation."""
    found = {name: _roundings(name) for name in _EPILOGUE_TYPES}
    if not all(each <= 4.0 for many in found.values() for each in many):
        raise AssertionError(f"off by so many roundings: {found}")
    return f"off by {max(map(max, found.values())):.2g} roundings at most"


def _vectors() -> Iterator[GemmProblem]:
    for name in ("float16", "bfloat16"):
        # Few and many results, whole and broken vectors, even and odd places.
        for length, k in ((3, 7), (40, 64), (1100, 33), (34000, 9)):
            for problem in (posed(name, 1, length, k), posed(name, length, 1, k)):
                for transposed in (problem, replace(problem, transpose_left=True, transpose_right=True)):
                    yield transposed
                    yield replace(transposed, alignment=2)


@step
def matrix_vector() -> str:
    """Our kernels: matrix by vector."""
    count = 0
    for problem in _vectors():
        with current(0):
            stream = private_stream(0)
            scratch = Scratch(problem, 0, 1, stream)
            operands = scratch.sets[0]
            gemv_plan(problem).run(*operands, stream)
            found = from_device(*scratch.part("out"), stream)
            exact = reference_result(scratch, stream)
            scratch.free()
        if not np.allclose(found, exact, atol=0.02, rtol=0.02):
            raise AssertionError(f"{problem}: off by {np.abs(found - exact).max()}")
        count += 1
    return f"{count} products"
