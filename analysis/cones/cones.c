#include "analysis/cones/cones.h"

#include "analysis/cones/whiten.h"
#include "analysis/correlate/correlate.h"
#include "analysis/correlate/profile.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SQRT3 1.7320508075688772
#define LIGHT_SHARE 0.13 /* of the mean, added before the logarithm */
#define PROMINENCE 0.01
#define LADDER_SHARE 9.0 /* spacing / sigma */
#define LADDER_LEAST_RATIO 6.0
#define LADDER_MOST_RATIO 13.0
#define LADDER_MOST_SIGMA 2.0 /* px of a level */
#define LEVEL_MOST_RING 48.0  /* px of a level, when refining */
#define LEVEL_MOST_SHIFT 64u
#define FEW_CELLS 0.6 /* / sqrt(cells in the picture): what random points may reach */
#define N_REFINEMENTS 3
#define MOST_DRIFT 0.25
#define LEAST_VALID 0.1
#define SPLIT_SHARE 6.0 /* R1 / sigma */
/* Where rings were found: pictures of lattices and crops of a living eye have a skewness of 0.10 to
 * 0.76 (and an anisotropy of up to 0.44), differences along a direction made of them, on a grey of
 * 4 to 12 standard deviations, -1.07 to -0.07, and an anisotropy of 0.17 to 0.59. */
#define SPLIT_ANISOTROPY 0.12

/* The picture reduced by `side`, and what looks for rings in it. */
struct level {
    uint32_t side, height, width, max_shift;
    bool is_set; /* u is that of the picture at hand */
    float *u, *e, *c2d;
    uint8_t *valid; /* NULL: setup.masked is not set */
    double *radius, *c1d;
    struct oct_whitener *whitener;
    struct oct_correlator *correlator;
};

const struct oct_cones_result oct_cones_none = {.spacing_px = NAN,
                                                .ring_spacing_px = NAN,
                                                .strength = NAN,
                                                .ring_px = NAN,
                                                .count = OCT_CONE_COUNT_NONE,
                                                .seen_px = NAN,
                                                .seen_strength = NAN,
                                                .needed = NAN};

struct ring {
    bool found;
    double radius, c; /* px of the picture; both of the vertex */
};

struct oct_cones {
    struct oct_cones_setup setup;
    struct level level[OCT_CONES_MOST_LEVELS];
    unsigned n_levels;
    double n_valid; /* pixels of the picture at hand */
    bool is_whole;  /* all of them: no masks, which take twice the time */
    double radius[LEVEL_MOST_SHIFT + 1], c1d[LEVEL_MOST_SHIFT + 1];
    uint32_t n_profile;            /* bins of those; 0: none */
    struct oct_cone_place *places; /* of the newest result */
};

/* ---- life ---- */

static void finish_level(struct level *l)
{
    free(l->u);
    free(l->e);
    free(l->c2d);
    free(l->valid);
    free(l->radius);
    free(l->c1d);
    oct_whitener_destroy(l->whitener);
    oct_correlator_cpu.destroy(l->correlator);
}

void oct_cones_destroy(struct oct_cones *cones)
{
    if (!cones)
        return;
    for (unsigned i = 0; i < cones->n_levels; i++)
        finish_level(&cones->level[i]);
    free(cones->places);
    free(cones);
}

static enum oct_err check(struct oct_cones_setup *s, struct oct_error *err)
{
    const uint32_t least = s->height < s->width ? s->height : s->width;
    if (least < OCT_PICTURE_LEAST_SIDE)
        return oct_fail(err, OCT_E_ARG, "%u x %u pixels: a side has %u at least", s->width,
                        s->height, OCT_PICTURE_LEAST_SIDE);
    if (s->least_px == 0)
        s->least_px = OCT_CONES_LEAST_SPACING_PX;
    if (s->most_px == 0)
        s->most_px = fmax(least / 6.0, s->least_px * 1.5);
    if (!(s->least_px >= 2) || !(s->most_px > s->least_px) || !(s->most_px <= least / 2.5))
        return oct_fail(err, OCT_E_ARG,
                        "a spacing of %g to %g px cannot be measured in %u x %u pixels: 2 px at "
                        "least, %g at most",
                        s->least_px, s->most_px, s->width, s->height, floor(least / 2.5));
    return OCT_OK;
}

