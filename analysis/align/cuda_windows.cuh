/* The scores of windows: they are small, and their products with the reference are summed directly,
 * a block a tile of shifts, exact except for the rounding of f32 sums of 1024 products.
 * Then the largest score of a search, and those around it. */
#ifndef OCT_ANALYSIS_ALIGN_CUDA_WINDOWS_CUH
#define OCT_ANALYSIS_ALIGN_CUDA_WINDOWS_CUH

#include "analysis/correlate/cuda_correlation.cuh"
#include "kernels/device/cuda_stream.cuh"

#include <math.h>
extern "C" {
#include "analysis/align/matcher.h"
}

/* At which shifts a window, or a whole picture, is compared with the reference, and where its
 * scores lie. */
struct oct_search {
    unsigned picture; /* of the batch */
    uint32_t y0, n_rows;
    int32_t dy, dx;          /* the first shift */
    uint32_t rows, columns;  /* shifts */
    double least;            /* N */
    size_t first;            /* of its scores */
    uint32_t skip_y, skip_x; /* rows, columns at each side that are not sought */
};

/* A block of 128 threads sums at 16 x 32 shifts, a thread at 4 of a row, over chunks of 16 x 64
 * pixels. The pitch keeps the threads of a warp on banks of their own. */
#define OCT_TILE_ROWS 16u
#define OCT_TILE_COLUMNS 32u
#define OCT_TILE_PER_THREAD 4u
#define OCT_TILE_GROUPS (OCT_TILE_COLUMNS / OCT_TILE_PER_THREAD)
#define OCT_TILE_THREADS (OCT_TILE_ROWS * OCT_TILE_GROUPS)
#define OCT_CHUNK_ROWS 16u
#define OCT_CHUNK_COLUMNS 64u
#define OCT_CHUNK_PIXELS (OCT_CHUNK_ROWS * OCT_CHUNK_COLUMNS)
#define OCT_CHUNK_G_ROWS (OCT_CHUNK_ROWS + OCT_TILE_ROWS - 1)
#define OCT_CHUNK_G_COLUMNS (OCT_CHUNK_COLUMNS + OCT_TILE_COLUMNS - 1)
#define OCT_CHUNK_G_PITCH 97u
#define OCT_TILE_FLOATS (OCT_CHUNK_PIXELS + OCT_CHUNK_G_ROWS * OCT_CHUNK_G_PITCH)

/* The y-th row and x-th column of tiles of a search. */
struct oct_search_tile {
    uint32_t search, y, x;
};

static inline uint32_t oct_window_tiles(uint32_t n_shifts, uint32_t per_tile)
{
    return (n_shifts + per_tile - 1) / per_tile;
}

/* Of a search of so many rows and columns of shifts. */
static inline size_t oct_window_n_tiles(uint32_t rows, uint32_t columns)
{
    return (size_t)oct_window_tiles(rows, OCT_TILE_ROWS) *
           oct_window_tiles(columns, OCT_TILE_COLUMNS);
}

/* Writes the tiles of the i-th search of a launch. Returns how many. */
static inline unsigned oct_window_list_tiles(struct oct_search_tile *tiles, uint32_t i,
                                             const struct oct_search &search)
{
    unsigned n = 0;
    for (uint32_t y = 0; y < oct_window_tiles(search.rows, OCT_TILE_ROWS); y++)
        for (uint32_t x = 0; x < oct_window_tiles(search.columns, OCT_TILE_COLUMNS); x++)
            tiles[n++] = {i, y, x};
    return n;
}

/* Sums at a thread's four shifts. */
struct oct_window_sums {
    double products[OCT_TILE_PER_THREAD], n[OCT_TILE_PER_THREAD], f[OCT_TILE_PER_THREAD],
        g[OCT_TILE_PER_THREAD], f_squares[OCT_TILE_PER_THREAD], g_squares[OCT_TILE_PER_THREAD];
};

