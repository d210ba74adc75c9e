/* Snakes: a block a cell computes its field, moves its snake, finds the score at its end and
 * refines it. snake.c and engine_cpu_follow.c have the same steps. */
#ifndef OCT_ANALYSIS_CELLS_CUDA_SNAKE_CUH
#define OCT_ANALYSIS_CELLS_CUDA_SNAKE_CUH

#include "analysis/cells/cuda_gicov.cuh"
#include "analysis/cells/cuda_peaks.cuh"
#include "analysis/cells/cuda_refine.cuh"
#include "analysis/cells/cuda_sweep.cuh"
#include "analysis/cells/snake_step.h"

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
oct_cells_sample_at(const struct oct_cells_snake_field &field, double x, double y, bool inside)
{
    const struct oct_cells_layout &l = field.layout;
    const uint32_t x0 = inside ? min((uint32_t)x, l.columns - 2) : 0;
    const uint32_t y0 = inside ? min((uint32_t)y, l.rows - 2) : 0;
    const float ax = (float)(x - x0), ay = (float)(y - y0);
    const int p = oct_cells_place_of(l, x0, y0), q = p + l.step_y, next = l.step_x;
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

static __device__ inline void oct_cells_sum_lanes(struct oct_cells_snake_sums *sums)
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

static __device__ inline void oct_cells_end_snake(const struct oct_cells_snake_start *start,
                                                  double x, double y, uint32_t n, bool left,
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
static __device__ inline void oct_cells_run_snake(const struct oct_cells_shape &s,
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
        const struct oct_cells_sample at = oct_cells_sample_at(field, x, y, inside);
        struct oct_cells_snake_sums sums = {0, 0, 0, 0, 0};
        if (is_snaxel)
            sums = {inside ? sqrtf(dx * dx + dy * dy) : nothing, at.w, at.ux, at.uy, own_moved};
        oct_cells_sum_lanes(&sums);
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
        oct_cells_end_snake(start, cx, cy, n, left, end);
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
static __device__ inline bool oct_cells_near_pixel(const struct oct_cells_shape &s, double x,
                                                   double y, unsigned i, int *px, int *py)
{
    const double u = ceil(x - 1) + i % 3, v = ceil(y - 1) + i / 3;
    const bool defined = u >= s.border && v >= s.border && u < (double)s.width - s.border &&
                         v < (double)s.height - s.border; /* NaN is not */
    *px = defined ? (int)u : 0;
    *py = defined ? (int)v : 0;
    return defined && (u - x) * (u - x) + (v - y) * (v - y) <= 1;
}

static __device__ inline void oct_cells_score_near(const struct oct_cells_shape &s,
                                                   const struct oct_cells_planes &planes,
                                                   const struct oct_cells_scorer_tables &tables,
                                                   float v0, double x, double y,
                                                   struct oct_cells_near_end *near)
{
    const unsigned n = tables.has_map ? 0 : OCT_CELLS_NEAR_END * s.n_circles;
    int px, py;
    for (unsigned j = threadIdx.x; j < n; j += OCT_CELLS_FOLLOW_THREADS) {
        const unsigned k = j / OCT_CELLS_NEAR_END;
        near->best[j] = {0, 0, 1, 0};
        if (!oct_cells_near_pixel(s, x, y, j % OCT_CELLS_NEAR_END, &px, &py))
            continue;
        const struct oct_cells_whole whole = {planes.gx, planes.gy};
        oct_cells_score_circle<1>(&near->best[j], whole.at(py * (int)s.width + px),
                                  tables.circles[k], tables.table, k, v0);
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
        const bool is_near = oct_cells_near_pixel(s, x, y, threadIdx.x, &px, &py);
        const float score = tables.has_map ? planes.score[(size_t)py * s.width + (size_t)px]
                                           : oct_cells_score_of(best);
        near->score[threadIdx.x] = is_near ? score : 0;
    }
    __syncthreads();
}

/* The score of the polarity with the largest |S| among pixels within 1 px; one thread. */
static __device__ inline void oct_cells_choose_near(const struct oct_cells_shape &s,
                                                    const struct oct_cells_near_end *near,
                                                    bool is_dark, struct oct_cells_snake_end *end)
{
    end->score = 0;
    end->peak_x = end->peak_y = 0;
    for (unsigned i = 0; i < OCT_CELLS_NEAR_END; i++) {
        const float score = near->score[i];
        int px, py;
        if (!(is_dark ? score > 0 : score < 0) || !(fabsf(score) > fabsf(end->score)))
            continue;
        oct_cells_near_pixel(s, end->x, end->y, i, &px, &py);
        end->score = score;
        end->peak_x = px;
        end->peak_y = py;
    }
}

/* ---- all of it ---- */

/* The field of a window and its directions in three planes of the window, `step` floats apart; its
 * iterations. */
static __device__ inline struct oct_cells_snake_field
oct_cells_find_snake_field(const float *window, uint32_t stride,
                           const struct oct_cells_snake_start &start, float *first, size_t step,
                           uint32_t *n_iterations)
{
    const uint32_t rows = start.rows, columns = start.columns;
    float *second = first + step, *third = second + step, *w;
    struct oct_cells_layout layout = oct_cells_plain_layout(rows, columns);
    const enum oct_cells_flow_kind kind = oct_cells_flow_kind_of(start.flow);
    if (step >= OCT_CELLS_RUN_PLANE && oct_cells_has_runs(rows, columns)) {
        struct oct_cells_sweep_run run;
        second = first + OCT_CELLS_RUN_PLANE;
        oct_cells_set_run(&run, rows, columns);
        layout = oct_cells_run_layout(rows, columns, start.flow);
        oct_cells_find_run_edges(&run, window, stride, layout, first);
        const unsigned last = oct_cells_find_run_field(run, layout, kind, first, n_iterations);
        w = last == 0 ? first : second;
    } else {
        oct_cells_find_edges(window, stride, rows, columns, third, first);
        w = oct_cells_find_field(first, second, third, rows, columns, start.flow, n_iterations);
    }
    float *ux = w == first ? second : first;
    oct_cells_find_directions(w, layout, ux, third);
    return {w, ux, third, layout};
}

/* SHARED: the three planes of a window, `step` floats apart, lie in shared memory, else in
 * scratch [n][3][step]. fields [n][most], or NULL. shape: in the device's memory. */
template <bool SHARED>
static __global__ void __launch_bounds__(OCT_CELLS_FOLLOW_THREADS, 1)
    oct_cells_follow_kernel(const struct oct_cells_shape *shape, struct oct_cells_planes planes,
                            struct oct_cells_scorer_tables tables,
                            const struct oct_cells_facts *facts,
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
        oct_cells_find_snake_field(window, s.width, *start, first, step, &n_field);
    if (fields)
        for (uint32_t i = threadIdx.x; i < n; i += OCT_CELLS_FOLLOW_THREADS)
            fields[blockIdx.x * most + i] =
                field.w[oct_cells_place_of(field.layout, i % columns, i / columns)];
    if (threadIdx.x < 32)
        oct_cells_run_snake(s, field, start, &end);
    __syncthreads();
    oct_cells_score_near(s, planes, tables, facts->v0, end.x, end.y, &near);
    if (threadIdx.x == 0) {
        double radius = 0;
        for (unsigned i = 0; i < OCT_CELLS_SNAXELS; i++)
            radius += end.radii[i] / OCT_CELLS_SNAXELS;
        place = {end.x, end.y, radius};
        end.n_field = n_field;
        oct_cells_choose_near(s, &near, start->is_dark, &end);
    }
    __syncthreads();
    if (s.refine == OCT_CELLS_REFINE_EDGE)
        oct_cells_refine_edge_by_block<OCT_CELLS_FOLLOW_THREADS>(s, planes, &place);
    if (threadIdx.x == 0) {
        end.place = place;
        ends[blockIdx.x] = end;
    }
}

#endif
