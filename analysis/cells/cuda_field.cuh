/* The MGVF field of one window by all threads of a block: follow.h has the equation. Three planes
 * of the window in shared memory or, of large windows, in the device's; cuda_sweep.cuh has the
 * sweeps of windows of which each thread keeps its pixels in registers. */
#ifndef OCT_ANALYSIS_CELLS_CUDA_FIELD_CUH
#define OCT_ANALYSIS_CELLS_CUDA_FIELD_CUH

#include "analysis/cells/cuda_types.cuh"

#define OCT_CELLS_FOLLOW_THREADS 512u
#define OCT_CELLS_FOLLOW_WARPS (OCT_CELLS_FOLLOW_THREADS / 32)
#define OCT_CELLS_RUN_MOST 16u /* rows that a thread computes one after another */

/* Where cells go: +1, -1 or 0, v . e of the neighbours e = (1, 0), (0, 1), (1, 1), (1, -1). */
struct oct_cells_flow {
    int8_t sign[4];
};

/* What a thread needs of a pair of opposite neighbours: the bounds of the difference ahead (that
 * behind has them negated and swapped), and a weight. */
struct oct_cells_pair {
    float least, most, weight;
};

static __device__ inline struct oct_cells_pair oct_cells_pair_of(int sign)
{
    const float infinity = __int_as_float(0x7f800000);
    struct oct_cells_pair pair = {sign > 0 ? 0 : -infinity, sign < 0 ? 0 : infinity, 1};
    if (sign == 0)
        pair.weight = 0.5f;
    return pair;
}

/* plus: the difference to the neighbour at e, minus: at -e. */
static __device__ inline float oct_cells_add_pair(const struct oct_cells_pair &pair, float plus,
                                                  float minus)
{
    const float a = fminf(fmaxf(plus, pair.least), pair.most);
    const float b = fminf(fmaxf(minus, -pair.most), -pair.least);
    return (a + b) * pair.weight;
}

/* Where the pixels of a window lie in a plane: (x, y) at first + x step_x + y step_y. Rows and
 * columns may be stored backwards. */
struct oct_cells_layout {
    uint32_t rows, columns;
    int first, step_x, step_y;
};

static __device__ inline int oct_cells_place_of(const struct oct_cells_layout &layout, uint32_t x,
                                                uint32_t y)
{
    return layout.first + (int)x * layout.step_x + (int)y * layout.step_y;
}

/* Rows one after another. */
static __device__ inline struct oct_cells_layout oct_cells_plain_layout(uint32_t rows,
                                                                        uint32_t columns)
{
    return {rows, columns, 0, 1, (int)columns};
}

/* |gradient|^2 of pixel (x, y) of the window. */
static __device__ inline double oct_cells_square_at(const float *pixels, uint32_t stride,
                                                    uint32_t rows, uint32_t columns, uint32_t x,
                                                    uint32_t y)
{
    const uint32_t left = x > 0 ? x - 1 : 0, right = x + 1 < columns ? x + 1 : x;
    const uint32_t above = y > 0 ? y - 1 : 0, below = y + 1 < rows ? y + 1 : y;
    const float *row = pixels + (size_t)y * stride;
    const double gx = ((double)row[right] - (double)row[left]) * (right - left == 2 ? 0.5 : 1);
    const double gy =
        ((double)pixels[(size_t)below * stride + x] - (double)pixels[(size_t)above * stride + x]) *
        (below - above == 2 ? 0.5 : 1);
    return gx * gx + gy * gy;
}

/* The least and the largest of all threads' values, to all. */
static __device__ inline void oct_cells_find_range(double *least, double *most)
{
    __shared__ double shared_least[OCT_CELLS_FOLLOW_WARPS], shared_most[OCT_CELLS_FOLLOW_WARPS];
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        *least = fmin(*least, __shfl_xor_sync(OCT_CELLS_ALL_LANES, *least, lanes));
        *most = fmax(*most, __shfl_xor_sync(OCT_CELLS_ALL_LANES, *most, lanes));
    }
    if (threadIdx.x % 32 == 0) {
        shared_least[threadIdx.x / 32] = *least;
        shared_most[threadIdx.x / 32] = *most;
    }
    __syncthreads();
    for (unsigned i = 0; i < OCT_CELLS_FOLLOW_WARPS; i++) {
        *least = fmin(*least, shared_least[i]);
        *most = fmax(*most, shared_most[i]);
    }
}

struct oct_cells_edge_scale {
    double least, scale;
};

/* Of the squares of all threads; by all of them. */
static __device__ inline struct oct_cells_edge_scale oct_cells_edge_scale_of(double least,
                                                                             double most)
{
    oct_cells_find_range(&least, &most);
    least = sqrt(least);
    return {least, 1 / (sqrt(most) - least + 2.220446049250313e-16)}; /* 2^-52 */
}

static __device__ inline float oct_cells_edge_of(const struct oct_cells_edge_scale &scale,
                                                 double square)
{
    return (float)((sqrt(square) - scale.least) * scale.scale);
}

/* The edge map, 0 to 1, to two planes. */
static __device__ inline void oct_cells_find_edges(const float *pixels, uint32_t stride,
                                                   uint32_t rows, uint32_t columns, float *edge,
                                                   float *w)
{
    const uint32_t n = rows * columns;
    double least = INFINITY, most = 0;
    for (uint32_t i = threadIdx.x; i < n; i += OCT_CELLS_FOLLOW_THREADS) {
        const double square =
            oct_cells_square_at(pixels, stride, rows, columns, i % columns, i / columns);
        least = fmin(least, square);
        most = fmax(most, square);
    }
    const struct oct_cells_edge_scale scale = oct_cells_edge_scale_of(least, most);
    for (uint32_t i = threadIdx.x; i < n; i += OCT_CELLS_FOLLOW_THREADS) {
        const double square =
            oct_cells_square_at(pixels, stride, rows, columns, i % columns, i / columns);
        edge[i] = w[i] = oct_cells_edge_of(scale, square);
    }
    __syncthreads();
}

