/* Fractions of voxels: each B-scan against the moving ones around its place on the path, by ZNCC of
 * pixels that are smoothed a little. Each of these has a shift of its own, as the eye moved from
 * one to the next; that of a place between two of them lies between theirs. */
#include "analysis/align/subpixel.h"
#include "analysis/warp/bscans_parts.h"
#include "kernels/device/workers.h"
#include "numeric/parabola.h"
#include "pipeline/base/wide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Independent noise of two pixels that are mixed is less than that of one, which draws parabolas
 * towards halves; smoothed pixels have less of it. Measured on synthetic eyes: 0.5 px and none are
 * worse by a third, 1.3 px is as good. */
#define SMOOTH_PX 1.0
#define TAPS 3 /* on either side */

#define PART_BELOW 0.05 /* how far the floor of scores lies below the lowest */
#define REACH 3u        /* B-scans on either side of the path */
#define MOST_STEPS 12   /* of a climb */
#define LANES 16u

struct fitting {
    const uint32_t *dims;
    const float *volume[2]; /* fixed, moving */
    float *smooth[2];
    float *rows; /* [worker][M][D] */
    float kernel[2 * TAPS + 1];
    const struct oct_warp_shift *path;
    struct oct_warp_bscan *bscans;
};

static size_t pixels_of(const uint32_t dims[3])
{
    return (size_t)dims[1] * dims[2];
}

/* ---- smoothing ---- */

static void make_kernel(float kernel[2 * TAPS + 1])
{
    double weight[2 * TAPS + 1], sum = 0;

    for (int i = -TAPS; i <= TAPS; i++)
        sum += weight[i + TAPS] = exp(-i * i / (2.0 * SMOOTH_PX * SMOOTH_PX));
    for (int i = 0; i <= 2 * TAPS; i++)
        kernel[i] = (float)(weight[i] / sum);
}

static size_t held(int64_t i, size_t n)
{
    return i < 0 ? 0 : (size_t)i < n ? (size_t)i : n - 1;
}

OCT_WIDE static void smooth_lines(const float *from, size_t height, size_t width,
                                  const float *kernel, float *to)
{
    memset(to, 0, height * width * sizeof(float));
    for (size_t y = 0; y < height; y++)
        for (int i = -TAPS; i <= TAPS; i++) {
            const float *row = from + held((int64_t)y + i, height) * width;
            const float weight = kernel[i + TAPS];
            for (size_t x = 0; x < width; x++)
                to[y * width + x] += weight * row[x];
        }
}

OCT_WIDE static void smooth_depth(const float *from, size_t height, size_t width,
                                  const float *kernel, float *to)
{
    for (size_t y = 0; y < height; y++) {
        const float *row = from + y * width;
        for (size_t x = 0; x < width; x++) {
            float sum = 0;
            if (x >= TAPS && x + TAPS < width)
                for (int i = -TAPS; i <= TAPS; i++)
                    sum += kernel[i + TAPS] * row[(int64_t)x + i];
            else
                for (int i = -TAPS; i <= TAPS; i++)
                    sum += kernel[i + TAPS] * row[held((int64_t)x + i, width)];
            to[y * width + x] = sum;
        }
    }
}

static void smooth_bscan(void *context, unsigned piece, unsigned worker)
{
    const struct fitting *s = context;
    const uint32_t v = piece / s->dims[0], b = piece % s->dims[0];
    const size_t n = pixels_of(s->dims);
    float *rows = s->rows + worker * n;

    smooth_lines(s->volume[v] + b * n, s->dims[1], s->dims[2], s->kernel, rows);
    smooth_depth(rows, s->dims[1], s->dims[2], s->kernel, s->smooth[v] + b * n);
}

/* ---- ZNCC ---- */

struct products {
    double f, g, ff, gg, fg;
};

OCT_WIDE static void add_row(const float *restrict f, const float *restrict g, size_t n,
                             struct products *sums)
{
    float a[5][LANES] = {0};
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (unsigned l = 0; l < LANES; l++) {
            const float x = f[i + l], y = g[i + l];
            a[0][l] += x;
            a[1][l] += y;
            a[2][l] += x * x;
            a[3][l] += y * y;
            a[4][l] += x * y;
        }
    for (; i < n; i++) {
        a[0][0] += f[i];
        a[1][0] += g[i];
        a[2][0] += f[i] * f[i];
        a[3][0] += g[i] * g[i];
        a[4][0] += f[i] * g[i];
    }
    for (unsigned l = 0; l < LANES; l++) {
        sums->f += (double)a[0][l];
        sums->g += (double)a[1][l];
        sums->ff += (double)a[2][l];
        sums->gg += (double)a[3][l];
        sums->fg += (double)a[4][l];
    }
}

/* Of B-scans f and g at a shift; NaN: one of them is blank, or they share too little. */
static float zncc(const struct fitting *s, const float *f, const float *g, int32_t dy, int32_t dx)
{
    const size_t height = s->dims[1], width = s->dims[2];
    const size_t by_y = (size_t)abs(dy), by_x = (size_t)abs(dx);
    struct products p = {0};

    if (by_y >= height || by_x >= width)
        return NAN;
    const double n = (double)(height - by_y) * (double)(width - by_x);
    if (n < OCT_WARP_LEAST_SHARED * (double)(height * width))
        return NAN;
    for (size_t y = 0; y < height - by_y; y++)
        add_row(f + (y + (dy < 0 ? by_y : 0)) * width + (dx < 0 ? by_x : 0),
                g + (y + (dy < 0 ? 0 : by_y)) * width + (dx < 0 ? 0 : by_x), width - by_x, &p);
    const double ff = p.ff - p.f * p.f / n, gg = p.gg - p.g * p.g / n;
    if (!(ff > 1e-9 * p.ff && gg > 1e-9 * p.gg))
        return NAN;
    return (float)((p.fg - p.f * p.g / n) / sqrt(ff * gg));
}

