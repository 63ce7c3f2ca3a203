"""The kernel that compares results, compiled for the host: it says close only where the host does."""

import ctypes
import subprocess
from shutil import which

import numpy as np
import pytest

from tensorplay.backends.cublaslt import closeness
from tensorplay.gemm import dtype_of_name
from tensorplay.measure.numerics import Tolerance, agree

PRELUDE = r"""
#include <cstring>
struct Three { unsigned x, y, z; };
static Three gridDim{2, 1, 1}, blockDim{3, 1, 1}, blockIdx, threadIdx;
#define __device__ static
#define __global__
static float __uint_as_float(unsigned int word) { float value; memcpy(&value, &word, 4); return value; }
"""
EPILOGUE = r"""
extern "C" void all(int* report, const void* a, const void* b, int kind, double atol, double rtol, long long batch,
                    long long rows, long long columns, long long ld, long long stride)
{
    for (blockIdx.x = 0; blockIdx.x < 2; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < 3; ++threadIdx.x)
            compare(report, a, b, kind, atol, rtol, batch, rows, columns, ld, stride);
}
"""
HALF = """asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if which("g++") is None:
        pytest.skip("there is no g++")
    folder = tmp_path_factory.mktemp("closeness")
    assert HALF in closeness.SOURCE
    source = closeness.SOURCE.replace(HALF, "wide = bits;")
    (folder / "all.cpp").write_text(PRELUDE + source + EPILOGUE)
    command = ["g++", "-O1", "-shared", "-fPIC", "-o", str(folder / "all.so"), str(folder / "all.cpp")]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "all.so"))


def report_of(program: ctypes.CDLL, result: object, expected: object, kind: int, shape: tuple[int, ...]) -> list[int]:
    assert isinstance(result, np.ndarray) and isinstance(expected, np.ndarray)
    report = (ctypes.c_int * 2)()
    program.all(
        report, ctypes.c_void_p(result.ctypes.data), ctypes.c_void_p(expected.ctypes.data), kind,
        ctypes.c_double(0.5), ctypes.c_double(0.25), *map(ctypes.c_longlong, shape),
    )  # fmt: skip
    return list(report)


SPECIAL = (0.0, -0.0, 1.0, 1.7, 1.8, -1.0, 1e30, 1.2e30, 1e-44, np.inf, -np.inf, np.nan)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_it_judges_each_pair_of_numbers_as_the_host_does(program: ctypes.CDLL, name: str) -> None:
    dtype = dtype_of_name(name)
    assert dtype is not None
    for got in SPECIAL:
        for wanted in SPECIAL:
            result, expected = (np.array([[value]], name) for value in (got, wanted))
            exact = expected.astype(np.float64).copy
            host = agree(result, expected, exact, dtype=dtype, k=1, tolerance=Tolerance(0.5, 0.25))
            ran, outside = report_of(program, result, expected, int(name == "float64"), (1, 1, 1, 1, 1))
            assert (ran, outside) == (1, int(not host.ok)), (got, wanted)


def test_it_sees_every_element_and_nothing_between_the_rows(program: ctypes.CDLL) -> None:
    lies = np.arange(2)[:, None, None] * 20 + np.arange(3)[:, None] * 6 + np.arange(5)
    for place in range(40):
        expected = np.zeros(40, np.uint16)
        result = expected.copy()
        result[place] = 0x4000
        assert report_of(program, result, expected, 3, (2, 3, 5, 6, 20)) == [1, int(place in lies)]
