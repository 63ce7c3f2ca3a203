"""The CUDA C++ of the sum by matrix instructions whose stages are a ring in shared memory, along the stored rows.

Registers hold few bytes that are under way; a ring in shared memory holds many, and a copy into it may bring whole
lines of a row, however the matrix instruction wants them spread over the lanes. Each warp has a ring of its own, so
none waits for another until all is summed.
"""

__all__ = ["RING_ALONG", "RING_LOOP"]

# A line of 128 bytes is eight pieces of 16, of one row of the weight or column of x. In lines of odd numbers the halves
# change places: then eight lanes, which read four pieces of two lines each, meet no bank twice. A copy takes RUN pieces
# of a row that follow one another in memory, so AT_ONCE rows. In a stage their first lines come first, then their
# second ones, and so on.
RING_ALONG = r"""
constexpr int LINE = 128, LINES = ROWS + COLUMNS, RUN = VEC / 2, AT_ONCE = 32 / RUN, CHUNK = 8 * RUN;
constexpr int STAGE = RUN / 8 * LINES * LINE;

struct Sum {
    char* ring;
    const char *start, *x_start;
    int last_row;
    long long row_bytes, column_bytes;
    float sums[ROWS / 8][4];

    __device__ __forceinline__ Sum(const Arguments& a, int first_row)
    {
        first_row = row_within(a, first_row);
        ring = (char*)shared_floats() + threadIdx.x / 32 * (STAGES * STAGE);
        row_bytes = a.weight_ld * ITEM;
        column_bytes = a.x_column_step * ITEM;
        start = a.weight + first_row * row_bytes + lane() % RUN * 16;
        x_start = a.x + lane() % RUN * 16;
        last_row = a.rows - 1 - first_row;
#pragma unroll
        for (int i = 0; i < ROWS / 8; ++i)
#pragma unroll
            for (int q = 0; q < 4; ++q) sums[i][q] = 0.0f;
    }
    // Where a piece of a line is in a stage.
    static __device__ __forceinline__ int place(int line, int piece)
    {
        return (piece / 8 * LINES + line) * LINE + (piece % 8 ^ line % 2 * 4) * 16;
    }
    __device__ __forceinline__ const char* row(int number) const
    {
        return start + (number < last_row ? number : last_row) * row_bytes;
    }
    __device__ __forceinline__ void load(const Arguments& a, int stage, int chunk) const
    {
        const long long first = (long long)chunk * (16 * RUN);
        const int line = lane() / RUN;
        // Lines whose numbers differ by an even one have their halves in the same places.
        char* to = ring + stage * STAGE + place(line, lane() % RUN);
        char* next = ring + stage * STAGE + place(1, lane() % RUN);
#pragma unroll
        for (int i = 0; i < COLUMNS; i += AT_ONCE) {
            const bool is_there = i + line < a.columns;
            copy_kept((AT_ONCE == 1 && i % 2 ? next + (ROWS + i - 1) * LINE : to + (ROWS + i) * LINE),
                      x_start + (is_there ? i + line : 0) * column_bytes + first, is_there);
        }
#pragma unroll
        for (int i = 0; i < ROWS; i += AT_ONCE)
            copy_streamed(AT_ONCE == 1 && i % 2 ? next + (i - 1) * LINE : to + i * LINE, row(i + line) + first);
    }
    __device__ __forceinline__ void load_rest(const Arguments& a, int chunk) const
    {
        const long long first = (long long)chunk * (16 * RUN);
        const int line = lane() / RUN, left = (int)(a.depth - (long long)chunk * CHUNK) - lane() % RUN * 8;
#pragma unroll 1
        for (int i = 0; i < LINES; i += AT_ONCE) {
            unsigned int words[4];
            const int column = i + line - ROWS;
            if (i < ROWS) fetch_some<8>(words, row(i + line) + first, ITEM, left);
            else fetch_some<8>(words, x_start + column * column_bytes + first, ITEM, column < a.columns ? left : 0);
            store_shared(ring + place(i + line, lane() % RUN), words);
        }
    }
    __device__ __forceinline__ void add(int stage)
    {
        const int group = lane() / 4;
        const char* from = ring + stage * STAGE;
#pragma unroll
        for (int half = 0; half < RUN / 4; ++half) {
            const char* piece = from + place(group, half * 4 + lane() % 4);
            unsigned int upper[4], lower[4];
            load_shared(upper, piece + ROWS * LINE);
            if constexpr (COLUMNS > 8) load_shared(lower, piece + (ROWS + 8) * LINE);
            const unsigned int* second = COLUMNS > 8 ? lower : upper;
            const unsigned int factors[2][4] = {{upper[0], second[0], upper[1], second[1]},
                                                {upper[2], second[2], upper[3], second[3]}};
#pragma unroll
            for (int i = 0; i < ROWS / 8; ++i) {
                unsigned int weight[4];
                load_shared(weight, piece + i * (8 * LINE));
                element::multiply(sums[i], factors[0], weight);
                element::multiply(sums[i], factors[1], weight + 2);
            }
        }
    }
    __device__ __forceinline__ void leave(float* partial, int first_row, int count) const
    {
        const int group = lane() / 4, pair = lane() % 4 * 2;
#pragma unroll
        for (int i = 0; i < ROWS / 8; ++i)
#pragma unroll
            for (int q = 0; q < COLUMNS / 4; ++q) {
                const int column = q / 2 * 8 + group, row = first_row + i * 8 + pair + q % 2;
                if (column < count) partial[column * TILE + row] = sums[i][q];
            }
    }
};
"""
"""Each stored row of the weight is one row of the result; x has its columns contiguous."""

RING_LOOP = r"""
// A group of copies is closed at each turn, even an empty one: so the oldest is always STAGES - 1 groups back.
template <bool IS_WHOLE> __device__ __forceinline__ void summed(Sum& sum, const Arguments& a, int rank)
{
    const int chunks = a.depth / CHUNK, begin = (int)((long long)chunks * rank / SPLIT) + depth_warp();
    const int end = (int)((long long)chunks * (rank + 1) / SPLIT);
#pragma unroll 1
    for (int stage = 0; stage < STAGES; ++stage) {
        if (begin + stage * DEPTH_WARPS < end) sum.load(a, stage, begin + stage * DEPTH_WARPS);
        close_copies();
    }
    int stage = 0;
#pragma unroll 1
    for (int chunk = begin; chunk < end; chunk += DEPTH_WARPS) {
        wait_for_copies<STAGES - 1>();
        // What other lanes have copied is seen from here on,
        wait_for_warp();
        sum.add(stage);
        // and they copy over it when all have read.
        wait_for_warp();
        if (chunk + STAGES * DEPTH_WARPS < end) sum.load(a, stage, chunk + STAGES * DEPTH_WARPS);
        close_copies();
        if (++stage == STAGES) stage = 0;
    }
    wait_for_copies<0>();
    // What is left of the depth is less than a chunk, and always the last warp's of the last block.
    if constexpr (HAS_REST) {
        if (rank == SPLIT - 1 && depth_warp() == DEPTH_WARPS - 1) {
            sum.load_rest(a, chunks);
            wait_for_warp();
            sum.add(0);
        }
    }
    // The sums are left where the rings were.
    __syncthreads();
}
"""
"""How a warp goes through its part of the depth with a ring."""
