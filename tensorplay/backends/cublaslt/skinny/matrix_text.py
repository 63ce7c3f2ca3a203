"""The CUDA C++ of the sums by matrix instructions whose stages are in registers: along the stored rows, and across."""

__all__ = ["MATRIX_ACROSS", "MATRIX_ALONG"]

# In a matrix instruction x is the left factor, of 16 columns of x (8 may be nobody's), and the weight the right one, of
# 8 rows. A lane (g, t) = (lane / 4, lane % 4) holds columns g and g + 8 of x, row g of the weight, and four of each 16
# steps of the depth. Which four does not matter as long as both agree: here they follow one another in memory, so
# what one load brings needs no moving.
MATRIX_ALONG = r"""
constexpr int CHUNK = 32, GROUP = STAGES % 2 == 0 ? 2 : 1;

struct Sum {
    const char *start, *columns[COLUMNS / 8];
    unsigned int offsets[ROWS / 8];
    bool has_column[COLUMNS / 8];
    unsigned int loaded[STAGES][ROWS / 8][4], x[STAGES][COLUMNS / 8][4];
    float sums[ROWS / 8][4];

    __device__ __forceinline__ Sum(const Arguments& a, int first_row)
    {
        const int group = lane() / 4, shift = lane() % 4 * 8;
        first_row = row_within(a, first_row);
        start = a.weight + (first_row * a.weight_ld + shift) * ITEM;
#pragma unroll
        for (int i = 0; i < ROWS / 8; ++i) {
            offsets[i] = (row_within(a, first_row + i * 8 + group) - first_row) * (unsigned int)a.weight_ld * ITEM;
            pin(offsets[i]);
        }
        pin(start);
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; ++j) {
            has_column[j] = j * 8 + group < a.columns;
            columns[j] = a.x + ((j * 8 + group) * a.x_column_step + shift * a.x_depth_step) * ITEM;
            pin(columns[j]);
        }
#pragma unroll
        for (int i = 0; i < ROWS / 8; ++i)
#pragma unroll
            for (int q = 0; q < 4; ++q) sums[i][q] = 0.0f;
    }
    template <bool IS_WHOLE> __device__ __forceinline__ void load(const Arguments& a, int stage, int chunk)
    {
        const long long first = (long long)chunk * CHUNK;
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; ++j)
            fetch_x<8>(x[stage][j], columns[j], first, a.x_depth_step * ITEM, has_column[j]);
#pragma unroll
        for (int i = 0; i < ROWS / 8; ++i)
            fetch<8, VEC>(loaded[stage][i], start + first * ITEM + offsets[i]);
    }
    __device__ __forceinline__ void load_rest(const Arguments& a, int chunk)
    {
        const long long first = (long long)chunk * CHUNK;
        const int left = (int)(a.depth - first) - lane() % 4 * 8;
#pragma unroll
        for (int i = 0; i < ROWS / 8; ++i) {
            fetch_some<8>(loaded[0][i], start + first * ITEM + offsets[i], ITEM, left);
        }
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; ++j) {
            const long long step = a.x_depth_step * ITEM;
            fetch_some<8>(x[0][j], columns[j] + first * step, step, has_column[j] ? left : 0);
        }
    }
    __device__ __forceinline__ void add(int stage)
    {
#pragma unroll
        for (int half = 0; half < 4; half += 2) {
            const unsigned int *upper = x[stage][0] + half, *lower = x[stage][COLUMNS / 8 - 1] + half;
            const unsigned int factor[4] = {upper[0], lower[0], upper[1], lower[1]};
#pragma unroll
            for (int i = 0; i < ROWS / 8; ++i) element::multiply(sums[i], factor, loaded[stage][i] + half);
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
"""Each stored row of the weight is one row of the result."""

MATRIX_ACROSS = r"""
// SPAN elements of a stored row to a lane, four stored rows after one another: pairs of these are put together.
constexpr int CHUNK = 16, GROUP = 1, SPAN = VEC / 2 > 2 ? VEC / 2 : 2, SPANS = ROWS / (8 * SPAN);

