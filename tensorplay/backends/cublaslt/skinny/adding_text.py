"""The CUDA C++ of the sums by multiply-adds: along the stored rows of the weight, and across them."""

__all__ = ["ADDS_ACROSS", "ADDS_ALONG"]

_ADDS = r"""
// sums[column] += weight * x over SPAN places of the words; x has as many words a column.
template <int SPAN, int PLACE = 0>
__device__ __forceinline__ void add_products(float* sums, const unsigned int* weight, const unsigned int (*x)[X_WORDS])
{
    if constexpr (PLACE < SPAN) {
        const float factor = number<PLACE>(weight);
#pragma unroll
        for (int column = 0; column < COLUMNS; ++column) sums[column] += factor * number<PLACE>(x[column]);
        add_products<SPAN, PLACE + 1>(sums, weight, x);
    }
}
"""

ADDS_ALONG = (
    r"""
constexpr int SPAN = VEC > 4 ? VEC / ITEM : 4 / ITEM, CHUNK = 32 * SPAN, GROUP = 1, X_WORDS = SPAN / PER_WORD;
"""
    + _ADDS
    + r"""
// Adds up COUNT values over a warp. While there is an even number, each half of the lanes goes on with one half of
// them; `place` says which those are at last.
template <int COUNT, int DISTANCE = 16> __device__ __forceinline__ void add_over_warp(float* values, int& place)
{
    if constexpr (DISTANCE > 0 && COUNT % 2 == 0) {
        const bool is_upper = (lane() & DISTANCE) != 0;
#pragma unroll
        for (int i = 0; i < COUNT / 2; ++i) {
            const float given = is_upper ? values[i] : values[i + COUNT / 2];
            values[i] = (is_upper ? values[i + COUNT / 2] : values[i]) + exchanged(given, DISTANCE);
        }
        if (is_upper) place += COUNT / 2;
        add_over_warp<COUNT / 2, DISTANCE / 2>(values, place);
    } else if constexpr (DISTANCE > 0) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) values[i] += exchanged(values[i], DISTANCE);
        add_over_warp<COUNT, DISTANCE / 2>(values, place);
    }
}
// How many of them a lane has at last.
__device__ constexpr int remaining(int count, int halvings = 5)
{
    return halvings > 0 && count % 2 == 0 ? remaining(count / 2, halvings - 1) : count;
}

struct Sum {
    const char *start, *column;
    unsigned int offsets[ROWS];
    unsigned int loaded[STAGES][ROWS][X_WORDS], x[STAGES][COLUMNS][X_WORDS];
    float sums[ROWS * COLUMNS];

    __device__ __forceinline__ Sum(const Arguments& a, int first_row)
    {
        first_row = row_within(a, first_row);
        start = a.weight + (first_row * a.weight_ld + lane() * SPAN) * ITEM;
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            offsets[i] = (row_within(a, first_row + i) - first_row) * (unsigned int)a.weight_ld * ITEM;
            pin(offsets[i]);
        }
        pin(start);
        column = a.x + lane() * SPAN * a.x_depth_step * ITEM;
        pin(column);
#pragma unroll
        for (int i = 0; i < ROWS * COLUMNS; ++i) sums[i] = 0.0f;
    }
    template <bool IS_WHOLE> __device__ __forceinline__ void load(const Arguments& a, int stage, int chunk)
    {
        const long long first = (long long)chunk * CHUNK;
#pragma unroll
        for (int i = 0; i < ROWS; ++i) fetch<SPAN, VEC>(loaded[stage][i], start + first * ITEM + offsets[i]);
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
            fetch_x<SPAN>(x[stage][j], column + j * a.x_column_step * ITEM, first, a.x_depth_step * ITEM, true);
    }
    __device__ __forceinline__ void load_rest(const Arguments& a, int chunk)
    {
        const long long first = (long long)chunk * CHUNK, step = a.x_depth_step * ITEM;
        const int left = (int)(a.depth - first) - lane() * SPAN;
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            fetch_some<SPAN>(loaded[0][i], start + first * ITEM + offsets[i], ITEM, left);
        }
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
            fetch_some<SPAN>(x[0][j], column + j * a.x_column_step * ITEM + first * step, step, left);
    }
    __device__ __forceinline__ void add(int stage)
    {
#pragma unroll
        for (int i = 0; i < ROWS; ++i) add_products<SPAN>(sums + i * COLUMNS, loaded[stage][i], x[stage]);
    }
    __device__ __forceinline__ void leave(float* partial, int first_row, int)
    {
        int place = 0;
        add_over_warp<ROWS * COLUMNS>(sums, place);
#pragma unroll
        for (int i = 0; i < remaining(ROWS * COLUMNS); ++i) {
            const int row = first_row + (place + i) / COLUMNS, column = (place + i) % COLUMNS;
            partial[column * TILE + row] = sums[i];
        }
    }
};
"""
)
"""Each stored row of the weight is one row of the result."""

