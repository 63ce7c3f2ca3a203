"""Comparing results on the device: whether they surely are within a tolerance of others, place by place."""

from ctypes import addressof, c_double, c_int, c_longlong, c_void_p, sizeof
from math import sqrt

from tensorplay.backends.cublaslt.library import driver
from tensorplay.backends.cublaslt.memory import DeviceBuffer
from tensorplay.backends.cublaslt.nvrtc import kernel
from tensorplay.backends.cublaslt.status import check
from tensorplay.backends.cublaslt.stream import synchronize
from tensorplay.gemm import DType

__all__ = ["SOURCE", "Comparison"]

# One kernel for all types: the compiler takes a tenth of a second for each that would be its own.
SOURCE = r"""
__device__ double number_at(const void* numbers, long long place, int kind)
{
    if (kind == 0) return ((const float*)numbers)[place];
    if (kind == 1) return ((const double*)numbers)[place];
    if (kind == 3) return __uint_as_float((unsigned int)((const unsigned short*)numbers)[place] << 16);
    unsigned short bits;
    if (kind == 2) {
        bits = ((const unsigned short*)numbers)[place];
    } else {
        const unsigned char byte = ((const unsigned char*)numbers)[place];
        const unsigned int size = byte & 0x7fu;
        if (kind == 4) {
            // Its exponent put where that of a float is; what differs is the bias, 127 and not 7.
            const double number = (double)__uint_as_float(size << 20) * 0x1p120;
            return size == 0x7fu ? __uint_as_float(0x7fc00000u) : byte > 0x7fu ? -number : number;
        }
        bits = (unsigned short)(byte << 8);
    }
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));
    return wide;
}

__device__ unsigned long long bits_at(const void* numbers, long long place, int kind)
{
    if (kind == 0) return ((const unsigned int*)numbers)[place];
    if (kind == 1) return ((const unsigned long long*)numbers)[place];
    if (kind < 4) return ((const unsigned short*)numbers)[place];
    return ((const unsigned char*)numbers)[place];
}

// Sets report[0] since it ran, report[1] where a number is off; all who write to a place write the same.
extern "C" __global__ void compare(int* report, const void* result, const void* expected, int kind, double atol,
                                   double rtol, long long count)
{
    const double largest = 1.7976931348623157e308;
    const long long step = (long long)gridDim.x * blockDim.x;
    bool is_off = false;
    for (long long place = (long long)blockIdx.x * blockDim.x + threadIdx.x; place < count; place += step) {
        const double got = number_at(result, place, kind), wanted = number_at(expected, place, kind);
        // What nothing was written to is one of many numbers that are none, and which of them shows that.
        const bool is_same = got == wanted || bits_at(result, place, kind) == bits_at(expected, place, kind);
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

_KINDS = {
    "float32": 0,
    "tf32": 0,
    "complex64": 0,
    "float64": 1,
    "complex128": 1,
    "float16": 2,
    "bfloat16": 3,
    "float8_e4m3fn": 4,
    "float8_e5m2": 5,
}
_PARAMETERS = (c_void_p, c_void_p, c_void_p, c_int, c_double, c_double, c_longlong)
_THREADS = 256
_MOST_BLOCKS = 4096
_REPORT_ROOM = 256
# Of integers, for each result.
_REPORT_LENGTH = 2
# The kernel rounds to float64, the comparison on the host may not: what is close here has to be close there.
_SHRUNK = 1.0 - 2.0**-40


class Comparison:
    """Results kept on the device, with which others at the same place are compared; give them back with `free`.

    Makes sure only of what is close: whoever is not may still be right. Compared is all memory that a result lies in,
    with what is between and beside its rows. The device's context must be current for all of it.

    Parameters
    ----------
    address, nbytes, dtype
        Where results will be.
    count : int
        How many are kept; at most 32.
    atol, rtol : float
        An element may be off by `atol + rtol * |kept|`. A place where both have the same infinity, or the same bits
        of what is no number, is right.

    Raises
    ------
    MemoryError
        When there is no room for so many.
    """

    def __init__(
        self,
        ordinal: int,
        stream: int,
        address: int,
        nbytes: int,
        dtype: DType,
        *,
        count: int,
        atol: float,
        rtol: float,
    ) -> None:
        self._stream = stream
        self._address, self._nbytes, self._count = address, nbytes, count
        self._step = -(-nbytes // _REPORT_ROOM) * _REPORT_ROOM
        self._kept = DeviceBuffer(ordinal, _REPORT_ROOM + count * self._step)
        try:
            self._kernel = kernel(ordinal, SOURCE, "compare", _PARAMETERS)
        except BaseException:
            self._kept.free()
            raise
        # Of a complex number each part may be off by a share, such that both together are not off by more.
        share = _SHRUNK * (sqrt(0.5) if dtype.is_complex else 1.0)
        numbers = nbytes // dtype.itemsize * (2 if dtype.is_complex else 1)
        self._grid = (min(_MOST_BLOCKS, -(-numbers // _THREADS)), 1, 1)
        self._further = (_KINDS[dtype.name], share * atol, share * rtol, numbers)

    def keep(self, which: int) -> None:
        """Enqueue keeping what is at the address now, as the result of this number."""
        copied = driver().cuMemcpyDtoDAsync(self._kept_at(which), self._address, self._nbytes, self._stream)
        check(copied, "keeping a result")

    def begin(self) -> None:
        """Enqueue forgetting what was compared before."""
        nbytes = self._count * _REPORT_LENGTH * sizeof(c_int)
        check(driver().cuMemsetD8Async(self._kept.address, 0, nbytes, self._stream), "clearing a report")

    def compare(self, which: int) -> None:
        """Enqueue comparing what is at the address now with the result of this number."""
        report = self._kept.address + which * _REPORT_LENGTH * sizeof(c_int)
        kept = self._kept_at(which)
        self._kernel.launch(self._grid, (_THREADS, 1, 1), self._stream, report, self._address, kept, *self._further)

    def are_close(self) -> bool:
        """Return whether all surely were within the tolerance since `begin`; waits for the stream.

        `LaunchError` when anything that was enqueued before failed.
        """
        report = (c_int * (self._count * _REPORT_LENGTH))()
        copied = driver().cuMemcpyDtoHAsync(addressof(report), self._kept.address, sizeof(report), self._stream)
        check(copied, "copying from the device")
        synchronize(self._stream)
        return list(report) == [1, 0] * self._count

    def free(self) -> None:
        """Give the memory back; nothing may be running on it."""
        self._kept.free()

    def _kept_at(self, which: int) -> int:
        return self._kept.address + _REPORT_ROOM + which * self._step
