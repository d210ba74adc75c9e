/* Fractions of voxels: each B-scan against the moving ones around its place on the path, by ZNCC of
 * pixels that are smoothed a little. Each of these has a shift of its own, as the eye moved from
 * one to the next; that of a place between two of them lies between theirs. */
#include "analysis/align/level.h"
#include "analysis/align/subpixel.h"
#include "analysis/warp/bscans.h"
#include "analysis/warp/levels.h"
#include "kernels/device/workers.h"
#include "numeric/parabola.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Independent noise of two pixels that are mixed is less than that of one, which draws parabolas
 * towards halves; smoothed pixels have less of it. Measured on synthetic eyes: 0.5 px and none are
 * worse by a third, 1.3 px is as good. */
#define SMOOTH_PX 1.0

#define PART_BELOW 0.05 /* how far the floor of scores lies below the lowest */
#define REACH 3u        /* B-scans on either side of the path */
#define MOST_STEPS 12   /* of a climb */

struct fitting {
    uint32_t dims[3];
    const float *volume[2];      /* fixed, moving */
    struct oct_level *smooth[2]; /* [V] */
    struct oct_warp_gauss gauss;
    struct oct_zncc_sums *sums; /* [n_slots] */
    float *scratch;             /* [n_slots][n_scratch] */
    size_t n_scratch;
    unsigned n_slots;
    const struct oct_warp_shift *path;
    struct oct_warp_bscan *bscans;
};

static void smooth_bscan(void *context, unsigned piece, unsigned worker)
{
    const struct fitting *s = context;
    const uint32_t v = piece / s->dims[0], b = piece % s->dims[0];
    const size_t n = (size_t)s->dims[1] * s->dims[2];
    float *pixels = s->scratch + worker * s->n_scratch;
    const struct oct_picture picture = {s->dims[1], s->dims[2], pixels, NULL};

    memcpy(pixels, s->volume[v] + b * n, n * sizeof(float));
    oct_warp_smooth_plane(&s->gauss, s->dims, pixels, pixels + n);
    oct_level_set(&s->smooth[v][b], &picture);
}

struct peak {
    double value, y, x; /* value NaN: there is none */
};

/* What a parabola through three values rises above the middle one, its maximum at t. */
static double rise_of(float before, float after, double t)
{
    return isnan(before) || isnan(after) ? 0 : 0.25 * ((double)after - (double)before) * t;
}

static struct peak find_peak(const struct fitting *s, struct oct_zncc_sums *sums, unsigned b,
                             int64_t m, const struct oct_warp_shift *from)
{
    struct oct_match match = {.dy = from->at[1], .dx = from->at[2]};
    const struct oct_level *f = &s->smooth[0][b];
    double y, x;

    if (m < 0 || m >= s->dims[0] || !f->has_contrast || !s->smooth[1][m].has_contrast)
        return (struct peak){.value = NAN};
    oct_zncc_sums_begin(sums, f, &s->smooth[1][m], 0, s->dims[1], OCT_WARP_LEAST_SHARED);
    oct_zncc_sums_climb(sums, &match, s->dims[1], s->dims[2], MOST_STEPS);
    float(*const a)[3] = match.around;
    if (isnan(a[1][1]))
        return (struct peak){.value = NAN};
    oct_subpixel_parabola(&match, &y, &x);
    return (struct peak){.value = (double)a[1][1] + rise_of(a[0][1], a[2][1], y) +
                                  rise_of(a[1][0], a[1][2], x),
                         .y = match.dy + y,
                         .x = match.dx + x};
}

/* Where the maximum of three values lies, from the middle one. ZNCC falls from B-scan to B-scan
 * like a Gaussian, the beam with itself, to that of B-scans that share layers alone; its logarithm
 * above that floor is a parabola, while one through the scores themselves would be off by up to
 * 0.09 B-scans. 0: one of them is NaN, or there is no maximum. */
static double top_of(double before, double middle, double after, double floor_score)
{
    return oct_parabola_top(log(before - floor_score), log(middle - floor_score),
                            log(after - floor_score));
}