struct peak {
    double value, y, x; /* value NaN: there is none */
};

/* The nine scores around `match`, those that are known from the step before kept. */
static void look_around(const struct fitting *s, const float *f, const float *g,
                        struct oct_match *match)
{
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            if (isnan(match->around[i][k]))
                match->around[i][k] = zncc(s, f, g, match->dy + i - 1, match->dx + k - 1);
}

/* What a parabola through three values rises above the middle one, its maximum at t. */
static double rise(float before, float after, double t)
{
    return isnan(before) || isnan(after) ? 0 : 0.25 * ((double)after - (double)before) * t;
}

static struct peak climb(const struct fitting *s, const float *f, const float *g, int32_t dy,
                         int32_t dx)
{
    struct oct_match match = {.dy = dy, .dx = dx};
    double y, x;

    for (int i = 0; i < 9; i++)
        match.around[i / 3][i % 3] = NAN;
    look_around(s, f, g, &match);
    for (int i = 0; i < MOST_STEPS && !isnan(match.around[1][1]) && oct_match_step(&match); i++)
        look_around(s, f, g, &match);
    float(*const a)[3] = match.around;
    if (isnan(a[1][1]))
        return (struct peak){.value = NAN};
    oct_subpixel_parabola(&match, &y, &x);
    return (struct peak){.value = (double)a[1][1] + rise(a[0][1], a[2][1], y) +
                                  rise(a[1][0], a[1][2], x),
                         .y = match.dy + y,
                         .x = match.dx + x};
}

/* ---- B-scans ---- */

/* Where the maximum of three values lies, from the middle one. ZNCC falls from B-scan to B-scan
 * like a Gaussian, the beam with itself, to that of B-scans that share layers alone; its logarithm
 * above that floor is a parabola, while one through the scores themselves would be off by up to
 * 0.09 B-scans. 0: one of them is NaN, or there is no maximum. */
static double vertex(double before, double middle, double after, double floor_score)
{
    return oct_parabola_top(log(before - floor_score), log(middle - floor_score),
                            log(after - floor_score));
}

static void fit_bscan(void *context, unsigned b, unsigned worker)
{
    const struct fitting *s = context;
    const size_t n = pixels_of(s->dims);
    const struct oct_warp_shift *to = &s->path[b];
    struct oct_warp_bscan *bscan = &s->bscans[b];
    struct peak peaks[2 * REACH + 3]; /* one more on either side is NaN */
    double lowest = INFINITY;
    unsigned best = 0;

    (void)worker;
    for (unsigned i = 0; i < 2 * REACH + 3; i++) {
        const int64_t m = (int64_t)b + to->at[0] + i - (REACH + 1);
        peaks[i].value = NAN;
        if (i == 0 || i == 2 * REACH + 2 || m < 0 || m >= s->dims[0])
            continue;
        peaks[i] =
            climb(s, s->smooth[0] + b * n, s->smooth[1] + (size_t)m * n, to->at[1], to->at[2]);
        if (peaks[i].value > peaks[best].value || isnan(peaks[best].value))
            best = i;
        lowest = fmin(lowest, peaks[i].value);
    }
    *bscan = (struct oct_warp_bscan){.shift = {to->at[0], to->at[1], to->at[2]}, .score = NAN};
    if (isnan(peaks[best].value))
        return;
    const struct peak *at = &peaks[best];
    const double t =
        vertex(at[-1].value, at->value, at[1].value, lowest - PART_BELOW * (at->value - lowest));
    const struct peak *other = t < 0 ? at - 1 : t > 0 ? at + 1 : at;
    bscan->shift[0] = (double)to->at[0] + best - (REACH + 1.0) + t;
    bscan->shift[1] = at->y + fabs(t) * (other->y - at->y);
    bscan->shift[2] = at->x + fabs(t) * (other->x - at->x);
    bscan->score = at->value;
}

enum oct_err oct_warp_bscans_fit(const uint32_t dims[3], const float *fixed, const float *moving,
                                 const struct oct_warp_shift *path, struct oct_workers *workers,
                                 struct oct_warp_bscan *bscans, struct oct_error *err)
{
    const size_t n = pixels_of(dims);
    const unsigned n_slots = workers ? oct_workers_n_threads(workers) + 1 : 1;
    struct fitting s = {
        .dims = dims,
        .volume = {fixed, moving},
        .smooth = {malloc(dims[0] * n * sizeof(float)), malloc(dims[0] * n * sizeof(float))},
        .rows = malloc(n_slots * n * sizeof(float)),
        .path = path,
        .bscans = bscans};
    const bool ok = s.smooth[0] && s.smooth[1] && s.rows;

    if (ok) {
        make_kernel(s.kernel);
        oct_workers_run(workers, 2 * dims[0], smooth_bscan, &s);
        oct_workers_run(workers, dims[0], fit_bscan, &s);
    }
    free(s.smooth[0]);
    free(s.smooth[1]);
    free(s.rows);
    return ok ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for smoothed B-scans");
}