enum oct_err oct_cones_create(struct oct_cones **out, const struct oct_cones_setup *setup,
                              struct oct_error *err)
{
    struct oct_cones_setup checked = *setup;
    *out = NULL;
    enum oct_err e = check(&checked, err);
    if (e)
        return e;
    struct oct_cones *cones = calloc(1, sizeof(*cones));
    if (!cones)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    cones->setup = checked;
    *out = cones;
    return OCT_OK;
}

static enum oct_err open_level(struct oct_cones *cones, unsigned at, struct oct_error *err)
{
    struct level *l = &cones->level[at];
    *l = (struct level){.side = 1u << at};
    l->height = cones->setup.height / l->side;
    l->width = cones->setup.width / l->side;
    const uint32_t least = l->height < l->width ? l->height : l->width;
    l->max_shift = least - 1 < LEVEL_MOST_SHIFT ? least - 1 : LEVEL_MOST_SHIFT;
    cones->n_levels = at + 1;
    const size_t n = (size_t)l->height * l->width, span = 2 * (size_t)l->max_shift + 1;
    l->u = oct_aligned_alloc(64, n, sizeof(float));
    l->e = oct_aligned_alloc(64, n, sizeof(float));
    l->valid = cones->setup.masked ? malloc(n) : NULL;
    l->c2d = malloc(span * span * sizeof(float));
    l->radius = calloc(span, sizeof(double));
    l->c1d = calloc(span, sizeof(double));
    if (!l->u || !l->e || !l->c2d || !l->radius || !l->c1d || (cones->setup.masked && !l->valid))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    const struct oct_correlator_setup setup = {
        .height = l->height,
        .width = l->width,
        .g_height = l->height,
        .g_width = l->width,
        .max_dy = l->max_shift,
        .max_dx = l->max_shift,
        .norm = OCT_CORRELATION_OVERLAP,
        .masked = cones->setup.masked,
        .n_batch = 1,
    };
    enum oct_err e = oct_whitener_create(&l->whitener, l->height, l->width, err);
    return e ? e : oct_correlator_cpu.create(&l->correlator, &setup, err);
}

/* ---- the picture and its reductions ---- */

/* Each pixel the mean of four of the level below, valid where two of them are. */
static void reduce(const struct level *from, struct level *to)
{
    for (uint32_t y = 0; y < to->height; y++)
        for (uint32_t x = 0; x < to->width; x++) {
            double sum = 0;
            unsigned n = 0;
            for (unsigned i = 0; i < 4; i++) {
                size_t at = (size_t)(2 * y + i / 2) * from->width + 2 * x + i % 2;
                if (!from->valid || from->valid[at]) {
                    sum += (double)from->u[at];
                    n++;
                }
            }
            to->u[(size_t)y * to->width + x] = n ? (float)(sum / n) : 0;
            if (to->valid)
                to->valid[(size_t)y * to->width + x] = n >= 2;
        }
    to->is_set = true;
}

/* *level becomes the picture reduced by 2^at, made from those below where it is not there yet. */
static enum oct_err get_level(struct oct_cones *cones, unsigned at, struct level **level,
                              struct oct_error *err)
{
    for (unsigned i = 1; i <= at; i++) {
        enum oct_err e = i < cones->n_levels ? OCT_OK : open_level(cones, i, err);
        if (e)
            return e;
        if (!cones->level[i].is_set)
            reduce(&cones->level[i - 1], &cones->level[i]);
    }
    *level = &cones->level[at];
    return OCT_OK;
}

