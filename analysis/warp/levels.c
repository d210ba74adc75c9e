#include "analysis/warp/levels.h"

#include "kernels/device/workers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t clamped(int64_t i, uint32_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : (size_t)i;
}

unsigned oct_warp_level_taps(unsigned factor, uint32_t i, float *taps, int64_t *first)
{
    const double centre = (double)factor * i + (factor - 1) / 2.0, sigma = 0.5 * factor;
    const double reach = 1.5 * factor + 0.5;
    if (factor == 1) {
        *first = i;
        taps[0] = 1;
        return 1;
    }
    *first = (int64_t)ceil(centre - reach);
    const unsigned n = (unsigned)((int64_t)floor(centre + reach) - *first) + 1;
    double sum = 0;
    for (unsigned k = 0; k < n; k++)
        sum += exp(-0.5 * pow(((double)*first + k - centre) / sigma, 2));
    for (unsigned k = 0; k < n; k++)
        taps[k] = (float)(exp(-0.5 * pow(((double)*first + k - centre) / sigma, 2)) / sum);
    return n;
}

unsigned oct_warp_gauss_taps(double sigma, float taps[OCT_WARP_MOST_RADIUS + 1])
{
    const unsigned radius = (unsigned)fmin(ceil(3 * sigma), OCT_WARP_MOST_RADIUS);
    double sum = 1;
    for (unsigned k = 1; k <= radius; k++)
        sum += 2 * exp(-0.5 * pow(k / sigma, 2));
    for (unsigned k = 0; k <= radius; k++)
        taps[k] = (float)(exp(-0.5 * pow(k / sigma, 2)) / sum);
    return radius;
}

void oct_warp_units(const struct oct_warp_grid *grid, double sigma, double sigma_voxels[3],
                    double per_unit2[3])
{
    const double *s = grid->spacing, least = fmin(s[0], fmin(s[1], s[2]));
    for (unsigned i = 0; i < 3; i++) {
        sigma_voxels[i] = sigma * least / s[i];
        per_unit2[i] = (least / s[i]) * (least / s[i]);
    }
}

/* ---- volumes ---- */

struct smoothing {
    uint32_t dims[3], level_dims[3];
    unsigned factor;
    const float *volume;
    const uint8_t *mask;
    float *level;
    uint8_t *level_mask;
    float *scratch; /* [workers][n_scratch] */
    size_t n_scratch;
};

/* Sums along the B-scans and the A-lines, of one row of the level: sums [D], weights [D] or
 * NULL. */
static void sum_rows(const struct smoothing *s, uint32_t b, uint32_t j, float *sums, float *weights)
{
    const size_t n = s->dims[2];
    float taps[2][OCT_WARP_LEVEL_TAPS(64)];
    int64_t first[2];
    const unsigned n_b = oct_warp_level_taps(s->factor, b, taps[0], first);
    const unsigned n_j = oct_warp_level_taps(s->factor, j, taps[1], first + 1);
    memset(sums, 0, n * sizeof(*sums));
    if (weights)
        memset(weights, 0, n * sizeof(*weights));
    for (unsigned k = 0; k < n_b; k++)
        for (unsigned i = 0; i < n_j; i++) {
            const size_t at = (clamped(first[0] + k, s->dims[0]) * s->dims[1] +
                               clamped(first[1] + i, s->dims[1])) *
                              n;
            const float w = taps[0][k] * taps[1][i], *from = s->volume + at;
            for (size_t d = 0; !weights && d < n; d++)
                sums[d] += w * from[d];
            for (size_t d = 0; weights && d < n; d++) {
                const float part = s->mask[at + d] ? w : 0;
                sums[d] += part * from[d];
                weights[d] += part;
            }
        }
}

static void sum_depths(const struct smoothing *s, size_t at, const float *sums,
                       const float *weights)
{
    float taps[OCT_WARP_LEVEL_TAPS(64)];
    int64_t first;
    const unsigned n = oct_warp_level_taps(s->factor, 0, taps, &first);
    for (uint32_t d = 0; d < s->level_dims[2]; d++) {
        float sum = 0, weight = 0;
        for (unsigned k = 0; k < n; k++) {
            const size_t i = clamped(first + (int64_t)d * s->factor + k, s->dims[2]);
            sum += taps[k] * sums[i];
            weight += weights ? taps[k] * weights[i] : 0;
        }
        s->level[at + d] = !weights ? sum : weight > 0 ? sum / weight : 0;
        if (weights)
            s->level_mask[at + d] = weight >= OCT_WARP_LEAST_WEIGHT;
    }
}

static void smooth_plane(void *context, unsigned piece, unsigned worker)
{
    const struct smoothing *s = context;
    float *sums = s->scratch + worker * s->n_scratch;
    float *weights = s->mask ? sums + s->dims[2] : NULL;
    for (uint32_t j = 0; j < s->level_dims[1]; j++) {
        sum_rows(s, piece, j, sums, weights);
        sum_depths(s, ((size_t)piece * s->level_dims[1] + j) * s->level_dims[2], sums, weights);
    }
}

enum oct_err oct_warp_level_volume(const uint32_t dims[3], unsigned factor, const float *volume,
                                   const uint8_t *mask, struct oct_workers *workers, float *level,
                                   uint8_t *level_mask, struct oct_error *err)
{
    const size_t n_workers = workers ? oct_workers_n_threads(workers) + 1 : 1;
    struct smoothing s = {.factor = factor,
                          .volume = volume,
                          .mask = mask,
                          .level = level,
                          .level_mask = level_mask,
                          .n_scratch = 2 * (size_t)dims[2] + 16};
    memcpy(s.dims, dims, sizeof(s.dims));
    oct_warp_level_dims(dims, factor, s.level_dims);
    s.scratch = malloc(n_workers * s.n_scratch * sizeof(*s.scratch));
    if (!s.scratch)
        return oct_fail(err, OCT_E_NO_MEMORY, "warp: out of memory for rows of %u voxels", dims[2]);
    oct_workers_run(workers, s.level_dims[0], smooth_plane, &s);
    free(s.scratch);
    return OCT_OK;
}

