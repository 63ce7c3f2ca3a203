"""Comparing two results on the device: whether they surely are within a tolerance of each other, place by place."""

from ctypes import addressof, c_double, c_int, c_longlong, c_void_p, sizeof
from functools import partial

from tensorplay.backends.cublaslt.library import driver
from tensorplay.backends.cublaslt.memory import DeviceBuffer
from tensorplay.backends.cublaslt.nvrtc import kernel
from tensorplay.backends.cublaslt.status import check
from tensorplay.backends.cublaslt.stream import synchronize
from tensorplay.backends.host.layout import Layout
from tensorplay.gemm import DType

__all__ = ["SOURCE", "Comparison", "is_comparable"]

# One kernel for all types: the compiler takes a tenth of a second for each that would be its own.
SOURCE = r"""
__device__ double number_at(const void* numbers, long long place, int kind)
{
    if (kind == 0) return ((const float*)numbers)[place];
    if (kind == 1) return ((const double*)numbers)[place];
    const unsigned short bits = ((const unsigned short*)numbers)[place];
    if (kind == 3) return __uint_as_float((unsigned int)bits << 16);
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));
    return wide;
}

// Sets report[0] since it ran, report[1] where a result is off; all who write to a place write the same.
extern "C" __global__ void compare(int* report, const void* result, const void* expected, int kind, double atol,
                                   double rtol, long long batch, long long rows, long long columns, long long ld,
                                   long long stride)
{
    const double largest = 1.7976931348623157e308;
    const long long size = rows * columns, total = batch * size, step = (long long)gridDim.x * blockDim.x;
    bool is_off = false;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < total; i += step) {
        const long long product = i / size, inside = i - product * size, row = inside / columns;
        const long long place = product * stride + row * ld + (inside - row * columns);
        const double got = number_at(result, place, kind), wanted = number_at(expected, place, kind);
        const bool is_same = got == wanted || (got != got && wanted != wanted);
        const double error = got > wanted ? got - wanted : wanted - got;
        const double size_wanted = wanted < 0.0 ? -wanted : wanted;
        // False for what is no number, and for an error without end.
        const bool is_close = error <= largest && error <= atol + rtol * size_wanted;
        is_off = is_off || !(is_same || is_close);
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) report[0] = 1;
    if (is_off) report[1] = 1;
}
"""

_KINDS = {"float32": 0, "tf32": 0, "float64": 1, "float16": 2, "bfloat16": 3}
_PARAMETERS = (c_void_p, c_void_p, c_void_p, c_int, c_double, c_double, *(c_longlong,) * 5)
_THREADS = 256
_MOST_BLOCKS = 4096
_REPORT_ROOM = 256
# The kernel rounds to float64, the comparison on the host may not: what is close here has to be close there.
_SHRUNK = 1.0 - 2.0**-40


def is_comparable(dtype: DType) -> bool:
    """Return whether results of the type can be compared here."""
    return dtype.name in _KINDS


class Comparison:
    """One result kept on the device, with which others that lie alike are compared; give it back with `free`.

    Makes sure only of what is close: whoever is not may still be right. The device's context must be current for
    all of it.

    Parameters
    ----------
    address, dtype, layout
        The result to keep, and where the others will be: it is copied in the order of the stream.
    atol, rtol : float
        An element may be off by `atol + rtol * |kept|`. A place where both have the same infinity, or both no
        number, is right.

    Raises
    ------
    LaunchError
        When anything that was enqueued before failed. `MemoryError` when there is no room for a copy.
    """

    def __init__(
        self, ordinal: int, stream: int, address: int, dtype: DType, layout: Layout, *, atol: float, rtol: float
    ) -> None:
        self._stream = stream
        size = layout.elements * dtype.itemsize
        self._kept = DeviceBuffer(ordinal, _REPORT_ROOM + size)
        report, kept = self._kept.address, self._kept.address + _REPORT_ROOM
        try:
            compare = kernel(ordinal, SOURCE, "compare", _PARAMETERS)
            check(driver().cuMemcpyDtoDAsync(kept, address, size, stream), "keeping a result")
            synchronize(stream)
        except BaseException:
            self._kept.free()
            raise
        grid = (min(_MOST_BLOCKS, -(-layout.batch * layout.rows * layout.columns // _THREADS)), 1, 1)
        tolerance = (_SHRUNK * atol, _SHRUNK * rtol)
        sizes = (layout.batch, layout.rows, layout.columns, layout.ld, layout.stride)
        arguments = (report, address, kept, _KINDS[dtype.name], *tolerance, *sizes)
        self._enqueue = partial(compare.launch, grid, (_THREADS, 1, 1), stream, *arguments)

    def is_close(self) -> bool:
        """Return whether what is at the address surely is within the tolerance; waits for the stream.

        `LaunchError` when anything that was enqueued before failed.
        """
        report, cuda = (c_int * 2)(), driver()
        nbytes = sizeof(report)
        check(cuda.cuMemsetD8Async(self._kept.address, 0, nbytes, self._stream), "clearing a report")
        self._enqueue()
        copied = cuda.cuMemcpyDtoHAsync(addressof(report), self._kept.address, nbytes, self._stream)
        check(copied, "copying from the device")
        synchronize(self._stream)
        return list(report) == [1, 0]

    def free(self) -> None:
        """Give the memory back; nothing may be running on it."""
        self._kept.free()
