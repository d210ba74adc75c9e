/* Intensities of two volumes on one scale. */
#include "analysis/warp/pair.h"

#include "kernels/device/workers.h"
#include "pipeline/base/histogram.h"
#include "pipeline/base/wide.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_SHARE 0.005
#define N_BINS 65536u
#define COARSE 256 /* a range that shrank by more was of few bins */
#define PIECE ((size_t)1 << 18)

/* ---- the range ---- */

/* false: nothing is finite. */
static bool extremes(const float *values, size_t n, float *least, float *most)
{
    float lo = INFINITY, hi = -INFINITY;

    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i])) {
            lo = fminf(lo, values[i]);
            hi = fmaxf(hi, values[i]);
        }
    *least = lo;
    *most = hi;
    return lo <= hi;
}

/* Counts what is within the range; what is beyond counts in the bins at its ends. within: the least
 * and the greatest value that the range holds, widened here. */
static void count(const float *values, size_t n, const double range[2], uint32_t *counts,
                  double within[2])
{
    const double scale = N_BINS / (range[1] - range[0]);

    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i])) {
            const double value = (double)values[i];
            const double bin = fmax(0, fmin((value - range[0]) * scale, N_BINS - 1.0));
            counts[(uint32_t)bin]++;
            if (value >= range[0] && value <= range[1]) {
                within[0] = fmin(within[0], value);
                within[1] = fmax(within[1], value);
            }
        }
}

/* The range between the percentiles of both volumes; false: they are one value. */
static bool narrow(const float *const volume[2], size_t n, uint32_t *counts, double range[2])
{
    double before;

    /* Values far beyond the others leave these one bin, which the next pass divides, with one more
     * on either side for what was rounded. */
    do {
        double within[2] = {INFINITY, -INFINITY};
        memset(counts, 0, N_BINS * sizeof(*counts));
        for (unsigned v = 0; v < 2; v++)
            count(volume[v], n, range, counts, within);
        if (!(within[0] < within[1]))
            return false;
        const double lo = oct_histogram_percentile(counts, N_BINS, LEAST_SHARE) - 1,
                     hi = oct_histogram_percentile(counts, N_BINS, 1 - LEAST_SHARE) + 2,
                     bin = (range[1] - range[0]) / N_BINS, base = range[0];
        before = range[1] - range[0];
        range[0] = base + lo * bin;
        range[1] = base + hi * bin;
    } while (range[1] - range[0] < before / COARSE);
    return true;
}

enum oct_err oct_warp_range(const float *fixed, const float *moving, size_t n, double range[2],
                            struct oct_error *err)
{
    const float *const volume[2] = {fixed, moving};
    static const char *const name[2] = {"fixed", "moving"};
    float least[2], most[2];

    for (unsigned v = 0; v < 2; v++) {
        if (!extremes(volume[v], n, &least[v], &most[v]))
            return oct_fail(err, OCT_E_ARG, "the %s volume has nothing finite", name[v]);
        if (!(least[v] < most[v]))
            return oct_fail(err, OCT_E_ARG, "the %s volume is constant", name[v]);
    }
    uint32_t *counts = malloc(N_BINS * sizeof(*counts));
    if (!counts)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a histogram");
    const double all[2] = {fmin((double)least[0], (double)least[1]),
                           fmax((double)most[0], (double)most[1])};
    memcpy(range, all, sizeof(all));
    if (!narrow(volume, n, counts, range))
        memcpy(range, all, sizeof(all));
    free(counts);
    return OCT_OK;
}

/* ---- the scale ---- */

struct scaling {
    const float *from;
    float *to;
    size_t n;
    float least, scale;
};

OCT_WIDE static void scale_values(const float *restrict from, size_t n, float least, float scale,
                                  float *restrict to)
{
    for (size_t i = 0; i < n; i++) {
        const float x = (from[i] - least) * scale, held = x < 0 ? 0 : x > 1 ? 1 : x;
        to[i] = fabsf(from[i]) <= FLT_MAX ? held : 0;
    }
}

static void scale_piece(void *context, unsigned piece, unsigned worker)
{
    const struct scaling *s = context;
    const size_t first = piece * PIECE, n = s->n - first < PIECE ? s->n - first : PIECE;

    (void)worker;
    scale_values(s->from + first, n, s->least, s->scale, s->to + first);
}

void oct_warp_scale(const float *from, size_t n, const double range[2], struct oct_workers *workers,
                    float *to)
{
    struct scaling s = {.from = from,
                        .to = to,
                        .n = n,
                        .least = (float)range[0],
                        .scale = (float)(1 / (range[1] - range[0]))};

    oct_workers_run(workers, (unsigned)((n + PIECE - 1) / PIECE), scale_piece, &s);
}

/* ---- what is not finite ---- */

/* One row of values, `step` apart: what is not there is as the nearest before it, else behind it.
 * Returns whether anything is there. */
static bool fill_row(const float *from, size_t step, uint32_t n, float *to)
{
    uint32_t first = 0;

    while (first < n && !isfinite(from[first * step]))
        first++;
    if (first == n)
        return false;
    for (uint32_t i = 0; i < first; i++)
        to[i * step] = to[first * step];
    for (uint32_t i = first + 1; i < n; i++)
        if (!isfinite(from[i * step]))
            to[i * step] = to[(i - 1) * step];
    return true;
}

/* The same depth of B-scan b as that of B-scan `like`. */
static void copy_depth(const uint32_t dims[3], uint32_t like, uint32_t b, size_t d, float *to)
{
    const size_t row = dims[2], plane = row * dims[1];

    for (size_t j = 0; j < dims[1]; j++)
        to[b * plane + j * row + d] = to[like * plane + j * row + d];
}

static void fill_depth(const float *from, const uint32_t dims[3], size_t d, float *to)
{
    const size_t plane = (size_t)dims[2] * dims[1];
    uint32_t last = UINT32_MAX; /* B-scan with something at this depth */

    for (uint32_t b = 0; b < dims[0]; b++) {
        if (fill_row(from + b * plane + d, dims[2], dims[1], to + b * plane + d)) {
            for (uint32_t before = 0; last == UINT32_MAX && before < b; before++)
                copy_depth(dims, b, before, d, to);
            last = b;
        } else if (last != UINT32_MAX) {
            copy_depth(dims, last, b, d, to);
        }
    }
}

void oct_warp_fill(const float *from, const uint32_t dims[3], float *to)
{
    const size_t n = (size_t)dims[0] * dims[1] * dims[2];
    size_t i = 0;

    while (i < n && isfinite(from[i]))
        i++;
    for (size_t d = 0; i < n && d < dims[2]; d++)
        fill_depth(from, dims, d, to);
}