/* ---- displacements ---- */

struct spreading {
    uint32_t from_dims[3], to_dims[3];
    unsigned from, to;
    const float *coarse;
    float *fine;
};

/* Where voxel i of the finer level lies between two of the coarser one. */
struct between {
    size_t low, high;
    float part; /* of high */
};

static struct between between(const struct spreading *s, uint32_t i, unsigned axis)
{
    const double at = (s->to * i + (s->to - 1) / 2.0 - (s->from - 1) / 2.0) / s->from;
    const double inside = fmax(0, fmin(at, s->from_dims[axis] - 1.0));
    const size_t low = (size_t)inside;
    return (struct between){low, clamped((int64_t)low + 1, s->from_dims[axis]),
                            (float)(inside - (double)low)};
}

static void spread_row(const struct spreading *s, const float *from, const struct between *b,
                       const struct between *j, float *to)
{
    const size_t row = s->from_dims[2], plane = row * s->from_dims[1];
    const float *rows[4] = {
        from + b->low * plane + j->low * row, from + b->low * plane + j->high * row,
        from + b->high * plane + j->low * row, from + b->high * plane + j->high * row};
    const float ratio = (float)s->from / (float)s->to;
    for (uint32_t i = 0; i < s->to_dims[2]; i++) {
        const struct between d = between(s, i, 2);
        float at[4];
        for (unsigned k = 0; k < 4; k++)
            at[k] = rows[k][d.low] + d.part * (rows[k][d.high] - rows[k][d.low]);
        const float low = at[0] + j->part * (at[1] - at[0]);
        const float high = at[2] + j->part * (at[3] - at[2]);
        to[i] = ratio * (low + b->part * (high - low));
    }
}

static void spread_plane(void *context, unsigned piece, unsigned worker)
{
    const struct spreading *s = context;
    const struct between b = between(s, piece, 0);
    const size_t n_from = (size_t)s->from_dims[0] * s->from_dims[1] * s->from_dims[2];
    const size_t row = s->to_dims[2], plane = row * s->to_dims[1], n_to = plane * s->to_dims[0];
    (void)worker;
    for (uint32_t i = 0; i < s->to_dims[1]; i++) {
        const struct between j = between(s, i, 1);
        for (size_t c = 0; c < 3; c++)
            spread_row(s, s->coarse + c * n_from, &b, &j,
                       s->fine + c * n_to + piece * plane + i * row);
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

/* ---- softer displacements ---- */

struct softening {
    const uint32_t *dims;
    const float *u;
    float *soft;
};

static void soften_plane(void *context, unsigned b, unsigned worker)
{
    static const float weights[3] = {0.25F, 0.5F, 0.25F};
    const struct softening *s = context;
    const size_t row = s->dims[2], plane = row * s->dims[1], n = plane * s->dims[0];
    (void)worker;
    for (size_t c = 0; c < 3; c++)
        for (uint32_t j = 0; j < s->dims[1]; j++)
            for (uint32_t d = 0; d < s->dims[2]; d++) {
                float sum = 0;
                for (int k = 0; k < 27; k++) {
                    const size_t kb = clamped((int64_t)b + k / 9 - 1, s->dims[0]);
                    const size_t kj = clamped((int64_t)j + k / 3 % 3 - 1, s->dims[1]);
                    const size_t kd = clamped((int64_t)d + k % 3 - 1, s->dims[2]);
                    sum += weights[k / 9] * weights[k / 3 % 3] * weights[k % 3] *
                           s->u[c * n + kb * plane + kj * row + kd];
                }
                s->soft[c * n + b * plane + j * row + d] = sum;
            }
}

void oct_warp_soften(const uint32_t dims[3], const float *u, struct oct_workers *workers,
                     float *soft)
{
    struct softening s = {dims, u, soft};
    oct_workers_run(workers, dims[0], soften_plane, &s);
}

/* ---- the steps of a level ---- */

/* What the steps of a level know. */
struct course {
    const struct oct_warp_descent_ops *ops;
    void *context;
    struct oct_warp_energy now;
    double fallen[OCT_WARP_FALL_STEPS]; /* E of the newest steps, by number % 5 */
    struct oct_warp_level *level;
};

static bool is_good(const struct oct_warp_energy *trial, const struct oct_warp_energy *now)
{
    const bool folds = trial->least < OCT_WARP_LEAST_JACOBIAN && trial->least < now->least;
    return trial->energy <= now->energy && !folds; /* NaN is not */
}

/* *taken: false after all halvings. */
static enum oct_err take_step(struct course *c, bool *taken, struct oct_error *err)
{
    double scale = 1;
    *taken = false;
    for (unsigned n = 0;; n++, scale /= 2) {
        struct oct_warp_energy trial;
        enum oct_err e = c->ops->step(c->context, scale, err);
        if (e == OCT_OK)
            e = c->ops->evaluate(c->context, true, &trial, err);
        if (e != OCT_OK)
            return e;
        if (is_good(&trial, &c->now)) {
            c->now = trial;
            c->ops->accept(c->context);
            *taken = true;
            return OCT_OK;
        }
        if (n == OCT_WARP_MOST_HALVINGS)
            return OCT_OK;
        c->level->halvings++;
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
    struct course c = {.ops = ops, .context = context, .level = level};
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