/* A chunk of f, and of g around it; beyond the pictures and the rows of the window are zeros. */
static __device__ void oct_window_load_chunk(const struct oct_correlation_shape &s, const float *f,
                                             const float *g, const struct oct_search &w,
                                             uint32_t row, uint32_t x, int dy, int dx,
                                             float *shared)
{
    float *shared_g = shared + OCT_CHUNK_PIXELS;
    for (uint32_t k = threadIdx.x; k < OCT_CHUNK_PIXELS; k += OCT_TILE_THREADS) {
        const uint32_t v = row + k / OCT_CHUNK_COLUMNS, u = x + k % OCT_CHUNK_COLUMNS;
        const bool inside = v < w.n_rows && u < s.width;
        shared[k] = inside ? f[(size_t)(w.y0 + v) * s.padded_width + u] : 0;
    }
    for (uint32_t k = threadIdx.x; k < OCT_CHUNK_G_ROWS * OCT_CHUNK_G_COLUMNS;
         k += OCT_TILE_THREADS) {
        const int v = (int)(w.y0 + row + k / OCT_CHUNK_G_COLUMNS) + dy;
        const int u = (int)(x + k % OCT_CHUNK_G_COLUMNS) + dx;
        const bool inside = v >= 0 && v < (int)s.height && u >= 0 && u < (int)s.width;
        shared_g[k / OCT_CHUNK_G_COLUMNS * OCT_CHUNK_G_PITCH + k % OCT_CHUNK_G_COLUMNS] =
            inside ? g[(size_t)v * s.padded_width + (size_t)u] : 0;
    }
}

/* The products of a chunk at a thread's shifts: sums in f32, added to those in double. */
static __device__ void oct_window_add_plain(const float *shared, uint32_t row, uint32_t group,
                                            struct oct_window_sums &sums)
{
    const float *f = shared;
    const float *g =
        shared + OCT_CHUNK_PIXELS + row * OCT_CHUNK_G_PITCH + group * OCT_TILE_PER_THREAD;
    float part[OCT_TILE_PER_THREAD] = {0, 0, 0, 0};
    for (uint32_t v = 0; v < OCT_CHUNK_ROWS; v++, f += OCT_CHUNK_COLUMNS, g += OCT_CHUNK_G_PITCH) {
        float g0 = g[0], g1 = g[1], g2 = g[2];
#pragma unroll 16
        for (uint32_t u = 0; u < OCT_CHUNK_COLUMNS; u++) {
            const float a = f[u], g3 = g[u + 3];
            part[0] = fmaf(a, g0, part[0]);
            part[1] = fmaf(a, g1, part[1]);
            part[2] = fmaf(a, g2, part[2]);
            part[3] = fmaf(a, g3, part[3]);
            g0 = g1;
            g1 = g2;
            g2 = g3;
        }
    }
    for (uint32_t k = 0; k < OCT_TILE_PER_THREAD; k++)
        sums.products[k] += part[k];
}

/* With masks: the values are 0 where the mask is. masks: a chunk as `values`. */
static __device__ void oct_window_add_masked(const float *values, const float *masks, uint32_t row,
                                             uint32_t group, struct oct_window_sums &sums)
{
    const size_t at = OCT_CHUNK_PIXELS + row * OCT_CHUNK_G_PITCH + group * OCT_TILE_PER_THREAD;
    for (uint32_t k = 0; k < OCT_TILE_PER_THREAD; k++) {
        float products = 0, n = 0, f = 0, g = 0, f_squares = 0, g_squares = 0;
        for (uint32_t v = 0; v < OCT_CHUNK_ROWS; v++)
            for (uint32_t u = 0; u < OCT_CHUNK_COLUMNS; u++) {
                const uint32_t i = v * OCT_CHUNK_COLUMNS + u;
                const size_t j = at + v * OCT_CHUNK_G_PITCH + u + k;
                const float a = values[i], b = values[j], m = masks[i], o = masks[j];
                const float am = a * o, bm = b * m;
                products = fmaf(a, b, products);
                n = fmaf(m, o, n);
                f += am;
                g += bm;
                f_squares = fmaf(a, am, f_squares);
                g_squares = fmaf(b, bm, g_squares);
            }
        sums.products[k] += products;
        sums.n[k] += n;
        sums.f[k] += f;
        sums.g[k] += g;
        sums.f_squares[k] += f_squares;
        sums.g_squares[k] += g_squares;
    }
}

/* Where a window meets the reference along an axis: in the picture. */
static __device__ struct oct_meeting oct_window_meet(uint32_t first, uint32_t n, uint32_t side,
                                                     int shift)
{
    struct oct_meeting m = oct_meet(side, side, shift);
    m.first = m.first > (int)first ? m.first : (int)first;
    m.end = m.end < (int)(first + n) ? m.end : (int)(first + n);
    m.end = m.end < m.first ? m.first : m.end;
    return m;
}

