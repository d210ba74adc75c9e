/* Snakes: a block a cell computes its field, moves its snake, finds the score at its end and
 * refines it. follow.c and cpu.c have the same steps. */
#ifndef OCT_ANALYSIS_CELLS_CUDA_FOLLOW_CUH
#define OCT_ANALYSIS_CELLS_CUDA_FOLLOW_CUH

#include "analysis/cells/cuda_find.cuh"

#include <cstring>

/* ---- the field ----
 *
 * The MGVF field of one window by all threads of a block: follow.h has the equation. Rows and
 * columns are stored backwards where cells go that way, so that few kinds of flow are left, each
 * with its own code. A window of some 1500 to 3500 px, as of a radius of 7 to 10 px: each thread
 * keeps its pixels, OCT_CELLS_RUN rows of a column, in registers, and two planes in shared memory
 * hold what its neighbours read. Else three planes, in shared memory or, of large windows, in the
 * device's. */

#define OCT_CELLS_FOLLOW_THREADS 512u
#define OCT_CELLS_FOLLOW_WARPS (OCT_CELLS_FOLLOW_THREADS / 32)
#define OCT_CELLS_RUN 7u
#define OCT_CELLS_PITCH 103u /* of 81 columns threads of two runs then read different banks */
#define OCT_CELLS_RUN_PLANE (OCT_CELLS_PITCH * 42u)

/* Where the pixels of a window lie in a plane: (x, y) at first + x step_x + y step_y; (u, v) as
 * they are stored, at u + v pitch. */
struct oct_cells_layout {
    uint32_t rows, columns, pitch;
    int first, step_x, step_y;
};

static __device__ inline struct oct_cells_layout
layout_of(uint32_t rows, uint32_t columns, uint32_t pitch, const struct oct_mgvf_flow &flow)
{
    struct oct_cells_layout layout = {rows, columns, pitch, 0, 1, (int)pitch};
    if (flow.sign[0] < 0) {
        layout.first += (int)columns - 1;
        layout.step_x = -1;
    }
    if (flow.sign[1] < 0) {
        layout.first += (int)((rows - 1) * pitch);
        layout.step_y = -(int)pitch;
    }
    return layout;
}

static __device__ inline int place_of(const struct oct_cells_layout &layout, uint32_t x, uint32_t y)
{
    return layout.first + (int)x * layout.step_x + (int)y * layout.step_y;
}

/* |gradient|^2 of the pixel of the window that is stored at (u, v). */
static __device__ inline double square_at(const float *pixels, uint32_t stride,
                                          const struct oct_cells_layout &l, uint32_t u, uint32_t v)
{
    const uint32_t x = l.step_x < 0 ? l.columns - 1 - u : u, y = l.step_y < 0 ? l.rows - 1 - v : v;
    const uint32_t left = x > 0 ? x - 1 : 0, right = x + 1 < l.columns ? x + 1 : x;
    const uint32_t above = y > 0 ? y - 1 : 0, below = y + 1 < l.rows ? y + 1 : y;
    const float *row = pixels + (size_t)y * stride;
    const double gx = ((double)row[right] - (double)row[left]) * (right - left == 2 ? 0.5 : 1);
    const double gy =
        ((double)pixels[(size_t)below * stride + x] - (double)pixels[(size_t)above * stride + x]) *
        (below - above == 2 ? 0.5 : 1);
    return gx * gx + gy * gy;
}

struct oct_cells_edge_scale {
    double least, scale;
};

