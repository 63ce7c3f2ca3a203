"""What classic cuBLAS does not do itself, on kernels of our own: a bias, an addend elsewhere, an activation.

Its call adds only to its own output, so `beta * c + bias` is written there beforehand; an activation is applied
afterwards, in place.
"""

from collections.abc import Callable
from ctypes import c_double, c_int, c_longlong, c_void_p
from typing import Any

from tensorplay.backends.cublaslt.nvrtc import kernel
from tensorplay.backends.host.layout import Layout
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import DType

__all__ = ["SOURCES", "Activation", "AddendWriter", "activation", "addend_writer"]

_SOURCE = r"""
struct half_bits { unsigned short bits; };
struct bfloat_bits { unsigned short bits; };
struct complex_float { float real, imaginary; };
struct complex_double { double real, imaginary; };
struct number { double real, imaginary; };

__device__ number read(float value) { return {value, 0.0}; }
__device__ number read(double value) { return {value, 0.0}; }
__device__ number read(complex_float value) { return {value.real, value.imaginary}; }
__device__ number read(complex_double value) { return {value.real, value.imaginary}; }
__device__ number read(half_bits value)
{
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
    return {wide, 0.0};
}
__device__ number read(bfloat_bits value) { return {__uint_as_float((unsigned int)value.bits << 16), 0.0}; }

__device__ void write(float* out, number value) { *out = (float)value.real; }
__device__ void write(double* out, number value) { *out = value.real; }
__device__ void write(complex_float* out, number value) { *out = {(float)value.real, (float)value.imaginary}; }
__device__ void write(complex_double* out, number value) { *out = {value.real, value.imaginary}; }
__device__ void write(half_bits* out, number value)
{
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out->bits) : "f"((float)value.real));
}
__device__ void write(bfloat_bits* out, number value)
{
    const unsigned int word = __float_as_uint((float)value.real);
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    out->bits = is_nan ? 0x7fff : (unsigned short)((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
}

template <typename T>
__device__ void added(T* out, const T* c, const T* bias, number beta, long long batch, long long rows,
                      long long columns, long long ld, long long stride)
{
    const long long size = rows * columns, total = batch * size, step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < total; i += step) {
        const long long product = i / size, inside = i - product * size, row = inside / columns;
        const long long column = inside - row * columns, place = product * stride + row * ld + column;
        number sum = {0.0, 0.0};
        if (c) {
            const number old = read(c[place]);
            if (beta.imaginary == 0.0) {
                sum = {beta.real * old.real, beta.real * old.imaginary};
            } else {
                sum = {beta.real * old.real - beta.imaginary * old.imaginary,
                       beta.real * old.imaginary + beta.imaginary * old.real};
            }
        }
        if (bias) {
            const number more = read(bias[column]);
            sum = {sum.real + more.real, sum.imaginary + more.imaginary};
        }
        write(out + place, sum);
    }
}

// ReLU, or GELU in the tanh approximation.
template <typename T>
__device__ void activated(T* out, int is_gelu, long long batch, long long rows, long long columns, long long ld,
                          long long stride)
{
    const long long size = rows * columns, total = batch * size, step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < total; i += step) {
        const long long product = i / size, inside = i - product * size, row = inside / columns;
        T* place = out + product * stride + row * ld + (inside - row * columns);
        const double x = read(*place).real;
        double y = x > 0.0 || x != x ? x : 0.0;
        if (is_gelu) y = 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
        write(place, {y, 0.0});
    }
}

#define EPILOGUE(name, type)                                                                                         \
    extern "C" __global__ void addend_##name(type* out, const type* c, const type* bias, double real,                \
                                             double imaginary, long long batch, long long rows, long long columns,   \
                                             long long ld, long long stride)                                         \
    {                                                                                                                \
        added<type>(out, c, bias, {real, imaginary}, batch, rows, columns, ld, stride);                              \
    }                                                                                                                \
    extern "C" __global__ void activate_##name(type* out, int is_gelu, long long batch, long long rows,              \
                                               long long columns, long long ld, long long stride)                    \
    {                                                                                                                \
        activated<type>(out, is_gelu, batch, rows, columns, ld, stride);                                             \
    }
"""

# Compiled one type at a time: the compiler takes a tenth of a second for each.
_TYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "half_bits",
    "bfloat16": "bfloat_bits",
    "complex64": "complex_float",
    "complex128": "complex_double",
}
SOURCES = {name: f"{_SOURCE}EPILOGUE({name}, {kind})\n" for name, kind in _TYPES.items()}
"""The CUDA C++ of each type's kernel."""

_SIZES = (c_longlong,) * 5
_ADDEND_PARAMETERS = (c_void_p, c_void_p, c_void_p, c_double, c_double, *_SIZES)
_ACTIVATION_PARAMETERS = (c_void_p, c_int, *_SIZES)
_THREADS = 256
_MOST_BLOCKS = 4096

AddendWriter = Callable[[int, int, int, Any, int], None]
Activation = Callable[[int, int], None]


def addend_writer(ordinal: int, dtype: DType, layout: Layout) -> AddendWriter:
    """Return `write(out, c, bias, beta, stream)`, which enqueues `out = beta * c + bias`, rounded once.

    0 for `c` or `bias` leaves it out; `c` lies as `out` does, and may be `out`. The context must be current.

    Raises
    ------
    KernelUnavailableError
        When numbers of the type cannot be added.
    """
    name = _source_name(dtype)
    adder = kernel(ordinal, SOURCES[name], f"addend_{name}", _ADDEND_PARAMETERS)
    grid, sizes = _grid(layout), _sizes(layout)

    def write(out: int, c: int, bias: int, beta: Any, stream: int) -> None:
        number = complex(beta)
        adder.launch(grid, (_THREADS, 1, 1), stream, out, c, bias, number.real, number.imag, *sizes)

    return write


def activation(ordinal: int, dtype: DType, layout: Layout, name: str) -> Activation:
    """Return `apply(out, stream)`, which enqueues an activation in place; the context must be current.

    Raises
    ------
    KernelUnavailableError
        When the type has no activations.
    """
    if dtype.is_complex:
        raise KernelUnavailableError("complex numbers have no activation")
    source = _source_name(dtype)
    activate = kernel(ordinal, SOURCES[source], f"activate_{source}", _ACTIVATION_PARAMETERS)
    grid, sizes, is_gelu = _grid(layout), _sizes(layout), int(name == "gelu")

    def apply(out: int, stream: int) -> None:
        activate.launch(grid, (_THREADS, 1, 1), stream, out, is_gelu, *sizes)

    return apply


def _source_name(dtype: DType) -> str:
    name = "float32" if dtype.name == "tf32" else dtype.name
    if name not in SOURCES:
        raise KernelUnavailableError(f"classic cuBLAS adds nothing to {name}")
    return name


def _grid(layout: Layout) -> tuple[int, int, int]:
    return (min(_MOST_BLOCKS, -(-layout.batch * layout.rows * layout.columns // _THREADS)), 1, 1)


def _sizes(layout: Layout) -> tuple[int, ...]:
    return (layout.batch, layout.rows, layout.columns, layout.ld, layout.stride)
