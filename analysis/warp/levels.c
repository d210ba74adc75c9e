#include "analysis/warp/levels.h"

#include "analysis/warp/sample.h"
#include "kernels/device/workers.h"
#include "pipeline/base/wide.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t clamped(int64_t i, uint32_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : (size_t)i;
}

unsigned oct_warp_level_taps(unsigned factor, float *taps, int64_t *first)
{
    const double centre = (factor - 1) / 2.0, sigma = 0.5 * factor, reach = 1.5 * factor + 0.5;
    *first = (int64_t)ceil(centre - reach);
    const unsigned n = (unsigned)((int64_t)floor(centre + reach) - *first) + 1;
    double sum = 0;
    for (unsigned k = 0; k < n; k++)
        sum += exp(-0.5 * pow(((double)*first + k - centre) / sigma, 2));
    for (unsigned k = 0; k < n; k++)
        taps[k] = (float)(exp(-0.5 * pow(((double)*first + k - centre) / sigma, 2)) / sum);
    return n;
}

/* ---- Gaussians ---- */

struct oct_warp_gauss oct_warp_gauss_make(const double sigma[3])
{
    struct oct_warp_gauss g;
    for (unsigned i = 0; i < 3; i++) {
        g.radius[i] = (unsigned)fmin(ceil(3 * sigma[i]), OCT_WARP_MOST_RADIUS);
        double sum = 1;
        for (unsigned k = 1; k <= g.radius[i]; k++)
            sum += 2 * exp(-0.5 * pow(k / sigma[i], 2));
        g.taps[i][0] = (float)(1 / sum);
        for (unsigned k = 1; k <= g.radius[i]; k++)
            g.taps[i][k] = (float)(exp(-0.5 * pow(k / sigma[i], 2)) / sum);
    }
    return g;
}

struct oct_warp_gauss oct_warp_gauss_of(const struct oct_warp_grid *grid, double sigma)
{
    const double *s = grid->spacing, least = fmin(s[0], fmin(s[1], s[2]));
    return oct_warp_gauss_make(
        (double[3]){sigma * least / s[0], sigma * least / s[1], sigma * least / s[2]});
}

OCT_WIDE static void add_two(const float *low, const float *high, float tap, size_t n, float *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] += tap * (low[i] + high[i]);
}

static void scale_row(const float *from, float tap, size_t n, float *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = tap * from[i];
}

/* n rows of `width` floats, `stride` apart, across the rows; copy: [n][width]. */
static void smooth_across(const struct oct_warp_gauss *g, unsigned axis, uint32_t n, size_t stride,
                          size_t width, float *rows, float *copy)
{
    for (uint32_t i = 0; i < n; i++)
        memcpy(copy + i * width, rows + i * stride, width * sizeof(*copy));
    for (uint32_t i = 0; i < n; i++) {
        scale_row(copy + i * width, g->taps[axis][0], width, rows + i * stride);
        for (int64_t k = 1; k <= g->radius[axis]; k++)
            add_two(copy + clamped(i - k, n) * width, copy + clamped(i + k, n) * width,
                    g->taps[axis][k], width, rows + i * stride);
    }
}

void oct_warp_smooth_plane(const struct oct_warp_gauss *g, const uint32_t dims[3], float *plane,
                           float *scratch)
{
    const size_t n = dims[2], radius = g->radius[2];
    float *middle = scratch + radius;
    for (uint32_t j = 0; j < dims[1]; j++) {
        float *row = plane + j * n;
        memcpy(middle, row, n * sizeof(*row));
        for (size_t k = 1; k <= radius; k++) {
            *(middle - k) = row[0];
            middle[n - 1 + k] = row[n - 1];
        }
        scale_row(middle, g->taps[2][0], n, row);
        for (size_t k = 1; k <= radius; k++)
            add_two(middle - k, middle + k, g->taps[2][k], n, row);
    }
    smooth_across(g, 1, dims[1], n, n, plane, scratch);
}

struct smoothing {
    const struct oct_warp_gauss *gauss;
    const uint32_t *dims;
    float *field, *scratch;
    size_t n_scratch;
};

static void smooth_one_plane(void *context, unsigned piece, unsigned worker)
{
    const struct smoothing *s = context;
    oct_warp_smooth_plane(s->gauss, s->dims, s->field + piece * (size_t)s->dims[1] * s->dims[2],
                          s->scratch + worker * s->n_scratch);
}

static void smooth_bscans(void *context, unsigned piece, unsigned worker)
{
    const struct smoothing *s = context;
    const size_t row = s->dims[2], plane = row * s->dims[1];
    const size_t c = piece / s->dims[1], j = piece % s->dims[1];
    smooth_across(s->gauss, 0, s->dims[0], plane, row, s->field + c * plane * s->dims[0] + j * row,
                  s->scratch + worker * s->n_scratch);
}

void oct_warp_smooth(const struct oct_warp_gauss *g, const uint32_t dims[3],
                     struct oct_workers *workers, float *field, float *scratch, size_t n_scratch)
{
    struct smoothing s = {g, dims, field, scratch, n_scratch};
    oct_workers_run(workers, 3 * dims[0], smooth_one_plane, &s);
    oct_workers_run(workers, 3 * dims[1], smooth_bscans, &s);
}