/* Of the least and the largest square of each thread; by all of them. */
static __device__ inline struct oct_cells_edge_scale edge_scale_of(double least, double most)
{
    __shared__ double shared_least[OCT_CELLS_FOLLOW_WARPS], shared_most[OCT_CELLS_FOLLOW_WARPS];
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        least = fmin(least, __shfl_xor_sync(OCT_CELLS_ALL_LANES, least, lanes));
        most = fmax(most, __shfl_xor_sync(OCT_CELLS_ALL_LANES, most, lanes));
    }
    if (threadIdx.x % 32 == 0) {
        shared_least[threadIdx.x / 32] = least;
        shared_most[threadIdx.x / 32] = most;
    }
    __syncthreads();
    for (unsigned i = 0; i < OCT_CELLS_FOLLOW_WARPS; i++) {
        least = fmin(least, shared_least[i]);
        most = fmax(most, shared_most[i]);
    }
    least = sqrt(least);
    return {least, 1 / (sqrt(most) - least + 2.220446049250313e-16)}; /* 2^-52 */
}

static __device__ inline float edge_of(const struct oct_cells_edge_scale &scale, double square)
{
    return (float)((sqrt(square) - scale.least) * scale.scale);
}

/* A pair of opposite neighbours of v . e > 0, < 0 or 0, by their differences. */
template <int SIGN> static __device__ inline float pair_sum(float plus, float minus)
{
    if (SIGN > 0)
        return fmaxf(plus, 0) + fminf(minus, 0);
    if (SIGN < 0)
        return fminf(plus, 0) + fmaxf(minus, 0);
    return (plus + minus) * 0.5f;
}

/* Three pixels of a row about a column. */
struct oct_cells_three {
    float left, middle, right;
};

/* By how much an iteration changes the middle one; f: its edge. */
template <int A, int B, int C, int D>
static __device__ inline float change_of(const struct oct_cells_three &up,
                                         const struct oct_cells_three &at,
                                         const struct oct_cells_three &down, float f)
{
    const float w = at.middle;
    const float a = pair_sum<A>(at.right - w, at.left - w);
    const float b = pair_sum<B>(down.middle - w, up.middle - w);
    const float c = pair_sum<C>(down.right - w, up.left - w);
    const float d = pair_sum<D>(up.right - w, down.left - w);
    const float spread = ((a + b) + (c + d)) * 0.1f;
    return spread - f * 0.2f * ((w - f) + spread);
}

/* Sweeps of that kind of flow, as it is stored; what they return. */
template <class S>
static __device__ inline unsigned sweep_by_flow(const struct oct_mgvf_flow &flow, S &sweeps)
{
    const bool back = flow.sign[0] < 0, up = flow.sign[1] < 0;
    const int apart = (back ? -1 : 1) * flow.sign[back == up ? 3 : 2];
    if (flow.sign[0] == 0 && flow.sign[1] == 0)
        return sweeps.template run<0, 0, 0, 0>();
    if (flow.sign[1] == 0)
        return sweeps.template run<1, 0, 1, 1>();
    if (flow.sign[0] == 0)
        return sweeps.template run<0, 1, 1, -1>();
    if (apart > 0)
        return sweeps.template run<1, 1, 1, 1>();
    if (apart < 0)
        return sweeps.template run<1, 1, 1, -1>();
    return sweeps.template run<1, 1, 1, 0>();
}

/* From planes[0] to planes[1] and back, the edge map behind them, of `step` floats each. */
struct oct_cells_sweeps {
    struct oct_cells_layout layout;
    float *first;
    size_t step;
    uint32_t n_iterations;

    /* The edge map, 0 to 1, to the first and the third plane. */
    __device__ void find_edges(const float *pixels, uint32_t stride)
    {
        const uint32_t columns = layout.columns, n = layout.rows * columns;
        double least = INFINITY, most = 0;
        for (uint32_t i = threadIdx.x; i < n; i += OCT_CELLS_FOLLOW_THREADS) {
            const double square = square_at(pixels, stride, layout, i % columns, i / columns);
            least = fmin(least, square);
            most = fmax(most, square);
        }
        const struct oct_cells_edge_scale scale = edge_scale_of(least, most);
        for (uint32_t i = threadIdx.x; i < n; i += OCT_CELLS_FOLLOW_THREADS)
            first[i] = first[2 * step + i] =
                edge_of(scale, square_at(pixels, stride, layout, i % columns, i / columns));
        __syncthreads();
    }

