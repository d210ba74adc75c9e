#include "analysis/layers/denoise/distance.h"

#include "kernels/device/workers.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint32_t clamp(int64_t i, uint32_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : (uint32_t)i;
}

/* ---- of heights ---- */

const struct oct_distance_columns *oct_distance_columns_select(const char *name)
{
    static const struct oct_distance_columns *const sets[OCT_N_SIMD + 1] = {
        OCT_SIMD_ALL(oct_distance_columns)};
    return sets[oct_simd_choose(name)];
}

struct of_heights {
    const struct oct_distance_columns *columns;
    struct oct_distance_map map;
    float *phi;
};

static void fill_bscan(void *context, unsigned piece, unsigned worker)
{
    const struct of_heights *h = context;
    (void)worker;
    h->columns->run(&h->map, piece, h->phi + (size_t)piece * h->map.n_j * h->map.n_d);
}

enum oct_err oct_distance_of_heights(const float *heights, const uint32_t dims[3], double reach,
                                     struct oct_workers *workers, float *phi, struct oct_error *err)
{
    for (size_t i = 0; i < (size_t)dims[0] * dims[1]; i++)
        if (!isfinite(heights[i]))
            return oct_fail(err, OCT_E_ARG, "distances: a height is not a finite number");
    if (!(reach > 0 && reach <= OCT_DISTANCE_MOST_REACH))
        return oct_fail(err, OCT_E_ARG, "distances: a reach of %g voxels; give up to %g", reach,
                        OCT_DISTANCE_MOST_REACH);
    const int64_t far = (int64_t)ceil(reach) + 1;
    const size_t row = dims[1] + 2 * (size_t)far, n = (dims[0] + 2 * (size_t)far) * row;
    float *padded = malloc(n * sizeof(*padded)), *to = padded;
    if (!padded)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu heights", n);
    for (int64_t b = -far; b < dims[0] + far; b++)
        for (int64_t j = -far; j < dims[1] + far; j++)
            *to++ = heights[(size_t)clamp(b, dims[0]) * dims[1] + clamp(j, dims[1])];
    struct of_heights h = {
        .columns = oct_distance_columns_select("auto"),
        .map = {.heights = padded + (size_t)far * row + far,
                .row = (ptrdiff_t)row,
                .far = (ptrdiff_t)far - 1,
                .reach = (float)reach,
                .n_j = dims[1],
                .n_d = dims[2]},
        .phi = phi,
    };
    oct_workers_run(workers, dims[0], fill_bscan, &h);
    free(padded);
    return OCT_OK;
}

/* ---- of a mask ---- */

#define NOTHING (1 << 30) /* squared distance: no voxel of the other kind on this line */
#define MOST_EDGE 16384u  /* 3 * 16383^2 is less */

/* Squared distances are the least over a line of those of the lines before and the square of how
 * far their voxel is, an axis after the other. Nothing beyond the reach counts, so that a window
 * does. */
struct of_mask {
    const uint8_t *mask;
    const uint32_t *dims;
    double reach;
    int64_t window;
    float *phi;
    int32_t *squares; /* [n_b][n_j][n_d], to the nearest voxel of the other kind */
    int32_t *lines;   /* [threads][longest] */
    uint32_t longest;
};

/* n voxels that lie `step` apart. Of the other kind a voxel is where it is; of its own it has what
 * it has. */
static void transform_line(const struct of_mask *m, int32_t *line, size_t first, size_t step,
                           uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        line[i] = m->squares[first + i * step];
    for (int64_t x = 0; x < n; x++) {
        const bool kind = m->mask[first + (size_t)x * step] != 0;
        const int64_t end = x + m->window < n ? x + m->window + 1 : n;
        int32_t best = NOTHING;
        for (int64_t i = x > m->window ? x - m->window : 0; i < end; i++) {
            const bool is_own = (m->mask[first + (size_t)i * step] != 0) == kind;
            const int32_t square = (is_own ? line[i] : 0) + (int32_t)((x - i) * (x - i));
            best = square < best ? square : best;
        }
        m->squares[first + (size_t)x * step] = best;
    }
}

/* A B-scan: along d, then along j. */
static void transform_bscan(void *context, unsigned b, unsigned worker)
{
    const struct of_mask *m = context;
    const uint32_t n_j = m->dims[1], n_d = m->dims[2];
    const size_t first = (size_t)b * n_j * n_d;
    int32_t *line = m->lines + (size_t)worker * m->longest;
    for (size_t i = first; i < first + (size_t)n_j * n_d; i++)
        m->squares[i] = NOTHING;
    for (uint32_t j = 0; j < n_j; j++)
        transform_line(m, line, first + (size_t)j * n_d, 1, n_d);
    for (uint32_t d = 0; d < n_d; d++)
        transform_line(m, line, first + d, n_d, n_j);
}

/* Along b, for all depths of an A-line, and the root. */
static void transform_across(void *context, unsigned j, unsigned worker)
{
    const struct of_mask *m = context;
    const uint32_t n_b = m->dims[0], n_d = m->dims[2];
    const size_t step = (size_t)m->dims[1] * n_d;
    for (uint32_t d = 0; d < n_d; d++) {
        const size_t first = (size_t)j * n_d + d;
        transform_line(m, m->lines + (size_t)worker * m->longest, first, step, n_b);
        for (size_t at = first, i = 0; i < n_b; i++, at += step) {
            const double away = fmin(sqrt(m->squares[at]) - 0.5, m->reach);
            m->phi[at] = (float)(m->mask[at] ? -away : away);
        }
    }
}

static bool has_both(const uint8_t *mask, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!mask[i] != !mask[0])
            return true;
    return false;
}

enum oct_err oct_distance_of_mask(const uint8_t *mask, const uint32_t dims[3], double reach,
                                  struct oct_workers *workers, float *phi, struct oct_error *err)
{
    const size_t n_threads = workers ? oct_workers_n_threads(workers) + 1 : 1;
    const size_t n = (size_t)dims[0] * dims[1] * dims[2];
    struct of_mask m = {.mask = mask, .dims = dims, .reach = reach, .phi = phi};
    for (unsigned i = 0; i < 3; i++) {
        if (dims[i] < 1 || dims[i] >= MOST_EDGE)
            return oct_fail(err, OCT_E_ARG,
                            "a mask of %u x %u x %u voxels: 1 to %u along each axis", dims[0],
                            dims[1], dims[2], MOST_EDGE - 1);
        m.longest = dims[i] > m.longest ? dims[i] : m.longest;
    }
    if (!(reach > 0))
        return oct_fail(err, OCT_E_ARG, "a reach of %g voxels: more than 0", reach);
    if (!has_both(mask, n))
        return oct_fail(err, OCT_E_ARG, "the mask has no border: all its voxels are %s",
                        mask[0] ? "set" : "0");
    m.window = (int64_t)fmin(ceil(reach + 0.5), MOST_EDGE);
    m.squares = malloc(n * sizeof(*m.squares));
    m.lines = malloc(n_threads * m.longest * sizeof(*m.lines));
    if (m.squares && m.lines) {
        oct_workers_run(workers, dims[0], transform_bscan, &m);
        oct_workers_run(workers, dims[1], transform_across, &m);
    }
    const bool has_memory = m.squares && m.lines;
    free(m.squares);
    free(m.lines);
    return has_memory ? OCT_OK
                      : oct_fail(err, OCT_E_NO_MEMORY,
                                 "the distances of a mask of %u x %u x %u voxels take %.2f GB",
                                 dims[0], dims[1], dims[2], (double)n * sizeof(*m.squares) * 1e-9);
}
