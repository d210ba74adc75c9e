/* Intensities of two volumes on one scale. */
#include "analysis/warp/pair.h"
#include "kernels/device/workers.h"
#include "pipeline/base/histogram.h"
#include "pipeline/base/wide.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_SHARE 0.005
#define N_BINS 65536u
#define COARSE 256 /* a range that shrank by more was of few bins */
#define PIECE ((size_t)1 << 18)

/* ---- the range ---- */

/* Widens `within` to the values within the range, and counts them; what is beyond counts in the
 * bins at its ends. counts NULL: not counted. */
static void count_values(const float *values, size_t n, const double range[2], uint32_t *counts,
                         double within[2])
{
    const double scale = N_BINS / (range[1] - range[0]);

    for (size_t i = 0; i < n; i++) {
        const double value = (double)values[i];
        if (!isfinite(values[i]))
            continue;
        if (counts)
            counts[(uint32_t)fmax(0, fmin((value - range[0]) * scale, N_BINS - 1.0))]++;
        if (value >= range[0] && value <= range[1]) {
            within[0] = fmin(within[0], value);
            within[1] = fmax(within[1], value);
        }
    }
}

/* The range between the percentiles of both volumes; it stays where they are one value. */
static void narrow_range(const float *const volume[2], size_t n, uint32_t *counts, double range[2])
{
    double now[2] = {range[0], range[1]}, before;

    /* Values far beyond the others leave these one bin, which the next pass divides, with one more
     * on either side for what was rounded. */
    do {
        double within[2] = {INFINITY, -INFINITY};
        memset(counts, 0, N_BINS * sizeof(*counts));
        for (unsigned v = 0; v < 2; v++)
            count_values(volume[v], n, now, counts, within);
        if (!(within[0] < within[1]))
            return;
        const double lo = oct_histogram_percentile(counts, N_BINS, LEAST_SHARE) - 1,
                     hi = oct_histogram_percentile(counts, N_BINS, 1 - LEAST_SHARE) + 2,
                     bin = (now[1] - now[0]) / N_BINS, base = now[0];
        before = now[1] - now[0];
        now[0] = base + lo * bin;
        now[1] = base + hi * bin;
    } while (now[1] - now[0] < before / COARSE);
    memcpy(range, now, sizeof(now));
}

enum oct_err oct_warp_range(const float *fixed, const float *moving, size_t n, double range[2],
                            struct oct_error *err)
{
    const float *const volume[2] = {fixed, moving};
    static const char *const name[2] = {"fixed", "moving"};
    const double all[2] = {-INFINITY, INFINITY};

    range[0] = INFINITY;
    range[1] = -INFINITY;
    for (unsigned v = 0; v < 2; v++) {
        double within[2] = {INFINITY, -INFINITY};
        count_values(volume[v], n, all, NULL, within);
        if (!(within[0] < within[1]))
            return oct_fail(err, OCT_E_ARG, "the %s volume %s", name[v],
                            within[0] <= within[1] ? "is constant" : "has nothing finite");
        range[0] = fmin(range[0], within[0]);
        range[1] = fmax(range[1], within[1]);
    }
    uint32_t *counts = malloc(N_BINS * sizeof(*counts));
    if (!counts)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a histogram");
    narrow_range(volume, n, counts, range);
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

/* n values, `step` apart: what is NaN becomes the nearest before it, else behind it. */
static void fill_line(float *line, size_t step, uint32_t n)
{
    uint32_t first = 0;

    while (first < n && isnan(line[first * step]))
        first++;
    for (uint32_t i = 0; i < n && first < n; i++)
        if (isnan(line[i * step]))
            line[i * step] = line[(i < first ? first : i - 1) * step];
}

void oct_warp_fill(const float *from, const uint32_t dims[3], float *to)
{
    const size_t row = dims[2], plane = row * dims[1], n = plane * dims[0];
    size_t n_holes = 0;

    for (size_t i = 0; i < n; i++)
        n_holes += isfinite(from[i]) ? 0 : 1;
    if (n_holes == 0)
        return;
    for (size_t i = 0; i < n; i++)
        to[i] = isfinite(from[i]) ? to[i] : NAN;
    for (size_t i = 0; i < n; i++)
        if (i / row % dims[1] == 0)
            fill_line(to + i, row, dims[1]);
    for (size_t i = 0; i < plane; i++)
        fill_line(to + i, plane, dims[0]);
    for (size_t i = 0; i < n; i++)
        to[i] = isnan(to[i]) ? 0 : to[i];
}