    template <int A, int B, int C, int D>
    __device__ float sweep(float *to, const float *from, uint32_t i) const
    {
        const uint32_t columns = layout.columns, u = i % columns, v = i / columns;
        const uint32_t left = u > 0 ? u - 1 : 0, right = u + 1 < columns ? u + 1 : u;
        const auto load = [&](uint32_t row) {
            const float *p = from + (size_t)row * columns;
            return oct_cells_three{p[left], p[u], p[right]};
        };
        const struct oct_cells_three at = load(v);
        const float change =
            change_of<A, B, C, D>(load(v > 0 ? v - 1 : 0), at,
                                  load(v + 1 < layout.rows ? v + 1 : v), first[2 * step + i]);
        to[i] = at.middle + change;
        return fabsf(change);
    }

    /* Iterates until it rests; returns the number of the plane with the result. All threads' sums
     * are added in the same order in every thread. */
    template <int A, int B, int C, int D> __device__ unsigned run()
    {
        __shared__ float sums[2][OCT_CELLS_FOLLOW_WARPS]; /* of this iteration and the one before */
        const uint32_t n_pixels = layout.rows * layout.columns;
        const double least = OCT_MGVF_LEAST_CHANGE * (double)n_pixels;
        for (uint32_t n = 1;; n++) {
            float *to = first + n % 2 * step;
            const float *from = first + (n + 1) % 2 * step;
            float own = 0;
            double change = 0;
            for (uint32_t i = threadIdx.x; i < n_pixels; i += OCT_CELLS_FOLLOW_THREADS)
                own += sweep<A, B, C, D>(to, from, i);
            own = warp_sum(own);
            if (threadIdx.x % 32 == 0)
                sums[n % 2][threadIdx.x / 32] = own;
            __syncthreads();
            for (unsigned i = 0; i < OCT_CELLS_FOLLOW_WARPS; i++)
                change += (double)sums[n % 2][i];
            n_iterations = n;
            if (n == OCT_MGVF_MOST_ITERATIONS || !(change > least))
                return n % 2;
        }
    }
};

/* ---- the field in registers ---- */

/* Of fewer than some three pixels a thread the sweeps above are faster. */
static __device__ inline bool has_runs(uint32_t rows, uint32_t columns)
{
    return rows >= OCT_CELLS_RUN && rows * columns > 3 * OCT_CELLS_FOLLOW_THREADS &&
           columns <= OCT_CELLS_PITCH && rows * OCT_CELLS_PITCH <= OCT_CELLS_RUN_PLANE &&
           (rows + OCT_CELLS_RUN - 1) / OCT_CELLS_RUN * columns <= OCT_CELLS_FOLLOW_THREADS;
}

/* What a thread has of a window: rows v .. v + OCT_CELLS_RUN - 1 of column u, as they are stored,
 * of which it counts those from `skips` on. The last run ends with the last row. */
struct oct_cells_runs {
    struct oct_cells_layout layout; /* of OCT_CELLS_PITCH */
    float *first;                   /* of two planes of OCT_CELLS_RUN_PLANE */
    uint32_t u, v, skips, n_iterations;
    int ahead, behind; /* the neighbours of a row */
    int above, below;  /* of the first and the last row */
    float edge[OCT_CELLS_RUN];

    __device__ void set_run()
    {
        const uint32_t rows = layout.rows, columns = layout.columns;
        const uint32_t row = threadIdx.x / columns * OCT_CELLS_RUN;
        u = threadIdx.x % columns;
        v = row < rows ? min(row, rows - OCT_CELLS_RUN) : 0;
        skips = row < rows ? row - v : OCT_CELLS_RUN; /* all: the thread has none */
        ahead = u + 1 < columns ? 1 : 0;
        behind = u > 0 ? -1 : 0;
        above = v > 0 ? -(int)OCT_CELLS_PITCH : 0;
        below = v + OCT_CELLS_RUN < rows ? (int)OCT_CELLS_PITCH : 0;
    }

