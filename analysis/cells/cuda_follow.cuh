/* Snakes: a block a cell computes its field, moves its snake, finds the score at its end and
 * refines it. follow.c and cpu.c have the same steps. */
#ifndef OCT_ANALYSIS_CELLS_CUDA_FOLLOW_CUH
#define OCT_ANALYSIS_CELLS_CUDA_FOLLOW_CUH

#include "analysis/cells/cuda_find.cuh"

#include <cstring>

/* ---- the field ----
 *
 * The MGVF field of one window by all threads of a block: follow.h has the equation. Three planes
 * of the window in shared memory or, of large windows, in the device's; below are the
 * sweeps of windows of which each thread keeps its pixels in registers. */

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

static __device__ inline struct oct_cells_pair pair_of(int sign)
{
    const float infinity = __int_as_float(0x7f800000);
    struct oct_cells_pair pair = {sign > 0 ? 0 : -infinity, sign < 0 ? 0 : infinity, 1};
    if (sign == 0)
        pair.weight = 0.5f;
    return pair;
}

/* plus: the difference to the neighbour at e, minus: at -e. */
static __device__ inline float add_pair(const struct oct_cells_pair &pair, float plus, float minus)
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

static __device__ inline int place_of(const struct oct_cells_layout &layout, uint32_t x, uint32_t y)
{
    return layout.first + (int)x * layout.step_x + (int)y * layout.step_y;
}

/* Rows one after another. */
static __device__ inline struct oct_cells_layout plain_layout(uint32_t rows, uint32_t columns)
{
    return {rows, columns, 0, 1, (int)columns};
}

/* |gradient|^2 of pixel (x, y) of the window. */
static __device__ inline double square_at(const float *pixels, uint32_t stride, uint32_t rows,
                                          uint32_t columns, uint32_t x, uint32_t y)
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
static __device__ inline void find_range(double *least, double *most)
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
static __device__ inline struct oct_cells_edge_scale edge_scale_of(double least, double most)
{
    find_range(&least, &most);
    least = sqrt(least);
    return {least, 1 / (sqrt(most) - least + 2.220446049250313e-16)}; /* 2^-52 */
}

static __device__ inline float edge_of(const struct oct_cells_edge_scale &scale, double square)
{
    return (float)((sqrt(square) - scale.least) * scale.scale);
}

