"""The kernel that compares results, compiled for the host: it says close only where the host does."""

import ctypes
import subprocess
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tensorplay.backends.cublaslt import closeness
from tensorplay.backends.cublaslt.host_copy import storage_dtype, widened
from tensorplay.backends.cublaslt.scratch import UNWRITTEN
from tensorplay.gemm import DType, dtype_of_name
from tensorplay.measure.numerics import Tolerance, agree

CONVERSIONS = Path(__file__).parent / "on_host" / "convert.c"
PRELUDE = r"""
#include <cstring>
extern "C" float half_to_float(unsigned short);
struct Three { unsigned x, y, z; };
static Three gridDim{2, 1, 1}, blockDim{3, 1, 1}, blockIdx, threadIdx;
#define __device__ static
#define __global__
static float __uint_as_float(unsigned int word) { float value; memcpy(&value, &word, 4); return value; }
"""
EPILOGUE = r"""
extern "C" void all(int* report, const void* a, const void* b, int kind, double atol, double rtol, long long count)
{
    for (blockIdx.x = 0; blockIdx.x < 2; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < 3; ++threadIdx.x)
            compare(report, a, b, kind, atol, rtol, count);
}
extern "C" double number(const void* numbers, long long place, int kind) { return number_at(numbers, place, kind); }
"""
HALF = """asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));"""
KINDS = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 3, "float8_e4m3fn": 4, "float8_e5m2": 5}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = which("gcc")
    if which("g++") is None or compiler is None:
        pytest.skip("there is no g++ or gcc")
    folder = tmp_path_factory.mktemp("closeness")
    assert HALF in closeness.SOURCE
    source = closeness.SOURCE.replace(HALF, "wide = half_to_float(bits);")
    (folder / "all.cpp").write_text(PRELUDE + source + EPILOGUE)
    subprocess.run([compiler, "-O1", "-fPIC", "-c", "-o", str(folder / "convert.o"), str(CONVERSIONS)], check=True)
    command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-o", str(folder / "all.so"), str(folder / "all.cpp")]
    subprocess.run([*command, str(folder / "convert.o")], check=True)
    made = ctypes.CDLL(str(folder / "all.so"))
    made.number.restype = ctypes.c_double
    return made


def report_of(program: ctypes.CDLL, result: NDArray[Any], expected: NDArray[Any], kind: int, count: int) -> list[int]:
    report = (ctypes.c_int * 2)()
    program.all(
        report, ctypes.c_void_p(result.ctypes.data), ctypes.c_void_p(expected.ctypes.data), kind,
        ctypes.c_double(0.5), ctypes.c_double(0.25), ctypes.c_longlong(count),
    )  # fmt: skip
    return list(report)


def named(name: str) -> DType:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return dtype


@pytest.mark.parametrize("name", KINDS)
def test_it_reads_every_code_of_the_narrow_types(program: ctypes.CDLL, name: str) -> None:
    dtype = named(name)
    bits = 8 * min(dtype.itemsize, 2)
    stored = np.arange(1 << bits).astype(f"u{dtype.itemsize}") << (8 * dtype.itemsize - bits)
    wanted = widened(stored.view(storage_dtype(dtype)), dtype)
    for place in range(0, len(stored), 1 if bits == 8 else 37):
        found = program.number(ctypes.c_void_p(stored.ctypes.data), ctypes.c_longlong(place), KINDS[name])
        np.testing.assert_equal(found, float(wanted[place]))


SPECIAL = (0.0, -0.0, 1.0, 1.7, 1.8, -1.0, 1e30, 1.2e30, 1e-44, np.inf, -np.inf, np.nan)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_it_judges_each_pair_of_numbers_as_the_host_does(program: ctypes.CDLL, name: str) -> None:
    for got in SPECIAL:
        for wanted in SPECIAL:
            result, expected = (np.array([[value]], name) for value in (got, wanted))
            exact = expected.astype(np.float64).copy
            host = agree(result, expected, exact, dtype=named(name), k=1, tolerance=Tolerance(0.5, 0.25))
            ran, outside = report_of(program, result, expected, KINDS[name], 1)
            assert (ran, outside) == (1, int(not host.ok)), (got, wanted)


@pytest.mark.parametrize("name", ["float16", "float8_e5m2"])
def test_it_sees_every_number_up_to_the_last(program: ctypes.CDLL, name: str) -> None:
    dtype = named(name)
    for place in range(41):
        expected = np.zeros(41, f"u{dtype.itemsize}")
        result = expected.copy()
        # Two.
        result[place] = 0x4000 >> (16 - 8 * dtype.itemsize)
        assert report_of(program, result, expected, KINDS[name], 40) == [1, int(place < 40)]


def test_what_nothing_was_written_to_has_to_stay_so(program: ctypes.CDLL) -> None:
    for name, kind in KINDS.items():
        unwritten = np.full(named(name).itemsize, UNWRITTEN, np.uint8)
        written = np.zeros_like(unwritten)
        assert report_of(program, unwritten, unwritten, kind, 1) == [1, 0]
        assert report_of(program, written, unwritten, kind, 1) == [1, 1]
        assert report_of(program, unwritten, written, kind, 1) == [1, 1]
        no_number = unwritten.copy()
        # The first bit of its lowest byte, or the sign where that is needed for it to stay none.
        no_number[0] = 0x7F if len(no_number) == 1 else 0xFE
        assert report_of(program, no_number, unwritten, kind, 1) == [1, 1]
        assert report_of(program, no_number, no_number, kind, 1) == [1, 0]


@given(st.tuples(*[st.floats(-10, 10)] * 2), st.tuples(*[st.floats(-2, 2)] * 2), st.floats(0, 2), st.floats(0, 1))
def test_parts_of_complex_numbers_that_are_close_make_numbers_that_are(
    wanted: tuple[float, float], off: tuple[float, float], atol: float, rtol: float
) -> None:
    share = 0.5**0.5
    if all(abs(each) <= share * (atol + rtol * abs(size)) for each, size in zip(off, wanted, strict=True)):
        assert abs(complex(*off)) <= (atol + rtol * abs(complex(*wanted))) * (1 + 1e-12)