/* Three pixels of a row about a column. */
struct oct_cells_three {
    float left, middle, right;
};

/* Rows y0 .. y1 - 1 of column x; the sum of |change|. What was loaded for a row serves three. */
static __device__ inline float oct_cells_sweep_run(float *to, const float *from, const float *edge,
                                                   const struct oct_cells_pair *pair, uint32_t rows,
                                                   uint32_t columns, uint32_t x, uint32_t y0,
                                                   uint32_t y1)
{
    const uint32_t left = x > 0 ? x - 1 : 0, right = x + 1 < columns ? x + 1 : x;
    const auto load = [&](uint32_t y) {
        const float *row = from + (size_t)y * columns;
        return oct_cells_three{row[left], row[x], row[right]};
    };
    struct oct_cells_three up = load(y0 > 0 ? y0 - 1 : 0), own = load(y0);
    float sum = 0;
    for (uint32_t y = y0; y < y1; y++) {
        const struct oct_cells_three down = load(y + 1 < rows ? y + 1 : y);
        const float w = own.middle, f = edge[(size_t)y * columns + x];
        const float a = oct_cells_add_pair(pair[0], own.right - w, own.left - w);
        const float b = oct_cells_add_pair(pair[1], down.middle - w, up.middle - w);
        const float c = oct_cells_add_pair(pair[2], down.right - w, up.left - w);
        const float d = oct_cells_add_pair(pair[3], up.right - w, down.left - w);
        const float spread = ((a + b) + (c + d)) * 0.1f;
        const float change = spread - f * 0.2f * ((w - f) + spread);
        to[(size_t)y * columns + x] = w + change;
        sum += fabsf(change);
        up = own;
        own = down;
    }
    return sum;
}

/* Rows of a run: so few that each thread has one, where it can be. */
static __device__ inline uint32_t oct_cells_run_rows(uint32_t rows, uint32_t columns)
{
    uint32_t n = 1;
    while (n < OCT_CELLS_RUN_MOST && (rows + n - 1) / n * columns > OCT_CELLS_FOLLOW_THREADS)
        n++;
    return n;
}

/* Iterates from w until it rests; returns the plane with the result, which is w or `other`. All
 * threads' sums are added in the same order in every thread. */
static __device__ inline float *oct_cells_find_field(float *w, float *other, const float *edge,
                                                     uint32_t rows, uint32_t columns,
                                                     const struct oct_cells_flow &flow,
                                                     uint32_t *n_iterations)
{
    __shared__ float sums[2][OCT_CELLS_FOLLOW_WARPS]; /* of this iteration, and the one before */
    const double least = OCT_MGVF_LEAST_CHANGE * ((double)rows * columns);
    const uint32_t run = oct_cells_run_rows(rows, columns);
    const uint32_t n_runs = (rows + run - 1) / run * columns;
    struct oct_cells_pair pair[4];
    float *from = w, *to = other;
    double change;
    uint32_t n = 0;
    for (int i = 0; i < 4; i++)
        pair[i] = oct_cells_pair_of(flow.sign[i]);
    do {
        float own = 0;
        for (uint32_t i = threadIdx.x; i < n_runs; i += OCT_CELLS_FOLLOW_THREADS) {
            const uint32_t y = i / columns * run;
            own += oct_cells_sweep_run(to, from, edge, pair, rows, columns, i % columns, y,
                                       min(y + run, rows));
        }
        own = oct_cells_warp_sum(own);
        if (threadIdx.x % 32 == 0)
            sums[n % 2][threadIdx.x / 32] = own;
        __syncthreads();
        change = 0;
        for (unsigned i = 0; i < OCT_CELLS_FOLLOW_WARPS; i++)
            change += (double)sums[n % 2][i];
        float *swap = from;
        from = to;
        to = swap;
    } while (++n < OCT_MGVF_MOST_ITERATIONS && change > least);
    *n_iterations = n;
    return from;
}

/* The direction of w's gradient, of length 1 or 0, to two planes of its layout. */
static __device__ inline void oct_cells_find_directions(const float *w,
                                                        const struct oct_cells_layout &layout,
                                                        float *ux, float *uy)
{
    const uint32_t rows = layout.rows, columns = layout.columns;
    for (uint32_t i = threadIdx.x; i < rows * columns; i += OCT_CELLS_FOLLOW_THREADS) {
        const uint32_t x = i % columns, y = i / columns;
        const bool has_left = x > 0, has_right = x + 1 < columns;
        const bool has_above = y > 0, has_below = y + 1 < rows;
        const int at = oct_cells_place_of(layout, x, y);
        const double left = (double)w[has_left ? at - layout.step_x : at];
        const double right = (double)w[has_right ? at + layout.step_x : at];
        const double above = (double)w[has_above ? at - layout.step_y : at];
        const double below = (double)w[has_below ? at + layout.step_y : at];
        const double gx = (right - left) * (has_left && has_right ? 0.5 : 1);
        const double gy = (below - above) * (has_above && has_below ? 0.5 : 1);
        const double square = gx * gx + gy * gy, scale = square > 0 ? 1 / sqrt(square) : 0;
        ux[at] = (float)(gx * scale);
        uy[at] = (float)(gy * scale);
    }
    __syncthreads();
}

#endif