static __device__ float oct_window_score(double n, double products, struct oct_moments f,
                                         struct oct_moments g, double least)
{
    if (n < least || n < 1)
        return __int_as_float(0x7fc00000);
    return oct_zncc(n, products, f, g, OCT_CORRELATION_LEAST_VARIANCE * n,
                    OCT_CORRELATION_LEAST_VARIANCE * n);
}

static __device__ float oct_window_score_plain(const struct oct_correlation_shape &s,
                                               const struct oct_search &w,
                                               const struct oct_moments *f_boxes,
                                               const struct oct_moments *g_boxes, int dy, int dx,
                                               double products)
{
    const struct oct_meeting rows = oct_window_meet(w.y0, w.n_rows, s.height, dy);
    const struct oct_meeting columns = oct_window_meet(0, s.width, s.width, dx);
    const double n = (double)(rows.end - rows.first) * (columns.end - columns.first);
    if (n < 1)
        return __int_as_float(0x7fc00000);
    return oct_window_score(n, products, oct_box(f_boxes, s.width, rows, columns),
                            oct_box(g_boxes, s.width, oct_moved(rows, dy), oct_moved(columns, dx)),
                            w.least);
}

/* The scores of a tile of shifts; a block a tile. Boxes where there are no masks. */
static __global__ void oct_window_kernel(struct oct_correlation_shape s, const float *planes,
                                         const float *g_planes, const struct oct_moments *f_boxes,
                                         const struct oct_moments *g_boxes,
                                         const struct oct_search *searches,
                                         const struct oct_search_tile *tiles, float *scores)
{
    OCT_SHARED(float, shared);
    const struct oct_search_tile tile = tiles[blockIdx.x];
    const struct oct_search w = searches[tile.search];
    const size_t points = oct_correlation_points(s);
    const uint32_t row = threadIdx.x / OCT_TILE_GROUPS, group = threadIdx.x % OCT_TILE_GROUPS;
    const int dy = w.dy + (int)(tile.y * OCT_TILE_ROWS),
              dx = w.dx + (int)(tile.x * OCT_TILE_COLUMNS);
    const float *f = planes + w.picture * points;
    float *masks = shared + OCT_TILE_FLOATS;
    struct oct_window_sums sums = {};
    for (uint32_t v = 0; v < w.n_rows; v += OCT_CHUNK_ROWS)
        for (uint32_t u = 0; u < s.width; u += OCT_CHUNK_COLUMNS) {
            oct_window_load_chunk(s, f, g_planes, w, v, u, dy, dx, shared);
            if (s.masked)
                oct_window_load_chunk(s, f + s.n * points, g_planes + points, w, v, u, dy, dx,
                                      masks);
            __syncthreads();
            if (s.masked)
                oct_window_add_masked(shared, masks, row, group, sums);
            else
                oct_window_add_plain(shared, row, group, sums);
            __syncthreads();
        }
    const uint32_t y = tile.y * OCT_TILE_ROWS + row;
    for (uint32_t k = 0; k < OCT_TILE_PER_THREAD; k++) {
        const uint32_t x = tile.x * OCT_TILE_COLUMNS + group * OCT_TILE_PER_THREAD + k;
        if (y >= w.rows || x >= w.columns)
            continue;
        const int at_y = w.dy + (int)y, at_x = w.dx + (int)x;
        scores[w.first + (size_t)y * w.columns + x] =
            s.masked ? oct_window_score(sums.n[k], sums.products[k], {sums.f[k], sums.f_squares[k]},
                                        {sums.g[k], sums.g_squares[k]}, w.least)
                     : oct_window_score_plain(
                           s, w, f_boxes + w.picture * (size_t)(s.height + 1) * (s.width + 1),
                           g_boxes, at_y, at_x, sums.products[k]);
    }
}

/* Queues the scores of n_tiles tiles: pictures and reference as `of` holds them. */
static inline void oct_windows_queue(const struct oct_correlation &of,
                                     const struct oct_search *d_searches,
                                     const struct oct_search_tile *d_tiles, unsigned n_tiles,
                                     float *d_scores)
{
    const size_t floats = of.shape.masked ? 2 * OCT_TILE_FLOATS : OCT_TILE_FLOATS;
    OCT_LAUNCH((oct_window_kernel), dim3(n_tiles), dim3(OCT_TILE_THREADS), floats * sizeof(float),
               of.stream->stream, of.shape, of.d_planes, of.d_g_planes, of.d_boxes, of.d_g_boxes,
               d_searches, d_tiles, d_scores);
}