/* The edge map, 0 to 1, to two planes. */
static __device__ inline void find_edges(const float *pixels, uint32_t stride, uint32_t rows,
                                         uint32_t columns, float *edge, float *w)
{
    const uint32_t n = rows * columns;
    double least = INFINITY, most = 0;
    for (uint32_t i = threadIdx.x; i < n; i += OCT_CELLS_FOLLOW_THREADS) {
        const double square = square_at(pixels, stride, rows, columns, i % columns, i / columns);
        least = fmin(least, square);
        most = fmax(most, square);
    }
    const struct oct_cells_edge_scale scale = edge_scale_of(least, most);
    for (uint32_t i = threadIdx.x; i < n; i += OCT_CELLS_FOLLOW_THREADS) {
        const double square = square_at(pixels, stride, rows, columns, i % columns, i / columns);
        edge[i] = w[i] = edge_of(scale, square);
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
        const float a = add_pair(pair[0], own.right - w, own.left - w);
        const float b = add_pair(pair[1], down.middle - w, up.middle - w);
        const float c = add_pair(pair[2], down.right - w, up.left - w);
        const float d = add_pair(pair[3], up.right - w, down.left - w);
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
static __device__ inline uint32_t run_rows(uint32_t rows, uint32_t columns)
{
    uint32_t n = 1;
    while (n < OCT_CELLS_RUN_MOST && (rows + n - 1) / n * columns > OCT_CELLS_FOLLOW_THREADS)
        n++;
    return n;
}

/* Iterates from w until it rests; returns the plane with the result, which is w or `other`. All
 * threads' sums are added in the same order in every thread. */
static __device__ inline float *find_field(float *w, float *other, const float *edge, uint32_t rows,
                                           uint32_t columns, const struct oct_cells_flow &flow,
                                           uint32_t *n_iterations)
{
    __shared__ float sums[2][OCT_CELLS_FOLLOW_WARPS]; /* of this iteration, and the one before */
    const double least = OCT_MGVF_LEAST_CHANGE * ((double)rows * columns);
    const uint32_t run = run_rows(rows, columns);
    const uint32_t n_runs = (rows + run - 1) / run * columns;
    struct oct_cells_pair pair[4];
    float *from = w, *to = other;
    double change;
    uint32_t n = 0;
    for (int i = 0; i < 4; i++)
        pair[i] = pair_of(flow.sign[i]);
    do {
        float own = 0;
        for (uint32_t i = threadIdx.x; i < n_runs; i += OCT_CELLS_FOLLOW_THREADS) {
            const uint32_t y = i / columns * run;
            own += oct_cells_sweep_run(to, from, edge, pair, rows, columns, i % columns, y,
                                       min(y + run, rows));
        }
        own = warp_sum(own);
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
static __device__ inline void find_directions(const float *w, const struct oct_cells_layout &layout,
                                              float *ux, float *uy)
{
    const uint32_t rows = layout.rows, columns = layout.columns;
    for (uint32_t i = threadIdx.x; i < rows * columns; i += OCT_CELLS_FOLLOW_THREADS) {
        const uint32_t x = i % columns, y = i / columns;
        const bool has_left = x > 0, has_right = x + 1 < columns;
        const bool has_above = y > 0, has_below = y + 1 < rows;
        const int at = place_of(layout, x, y);
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

/* ---- the field in registers ----
 *
 * The MGVF field of a window of some 1500 to 3500 px, as of a radius of 7 to 10 px: each thread
 * keeps its pixels, OCT_CELLS_RUN rows of a column, in registers, and two planes in shared memory
 * hold what its neighbours read. Rows and columns are stored backwards where cells go that way, so
 * that few kinds of flow are left, each with its own code; sums are those above. */

#define OCT_CELLS_RUN 7u
#define OCT_CELLS_PITCH 103u /* of 81 columns threads of two runs then read different banks */
#define OCT_CELLS_RUN_PLANE (OCT_CELLS_PITCH * 42u)

/* What a thread has of a window: rows v .. v + OCT_CELLS_RUN - 1 of column u, as they are stored,
 * of which it counts those from `skips` on. The last run ends with the last row. */
struct oct_cells_sweep_run {
    uint32_t u, v, skips;
    int ahead, behind; /* the neighbours of a row */
    int above, below;  /* of the first and the last row */
    float edge[OCT_CELLS_RUN];
};

/* By the signs of v . e of rows and columns as they are stored; v is never against them. */
enum oct_cells_flow_kind {
    OCT_CELLS_NO_FLOW,
    OCT_CELLS_ALONG_X,
    OCT_CELLS_ALONG_Y,
    OCT_CELLS_DIAGONAL,
    OCT_CELLS_MORE_X,
    OCT_CELLS_MORE_Y
};

/* Of a flow of oct_mgvf_flow_init. */
static __device__ inline enum oct_cells_flow_kind flow_kind_of(const struct oct_cells_flow &flow)
{
    const bool back_x = flow.sign[0] < 0, back_y = flow.sign[1] < 0;
    const int apart = back_x != back_y ? flow.sign[2] : flow.sign[3];
    const int more_x = back_x ? -apart : apart;
    if (flow.sign[0] == 0 && flow.sign[1] == 0)
        return OCT_CELLS_NO_FLOW;
    if (flow.sign[1] == 0)
        return OCT_CELLS_ALONG_X;
    if (flow.sign[0] == 0)
        return OCT_CELLS_ALONG_Y;
    return more_x > 0 ? OCT_CELLS_MORE_X : more_x < 0 ? OCT_CELLS_MORE_Y : OCT_CELLS_DIAGONAL;
}

/* Of fewer than some three pixels a thread the sweeps above are faster. */
static __device__ inline bool has_runs(uint32_t rows, uint32_t columns)
{
    return rows >= OCT_CELLS_RUN && rows * columns > 3 * OCT_CELLS_FOLLOW_THREADS &&
           columns <= OCT_CELLS_PITCH && rows * OCT_CELLS_PITCH <= OCT_CELLS_RUN_PLANE &&
           (rows + OCT_CELLS_RUN - 1) / OCT_CELLS_RUN * columns <= OCT_CELLS_FOLLOW_THREADS;
}

static __device__ inline void set_run(struct oct_cells_sweep_run *run, uint32_t rows,
                                      uint32_t columns)
{
    const uint32_t first = threadIdx.x / columns * OCT_CELLS_RUN;
    run->u = threadIdx.x % columns;
    run->v = first < rows ? min(first, rows - OCT_CELLS_RUN) : 0;
    run->skips = first < rows ? first - run->v : OCT_CELLS_RUN; /* all: the thread has none */
    run->ahead = run->u + 1 < columns ? 1 : 0;
    run->behind = run->u > 0 ? -1 : 0;
    run->above = run->v > 0 ? -(int)OCT_CELLS_PITCH : 0;
    run->below = run->v + OCT_CELLS_RUN < rows ? (int)OCT_CELLS_PITCH : 0;
}

/* Backwards in x, in y: against the flow. */
static __device__ inline struct oct_cells_layout run_layout(uint32_t rows, uint32_t columns,
                                                            const struct oct_cells_flow &flow)
{
    const int pitch = (int)OCT_CELLS_PITCH;
    struct oct_cells_layout layout = {rows, columns, 0, 1, pitch};
    if (flow.sign[0] < 0) {
        layout.first += (int)columns - 1;
        layout.step_x = -1;
    }
    if (flow.sign[1] < 0) {
        layout.first += ((int)rows - 1) * pitch;
        layout.step_y = -pitch;
    }
    return layout;
}

/* The edge map to the threads and to w. */
static __device__ inline void find_run_edges(struct oct_cells_sweep_run *run, const float *pixels,
                                             uint32_t stride, const struct oct_cells_layout &layout,
                                             float *w)
{
    const uint32_t rows = layout.rows, columns = layout.columns;
    const uint32_t x = layout.step_x < 0 ? columns - 1 - run->u : run->u;
    double square[OCT_CELLS_RUN], least = INFINITY, most = 0;
#pragma unroll
    for (uint32_t j = 0; j < OCT_CELLS_RUN; j++) {
        const uint32_t v = run->v + j, y = layout.step_y < 0 ? rows - 1 - v : v;
        square[j] = square_at(pixels, stride, rows, columns, x, y);
        least = fmin(least, square[j]);
        most = fmax(most, square[j]);
    }
    const struct oct_cells_edge_scale scale = edge_scale_of(least, most);
#pragma unroll
    for (uint32_t j = 0; j < OCT_CELLS_RUN; j++) {
        run->edge[j] = edge_of(scale, square[j]);
        if (j >= run->skips)
            w[(run->v + j) * OCT_CELLS_PITCH + run->u] = run->edge[j];
    }
    __syncthreads();
}

/* A pair of opposite neighbours of v . e > 0, < 0 or 0. */
template <int SIGN> static __device__ inline float pair_sum(float plus, float minus)
{
    if (SIGN > 0)
        return fmaxf(plus, 0) + fminf(minus, 0);
    if (SIGN < 0)
        return fminf(plus, 0) + fmaxf(minus, 0);
    return (plus + minus) * 0.5f;
}

/* What becomes of a run; the sum of |change| of what it counts. */
template <int A, int B, int C, int D>
static __device__ inline float oct_cells_sweep(const struct oct_cells_sweep_run &run,
                                               const float *plane, float *next)
{
    const float *own = plane + run.v * OCT_CELLS_PITCH + run.u;
    const float *ahead = own + run.ahead, *behind = own + run.behind;
    struct oct_cells_three up = {behind[run.above], own[run.above], ahead[run.above]};
    struct oct_cells_three at = {behind[0], own[0], ahead[0]};
    float sum = 0;
#pragma unroll
    for (uint32_t j = 0; j < OCT_CELLS_RUN; j++) {
        const int below = j + 1 < OCT_CELLS_RUN ? (int)((j + 1) * OCT_CELLS_PITCH)
                                                : (int)(j * OCT_CELLS_PITCH) + run.below;
        const struct oct_cells_three down = {behind[below], own[below], ahead[below]};
        const float w = at.middle, f = run.edge[j];
        const float a = pair_sum<A>(at.right - w, at.left - w);
        const float b = pair_sum<B>(down.middle - w, up.middle - w);
        const float c = pair_sum<C>(down.right - w, up.left - w);
        const float d = pair_sum<D>(up.right - w, down.left - w);
        const float spread = ((a + b) + (c + d)) * 0.1f;
        const float change = spread - f * 0.2f * ((w - f) + spread);
        next[j] = w + change;
        sum += j >= run.skips ? fabsf(change) : 0;
        up = at;
        at = down;
    }
    return sum;
}

/* The sums of all warps. */
static __device__ inline float oct_cells_total(const float4 *sums)
{
    float4 total = sums[0];
#pragma unroll
    for (unsigned i = 1; i < OCT_CELLS_FOLLOW_WARPS / 4; i++) {
        total.x += sums[i].x;
        total.y += sums[i].y;
        total.z += sums[i].z;
        total.w += sums[i].w;
    }
    return (total.x + total.y) + (total.z + total.w);
}

/* Iterates from the first of two planes until it rests; returns the number of the plane with the
 * result. The sum of sweep n is added up while sweeps n + 1 and n + 2 are computed, so that nobody
 * waits for it; when it says that n was the last, that one's plane is still whole. */
template <int A, int B, int C, int D>
static __device__ inline unsigned sweep_runs(const struct oct_cells_sweep_run &run,
                                             const struct oct_cells_layout &layout, float *first,
                                             uint32_t *n_iterations)
{
    __shared__ float4 sums[2][OCT_CELLS_FOLLOW_WARPS / 4];
    const float least =
        (float)(OCT_MGVF_LEAST_CHANGE * ((double)layout.rows * (double)layout.columns));
    float before = 0;
    for (uint32_t n = 1;; n++) {
        float next[OCT_CELLS_RUN];
        const float own =
            oct_cells_sweep<A, B, C, D>(run, first + (n + 1) % 2 * OCT_CELLS_RUN_PLANE, next);
        if (n > 2 &&
            (!(oct_cells_total(sums[n % 2]) > least) || n - 2 == OCT_MGVF_MOST_ITERATIONS)) {
            *n_iterations = n - 2;
            __syncthreads();
            return n % 2;
        }
        float *to = first + n % 2 * OCT_CELLS_RUN_PLANE + run.v * OCT_CELLS_PITCH + run.u;
#pragma unroll
        for (uint32_t j = 0; j < OCT_CELLS_RUN; j++)
            if (j >= run.skips)
                to[j * OCT_CELLS_PITCH] = next[j];
        before = warp_sum(before);
        if (threadIdx.x % 32 == 0)
            reinterpret_cast<float *>(sums[(n + 1) % 2])[threadIdx.x / 32] = before;
        before = own;
        __syncthreads();
    }
}

/* The same of a flow of that kind. */
static __device__ inline unsigned find_run_field(const struct oct_cells_sweep_run &run,
                                                 const struct oct_cells_layout &layout,
                                                 enum oct_cells_flow_kind kind, float *first,
                                                 uint32_t *n_iterations)
{
    switch (kind) {
    case OCT_CELLS_ALONG_X:
        return sweep_runs<1, 0, 1, 1>(run, layout, first, n_iterations);
    case OCT_CELLS_ALONG_Y:
        return sweep_runs<0, 1, 1, -1>(run, layout, first, n_iterations);
    case OCT_CELLS_MORE_X:
        return sweep_runs<1, 1, 1, 1>(run, layout, first, n_iterations);
    case OCT_CELLS_MORE_Y:
        return sweep_runs<1, 1, 1, -1>(run, layout, first, n_iterations);
    case OCT_CELLS_DIAGONAL:
        return sweep_runs<1, 1, 1, 0>(run, layout, first, n_iterations);
    default:
        return sweep_runs<0, 0, 0, 0>(run, layout, first, n_iterations);
    }
}

/* ---- snakes ---- */

#define OCT_CELLS_NEAR_END 9u /* pixels that may lie within 1 px of a point: 3 x 3 */

struct oct_cells_snake_start {
    uint32_t x0, y0, columns, rows; /* the window; no columns: there is none */
    double x, y, mean_y;            /* in the window */
    double radii[OCT_CELLS_SNAXELS];
    struct oct_cells_flow flow;
    bool is_dark;
};

struct oct_cells_snake_end {
    double x, y; /* in the picture */
    double radii[OCT_CELLS_SNAXELS];
    struct oct_cells_place place;
    float score; /* 0: none */
    int32_t peak_x, peak_y;
    uint32_t n_field, n_snake;
    bool left;
};

struct oct_cells_snake_field {
    const float *w, *ux, *uy;
    struct oct_cells_layout layout;
};

struct oct_cells_sample {
    float w, ux, uy;
};

/* Bilinear; of a point outside that of some pixel. Positions are f64, what is sampled is f32: it
 * moves a snake by the small share of a pixel that an iteration takes. */
static __device__ inline struct oct_cells_sample
sample_at(const struct oct_cells_snake_field &field, double x, double y, bool inside)
{
    const struct oct_cells_layout &l = field.layout;
    const uint32_t x0 = inside ? min((uint32_t)x, l.columns - 2) : 0;
    const uint32_t y0 = inside ? min((uint32_t)y, l.rows - 2) : 0;
    const float ax = (float)(x - x0), ay = (float)(y - y0);
    const int p = place_of(l, x0, y0), q = p + l.step_y, next = l.step_x;
    const float a = (1 - ax) * (1 - ay), b = ax * (1 - ay), c = (1 - ax) * ay, d = ax * ay;
    const auto mix = [&](const float *of) {
        return a * of[p] + b * of[p + next] + c * of[q] + d * of[q + next];
    };
    return {mix(field.w), mix(field.ux), mix(field.uy)};
}

/* What the lanes of a warp add up in an iteration. */
struct oct_cells_snake_sums {
    float length, w, ux, uy, moved;
};

static __device__ inline void sum_lanes(struct oct_cells_snake_sums *sums)
{
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        sums->length += __shfl_xor_sync(OCT_CELLS_ALL_LANES, sums->length, lanes);
        sums->w += __shfl_xor_sync(OCT_CELLS_ALL_LANES, sums->w, lanes);
        sums->ux += __shfl_xor_sync(OCT_CELLS_ALL_LANES, sums->ux, lanes);
        sums->uy += __shfl_xor_sync(OCT_CELLS_ALL_LANES, sums->uy, lanes);
        sums->moved += __shfl_xor_sync(OCT_CELLS_ALL_LANES, sums->moved, lanes);
    }
}

static __device__ inline void end_snake(const struct oct_cells_snake_start *start, double x,
                                        double y, uint32_t n, bool left,
                                        struct oct_cells_snake_end *end)
{
    end->x = x + start->x0;
    end->y = y + start->y0;
    end->n_snake = n;
    end->left = left;
}

/* oct_snake_run by one warp, a lane a snaxel; the lanes behind add nothing. By how much an
 * iteration moved the radii is summed with the samples of the next one: one round of sums an
 * iteration. */
static __device__ inline void run_snake(const struct oct_cells_shape &s,
                                        const struct oct_cells_snake_field &field,
                                        const struct oct_cells_snake_start *start,
                                        struct oct_cells_snake_end *end)
{
    const bool is_snaxel = threadIdx.x < OCT_CELLS_SNAXELS;
    const unsigned i = is_snaxel ? threadIdx.x : 0;
    const int next = i + 1 < OCT_CELLS_SNAXELS ? (int)i + 1 : 0;
    const double cosine = s.angles.cosine[i], sine = s.angles.sine[i];
    const float own_cosine = (float)cosine, own_sine = (float)sine, nothing = nanf("");
    const double mean_y = start->mean_y, radius = s.radius, stop = s.stop;
    const double x_most = (double)field.layout.columns - 1, y_most = (double)field.layout.rows - 1;
    double cx = start->x, cy = start->y, r = start->radii[i];
    double centre_moved = INFINITY;
    float own_moved = 0;
    uint32_t n = 0;
    bool left;
    for (;; n++) {
        const double x = cx + r * cosine, y = cy + r * sine;
        const float dx = (float)(__shfl_sync(OCT_CELLS_ALL_LANES, x, next) - x);
        const float dy = (float)(__shfl_sync(OCT_CELLS_ALL_LANES, y, next) - y);
        const bool inside = x >= 0 && x <= x_most && y >= 0 && y <= y_most; /* NaN is outside */
        const struct oct_cells_sample at = sample_at(field, x, y, inside);
        struct oct_cells_snake_sums sums = {0, 0, 0, 0, 0};
        if (is_snaxel)
            sums = {inside ? sqrtf(dx * dx + dy * dy) : nothing, at.w, at.ux, at.uy, own_moved};
        sum_lanes(&sums);
        left = !(sums.length > 0); /* outside: not a number */
        if (left || n == OCT_SNAKE_MOST_ITERATIONS || !(centre_moved + (double)sums.moved > stop))
            break;
        const double share = (double)(1 / sums.length);
        const double outward = (double)(at.ux * own_cosine + at.uy * own_sine);
        const double x_next = oct_snake_next_x(cx, (double)sums.ux, share);
        const double y_next = oct_snake_next_y(cy, (double)sums.uy, share, mean_y);
        const double r_next =
            oct_snake_next_radius(r, (double)at.w, outward, (double)sums.w, share, radius);
        centre_moved = fabs(x_next - cx) + fabs(y_next - cy);
        own_moved = (float)fabs(r_next - r);
        cx = x_next;
        cy = y_next;
        r = r_next;
    }
    if (is_snaxel)
        end->radii[i] = r;
    if (threadIdx.x == 0)
        end_snake(start, cx, cy, n, left, end);
}

/* ---- the end of a snake ---- */

/* For scores where no map was made. */
struct oct_cells_scorer_tables {
    bool has_map;
    const struct oct_cells_circle_groups *circles;
    const float4 *table; /* of the width */
};

struct oct_cells_near_end {
    float score[OCT_CELLS_NEAR_END]; /* 0: not defined, or farther than 1 px */
    struct oct_cells_best best[OCT_CELLS_NEAR_END * OCT_CELLS_MOST_CIRCLES];
};

/* Pixel i of the 3 x 3 about (x, y); false: it has no score, or lies too far. */
static __device__ inline bool near_pixel(const struct oct_cells_shape &s, double x, double y,
                                         unsigned i, int *px, int *py)
{
    const double u = ceil(x - 1) + i % 3, v = ceil(y - 1) + i / 3;
    const bool defined = u >= s.border && v >= s.border && u < (double)s.width - s.border &&
                         v < (double)s.height - s.border; /* NaN is not */
    *px = defined ? (int)u : 0;
    *py = defined ? (int)v : 0;
    return defined && (u - x) * (u - x) + (v - y) * (v - y) <= 1;
}

static __device__ inline void score_near(const struct oct_cells_shape &s,
                                         const struct oct_cells_planes &planes,
                                         const struct oct_cells_scorer_tables &tables, float v0,
                                         double x, double y, struct oct_cells_near_end *near)
{
    const unsigned n = tables.has_map ? 0 : OCT_CELLS_NEAR_END * s.n_circles;
    int px, py;
    for (unsigned j = threadIdx.x; j < n; j += OCT_CELLS_FOLLOW_THREADS) {
        const unsigned k = j / OCT_CELLS_NEAR_END;
        near->best[j] = {0, 0, 1, 0};
        if (!near_pixel(s, x, y, j % OCT_CELLS_NEAR_END, &px, &py))
            continue;
        const struct oct_cells_whole whole = {planes.gx, planes.gy};
        score_circle<1>(&near->best[j], whole.at(py * (int)s.width + px), tables.circles[k],
                        tables.table, k, v0);
    }
    __syncthreads();
    struct oct_cells_best best = {0, 0, 1, 0};
    if (threadIdx.x < OCT_CELLS_NEAR_END) {
        for (unsigned j = threadIdx.x; j < n; j += OCT_CELLS_NEAR_END)
            if (near->best[j].ratio > best.ratio)
                best = near->best[j];
    }
    __syncthreads();
    if (threadIdx.x < OCT_CELLS_NEAR_END) {
        const bool is_near = near_pixel(s, x, y, threadIdx.x, &px, &py);
        const float score =
            tables.has_map ? planes.score[(size_t)py * s.width + (size_t)px] : score_of(best);
        near->score[threadIdx.x] = is_near ? score : 0;
    }
    __syncthreads();
}

/* The score of the polarity with the largest |S| among pixels within 1 px; one thread. */
static __device__ inline void choose_near(const struct oct_cells_shape &s,
                                          const struct oct_cells_near_end *near, bool is_dark,
                                          struct oct_cells_snake_end *end)
{
    end->score = 0;
    end->peak_x = end->peak_y = 0;
    for (unsigned i = 0; i < OCT_CELLS_NEAR_END; i++) {
        const float score = near->score[i];
        int px, py;
        if (!(is_dark ? score > 0 : score < 0) || !(fabsf(score) > fabsf(end->score)))
            continue;
        near_pixel(s, end->x, end->y, i, &px, &py);
        end->score = score;
        end->peak_x = px;
        end->peak_y = py;
    }
}

/* ---- all of it ---- */

/* The field of a window and its directions in three planes of the window, `step` floats apart; its
 * iterations. */
static __device__ inline struct oct_cells_snake_field
find_snake_field(const float *window, uint32_t stride, const struct oct_cells_snake_start &start,
                 float *first, size_t step, uint32_t *n_iterations)
{
    const uint32_t rows = start.rows, columns = start.columns;
    float *second = first + step, *third = second + step, *w;
    struct oct_cells_layout layout = plain_layout(rows, columns);
    const enum oct_cells_flow_kind kind = flow_kind_of(start.flow);
    if (step >= OCT_CELLS_RUN_PLANE && has_runs(rows, columns)) {
        struct oct_cells_sweep_run run;
        second = first + OCT_CELLS_RUN_PLANE;
        set_run(&run, rows, columns);
        layout = run_layout(rows, columns, start.flow);
        find_run_edges(&run, window, stride, layout, first);
        const unsigned last = find_run_field(run, layout, kind, first, n_iterations);
        w = last == 0 ? first : second;
    } else {
        find_edges(window, stride, rows, columns, third, first);
        w = find_field(first, second, third, rows, columns, start.flow, n_iterations);
    }
    float *ux = w == first ? second : first;
    find_directions(w, layout, ux, third);
    return {w, ux, third, layout};
}

/* SHARED: the three planes of a window, `step` floats apart, lie in shared memory, else in
 * scratch [n][3][step]. fields [n][most], or NULL. shape: in the device's memory. */
template <bool SHARED>
static __global__ void __launch_bounds__(OCT_CELLS_FOLLOW_THREADS, 1)
    follow_kernel(const struct oct_cells_shape *shape, struct oct_cells_planes planes,
                  struct oct_cells_scorer_tables tables, const struct oct_cells_facts *facts,
                  const struct oct_cells_snake_start *starts, float *scratch, size_t step,
                  size_t most, float *fields, struct oct_cells_snake_end *ends)
{
    OCT_SHARED(float, shared);
    __shared__ struct oct_cells_snake_end end;
    __shared__ struct oct_cells_near_end near;
    __shared__ struct oct_cells_place place;
    const struct oct_cells_shape &s = *shape;
    const struct oct_cells_snake_start *start = &starts[blockIdx.x];
    const uint32_t columns = start->columns, n = start->rows * columns;
    if (columns == 0)
        return;
    float *first = SHARED ? shared : scratch + (size_t)blockIdx.x * 3 * step;
    const float *window = planes.pixels + (size_t)start->y0 * s.width + start->x0;
    uint32_t n_field;
    const struct oct_cells_snake_field field =
        find_snake_field(window, s.width, *start, first, step, &n_field);
    if (fields)
        for (uint32_t i = threadIdx.x; i < n; i += OCT_CELLS_FOLLOW_THREADS)
            fields[blockIdx.x * most + i] =
                field.w[place_of(field.layout, i % columns, i / columns)];
    if (threadIdx.x < 32)
        run_snake(s, field, start, &end);
    __syncthreads();
    score_near(s, planes, tables, facts->v0, end.x, end.y, &near);
    if (threadIdx.x == 0) {
        double radius = 0;
        for (unsigned i = 0; i < OCT_CELLS_SNAXELS; i++)
            radius += end.radii[i] / OCT_CELLS_SNAXELS;
        place = {end.x, end.y, radius};
        end.n_field = n_field;
        choose_near(s, &near, start->is_dark, &end);
    }
    __syncthreads();
    if (s.refine == OCT_CELLS_REFINE_EDGE)
        refine_edge_by_block<OCT_CELLS_FOLLOW_THREADS>(s, planes, &place);
    if (threadIdx.x == 0) {
        end.place = place;
        ends[blockIdx.x] = end;
    }
}

/* What the device is told of a snake to start. *window: where the snake is; without pixels, and no
 * columns, where it is too small for one. */
static inline struct oct_cells_snake_start
oct_cells_start_of(const struct oct_cells_engine_setup *setup, const struct oct_cell_start *start,
                   struct oct_cell_window *window)
{
    struct oct_cells_snake_start to = {};
    struct oct_mgvf_flow flow;
    if (!oct_cell_window_find(&setup->params, setup->height, setup->width, start->x, start->y,
                              window)) {
        *window = {0, -1, 0, -1};
        return to;
    }
    to.x0 = (uint32_t)window->u1;
    to.y0 = (uint32_t)window->v1;
    to.columns = (uint32_t)(window->u2 - window->u1 + 1);
    to.rows = (uint32_t)(window->v2 - window->v1 + 1);
    to.x = start->x - window->u1;
    to.y = start->y - window->v1;
    to.mean_y = to.y + start->mean_dy;
    memcpy(to.radii, start->radii, sizeof(to.radii));
    oct_mgvf_flow_init(&flow, start->vx, start->vy);
    memcpy(to.flow.sign, flow.sign, sizeof(to.flow.sign));
    to.is_dark = start->is_dark;
    return to;
}

#endif