static enum oct_err take_picture(struct oct_cones *cones, const struct oct_picture *picture,
                                 struct oct_error *err)
{
    struct oct_picture_statistics s;
    const size_t n = (size_t)picture->height * picture->width;
    enum oct_err e = cones->n_levels ? OCT_OK : open_level(cones, 0, err);
    if (e)
        return e;
    oct_picture_look(picture, &s);
    cones->n_valid = (double)s.n_valid;
    cones->is_whole = s.n_valid == n;
    if ((double)s.n_valid < LEAST_VALID * (double)n)
        return oct_fail(err, OCT_E_ARG, "only %.1f %% of the pixels are valid",
                        100.0 * (double)s.n_valid / (double)n);
    if (!(s.variance > 0))
        return oct_fail(err, OCT_E_ARG, "no contrast");
    /* Light is not negative; where a background was subtracted, the darkest pixel is the zero. */
    const double zero = s.least < 0 ? s.least : 0, share = LIGHT_SHARE * (s.mean - zero);
    struct level *l = &cones->level[0];
    for (size_t i = 0; i < n; i++) {
        const bool is_valid = !picture->valid || picture->valid[i];
        const double value = (double)picture->pixels[i];
        l->u[i] = !is_valid ? 0 : (float)(cones->setup.is_db ? value : log(value - zero + share));
        if (l->valid)
            l->valid[i] = is_valid;
    }
    for (unsigned i = 1; i < cones->n_levels; i++)
        cones->level[i].is_set = false;
    return OCT_OK;
}

/* ---- one sigma ---- */

/* The vertex of the parabola through the ring's bin and its neighbours. */
static struct ring find_vertex(const struct level *l)
{
    struct oct_ring_peak peak = oct_profile_first_ring(l->radius, l->c1d, l->max_shift, PROMINENCE);
    struct ring ring = {peak.found, peak.radius_px * l->side, peak.c};
    if (!peak.found)
        return ring;
    const uint32_t k = peak.bin;
    const double rise = (l->c1d[k + 1] - l->c1d[k - 1]) / 2;
    const double bend = l->c1d[k + 1] - 2 * l->c1d[k] + l->c1d[k - 1];
    ring.c = bend < 0 ? l->c1d[k] - rise * rise / (2 * bend) : peak.c;
    return ring;
}

/* Makes e of a level with sigma (px of the picture). False: there is no contrast at that scale. */
static bool whiten(const struct oct_cones *cones, struct level *l, double sigma, bool keeps_weak)
{
    /* The mean over `side` pixels has blurred already. */
    const double side = l->side;
    double within = sqrt(fmax(sigma * sigma / (side * side) - (1 - 1 / (side * side)) / 12, 0));
    within = fmin(fmax(within, OCT_WHITEN_LEAST_SIGMA), OCT_WHITEN_MOST_SIGMA);
    return oct_whitener_run(l->whitener, l->u, cones->is_whole ? NULL : l->valid, within,
                            keeps_weak, l->e);
}

/* Whether the level shows cones as pairs of light and dark; overwrites e. */
static bool is_split(const struct oct_cones *cones, struct level *l, double radius)
{
    double n = 0, sum[4] = {0}, xx = 0, xy = 0, yy = 0;
    if (!whiten(cones, l, radius / SPLIT_SHARE, true))
        return false;
    for (uint32_t y = 1; y + 1 < l->height; y++)
        for (uint32_t x = 1; x + 1 < l->width; x++) {
            const float *e = &l->e[(size_t)y * l->width + x];
            const double v = (double)*e, gx = (double)e[1] - (double)e[-1];
            const double gy = (double)e[l->width] - (double)e[-(ptrdiff_t)l->width];
            if (!cones->is_whole && !l->valid[e - l->e])
                continue;
            n++;
            sum[1] += v;
            sum[2] += v * v;
            sum[3] += v * v * v;
            xx += gx * gx;
            xy += gx * gy;
            yy += gy * gy;
        }
    const double mean = sum[1] / n;
    const double third = sum[3] / n - 3 * mean * sum[2] / n + 2 * mean * mean * mean;
    return third < 0 && hypot(xx - yy, 2 * xy) > SPLIT_ANISOTROPY * (xx + yy);
}

/* The first ring after whitening with sigma (px of the picture) at a level. None where there is no
 * contrast at that scale. */