    /* The edge map to the threads and to the first plane. */
    __device__ void find_edges(const float *pixels, uint32_t stride)
    {
        double square[OCT_CELLS_RUN], least = INFINITY, most = 0;
#pragma unroll
        for (uint32_t j = 0; j < OCT_CELLS_RUN; j++) {
            square[j] = square_at(pixels, stride, layout, u, v + j);
            least = fmin(least, square[j]);
            most = fmax(most, square[j]);
        }
        const struct oct_cells_edge_scale scale = edge_scale_of(least, most);
#pragma unroll
        for (uint32_t j = 0; j < OCT_CELLS_RUN; j++) {
            edge[j] = edge_of(scale, square[j]);
            if (j >= skips)
                first[(v + j) * OCT_CELLS_PITCH + u] = edge[j];
        }
        __syncthreads();
    }

    /* What becomes of a run; the sum of |change| of what it counts. */
    template <int A, int B, int C, int D>
    __device__ float sweep(const float *plane, float *next) const
    {
        const float *own = plane + v * OCT_CELLS_PITCH + u;
        const float *to_right = own + ahead, *to_left = own + behind;
        struct oct_cells_three up = {to_left[above], own[above], to_right[above]};
        struct oct_cells_three at = {to_left[0], own[0], to_right[0]};
        float sum = 0;
#pragma unroll
        for (uint32_t j = 0; j < OCT_CELLS_RUN; j++) {
            const int row = j + 1 < OCT_CELLS_RUN ? (int)((j + 1) * OCT_CELLS_PITCH)
                                                  : (int)(j * OCT_CELLS_PITCH) + below;
            const struct oct_cells_three down = {to_left[row], own[row], to_right[row]};
            const float change = change_of<A, B, C, D>(up, at, down, edge[j]);
            next[j] = at.middle + change;
            sum += j >= skips ? fabsf(change) : 0;
            up = at;
            at = down;
        }
        return sum;
    }

    /* The sums of all warps. */
    static __device__ float total_of(const float4 *sums)
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

    /* As of oct_cells_sweeps. The sum of sweep n is added up while sweeps n + 1 and n + 2 are
     * computed, so that nobody waits for it; when it says that n was the last, that one's plane is
     * still whole. */
    template <int A, int B, int C, int D> __device__ unsigned run()
    {
        __shared__ float4 sums[2][OCT_CELLS_FOLLOW_WARPS / 4];
        const float least =
            (float)(OCT_MGVF_LEAST_CHANGE * ((double)layout.rows * (double)layout.columns));
        float before = 0;
        for (uint32_t n = 1;; n++) {
            float next[OCT_CELLS_RUN];
            const float own = sweep<A, B, C, D>(first + (n + 1) % 2 * OCT_CELLS_RUN_PLANE, next);
            if (n > 2 && (!(total_of(sums[n % 2]) > least) || n - 2 == OCT_MGVF_MOST_ITERATIONS)) {
                n_iterations = n - 2;
                __syncthreads();
                return n % 2;
            }
            float *to = first + n % 2 * OCT_CELLS_RUN_PLANE + v * OCT_CELLS_PITCH + u;
#pragma unroll
            for (uint32_t j = 0; j < OCT_CELLS_RUN; j++)
                if (j >= skips)
                    to[j * OCT_CELLS_PITCH] = next[j];
            before = warp_sum(before);
            if (threadIdx.x % 32 == 0)
                reinterpret_cast<float *>(sums[(n + 1) % 2])[threadIdx.x / 32] = before;
            before = own;
            __syncthreads();
        }
    }
};

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

/* ---- snakes ---- */

