"""Drives products of FP8 on the stand-in library; run by `test_float8.py` in a process of its own."""

import ctypes
import itertools
import sys
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: TID253 - a script, which is run only where it is installed
import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.number_types import addend_dtype, bias_dtype, float8_results
from tensorplay.errors import LaunchError, OperandError
from tensorplay.gemm import DType, GemmProblem, dtype_of_name

M, N, K = 5, 16, 32
ROUNDOFF = {"float8_e4m3fn": 2.0**-4, "float8_e5m2": 2.0**-3, "bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 1e-6}
PAIRS = (("float8_e4m3fn", "float8_e4m3fn"), ("float8_e5m2", "float8_e4m3fn"), ("float8_e4m3fn", "float8_e5m2"))
Array = NDArray[Any]


def named(name: str) -> DType:
    """Return a data type."""
    dtype = dtype_of_name(name)
    assert dtype is not None
    return dtype


def random(dtype: DType, *shape: int, seed: int) -> Array:
    """Return random numbers of a type."""
    kind = getattr(ml_dtypes, dtype.name, dtype.name)
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(kind)


def posed(left: str, right: str, out: str, **further: Any) -> GemmProblem:
    """Return a small problem."""
    return GemmProblem(
        dtype=named(right),
        left_dtype=None if left == right else named(left),
        out_dtype=None if out == right else named(out),
        m=M,
        n=N,
        k=K,
        device="0",
        transpose_right=True,
        **further,
    )


def check_values(backend: CublasLtBackend) -> None:
    """Multiply each pair of types into each result, with each scale, bias and addend there and not there."""
    one, two, four = (np.array([value], np.float32) for value in (1.0, 2.0, 4.0))
    for left, right in PAIRS:
        for out in float8_results(named(left), named(right)):
            for bias, accumulate in itertools.product((False, True), repeat=2):
                problem = posed(left, right, out, bias=bias, accumulate=accumulate)
                a, w = random(named(left), M, K, seed=1), random(named(right), N, K, seed=2)
                result = np.empty((M, N), random(named(out), 1, seed=0).dtype)
                c = random(addend_dtype(named(out)), M, N, seed=3)
                row = random(bias_dtype(named(right), named(out)), N, seed=4)
                plan = backend.first_choice(problem)
                assert plan.kernel.startswith("lt_id1_"), plan.kernel
                for scales in ((None, None, None), (two, four, None), (two, None, None), (None, four, one)):
                    of_out = scales[2] if out.startswith("float8") else None
                    used = (scales[0], scales[1], of_out)
                    pointers = [0 if scale is None else scale.ctypes.data for scale in used]
                    of_left, of_right, last = (1.0 if scale is None else float(scale[0]) for scale in used)
                    beta = -0.5 if accumulate else 0.0
                    addresses = [array.ctypes.data for array in (a, w, result)]
                    further = (c.ctypes.data if accumulate else 0, row.ctypes.data if bias else 0)
                    plan.run(*addresses, *further, 0.25, beta, 0, *pointers)
                    expected = 0.25 * of_left * of_right * (a.astype(float) @ w.astype(float).T)
                    expected = (expected + beta * c.astype(float) + (row.astype(float) if bias else 0)) * last
                    found, allowed = result.astype(float), ROUNDOFF[out]
                    np.testing.assert_allclose(found, expected, rtol=allowed, atol=allowed / 4, err_msg=str(problem))


def check_accumulating_in_place(backend: CublasLtBackend) -> None:
    """Add to the result itself where it has the addend's type, and refuse where it has not."""
    a, w = random(named("float8_e4m3fn"), M, K, seed=1), random(named("float8_e4m3fn"), N, K, seed=2)
    product = a.astype(float) @ w.astype(float).T
    c = random(named("float32"), M, N, seed=3)
    plan = backend.first_choice(posed("float8_e4m3fn", "float8_e4m3fn", "float32", accumulate=True))
    expected = product + 2 * c
    plan.run(a.ctypes.data, w.ctypes.data, c.ctypes.data, 0, 0, 1.0, 2.0, 0)
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)
    narrow = random(named("float8_e4m3fn"), M, N, seed=3)
    plan = backend.first_choice(posed("float8_e4m3fn", "float8_e4m3fn", "float8_e4m3fn", accumulate=True))
    with pytest.raises(LaunchError, match="against the rules"):
        plan.run(a.ctypes.data, w.ctypes.data, narrow.ctypes.data, 0, 0, 1.0, 2.0, 0)


def check_refusals(backend: CublasLtBackend) -> None:
    """Name what is not multiplied."""
    for problem, reason in (
        (posed("float8_e5m2", "float8_e5m2", "bfloat16"), "by itself"),
        (posed("float8_e4m3fn", "float8_e4m3fn", "float8_e5m2"), "stores no product"),
        (posed("float8_e4m3fn", "float8_e4m3fn", "bfloat16", alignment=8), "16 bytes"),
    ):
        with pytest.raises(OperandError, match=reason):
            backend.first_choice(problem)


def main(folder: Path) -> None:
    """Load the stand-ins and check everything."""
    for name in ("libcuda.so.1", "libcublasLt.so.13", "libcublas.so.13"):
        ctypes.CDLL(str(folder / name))
    backend = CublasLtBackend()
    for check in (check_values, check_accumulating_in_place, check_refusals):
        check(backend)
    print("checked")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