ADDS_ACROSS = r"""
// SPAN elements of a stored row to a lane, of four stored rows after one another; x is the same for all lanes.
constexpr int CHUNK = 4, GROUP = 1, X_WORDS = CHUNK / PER_WORD;
constexpr int SPAN = VEC > 4 ? VEC / ITEM : 4 / ITEM, SPANS = ROWS / (32 * SPAN);

template <int PLACE = 0>
__device__ __forceinline__ void add_row(float (*sums)[COLUMNS], const unsigned int* row, const float* factors)
{
    if constexpr (PLACE < SPAN) {
        const float value = number<PLACE>(row);
#pragma unroll
        for (int column = 0; column < COLUMNS; ++column) sums[PLACE][column] += value * factors[column];
        add_row<PLACE + 1>(sums, row, factors);
    }
}

struct Sum {
    const char *stored, *x_start;
    int left;
    unsigned int loaded[STAGES][CHUNK][SPANS][SPAN / PER_WORD], x[STAGES][COLUMNS][X_WORDS];
    float sums[SPANS][SPAN][COLUMNS];

    __device__ __forceinline__ Sum(const Arguments& a, int first_row)
    {
        left = a.rows - first_row - lane() * SPAN;
        stored = a.weight + ((long long)first_row + lane() * SPAN) * ITEM;
        pin(stored);
        x_start = a.x;
#pragma unroll
        for (int i = 0; i < SPANS; ++i)
#pragma unroll
            for (int p = 0; p < SPAN; ++p)
#pragma unroll
                for (int column = 0; column < COLUMNS; ++column) sums[i][p][column] = 0.0f;
    }
    template <bool IS_WHOLE> __device__ __forceinline__ void load(const Arguments& a, int stage, int chunk)
    {
        const long long first = (long long)chunk * CHUNK;
#pragma unroll
        for (int step = 0; step < CHUNK; ++step) {
            const char* row = stored + (first + step) * a.weight_ld * ITEM;
#pragma unroll
            for (int i = 0; i < SPANS; ++i) {
                if constexpr (IS_WHOLE)
                    fetch<SPAN, VEC>(loaded[stage][step][i], row + i * 32 * SPAN * ITEM);
                else fetch_some<SPAN>(loaded[stage][step][i], row + i * 32 * SPAN * ITEM, ITEM,
                                      left - i * 32 * SPAN);
            }
        }
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
            fetch_x<CHUNK>(x[stage][j], x_start + j * a.x_column_step * ITEM, first, a.x_depth_step * ITEM, true);
    }
    __device__ __forceinline__ void load_rest(const Arguments& a, int chunk)
    {
        const long long first = (long long)chunk * CHUNK, x_step = a.x_depth_step * ITEM;
        const int steps = (int)(a.depth - first);
#pragma unroll
        for (int step = 0; step < CHUNK; ++step) {
            const char* row = stored + (first + step) * a.weight_ld * ITEM;
#pragma unroll
            for (int i = 0; i < SPANS; ++i)
                fetch_some<SPAN>(loaded[0][step][i], row + i * 32 * SPAN * ITEM, ITEM,
                                 step < steps ? left - i * 32 * SPAN : 0);
        }
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
            fetch_some<CHUNK>(x[0][j], x_start + j * a.x_column_step * ITEM + first * x_step, x_step, steps);
    }
    template <int STEP = 0> __device__ __forceinline__ void add(int stage)
    {
        if constexpr (STEP < CHUNK) {
            float factors[COLUMNS];
#pragma unroll
            for (int column = 0; column < COLUMNS; ++column) factors[column] = number<STEP>(x[stage][column]);
#pragma unroll
            for (int i = 0; i < SPANS; ++i) add_row(sums[i], loaded[stage][STEP][i], factors);
            add<STEP + 1>(stage);
        }
    }
    __device__ __forceinline__ void leave(float* partial, int first_row, int) const
    {
#pragma unroll
        for (int i = 0; i < SPANS; ++i)
#pragma unroll
            for (int p = 0; p < SPAN; ++p)
#pragma unroll
                for (int column = 0; column < COLUMNS; ++column)
                    partial[column * TILE + first_row + (i * 32 + lane()) * SPAN + p] = sums[i][p][column];
    }
};
"""
"""Each stored row of the weight is one step of the depth."""