struct Sum {
    const char *stored, *columns[COLUMNS / 8];
    bool has_column[COLUMNS / 8];
    int left;
    unsigned int loaded[STAGES][SPANS][4][SPAN / 2], x[STAGES][COLUMNS / 8][2];
    float sums[SPANS][SPAN][4];

    __device__ __forceinline__ Sum(const Arguments& a, int first_row)
    {
        const int group = lane() / 4, shift = lane() % 4 * 4;
        left = a.rows - first_row - group * SPAN;
        stored = a.weight + (shift * a.weight_ld + first_row + group * SPAN) * ITEM;
        pin(stored);
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; ++j) {
            has_column[j] = j * 8 + group < a.columns;
            columns[j] = a.x + ((j * 8 + group) * a.x_column_step + shift * a.x_depth_step) * ITEM;
            pin(columns[j]);
        }
#pragma unroll
        for (int i = 0; i < SPANS; ++i)
#pragma unroll
            for (int p = 0; p < SPAN; ++p)
#pragma unroll
                for (int q = 0; q < 4; ++q) sums[i][p][q] = 0.0f;
    }
    template <bool IS_WHOLE> __device__ __forceinline__ void load(const Arguments& a, int stage, int chunk)
    {
        const long long first = (long long)chunk * CHUNK;
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; ++j)
            fetch_x<4>(x[stage][j], columns[j], first, a.x_depth_step * ITEM, has_column[j]);
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            const char* row = stored + (first + step) * a.weight_ld * ITEM;
#pragma unroll
            for (int i = 0; i < SPANS; ++i) {
                if constexpr (IS_WHOLE)
                    fetch<SPAN, VEC>(loaded[stage][i][step], row + i * 8 * SPAN * ITEM);
                else fetch_some<SPAN>(loaded[stage][i][step], row + i * 8 * SPAN * ITEM, ITEM,
                                      left - i * 8 * SPAN);
            }
        }
    }
    __device__ __forceinline__ void load_rest(const Arguments& a, int chunk)
    {
        const long long first = (long long)chunk * CHUNK;
        const int steps = (int)(a.depth - first) - lane() % 4 * 4;
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            const char* row = stored + (first + step) * a.weight_ld * ITEM;
#pragma unroll
            for (int i = 0; i < SPANS; ++i)
                fetch_some<SPAN>(loaded[0][i][step], row + i * 8 * SPAN * ITEM, ITEM,
                                 step < steps ? left - i * 8 * SPAN : 0);
        }
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; ++j) {
            const long long step = a.x_depth_step * ITEM;
            fetch_some<4>(x[0][j], columns[j] + first * step, step, has_column[j] ? steps : 0);
        }
    }
    __device__ __forceinline__ void add(int stage)
    {
        const unsigned int *upper = x[stage][0], *lower = x[stage][COLUMNS / 8 - 1];
        const unsigned int factor[4] = {upper[0], lower[0], upper[1], lower[1]};
#pragma unroll
        for (int i = 0; i < SPANS; ++i)
#pragma unroll
            for (int p = 0; p < SPAN; ++p) {
                const unsigned int(*rows)[SPAN / 2] = loaded[stage][i];
                const unsigned int selection = p % 2 ? 0x7632 : 0x5410;
                const unsigned int pairs[2] = {selected_bytes(rows[0][p / 2], rows[1][p / 2], selection),
                                               selected_bytes(rows[2][p / 2], rows[3][p / 2], selection)};
                element::multiply(sums[i][p], factor, pairs);
            }
    }
    __device__ __forceinline__ void leave(float* partial, int first_row, int count) const
    {
        const int group = lane() / 4, pair = lane() % 4 * 2;
#pragma unroll
        for (int i = 0; i < SPANS; ++i)
#pragma unroll
            for (int p = 0; p < SPAN; ++p)
#pragma unroll
                for (int q = 0; q < COLUMNS / 4; ++q) {
                    const int column = q / 2 * 8 + group, row = first_row + (i * 8 + pair + q % 2) * SPAN + p;
                    if (column < count) partial[column * TILE + row] = sums[i][p][q];
                }
    }
};
"""
"""Each stored row of the weight is one step of the depth."""