/* ---- volumes ---- */

struct shrinking {
    uint32_t dims[3], level_dims[3];
    unsigned factor, n_taps;
    float taps[OCT_WARP_LEVEL_TAPS(OCT_WARP_MOST_FACTOR)];
    int64_t first; /* voxel of voxel 0 of the level */
    const float *volume;
    const uint8_t *mask;
    float *level;
    uint8_t *level_mask;
    float *scratch; /* [workers][n_scratch] */
    size_t n_scratch;
};

static size_t place_of(const struct shrinking *s, uint32_t i, unsigned tap, unsigned axis)
{
    return clamped(s->first + (int64_t)i * s->factor + tap, s->dims[axis]);
}

/* Adds n values, those that the mask leaves; values NULL: 1. */
static void add_values(const float *values, const uint8_t *mask, float tap, size_t n, float *sums)
{
    for (size_t i = 0; !mask && i < n; i++)
        sums[i] += tap * values[i];
    for (size_t i = 0; mask && i < n; i++)
        sums[i] += mask[i] ? tap * (values ? values[i] : 1) : 0;
}

/* Plane b of the level, axis after axis; values NULL: of the mask alone. */
static void sum_plane(const struct shrinking *s, uint32_t b, const float *values, float *plane,
                      float *to)
{
    const size_t row = s->dims[2], n = row * s->dims[1];
    float *sums = plane + n;
    memset(plane, 0, n * sizeof(*plane));
    for (unsigned t = 0; t < s->n_taps; t++) {
        const size_t at = place_of(s, b, t, 0) * n;
        add_values(values ? values + at : NULL, s->mask ? s->mask + at : NULL, s->taps[t], n,
                   plane);
    }
    for (uint32_t j = 0; j < s->level_dims[1]; j++) {
        memset(sums, 0, row * sizeof(*sums));
        for (unsigned t = 0; t < s->n_taps; t++)
            add_values(plane + place_of(s, j, t, 1) * row, NULL, s->taps[t], row, sums);
        for (uint32_t d = 0; d < s->level_dims[2]; d++) {
            float sum = 0;
            for (unsigned t = 0; t < s->n_taps; t++)
                sum += s->taps[t] * sums[place_of(s, d, t, 2)];
            *to++ = sum;
        }
    }
}

static void shrink_plane(void *context, unsigned b, unsigned worker)
{
    const struct shrinking *s = context;
    const size_t n = (size_t)s->level_dims[1] * s->level_dims[2];
    float *weights = s->scratch + worker * s->n_scratch, *level = s->level + b * n;
    sum_plane(s, b, s->volume, weights + n, level);
    if (!s->mask)
        return;
    sum_plane(s, b, NULL, weights + n, weights);
    for (size_t i = 0; i < n; i++) {
        level[i] = weights[i] > 0 ? level[i] / weights[i] : 0;
        s->level_mask[b * n + i] = weights[i] >= OCT_WARP_LEAST_WEIGHT;
    }
}

void oct_warp_level_volume(const uint32_t dims[3], unsigned factor, const float *volume,
                           const uint8_t *mask, struct oct_workers *workers, float *scratch,
                           size_t n_scratch, float *level, uint8_t *level_mask)
{
    struct shrinking s = {.dims = {dims[0], dims[1], dims[2]},
                          .factor = factor,
                          .volume = volume,
                          .mask = mask,
                          .level = level,
                          .level_mask = level_mask,
                          .scratch = scratch,
                          .n_scratch = n_scratch};
    oct_warp_level_dims(dims, factor, s.level_dims);
    s.n_taps = oct_warp_level_taps(factor, s.taps, &s.first);
    oct_workers_run(workers, s.level_dims[0], shrink_plane, &s);
}

/* ---- displacements ---- */

struct spreading {
    uint32_t from_dims[3], to_dims[3];
    unsigned from, to;
    const float *coarse;
    float *fine;
};

/* Voxel i of the finer level in the coarser one. */
static double place_in(const struct spreading *s, uint32_t i)
{
    return (s->to * i + (s->to - 1) / 2.0 - (s->from - 1) / 2.0) / s->from;
}

static void spread_plane(void *context, unsigned b, unsigned worker)
{
    const struct spreading *s = context;
    const uint32_t *from = s->from_dims, *to = s->to_dims;
    const size_t n_from = (size_t)from[0] * from[1] * from[2], n_to = (size_t)to[0] * to[1] * to[2];
    const double ratio = (double)s->from / s->to;
    (void)worker;
    for (uint32_t j = 0; j < to[1]; j++) {
        struct oct_warp_cell cell =
            oct_warp_cell_of(from, (double[3]){place_in(s, b), place_in(s, j), 0});
        float *fine = s->fine + ((size_t)b * to[1] + j) * to[2];
        const size_t row = cell.at;
        for (uint32_t d = 0; d < to[2]; d++) {
            cell.at = row + oct_warp_between(place_in(s, d), from[2], &cell.part[2]);
            for (size_t c = 0; c < 3; c++)
                fine[c * n_to + d] =
                    (float)(ratio * oct_warp_sample(s->coarse + c * n_from, &cell));
        }
    }
}