/* What the device gets of a snake to start. */
struct oct_cells_snake {
    struct oct_cell_start start;
    struct oct_cell_window window; /* without pixels: too small for a snake, which stays */
    struct oct_mgvf_flow flow;
};

static inline struct oct_cells_snake oct_cells_snake_of(const struct oct_cells_engine_setup *setup,
                                                        const struct oct_cell_start *start)
{
    struct oct_cells_snake snake = {};
    snake.start = *start;
    if (!oct_cell_window_find(&setup->params, setup->height, setup->width, start->x, start->y,
                              &snake.window))
        snake.window = {0, -1, 0, -1};
    oct_mgvf_flow_init(&snake.flow, start->vx, start->vy);
    return snake;
}

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

/* run_snake of follow.c by one warp, a lane a snaxel; the lanes behind add nothing. By how much an
 * iteration moved the radii is summed with the samples of the next one: one round of sums an
 * iteration. */
static __device__ inline void run_snake(const struct oct_cells_shape &s,
                                        const struct oct_cells_snake_field &field,
                                        const struct oct_cells_snake &snake,
                                        struct oct_cell_end *end)
{
    const struct oct_cell_start &start = snake.start;
    const bool is_snaxel = threadIdx.x < OCT_CELLS_SNAXELS;
    const unsigned i = is_snaxel ? threadIdx.x : 0;
    const int next = i + 1 < OCT_CELLS_SNAXELS ? (int)i + 1 : 0;
    const double cosine = s.angles.cosine[i], sine = s.angles.sine[i];
    const float own_cosine = (float)cosine, own_sine = (float)sine, nothing = nanf("");
    const double radius = s.params.radius, stop = s.params.stop;
    const double x_most = (double)field.layout.columns - 1, y_most = (double)field.layout.rows - 1;
    double cx = start.x - snake.window.u1, cy = start.y - snake.window.v1, r = start.radii[i];
    const double mean_y = cy + start.mean_dy;
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
    if (threadIdx.x == 0) {
        end->x = cx + snake.window.u1;
        end->y = cy + snake.window.v1;
        end->n_snake = n;
        end->left = left;
    }
}

/* ---- the end of a snake ---- */

/* The cell at a snake's end, not refined: with the score of the polarity that has the largest |S|
 * among pixels within 1 px; one thread. */
static __device__ inline void find_cell(const struct oct_cells_shape &s, const float *score,
                                        bool is_dark, struct oct_cell_end *end)
{
    const double border = s.border, right = (double)s.width - border;
    const double bottom = (double)s.height - border;
    double radius = 0;
    for (unsigned i = 0; i < OCT_CELLS_SNAXELS; i++)
        radius += end->radii[i] / OCT_CELLS_SNAXELS;
    end->cell = {end->x, end->y, radius, 0, (int32_t)lround(end->x), (int32_t)lround(end->y)};
    if (!end->defined)
        return;
#pragma unroll
    for (int i = 0; i < 9; i++) { /* the 3 x 3 that may lie so near */
        const double u = ceil(end->x - 1) + i % 3, v = ceil(end->y - 1) + i / 3;
        const double du = u - end->x, dv = v - end->y;
        const bool is_near = u >= border && v >= border && u < right && v < bottom &&
                             du * du + dv * dv <= 1; /* NaN is not */
        const float value = is_near ? score[(size_t)v * s.width + (size_t)u] : 0;
        if (!(is_dark ? value > 0 : value < 0) || !(fabsf(value) > fabsf(end->cell.score)))
            continue;
        end->cell.score = value;
        end->cell.peak_x = (int32_t)u;
        end->cell.peak_y = (int32_t)v;
    }
}

/* ---- all of it ---- */

/* The field of a window and its directions in three planes of the window, `step` floats apart; its
 * iterations. */
