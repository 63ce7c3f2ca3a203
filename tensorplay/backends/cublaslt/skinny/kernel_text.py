"""The CUDA C++ of the skinny kernels, but for its constants, its instructions and the four ways to sum.

`out[row, column] = sum over i of weight[row, i] * x[column, i]`: a block takes TILE rows of the weight, and all the
columns, 16 at most. ROWS of them make the work of one warp; the warps of a block that have the same rows, and the SPLIT
blocks of a cluster, share out the depth among themselves. Partial sums meet in shared memory and are added in the
order of warps and blocks, so results repeat to the bit.
"""

__all__ = ["ENTRY", "READING", "REGISTER_LOOP", "TYPES"]

TYPES = r"""
// As the host packs it.
struct Arguments {
    const char *weight, *x;
    char* out;
    const char *c, *bias;
    float alpha, beta;
    // From one row of the weight or of its storage, column of x, step along the depth in x, row and column of the
    // result to the next, in elements.
    long long weight_ld, x_column_step, x_depth_step, out_row_step, out_column_step;
    int rows, columns, depth, activation, bias_row_step, bias_column_step;
};

struct half_type {
    typedef unsigned short stored;
    static __device__ __forceinline__ float low(unsigned int word) { return half_to_float((unsigned short)word); }
    static __device__ __forceinline__ float high(unsigned int word)
    {
        return half_to_float((unsigned short)(word >> 16));
    }
    static __device__ __forceinline__ float read(stored bits) { return half_to_float(bits); }
    static __device__ __forceinline__ stored rounded(float value) { return float_to_half(value); }
    static __device__ __forceinline__ void multiply(float* sums, const unsigned int* a, const unsigned int* b)
    {
        if constexpr (MMA) multiply_halves(sums, a, b);
    }
};

struct bfloat_type {
    typedef unsigned short stored;
    static __device__ __forceinline__ float low(unsigned int word) { return __uint_as_float(word << 16); }
    static __device__ __forceinline__ float high(unsigned int word) { return __uint_as_float(word & 0xffff0000u); }
    static __device__ __forceinline__ float read(stored bits) { return low(bits); }
    static __device__ __forceinline__ stored rounded(float value)
    {
        const unsigned int word = __float_as_uint(value);
        const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
        return is_nan ? 0x7fff : (unsigned short)((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
    }
    static __device__ __forceinline__ void multiply(float* sums, const unsigned int* a, const unsigned int* b)
    {
        if constexpr (MMA) multiply_bfloats(sums, a, b);
    }
};

struct float_type {
    typedef float stored;
    static __device__ __forceinline__ float low(unsigned int word) { return __uint_as_float(word); }
    static __device__ __forceinline__ float high(unsigned int word) { return low(word); }
    static __device__ __forceinline__ void multiply(float*, const unsigned int*, const unsigned int*) {}
    static __device__ __forceinline__ float read(stored value) { return value; }
    static __device__ __forceinline__ stored rounded(float value) { return value; }
};

"""
"""What is launched with, and the types of elements: how they are read, rounded and multiplied."""

