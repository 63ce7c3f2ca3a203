"""The CUDA C++ of the sum by matrix instructions whose stages are a ring in shared memory, across the stored rows.

Stages in registers are no use there: the compiler counts all their loads with one counter, so that who waits for the
oldest waits for the newest as well, and a warp never has more than one stage under way. Copies into shared memory are
counted in groups.
"""

__all__ = ["RING_ACROSS"]

# A stage is 16 stored rows of ROWS elements, in pieces of 16 bytes, and then 32 bytes of each column of x. As with
# stages in registers, a lane (g, t) takes four stored rows and one piece of each 64 elements. The pieces of a row
# change places by its number, so that eight lanes, which read two pieces of four rows each, meet no bank twice.
RING_ACROSS = r"""
constexpr int CHUNK = 16, SPANS = ROWS / 64, PIECES = ROWS / 8, WEIGHT = CHUNK * PIECES * 16;
constexpr int STAGE = WEIGHT + COLUMNS * 32;

struct Sum {
    char* ring;
    const char *stored, *x_start;
    int left;
    long long row_bytes, column_bytes;
    float sums[SPANS][8][4];

    __device__ __forceinline__ Sum(const Arguments& a, int first_row)
    {
        ring = (char*)shared_floats() + threadIdx.x / 32 * (STAGES * STAGE);
        row_bytes = a.weight_ld * ITEM;
        column_bytes = a.x_column_step * ITEM;
        stored = a.weight + (long long)first_row * ITEM;
        x_start = a.x;
        left = a.rows - first_row;
#pragma unroll
        for (int i = 0; i < SPANS; ++i)
#pragma unroll
            for (int p = 0; p < 8; ++p)
#pragma unroll
                for (int q = 0; q < 4; ++q) sums[i][p][q] = 0.0f;
    }
    // Where a piece of a stored row is in a stage.
    static __device__ __forceinline__ int place(int step, int piece)
    {
        return (step * PIECES + (piece ^ step / 4 * 2)) * 16;
    }
    __device__ __forceinline__ void load(const Arguments& a, int stage, int chunk) const
    {
        const long long first = (long long)chunk * CHUNK;
        char* to = ring + stage * STAGE;
        const int column = lane() / 2;
        if (COLUMNS == 16 || column < COLUMNS) {
            const bool is_there = column < a.columns;
            copy_kept(to + WEIGHT + lane() * 16,
                      x_start + (is_there ? column : 0) * column_bytes + first * ITEM + lane() % 2 * 16, is_there);
        }
#pragma unroll
        for (int i = 0; i < CHUNK * PIECES; i += 32) {
            // Pieces lie within the rows or beyond them, never across their end.
            const int step = (i + lane()) / PIECES, piece = (i + lane()) % PIECES;
            const bool is_there = piece * 8 < left;
            copy_kept(to + place(step, piece), stored + (first + step) * row_bytes + (is_there ? piece : 0) * 16,
                      is_there);
        }
    }
    __device__ __forceinline__ void load_rest(const Arguments& a, int chunk) const
    {
        const long long first = (long long)chunk * CHUNK;
        const int steps = (int)(a.depth - first), column = lane() / 2;
        unsigned int words[4];
        if (column < COLUMNS) {
            const int at = lane() % 2 * 8;
            fetch_some<8>(words, x_start + column * column_bytes + (first + at) * ITEM, ITEM,
                          column < a.columns ? steps - at : 0);
            store_shared(ring + WEIGHT + lane() * 16, words);
        }
#pragma unroll 1
        for (int i = lane(); i < CHUNK * PIECES; i += 32) {
            const int step = i / PIECES, piece = i % PIECES;
            fetch_some<8>(words, stored + (first + step) * row_bytes + piece * 16, ITEM,
                          step < steps ? left - piece * 8 : 0);
            store_shared(ring + place(step, piece), words);
        }
    }
    __device__ __forceinline__ void add(int stage)
    {
        const int group = lane() / 4, four = lane() % 4;
        const char *from = ring + stage * STAGE, *x = from + WEIGHT + group * 32 + four / 2 * 16;
        unsigned int upper[4], lower[4];
        load_shared(upper, x);
        if constexpr (COLUMNS > 8) load_shared(lower, x + 8 * 32);
        const unsigned int* second = COLUMNS > 8 ? lower : upper;
        const bool is_odd = four % 2 != 0;
        const unsigned int factor[4] = {is_odd ? upper[2] : upper[0], is_odd ? second[2] : second[0],
                                        is_odd ? upper[3] : upper[1], is_odd ? second[3] : second[1]};
#pragma unroll
        for (int i = 0; i < SPANS; ++i) {
            unsigned int rows[4][4];
#pragma unroll
            for (int step = 0; step < 4; ++step) load_shared(rows[step], from + place(four * 4 + step, i * 8 + group));
#pragma unroll
            for (int p = 0; p < 8; ++p) {
                const unsigned int selection = p % 2 ? 0x7632 : 0x5410;
                const unsigned int pairs[2] = {selected_bytes(rows[0][p / 2], rows[1][p / 2], selection),
                                               selected_bytes(rows[2][p / 2], rows[3][p / 2], selection)};
                element::multiply(sums[i][p], factor, pairs);
            }
        }
    }
    __device__ __forceinline__ void leave(float* partial, int first_row, int count) const
    {
        const int group = lane() / 4, pair = lane() % 4 * 2;
#pragma unroll
        for (int i = 0; i < SPANS; ++i)
#pragma unroll
            for (int p = 0; p < 8; ++p)
#pragma unroll
                for (int q = 0; q < COLUMNS / 4; ++q) {
                    const int column = q / 2 * 8 + group, row = first_row + (i * 8 + pair + q % 2) * 8 + p;
                    if (column < count) partial[column * TILE + row] = sums[i][p][q];
                }
    }
};
"""
"""Each stored row of the weight is one step of the depth."""
