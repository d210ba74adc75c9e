#include "tools/analyse/register_volumes_grid.h"

#include "kernels/device/workers.h"
#include "tools/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FACTOR 2.0
#define MOST_ALIKE 1e-3 /* spacings that differ by less are the same */
#define N_TAPS 16u      /* of a voxel along an axis at most, at a scale of 4 */
#define N_SAMPLES 16    /* of the Gaussian to each side */

/* ---- where it lies ---- */

bool oct_volumes_knows_um(const double um[3])
{
    return um[0] > 0 && um[1] > 0 && um[2] > 0;
}

static bool is_far(double a, double b)
{
    return a > MOST_FACTOR * b * (1 + MOST_ALIKE) || b > MOST_FACTOR * a * (1 + MOST_ALIKE);
}

static enum oct_err check_sides(const char *fixed_path, const struct oct_volume_info *f,
                                const char *moving_path, const struct oct_volume_info *m,
                                bool has_um, struct oct_error *err)
{
    for (unsigned i = 0; i < 3; i++) {
        if (is_far(f->dims[i], m->dims[i]))
            return oct_fail(err, OCT_E_FORMAT,
                            "%s has %u x %u x %u voxels, %s %u x %u x %u: a side differs by more "
                            "than a factor of 2; crop or resample one of them",
                            fixed_path, f->dims[0], f->dims[1], f->dims[2], moving_path, m->dims[0],
                            m->dims[1], m->dims[2]);
        if (has_um && is_far(f->um[i], m->um[i]))
            return oct_fail(err, OCT_E_FORMAT,
                            "%s has voxels of %g x %g x %g um, %s of %g x %g x %g: an axis differs "
                            "by more than a factor of 2; resample one of them",
                            fixed_path, f->um[0], f->um[1], f->um[2], moving_path, m->um[0],
                            m->um[1], m->um[2]);
    }
    return OCT_OK;
}

enum oct_err oct_volumes_place(const char *fixed_path, const struct oct_volume_info *fixed,
                               const char *moving_path, const struct oct_volume_info *moving,
                               struct oct_volumes_placing *placing, struct oct_error *err)
{
    const bool has_um = oct_volumes_knows_um(fixed->um);
    if (has_um != oct_volumes_knows_um(moving->um))
        return oct_fail(
            err, OCT_E_CONFIG,
            "the spacing of %s is not known, that of %s is; --pixel-um gives it for both",
            has_um ? moving_path : fixed_path, has_um ? fixed_path : moving_path);
    const enum oct_err e = check_sides(fixed_path, fixed, moving_path, moving, has_um, err);
    if (e)
        return e;
    placing->is_same = memcmp(fixed->dims, moving->dims, sizeof(fixed->dims)) == 0;
    for (unsigned i = 0; i < 3; i++) {
        const double scale = has_um ? fixed->um[i] / moving->um[i] : 1;
        const bool is_same = fabs(scale - 1) <= MOST_ALIKE;
        placing->scale[i] = is_same ? 1 : scale;
        placing->origin[i] =
            (moving->dims[i] - 1.0) / 2 - placing->scale[i] * (fixed->dims[i] - 1.0) / 2;
        if (is_same)
            placing->origin[i] = floor(placing->origin[i]); /* half a voxel is not worth a blur */
        placing->is_same = placing->is_same && is_same;
    }
    return OCT_OK;
}

/* ---- an axis ---- */

/* What one place takes: voxels first .. first + n - 1 of the axis. */
struct taps {
    uint32_t first, n;
    double weight[N_TAPS];
};

/* A part of a place at `at` of an axis of n voxels. */
static void add_linear(double *weights, uint32_t n, double at, double part)
{
    const double within = fmin(fmax(at, 0), n - 1.0);
    const uint32_t k = within >= n - 1.0 ? n - 1 : (uint32_t)within;
    weights[k] += part * (1 - (within - k));
    if (k + 1 < n)
        weights[k + 1] += part * (within - k);
}

