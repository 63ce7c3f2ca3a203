"""The CUDA C++ of the half-precision matrix-vector kernels."""

__all__ = ["SOURCES"]

# Every sum is taken in an order that only the sizes decide, so results repeat to the bit.
_SOURCE = r"""
struct half_bits { unsigned short bits; };
struct bfloat_bits { unsigned short bits; };

__device__ float read(half_bits value)
{
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
    return wide;
}
__device__ float read(bfloat_bits value) { return __uint_as_float((unsigned int)value.bits << 16); }
__device__ void write(half_bits* out, float value)
{
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out->bits) : "f"(value));
}
__device__ void write(bfloat_bits* out, float value)
{
    const unsigned int word = __float_as_uint(value);
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    out->bits = is_nan ? 0x7fff : (unsigned short)((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
}

template <typename T> struct alignas(16) eight { T item[8]; };
template <typename T, int W> struct alignas(W * 2) some { T item[W]; };

template <typename T>
__device__ void finished(T* out, const T* c, long long place, float alpha, float beta, float sum)
{
    float value = alpha * sum;
    if (beta != 0.0f) value += beta * read(c[place]);
    write(out + place, value);
}

// One group of blockDim.x threads to a stored row: out[row] = sum over i of matrix[row, i] * x[i].
template <typename T>
__device__ void rows(T* out, const T* matrix, const T* x, const T* c, long long count, long long length, long long ld,
                     long long x_step, long long out_step, float alpha, float beta, int is_aligned)
{
    __shared__ float partial[32];
    const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    if (row < count) {
        const T* stored = matrix + row * ld;
        long long i = threadIdx.x;
        if (is_aligned) {
            const long long wide = length / 8;
            const eight<T>* matrix8 = (const eight<T>*)stored;
            const eight<T>* x8 = (const eight<T>*)x;
#pragma unroll 4
            for (long long j = threadIdx.x; j < wide; j += blockDim.x) {
                const eight<T> left = matrix8[j], right = x8[j];
#pragma unroll
                for (int t = 0; t < 8; ++t) sum += read(left.item[t]) * read(right.item[t]);
            }
            i += wide * 8;
        }
        for (; i < length; i += blockDim.x) sum += read(stored[i]) * read(x[i * x_step]);
    }
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(0xffffffffu, sum, lane);
    if (blockDim.x > 32) {
        // Then the block has one row.
        const int warp = threadIdx.x / 32;
        if (threadIdx.x % 32 == 0) partial[warp] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            sum = 0.0f;
            for (int w = 0; w < (int)blockDim.x / 32; ++w) sum += partial[w];
        }
    }
    if (threadIdx.x == 0 && row < count) finished(out, c, row * out_step, alpha, beta, sum);
}

// W adjacent columns to a thread, the stored rows shared out among blockDim.y threads:
// out[column] = sum over i of x[i] * matrix[i, column].
template <typename T, int W>
__device__ void columns(T* out, const T* matrix, const T* x, const T* c, long long count, long long length,
                        long long ld, long long x_step, long long out_step, float alpha, float beta)
{
    __shared__ float partial[32][32 * W];
    const long long first = ((long long)blockIdx.x * 32 + threadIdx.x) * W;
    float sums[W];
#pragma unroll
    for (int w = 0; w < W; ++w) sums[w] = 0.0f;
    if (first + W <= count) {
#pragma unroll 8
        for (long long i = threadIdx.y; i < length; i += blockDim.y) {
            const some<T, W> loaded = *(const some<T, W>*)(matrix + i * ld + first);
            const float factor = read(x[i * x_step]);
#pragma unroll
            for (int w = 0; w < W; ++w) sums[w] += factor * read(loaded.item[w]);
        }
    } else {
        for (long long i = threadIdx.y; i < length; i += blockDim.y) {
            const float factor = read(x[i * x_step]);
            for (int w = 0; w < W; ++w)
                if (first + w < count) sums[w] += factor * read(matrix[i * ld + first + w]);
        }
    }
#pragma unroll
    for (int w = 0; w < W; ++w) partial[threadIdx.y][threadIdx.x * W + w] = sums[w];
    __syncthreads();
    for (int place = threadIdx.y * 32 + threadIdx.x; place < 32 * W; place += 32 * blockDim.y) {
        const long long column = (long long)blockIdx.x * 32 * W + place;
        if (column < count) {
            float sum = 0.0f;
            for (int y = 0; y < (int)blockDim.y; ++y) sum += partial[y][place];
            finished(out, c, column * out_step, alpha, beta, sum);
        }
    }
}

#define GEMV(name, type)                                                                                             \
    extern "C" __global__ void rows_##name(type* out, const type* matrix, const type* x, const type* c,              \
                                           long long count, long long length, long long ld, long long x_step,        \
                                           long long out_step, float alpha, float beta, int is_aligned)              \
    {                                                                                                                \
        rows<type>(out, matrix, x, c, count, length, ld, x_step, out_step, alpha, beta, is_aligned);                 \
    }                                                                                                                \
    COLUMNS(name, type, 1) COLUMNS(name, type, 2) COLUMNS(name, type, 8)
#define COLUMNS(name, type, width)                                                                                   \
    extern "C" __global__ void columns##width##_##name(type* out, const type* matrix, const type* x, const type* c,  \
                                                       long long count, long long length, long long ld,              \
                                                       long long x_step, long long out_step, float alpha,            \
                                                       float beta)                                                   \
    {                                                                                                                \
        columns<type, width>(out, matrix, x, c, count, length, ld, x_step, out_step, alpha, beta);                   \
    }
"""

_TYPES = {"float16": "half_bits", "bfloat16": "bfloat_bits"}
SOURCES = {name: f"{_SOURCE}GEMV({name}, {kind})\n" for name, kind in _TYPES.items()}
"""The CUDA C++ of each type's kernels."""