static enum oct_err look(struct oct_cones *cones, unsigned at, double sigma, struct ring *ring,
                         struct oct_error *err)
{
    struct level *l;
    *ring = (struct ring){.found = false};
    enum oct_err e = get_level(cones, at, &l, err);
    if (e || !whiten(cones, l, sigma, false))
        return e;
    uint8_t *valid = cones->is_whole ? NULL : l->valid;
    const struct oct_picture whitened = {l->height, l->width, l->e, valid};
    unsigned which;
    struct oct_error none;
    e = oct_correlator_cpu.run(l->correlator, &whitened, 1, l->c2d, &which, &none);
    if (e == OCT_E_ARG)
        return OCT_OK;
    if (e)
        return oct_fail(err, e, "%s", none.text);
    oct_profile(l->c2d, l->max_shift, l->radius, NULL, l->c1d);
    *ring = find_vertex(l);
    return OCT_OK;
}

static void keep_profile(struct oct_cones *cones, unsigned at)
{
    const struct level *l = &cones->level[at];
    cones->n_profile = l->max_shift + 1;
    for (uint32_t k = 0; k < cones->n_profile; k++) {
        cones->radius[k] = l->radius[k] * l->side;
        cones->c1d[k] = l->c1d[k];
    }
}

/* ---- the search ---- */

static bool is_within(const struct oct_cones *cones, const struct ring *ring)
{
    return ring->found && ring->radius >= cones->setup.least_px &&
           ring->radius <= cones->setup.most_px;
}

/* A ring of few cells may be chance. */
static double strength_needed(const struct oct_cones *cones, const struct ring *ring)
{
    const double few = FEW_CELLS * ring->radius / sqrt(cones->n_valid);
    return fmax(OCT_CONES_LEAST_STRENGTH, few);
}

static bool is_strong(const struct oct_cones *cones, const struct ring *ring)
{
    return ring->c >= strength_needed(cones, ring);
}

static enum oct_err climb(struct oct_cones *cones, struct ring *best,
                          struct oct_cones_result *result, struct oct_error *err)
{
    const double last = cones->setup.most_px / LADDER_SHARE;
    *best = (struct ring){.found = false};
    for (int k = 0;; k++) {
        double sigma = cones->setup.least_px / LADDER_SHARE * pow(2, k / 2.0);
        if (k > 0 && sigma > last * (1 + 1e-9))
            return OCT_OK;
        if (k > 0 && sigma < OCT_WHITEN_LEAST_SIGMA)
            continue;
        sigma = fmax(sigma, OCT_WHITEN_LEAST_SIGMA);
        unsigned at = 0;
        while (at + 1 < OCT_CONES_MOST_LEVELS && sigma / (1u << at) > LADDER_MOST_SIGMA)
            at++;
        struct ring ring;
        enum oct_err e = look(cones, at, sigma, &ring, err);
        if (e)
            return e;
        const double ratio = ring.radius / sigma;
        if (!is_within(cones, &ring) || ratio < LADDER_LEAST_RATIO || ratio > LADDER_MOST_RATIO)
            continue;
        if (!(ring.c <= result->seen_strength)) {
            result->seen_px = ring.radius;
            result->seen_strength = ring.c;
            result->needed = strength_needed(cones, &ring);
            keep_profile(cones, at);
        }
        if (is_strong(cones, &ring) && (!best->found || ring.c > best->c))
            *best = ring;
    }
}

/* Follows a ring with sigma = radius / share. *ring is not found where it was lost. */
static enum oct_err follow(struct oct_cones *cones, double start, double share, struct ring *ring,
                           unsigned *at, struct oct_error *err)
{
    double radius = start;
    for (int i = 0; i < N_REFINEMENTS; i++) {
        *at = 0;
        while (*at + 1 < OCT_CONES_MOST_LEVELS && radius / (1u << *at) > LEVEL_MOST_RING)
            ++*at;
        const double sigma = fmax(radius / share, OCT_WHITEN_LEAST_SIGMA);
        enum oct_err e = look(cones, *at, sigma, ring, err);
        if (e)
            return e;
        if (!is_within(cones, ring) || fabs(ring->radius / start - 1) > MOST_DRIFT) {
            ring->found = false;
            return OCT_OK;
        }
        if (fabs(ring->radius - radius) < 1e-3 * radius)
            return OCT_OK;
        radius = ring->radius;
    }
    return OCT_OK;
}

