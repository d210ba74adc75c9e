#include "analysis/warp/pair_range.h"

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

/* Counts what is within the range; what is beyond counts in the bins at its ends. */
static void count(const float *values, size_t n, const double range[2], uint32_t *counts)
{
    const double scale = N_BINS / (range[1] - range[0]);

    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i])) {
            const double bin = fmax(0, fmin(((double)values[i] - range[0]) * scale, N_BINS - 1.0));
            counts[(uint32_t)bin]++;
        }
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
    range[0] = fmin((double)least[0], (double)least[1]);
    range[1] = fmax((double)most[0], (double)most[1]);
    /* Values far beyond the others leave these one bin, which the next pass divides, with one more
     * on either side for what was rounded. */
    double before;
    do {
        memset(counts, 0, N_BINS * sizeof(*counts));
        count(fixed, n, range, counts);
        count(moving, n, range, counts);
        const double lo = oct_histogram_percentile(counts, N_BINS, LEAST_SHARE) - 1,
                     hi = oct_histogram_percentile(counts, N_BINS, 1 - LEAST_SHARE) + 2,
                     bin = (range[1] - range[0]) / N_BINS, base = range[0];
        before = range[1] - range[0];
        range[0] = base + lo * bin;
        range[1] = base + hi * bin;
    } while (range[1] - range[0] < before / COARSE);
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