void oct_warp_level_displacement(const uint32_t dims[3], unsigned from, unsigned to,
                                 const float *coarse, struct oct_workers *workers, float *fine)
{
    struct spreading s = {.from = from, .to = to, .coarse = coarse, .fine = fine};
    oct_warp_level_dims(dims, from, s.from_dims);
    oct_warp_level_dims(dims, to, s.to_dims);
    oct_workers_run(workers, s.to_dims[0], spread_plane, &s);
}

/* ---- the steps of a level ---- */

/* What the steps of a level know. */
struct course {
    const struct oct_warp_descent_ops *ops;
    void *context;
    struct oct_warp_energy now;
    double fallen[OCT_WARP_FALL_STEPS]; /* E of the newest steps, by number % 5 */
    double scale;                       /* of steps; at most 1 */
    unsigned n_taken;                   /* in a row, since the scale is what it is */
    struct oct_warp_level *level;
};

static bool is_good(const struct oct_warp_energy *trial, const struct oct_warp_energy *now)
{
    const bool folds = trial->least < OCT_WARP_LEAST_JACOBIAN && trial->least < now->least;
    return trial->energy <= now->energy && !folds; /* NaN is not */
}

static void accept_trial(struct course *c, const struct oct_warp_energy *trial)
{
    c->now = *trial;
    c->ops->accept(c->context);
    if (c->scale < 1 && ++c->n_taken == OCT_WARP_LONGER_STEPS) {
        c->scale *= 2;
        c->n_taken = 0;
    }
}

/* *taken: false after all halvings. */
static enum oct_err take_step(struct course *c, bool *taken, struct oct_error *err)
{
    *taken = false;
    for (unsigned n = 0;; n++) {
        struct oct_warp_energy trial;
        const unsigned n_alike = c->scale < 1 ? OCT_WARP_LONGER_STEPS - c->n_taken : UINT_MAX;
        enum oct_err e = c->ops->step(c->context, c->scale, n_alike, err);
        if (e == OCT_OK)
            e = c->ops->evaluate(c->context, true, &trial, err);
        if (e != OCT_OK)
            return e;
        if (is_good(&trial, &c->now)) {
            accept_trial(c, &trial);
            *taken = true;
            return OCT_OK;
        }
        if (n == OCT_WARP_MOST_HALVINGS)
            return OCT_OK;
        c->level->halvings++;
        c->scale /= 2;
        c->n_taken = 0;
        e = c->ops->evaluate(c->context, false, &trial, err);
        if (e != OCT_OK)
            return e;
    }
}

/* E before the first step is at number 0. */
static bool has_fallen(struct course *c, unsigned number)
{
    double *then = c->fallen + number % OCT_WARP_FALL_STEPS;
    const bool enough =
        number < OCT_WARP_FALL_STEPS || *then - c->now.energy >= OCT_WARP_LEAST_FALL * fabs(*then);
    *then = c->now.energy;
    return enough;
}

/* E of the displacement that the steps begin with. */
static enum oct_err begin_course(struct course *c, struct oct_error *err)
{
    const struct oct_warp_descent_ops *ops = c->ops;
    enum oct_err e = ops->evaluate(c->context, false, &c->now, err);
    for (unsigned i = 0; i < OCT_WARP_MOST_SOFTENINGS; i++) {
        if (e != OCT_OK || !ops->soften || c->now.least >= OCT_WARP_LEAST_JACOBIAN)
            break;
        e = ops->soften(c->context, err);
        if (e == OCT_OK)
            e = ops->evaluate(c->context, false, &c->now, err);
    }
    return e;
}

enum oct_err oct_warp_descend(const struct oct_warp_descent_ops *ops, void *context,
                              const struct oct_warp_params *params, unsigned index,
                              const struct oct_warp_progress *progress,
                              struct oct_warp_level *level, struct oct_error *err)
{
    struct course c = {.ops = ops, .context = context, .scale = 1, .level = level};
    *level = (struct oct_warp_level){.factor = params->factor[index]};
    enum oct_err e = begin_course(&c, err);
    level->energy_first = c.now.energy;
    level->ssd_first = c.now.ssd;
    bool goes_on = e == OCT_OK && has_fallen(&c, 0);
    while (goes_on && level->iterations < params->iterations[index]) {
        e = take_step(&c, &goes_on, err);
        if (e != OCT_OK || !goes_on)
            break;
        level->iterations++;
        goes_on = has_fallen(&c, level->iterations);
        if (ops->regrid)
            e = ops->regrid(context, &c.now, &level->regrids, err);
        if (e != OCT_OK)
            break;
        if (progress && progress->call &&
            progress->call(progress->context, index, level->factor, level->iterations,
                           params->iterations[index], c.now.energy)) {
            e = oct_fail(err, OCT_E_CLOSED, "warp: stopped in level %u", level->factor);
            break;
        }
    }
    level->energy = c.now.energy;
    level->ssd = c.now.ssd;
    level->least_jacobian = c.now.least;
    return e;
}