/* ---- the largest score of a search ---- */

#define OCT_BEST_THREADS 256u

struct oct_candidate {
    float score;
    uint32_t place;
};

/* The larger one; of equals the first. A place of UINT32_MAX: none. */
static __device__ bool oct_best_is_better(struct oct_candidate a, struct oct_candidate b)
{
    if (a.place == UINT32_MAX || b.place == UINT32_MAX)
        return a.place != UINT32_MAX;
    return a.score > b.score || (a.score == b.score && a.place < b.place);
}

static __device__ bool oct_best_is_sought(const struct oct_search &w, uint32_t y, uint32_t x)
{
    return y >= w.skip_y && y < w.rows - w.skip_y && x >= w.skip_x && x < w.columns - w.skip_x;
}

static __device__ struct oct_match oct_best_match_at(const struct oct_search &w,
                                                     const float *scores, struct oct_candidate best)
{
    const float none = __int_as_float(0x7fc00000);
    const bool found = best.place != UINT32_MAX;
    const int y = found ? (int)(best.place / w.columns) : 0;
    const int x = found ? (int)(best.place % w.columns) : 0;
    struct oct_match match = {
        found ? w.dy + y : 0, found ? w.dx + x : 0, found ? best.score : none, none, {}};
    for (int k = 0; k < 9; k++) {
        const int v = y + k / 3 - 1, u = x + k % 3 - 1;
        const bool inside =
            found && v >= 0 && u >= 0 && oct_best_is_sought(w, (uint32_t)v, (uint32_t)u);
        match.around[k / 3][k % 3] = inside ? scores[(size_t)v * w.columns + (size_t)u] : none;
    }
    return match;
}

/* The largest score of each search; a block a search. */
static __global__ void oct_best_kernel(const struct oct_search *searches, const float *all_scores,
                                       struct oct_match *matches)
{
    OCT_SHARED(struct oct_candidate, part);
    const struct oct_search w = searches[blockIdx.x];
    const float *scores = all_scores + w.first;
    const uint32_t n = w.rows * w.columns, t = threadIdx.x;
    struct oct_candidate best = {0, UINT32_MAX};
    for (uint32_t k = t; k < n; k += OCT_BEST_THREADS) {
        const struct oct_candidate c = {scores[k], k};
        if (c.score == c.score && oct_best_is_sought(w, k / w.columns, k % w.columns) &&
            oct_best_is_better(c, best))
            best = c;
    }
    part[t] = best;
    for (uint32_t half = OCT_BEST_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half && oct_best_is_better(part[t + half], part[t]))
            part[t] = part[t + half];
    }
    if (t == 0)
        matches[blockIdx.x] = oct_best_match_at(w, scores, part[0]);
}

/* Samples of the scores of whole pictures, weighted: oct_match_significance. A block a search. */
static __global__ void oct_best_sample_kernel(const struct oct_search *searches,
                                              const float *all_scores, uint32_t height,
                                              uint32_t width, float *samples)
{
    const struct oct_search w = searches[blockIdx.x];
    const size_t n = (size_t)w.rows * w.columns;
    for (uint32_t k = threadIdx.x; k < OCT_MATCH_SAMPLES; k += OCT_BEST_THREADS) {
        const size_t at = (size_t)((uint64_t)k * n / OCT_MATCH_SAMPLES);
        const int dy = w.dy + (int)(at / w.columns), dx = w.dx + (int)(at % w.columns);
        const float y = 1 - (float)(dy < 0 ? -dy : dy) / (float)height;
        const float x = 1 - (float)(dx < 0 ? -dx : dx) / (float)width;
        const float score = all_scores[w.first + at];
        samples[(size_t)blockIdx.x * OCT_MATCH_SAMPLES + k] = atanhf(score > 0.999f    ? 0.999f
                                                                     : score < -0.999f ? -0.999f
                                                                                       : score) *
                                                              sqrtf(y * x);
    }
}

/* Queues the matches of n searches. */
static inline void oct_best_queue(struct oct_cuda_stream *stream,
                                  const struct oct_search *d_searches, const float *d_scores,
                                  unsigned n, struct oct_match *d_matches)
{
    OCT_LAUNCH((oct_best_kernel), dim3(n), dim3(OCT_BEST_THREADS),
               OCT_BEST_THREADS * sizeof(struct oct_candidate), stream->stream, d_searches,
               d_scores, d_matches);
}

#endif