static __device__ inline struct oct_cells_snake_field
find_field(const float *window, uint32_t stride, const struct oct_mgvf_flow &flow, uint32_t rows,
           uint32_t columns, float *first, size_t step, uint32_t *n_iterations)
{
    float *planes[2] = {first, first + step}, *third = first + 2 * step;
    struct oct_cells_layout layout;
    unsigned last;
    if (step >= OCT_CELLS_RUN_PLANE && has_runs(rows, columns)) {
        struct oct_cells_runs runs;
        planes[1] = first + OCT_CELLS_RUN_PLANE;
        layout = runs.layout = layout_of(rows, columns, OCT_CELLS_PITCH, flow);
        runs.first = first;
        runs.set_run();
        runs.find_edges(window, stride);
        last = sweep_by_flow(flow, runs);
        *n_iterations = runs.n_iterations;
    } else {
        layout = layout_of(rows, columns, columns, flow);
        struct oct_cells_sweeps sweeps = {layout, first, step, 0};
        sweeps.find_edges(window, stride);
        last = sweep_by_flow(flow, sweeps);
        *n_iterations = sweeps.n_iterations;
    }
    find_directions(planes[last], layout, planes[1 - last], third);
    return {planes[last], planes[1 - last], third, layout};
}

/* SHARED: the three planes of a window, `step` floats apart, lie in shared memory, else in
 * scratch [n][3][step]. fields [n][most], or NULL. shape: in the device's memory. */
template <bool SHARED>
static __global__ void __launch_bounds__(OCT_CELLS_FOLLOW_THREADS, 1)
    follow_kernel(const struct oct_cells_shape *shape, struct oct_cells_planes planes,
                  const struct oct_cells_snake *snakes, float *scratch, size_t step, size_t most,
                  float *fields, struct oct_cell_end *ends)
{
    OCT_SHARED(float, shared);
    __shared__ struct oct_cell_end end;
    __shared__ struct oct_cells_place place;
    const struct oct_cells_shape &s = *shape;
    const struct oct_cells_snake &snake = snakes[blockIdx.x];
    const struct oct_cell_window &at = snake.window;
    const uint32_t columns = (uint32_t)(at.u2 - at.u1 + 1), rows = (uint32_t)(at.v2 - at.v1 + 1);
    const bool defined = columns > 0;
    if (threadIdx.x == 0) {
        end = {};
        end.defined = defined;
        end.x = snake.start.x;
        end.y = snake.start.y;
        for (unsigned i = 0; !defined && i < OCT_CELLS_SNAXELS; i++)
            end.radii[i] = snake.start.radii[i];
    }
    if (defined) {
        float *first = SHARED ? shared : scratch + (size_t)blockIdx.x * 3 * step;
        const float *window = planes.pixels + (size_t)at.v1 * s.width + (size_t)at.u1;
        uint32_t n_field;
        const struct oct_cells_snake_field field =
            find_field(window, s.width, snake.flow, rows, columns, first, step, &n_field);
        for (uint32_t i = threadIdx.x; fields && i < rows * columns; i += OCT_CELLS_FOLLOW_THREADS)
            fields[blockIdx.x * most + i] =
                field.w[place_of(field.layout, i % columns, i / columns)];
        if (threadIdx.x < 32)
            run_snake(s, field, snake, &end);
        __syncthreads();
        if (threadIdx.x == 0)
            end.n_field = n_field;
    }
    if (threadIdx.x == 0) {
        find_cell(s, planes.score, snake.start.is_dark, &end);
        place = {end.cell.x, end.cell.y, end.cell.radius};
    }
    __syncthreads();
    if (defined && s.params.refine == OCT_CELLS_REFINE_EDGE)
        refine_edge_by_block<OCT_CELLS_FOLLOW_THREADS>(s, planes, &place);
    if (threadIdx.x == 0) {
        end.cell.x = place.x;
        end.cell.y = place.y;
        end.cell.radius = place.radius;
        ends[blockIdx.x] = end;
    }
}

#endif