READING = r"""
constexpr int ITEM = sizeof(element::stored), PER_WORD = 4 / ITEM;
constexpr int ROW_WARPS = TILE / ROWS, DEPTH_WARPS = WARPS / ROW_WARPS;

__device__ __forceinline__ int lane() { return threadIdx.x % 32; }
__device__ __forceinline__ int row_warp() { return threadIdx.x / 32 % ROW_WARPS; }
__device__ __forceinline__ int depth_warp() { return threadIdx.x / 32 / ROW_WARPS; }

// The number at a place of words that hold consecutive elements.
template <int PLACE> __device__ __forceinline__ float number(const unsigned int* words)
{
    if constexpr (ITEM == 4) return element::low(words[PLACE]);
    else if constexpr (PLACE % 2 == 0) return element::low(words[PLACE / 2]);
    else return element::high(words[PLACE / 2]);
}

// A row beyond the last is read as the last, and its sums are not written.
__device__ __forceinline__ int row_within(const Arguments& a, int row) { return row < a.rows ? row : a.rows - 1; }

// Reads COUNT elements that follow one another in pieces of PIECE bytes.
template <int COUNT, int PIECE> __device__ __forceinline__ void fetch(unsigned int* words, const char* from)
{
    constexpr int BYTES = COUNT * ITEM, STEP = PIECE < BYTES ? PIECE : BYTES;
    static_assert(BYTES % 4 == 0, "whole words");
#pragma unroll
    for (int at = 0; at < BYTES; at += STEP > 4 ? STEP : 4) {
        if constexpr (STEP >= 4) {
            load_streamed<STEP>(words + at / 4, from + at);
        } else {
            unsigned int high;
            load_kept<2>(words + at / 4, from + at, true);
            load_kept<2>(&high, from + at + 2, true);
            words[at / 4] |= high << 16;
        }
    }
}

// Reads COUNT elements that are `step` bytes apart, but only the first `left`: zeros stand for the others.
template <int COUNT>
__device__ __forceinline__ void fetch_some(unsigned int* words, const char* from, long long step, int left)
{
#pragma unroll
    for (int place = 0; place < COUNT; ++place) {
        unsigned int word;
        load_kept<ITEM>(&word, from + place * step, place < left);
        if (place % PER_WORD == 0) words[place / PER_WORD] = word;
        else words[place / PER_WORD] |= word << 16;
    }
}

// Reads COUNT elements of a column of x, which follow one another or not; zeros where there is no such column.
template <int COUNT>
__device__ __forceinline__ void fetch_x(unsigned int* words, const char* column, long long first, long long step,
                                        bool is_there)
{
    constexpr int BYTES = COUNT * ITEM, PIECE = X_PIECE < BYTES ? X_PIECE : BYTES;
    if constexpr (PIECE >= 4) {
#pragma unroll
        for (int at = 0; at < BYTES; at += PIECE)
            load_kept<PIECE>(words + at / 4, column + first * ITEM + at, is_there);
    } else {
        fetch_some<COUNT>(words, column + first * step, step, is_there ? COUNT : 0);
    }
}
"""
"""How elements are loaded; stands after the types `element` and `result`."""

REGISTER_LOOP = r"""
// Stages are loaded ahead in a ring: what one has brought is added, then it is loaded anew.
template <bool IS_WHOLE> __device__ __forceinline__ void summed(Sum& sum, const Arguments& a, int rank)
{
    constexpr int STEP = DEPTH_WARPS * GROUP, TURN = STEP * (STAGES / GROUP);
    const int chunks = a.depth / CHUNK, groups = (chunks + GROUP - 1) / GROUP;
    const int begin = (int)((long long)groups * rank / SPLIT) * GROUP + depth_warp() * GROUP;
    int end = (int)((long long)groups * (rank + 1) / SPLIT) * GROUP;
    if (end > chunks) end = chunks;
    // Each stage ends a basic block: else all are waited for before the first is loaded anew.
#pragma unroll
    for (int stage = 0; stage < STAGES; ++stage) {
        const int chunk = begin + stage / GROUP * STEP + stage % GROUP;
        if (chunk < end) sum.load<IS_WHOLE>(a, stage, chunk);
    }
    for (int at = begin, is_done = at >= end; !is_done; at += TURN) {
#pragma unroll
        for (int stage = 0; stage < STAGES; ++stage) {
            const int chunk = at + stage / GROUP * STEP + stage % GROUP;
            is_done = is_done || chunk >= end;
            if (!is_done) {
                sum.add(stage);
                if (chunk + TURN < end) sum.load<IS_WHOLE>(a, stage, chunk + TURN);
            }
        }
    }
    // What is left of the depth is less than a chunk, and always the last warp's of the last block.
    if constexpr (HAS_REST) {
        if (rank == SPLIT - 1 && depth_warp() == DEPTH_WARPS - 1) {
            sum.load_rest(a, chunks);
            sum.add(0);
        }
    }
}
"""
"""How a warp goes through its part of the depth with stages in registers; stands after the way to sum."""

