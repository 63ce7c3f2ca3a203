"""Random operands made on the device: uniform between two sizes, the same numbers for the same seed and place."""

from ctypes import c_double, c_longlong, c_ulonglong, c_void_p

from tensorplay.backends.cublaslt.nvrtc import kernel
from tensorplay.backends.host.layout import Layout
from tensorplay.gemm import DType
from tensorplay.measure.check_operands import Sizes

__all__ = ["SOURCES", "UNIFORM", "fill", "real_name"]

# The numbers are those of SplitMix64, from the place of the element, so no order of threads shows.
_SOURCE = r"""
__device__ unsigned long long mixed(unsigned long long z)
{
    z += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

template <typename T> __device__ T rounded(double value);
struct half_bits { unsigned short bits; };
struct bfloat_bits { unsigned short bits; };
struct e4m3_bits { unsigned char bits; };
struct e5m2_bits { unsigned char bits; };
template <> __device__ float rounded<float>(double value) { return (float)value; }
template <> __device__ double rounded<double>(double value) { return value; }
template <> __device__ half_bits rounded<half_bits>(double value)
{
    half_bits out;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"((float)value));
    return out;
}
template <> __device__ bfloat_bits rounded<bfloat_bits>(double value)
{
    unsigned int word = __float_as_uint((float)value);
    word += 0x7fffu + ((word >> 16) & 1u);
    bfloat_bits out;
    out.bits = (unsigned short)(word >> 16);
    return out;
}
#if __CUDA_ARCH__ >= 890
template <> __device__ e4m3_bits rounded<e4m3_bits>(double value)
{
    unsigned short pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"((float)value));
    e4m3_bits out;
    out.bits = (unsigned char)(pair & 0xff);
    return out;
}
template <> __device__ e5m2_bits rounded<e5m2_bits>(double value)
{
    unsigned short pair;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"((float)value));
    e5m2_bits out;
    out.bits = (unsigned char)(pair & 0xff);
    return out;
}
#endif

template <typename T>
__device__ void filled(T* out, long long batch, long long rows, long long columns, long long ld, long long stride,
                       unsigned long long seed, double low, double high)
{
    const long long size = rows * columns, total = batch * size, step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < total; i += step) {
        const long long product = i / size, inside = i - product * size, row = inside / columns;
        const long long place = product * stride + row * ld + (inside - row * columns);
        const double value = (double)(mixed(seed + (unsigned long long)place) >> 11) * 0x1p-52 - 1.0;
        const double larger = low + (high - low) * (value < 0.0 ? -value : value);
        out[place] = rounded<T>(value < 0.0 ? -larger : larger);
    }
}

#define FILL(name, type)                                                                                             \
    extern "C" __global__ void fill_##name(type* out, long long batch, long long rows, long long columns,            \
                                           long long ld, long long stride, unsigned long long seed,                  \
                                           double low, double high)                                                  \
    {                                                                                                                \
        filled<type>(out, batch, rows, columns, ld, stride, seed, low, high);                                        \
    }
"""

# Compiled one type at a time: the compiler takes a tenth of a second for each.
_TYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "half_bits",
    "bfloat16": "bfloat_bits",
    "float8_e4m3fn": "e4m3_bits",
    "float8_e5m2": "e5m2_bits",
}
SOURCES = {name: f"{_SOURCE}FILL({name}, {kind})\n" for name, kind in _TYPES.items()}
"""The CUDA C++ of each type's kernel."""

_PARAMETERS = (c_void_p, c_longlong, c_longlong, c_longlong, c_longlong, c_longlong, c_ulonglong, c_double, c_double)
_THREADS = 256
_MOST_BLOCKS = 4096
UNIFORM = Sizes(0.0, 1.0)
"""The sizes of numbers that are uniform in [-1, 1]."""

_REAL_PARTS = {"tf32": "float32", "complex64": "float32", "complex128": "float64"}


def real_name(dtype: DType) -> str:
    """Return which of `SOURCES` fills operands of a data type: that of its parts, for complex numbers."""
    return _REAL_PARTS.get(dtype.name, dtype.name)


def fill(
    ordinal: int, stream: int, address: int, dtype: DType, layout: Layout, seed: int, sizes: Sizes = UNIFORM
) -> None:
    """Enqueue filling an operand that lies so; what is between its rows is left alone. The context must be current.

    The signs are those of the seed and the place, whatever the sizes are.
    """
    parts = 2 if dtype.is_complex else 1
    name = real_name(dtype)
    columns = layout.columns * parts
    blocks = min(_MOST_BLOCKS, -(-layout.batch * layout.rows * columns // _THREADS))
    kernel(ordinal, SOURCES[name], f"fill_{name}", _PARAMETERS).launch(
        (blocks, 1, 1),
        (_THREADS, 1, 1),
        stream,
        address,
        layout.batch,
        layout.rows,
        columns,
        layout.ld * parts,
        layout.stride * parts,
        seed,
        *sizes,
    )