static void fit_bscan(void *context, unsigned b, unsigned worker)
{
    const struct fitting *s = context;
    const struct oct_warp_shift *to = &s->path[b];
    struct oct_warp_bscan *bscan = &s->bscans[b];
    struct peak peaks[2 * REACH + 3]; /* one more on either side is NaN */
    double lowest = INFINITY;
    unsigned best = 0;

    for (unsigned i = 0; i < 2 * REACH + 3; i++) {
        peaks[i].value = NAN;
        if (i == 0 || i == 2 * REACH + 2)
            continue;
        peaks[i] = find_peak(s, &s->sums[worker], b, (int64_t)b + to->at[0] + i - (REACH + 1), to);
        if (peaks[i].value > peaks[best].value || isnan(peaks[best].value))
            best = i;
        lowest = fmin(lowest, peaks[i].value);
    }
    *bscan = (struct oct_warp_bscan){.shift = {to->at[0], to->at[1], to->at[2]}, .score = NAN};
    if (isnan(peaks[best].value))
        return;
    const struct peak *at = &peaks[best];
    const double t =
        top_of(at[-1].value, at->value, at[1].value, lowest - PART_BELOW * (at->value - lowest));
    const struct peak *other = t < 0 ? at - 1 : t > 0 ? at + 1 : at;
    bscan->shift[0] = (double)to->at[0] + best - (REACH + 1.0) + t;
    bscan->shift[1] = at->y + fabs(t) * (other->y - at->y);
    bscan->shift[2] = at->x + fabs(t) * (other->x - at->x);
    bscan->score = at->value;
}

static bool open_fitting(struct fitting *s)
{
    const size_t n = (size_t)s->dims[1] * s->dims[2];
    s->n_scratch = 2 * n + 2 * OCT_WARP_MOST_RADIUS;
    s->scratch = malloc(s->n_slots * s->n_scratch * sizeof(float));
    s->sums = calloc(s->n_slots, sizeof(*s->sums));
    bool fits = s->scratch && s->sums;
    for (unsigned i = 0; i < s->n_slots && fits; i++)
        fits = !oct_zncc_sums_init(&s->sums[i], s->dims[2], NULL);
    for (unsigned v = 0; v < 2 && fits; v++) {
        fits = (s->smooth[v] = calloc(s->dims[0], sizeof(struct oct_level)));
        for (uint32_t b = 0; b < s->dims[0] && fits; b++)
            fits = !oct_level_init(&s->smooth[v][b], s->dims[1], s->dims[2], false, NULL);
    }
    return fits;
}

static void close_fitting(struct fitting *s)
{
    for (unsigned v = 0; v < 2; v++) {
        for (uint32_t b = 0; s->smooth[v] && b < s->dims[0]; b++)
            oct_level_finish(&s->smooth[v][b]);
        free(s->smooth[v]);
    }
    for (unsigned i = 0; s->sums && i < s->n_slots; i++)
        oct_zncc_sums_finish(&s->sums[i]);
    free(s->sums);
    free(s->scratch);
}

enum oct_err oct_warp_bscans_fit(const uint32_t dims[3], const float *fixed, const float *moving,
                                 const struct oct_warp_shift *path, struct oct_workers *workers,
                                 struct oct_warp_bscan *bscans, struct oct_error *err)
{
    struct fitting s = {.dims = {dims[0], dims[1], dims[2]},
                        .volume = {fixed, moving},
                        .gauss = oct_warp_gauss_make((double[3]){0, SMOOTH_PX, SMOOTH_PX}),
                        .n_slots = workers ? oct_workers_n_threads(workers) + 1 : 1,
                        .path = path,
                        .bscans = bscans};
    const bool fits = open_fitting(&s);
    if (fits) {
        oct_workers_run(workers, 2 * dims[0], smooth_bscan, &s);
        oct_workers_run(workers, dims[0], fit_bscan, &s);
    }
    close_fitting(&s);
    return fits ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for smoothed B-scans");
}