ENTRY = r"""
// Brings what the block reads first into the second-level cache, which all that writes memory goes through: so this may
// come before the wait for the kernel ahead, and the memory is not idle while that one ends.
__device__ __forceinline__ void bring_near(const Arguments& a, int rank, int first_row)
{
    constexpr int LINE = 128 / ITEM, ALL = WARPS * 32 * NEAR_LINES;
    const long long begin = (long long)(a.depth / CHUNK) * rank / SPLIT * CHUNK;
    if constexpr (IS_ALONG) {
        constexpr int OF_ROW = ALL / TILE > 1 ? ALL / TILE : 1;
        for (int i = threadIdx.x; i < TILE * OF_ROW; i += WARPS * 32) {
            const int row = row_within(a, first_row + i / OF_ROW);
            const long long step = begin + i % OF_ROW * LINE;
            if (step < a.depth) touch(a.weight + (row * a.weight_ld + step) * ITEM);
        }
    } else {
        constexpr int OF_STEP = (TILE + LINE - 1) / LINE, STEPS = ALL / OF_STEP > 1 ? ALL / OF_STEP : 1;
        for (int i = threadIdx.x; i < STEPS * OF_STEP; i += WARPS * 32) {
            const int row = first_row + i % OF_STEP * LINE;
            const long long step = begin + i / OF_STEP;
            if (step < a.depth && row < a.rows) touch(a.weight + (step * a.weight_ld + row) * ITEM);
        }
    }
}

__device__ __forceinline__ void finished(const Arguments& a, int row, int column, float sum)
{
    typedef result::stored stored;
    const long long place = row * a.out_row_step + column * a.out_column_step;
    float value = a.alpha * sum;
    if (a.beta != 0.0f) value += a.beta * result::read(load_plain((const stored*)a.c + place));
    if (a.bias) {
        const int at = row * a.bias_row_step + column * a.bias_column_step;
        value += result::read(load_plain((const stored*)a.bias + at));
    }
    if (a.activation == 1) value = value > 0.0f || value != value ? value : 0.0f;
    if (a.activation == 2) {
        // GELU in the tanh approximation, (1 + tanh(u)) / 2 being 1 / (1 + exp(-2 u)).
        const float doubled = 1.5957691216057308f * (value + 0.044715f * value * value * value);
        value = value / (1.0f + expf(-doubled));
    }
    store_plain((stored*)a.out + place, result::rounded(value));
}

extern "C" __global__ void /*cluster*/ __launch_bounds__(WARPS * 32, 1) skinny(const Arguments a)
{
    const int rank = blockIdx.x % SPLIT, first_row = blockIdx.x / SPLIT * TILE, total = TILE * a.columns;
    float* partial = shared_floats();
    bring_near(a, rank, first_row);
    wait_for_kernel_ahead();
    let_next_kernel_begin();
    {
        Sum sum(a, first_row + row_warp() * ROWS);
        if (IS_ALONG || first_row + TILE <= a.rows) summed<true>(sum, a, rank);
        else summed<false>(sum, a, rank);
        sum.leave(partial + depth_warp() * total, row_warp() * ROWS, a.columns);
    }
    __syncthreads();
    for (int place = threadIdx.x; place < total; place += WARPS * 32) {
        float value = partial[place];
#pragma unroll
        for (int warp = 1; warp < DEPTH_WARPS; ++warp) value += partial[warp * total + place];
        if constexpr (SPLIT == 1) {
            if (first_row + place % TILE < a.rows) finished(a, first_row + place % TILE, place / TILE, value);
        } else {
            partial[place] = value;
        }
    }
    if constexpr (SPLIT > 1) {
        cluster_barrier();
        for (int place = rank * WARPS * 32 + threadIdx.x; place < total; place += SPLIT * WARPS * 32) {
            float value = load_remote(partial + place, 0);
#pragma unroll
            for (int other = 1; other < SPLIT; ++other) value += load_remote(partial + place, other);
            if (first_row + place % TILE < a.rows) finished(a, first_row + place % TILE, place / TILE, value);
        }
        // Shared memory goes with its block, so nobody leaves before all have read.
        cluster_barrier();
    }
}
"""
"""The kernel, which stands last."""