/* With the ring at a level. Overwrites e. */
#define N_SIGMAS 3u
#define ALIKE 0.95 /* times as unlike: clearly more alike */

/* How unlike one another whole cells are: the standard deviation of their areas, of the mean. */
static double unlikeness(const struct oct_cone_count *c)
{
    return c->n_whole > 1 ? c->per_px2_se / c->per_px2 * sqrt(c->n_whole) : INFINITY;
}

/* With more or less detail: a cone that is missed doubles a cell, and one of noise halves it, so
 * that of several counts that holds whose cells are most alike. */
static enum oct_err count_cones(struct oct_cones *cones, struct level *l,
                                const double sigmas[N_SIGMAS], struct oct_cones_result *result,
                                struct oct_error *err)
{
    const double s = result->spacing_px = result->ring_spacing_px;
    const struct oct_cone_picture picture = {l->e, cones->is_whole ? NULL : l->valid, l->height,
                                             l->width, l->side};
    for (unsigned i = 0; i < N_SIGMAS && sigmas[i] > 0; i++) {
        struct oct_cone_count count;
        struct oct_cone_place *places;
        if (!whiten(cones, l, sigmas[i] * s, false))
            return OCT_OK;
        const enum oct_err e = oct_cone_count_run(&picture, s / l->side, &places, &count, err);
        if (e) {
            *result = oct_cones_none;
            return e;
        }
        const bool holds = i == 0 || unlikeness(&count) < ALIKE * unlikeness(&result->count);
        free(holds ? cones->places : places);
        cones->places = holds ? places : cones->places;
        result->count = holds ? count : result->count;
    }
    if (result->count.n_whole > 0)
        result->spacing_px = result->count.spacing;
    return OCT_OK;
}

enum oct_err oct_cones_find(struct oct_cones *cones, const struct oct_picture *picture,
                            struct oct_cones_result *result, struct oct_error *err)
{
    static const struct {
        double share, factor;
        double count_sigmas[N_SIGMAS]; /* of s: the noisier the picture, the larger; 0: no more */
    } steps[] = {{12, 0.978, {0.17, 0.136}},
                 {8, 0.987, {0.2, 0.16, 0.225}},
                 {6.5, 0.998, {0.22, 0.175, 0.245}}};
    struct ring best = {.found = false}, ring;
    *result = oct_cones_none;
    cones->n_profile = 0;
    free(oct_cones_take_places(cones));
    enum oct_err e = take_picture(cones, picture, err);
    e = e ? e : climb(cones, &best, result, err);
    if (e || !best.found)
        return e;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        unsigned at;
        if ((e = follow(cones, best.radius, steps[i].share, &ring, &at, err)))
            return e;
        if (!ring.found || !is_strong(cones, &ring))
            continue;
        keep_profile(cones, at);
        result->is_split = is_split(cones, &cones->level[at], ring.radius);
        if (result->is_split)
            return OCT_OK;
        result->found = true;
        result->ring_spacing_px = ring.radius / steps[i].factor;
        result->strength = ring.c;
        result->ring_px = ring.radius;
        return count_cones(cones, &cones->level[at], steps[i].count_sigmas, result, err);
    }
    return OCT_OK;
}

uint32_t oct_cones_profile(const struct oct_cones *cones, const double **radius, const double **c1d)
{
    *radius = cones->radius;
    *c1d = cones->c1d;
    return cones->n_profile;
}

struct oct_cone_place *oct_cones_take_places(struct oct_cones *cones)
{
    struct oct_cone_place *places = cones->places;
    cones->places = NULL;
    return places;
}

bool oct_cones_differ(const struct oct_cones_result *r)
{
    return fabs(r->spacing_px / r->ring_spacing_px - 1) > OCT_CONES_USUAL_DIFFERENCE;
}

double oct_cones_rows(double spacing)
{
    return spacing * SQRT3 / 2;
}

double oct_cones_per_area(double spacing)
{
    return 2 / (SQRT3 * spacing * spacing);
}