/* weights: [n], zeros, and zeros again afterwards. */
static void make_taps(struct taps *taps, double *weights, uint32_t n, double at, double scale)
{
    const double sigma = scale > 1 ? 0.5 * sqrt(scale * scale - 1) : 0;
    const int samples = sigma > 0 ? N_SAMPLES : 0;
    const double centre = fmin(fmax(at, 0), n - 1.0);
    double sum = 0;
    for (int i = -samples; i <= samples; i++)
        sum += exp(-0.5 * pow(3.0 * i / N_SAMPLES, 2));
    for (int i = -samples; i <= samples; i++)
        add_linear(weights, n, centre + sigma * 3 * i / N_SAMPLES,
                   exp(-0.5 * pow(3.0 * i / N_SAMPLES, 2)) / sum);
    const double first = fmax(0, floor(centre - 3 * sigma));
    taps->first = (uint32_t)first;
    taps->n = 0;
    for (uint32_t k = taps->first; k < n && taps->n < N_TAPS; k++) {
        taps->weight[taps->n++] = weights[k];
        weights[k] = 0;
    }
    while (taps->n > 1 && taps->weight[taps->n - 1] == 0)
        taps->n--;
}

/* One axis of [outer][n][inner]. */
struct axis {
    const float *from;
    float *to;
    size_t outer, inner;
    uint32_t n_from, n_to;
    const struct taps *taps; /* [n_to] */
    size_t rows_a_piece;
};

static float sum_taps(const struct taps *taps, const float *from, size_t step)
{
    double sum = 0, weight = 0;
    for (uint32_t k = 0; k < taps->n; k++) {
        const float value = from[k * step];
        if (isfinite(value)) {
            sum += taps->weight[k] * (double)value;
            weight += taps->weight[k];
        }
    }
    return weight >= 0.5 ? (float)(sum / weight) : NAN;
}

static void resample_rows(void *context, unsigned piece, unsigned worker)
{
    const struct axis *a = context;
    const size_t first = piece * a->rows_a_piece, rows = a->outer * a->n_to;
    const size_t end = first + a->rows_a_piece < rows ? first + a->rows_a_piece : rows;
    (void)worker;
    for (size_t row = first; row < end; row++) {
        const struct taps *taps = &a->taps[row % a->n_to];
        const float *from = a->from + (row / a->n_to * a->n_from + taps->first) * a->inner;
        for (size_t k = 0; k < a->inner; k++)
            a->to[row * a->inner + k] = sum_taps(taps, from + k, a->inner);
    }
}

static void resample_axis(struct axis *a, double scale, double origin, struct oct_workers *workers)
{
    const unsigned n_pieces = 256;
    struct taps *taps = oct_alloc(a->n_to, sizeof(*taps));
    double *weights = oct_alloc(a->n_from, sizeof(*weights));
    a->to = oct_alloc(a->outer * a->n_to * a->inner, sizeof(float));
    a->rows_a_piece = (a->outer * a->n_to + n_pieces - 1) / n_pieces;
    a->taps = taps;
    for (uint32_t i = 0; i < a->n_to; i++)
        make_taps(&taps[i], weights, a->n_from, origin + scale * i, scale);
    oct_workers_run(workers, n_pieces, resample_rows, a);
    free(taps);
    free(weights);
}

/* ---- the volume ---- */

static uint64_t n_of(const uint32_t dims[3])
{
    return (uint64_t)dims[0] * dims[1] * dims[2];
}

uint64_t oct_volumes_resample_bytes(const uint32_t from[3], const uint32_t to[3])
{
    uint32_t dims[3] = {from[0], from[1], from[2]};
    uint64_t most = 0;
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t before = n_of(dims);
        dims[i] = to[i];
        most = before + n_of(dims) > most ? before + n_of(dims) : most;
    }
    return most * sizeof(float);
}

void oct_volumes_resample(float **values, const uint32_t from[3], const uint32_t to[3],
                          const struct oct_volumes_placing *placing, struct oct_workers *workers)
{
    uint32_t dims[3] = {from[0], from[1], from[2]};
    for (unsigned i = 0; i < 3; i++) {
        struct axis a = {.from = *values, .outer = 1, .inner = 1, .n_from = dims[i], .n_to = to[i]};
        for (unsigned k = 0; k < i; k++)
            a.outer *= dims[k];
        for (unsigned k = i + 1; k < 3; k++)
            a.inner *= dims[k];
        resample_axis(&a, placing->scale[i], placing->origin[i], workers);
        free(*values);
        *values = a.to;
        dims[i] = to[i];
    }
}
