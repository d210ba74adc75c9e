/* The MGVF field of a window of some 1500 to 3500 px, as of a radius of 7 to 10 px: each thread
 * keeps its pixels, OCT_CELLS_RUN rows of a column, in registers, and two planes in shared memory
 * hold what its neighbours read. Rows and columns are stored backwards where cells go that way, so
 * that few kinds of flow are left, each with its own code; sums are those of cuda_field.cuh. */
#ifndef OCT_ANALYSIS_CELLS_CUDA_SWEEP_CUH
#define OCT_ANALYSIS_CELLS_CUDA_SWEEP_CUH

#include "analysis/cells/cuda_field.cuh"

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
static __device__ inline enum oct_cells_flow_kind
oct_cells_flow_kind_of(const struct oct_cells_flow &flow)
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

/* Of fewer than some three pixels a thread cuda_field.cuh is faster. */
static __device__ inline bool oct_cells_has_runs(uint32_t rows, uint32_t columns)
{
    return rows >= OCT_CELLS_RUN && rows * columns > 3 * OCT_CELLS_FOLLOW_THREADS &&
           columns <= OCT_CELLS_PITCH && rows * OCT_CELLS_PITCH <= OCT_CELLS_RUN_PLANE &&
           (rows + OCT_CELLS_RUN - 1) / OCT_CELLS_RUN * columns <= OCT_CELLS_FOLLOW_THREADS;
}

static __device__ inline void oct_cells_set_run(struct oct_cells_sweep_run *run, uint32_t rows,
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
static __device__ inline struct oct_cells_layout
oct_cells_run_layout(uint32_t rows, uint32_t columns, const struct oct_cells_flow &flow)
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
static __device__ inline void oct_cells_find_run_edges(struct oct_cells_sweep_run *run,
                                                       const float *pixels, uint32_t stride,
                                                       const struct oct_cells_layout &layout,
                                                       float *w)
{
    const uint32_t rows = layout.rows, columns = layout.columns;
    const uint32_t x = layout.step_x < 0 ? columns - 1 - run->u : run->u;
    double square[OCT_CELLS_RUN], least = INFINITY, most = 0;
#pragma unroll
    for (uint32_t j = 0; j < OCT_CELLS_RUN; j++) {
        const uint32_t v = run->v + j, y = layout.step_y < 0 ? rows - 1 - v : v;
        square[j] = oct_cells_square_at(pixels, stride, rows, columns, x, y);
        least = fmin(least, square[j]);
        most = fmax(most, square[j]);
    }
    const struct oct_cells_edge_scale scale = oct_cells_edge_scale_of(least, most);
#pragma unroll
    for (uint32_t j = 0; j < OCT_CELLS_RUN; j++) {
        run->edge[j] = oct_cells_edge_of(scale, square[j]);
        if (j >= run->skips)
            w[(run->v + j) * OCT_CELLS_PITCH + run->u] = run->edge[j];
    }
    __syncthreads();
}

/* A pair of opposite neighbours of v . e > 0, < 0 or 0. */
template <int SIGN> static __device__ inline float oct_cells_pair_sum(float plus, float minus)
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
        const float a = oct_cells_pair_sum<A>(at.right - w, at.left - w);
        const float b = oct_cells_pair_sum<B>(down.middle - w, up.middle - w);
        const float c = oct_cells_pair_sum<C>(down.right - w, up.left - w);
        const float d = oct_cells_pair_sum<D>(up.right - w, down.left - w);
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
static __device__ inline unsigned oct_cells_sweep_runs(const struct oct_cells_sweep_run &run,
                                                       const struct oct_cells_layout &layout,
                                                       float *first, uint32_t *n_iterations)
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
        before = oct_cells_warp_sum(before);
        if (threadIdx.x % 32 == 0)
            reinterpret_cast<float *>(sums[(n + 1) % 2])[threadIdx.x / 32] = before;
        before = own;
        __syncthreads();
    }
}

/* The same of a flow of that kind. */
static __device__ inline unsigned oct_cells_find_run_field(const struct oct_cells_sweep_run &run,
                                                           const struct oct_cells_layout &layout,
                                                           enum oct_cells_flow_kind kind,
                                                           float *first, uint32_t *n_iterations)
{
    switch (kind) {
    case OCT_CELLS_ALONG_X:
        return oct_cells_sweep_runs<1, 0, 1, 1>(run, layout, first, n_iterations);
    case OCT_CELLS_ALONG_Y:
        return oct_cells_sweep_runs<0, 1, 1, -1>(run, layout, first, n_iterations);
    case OCT_CELLS_MORE_X:
        return oct_cells_sweep_runs<1, 1, 1, 1>(run, layout, first, n_iterations);
    case OCT_CELLS_MORE_Y:
        return oct_cells_sweep_runs<1, 1, 1, -1>(run, layout, first, n_iterations);
    case OCT_CELLS_DIAGONAL:
        return oct_cells_sweep_runs<1, 1, 1, 0>(run, layout, first, n_iterations);
    default:
        return oct_cells_sweep_runs<0, 0, 0, 0>(run, layout, first, n_iterations);
    }
}

#endif
