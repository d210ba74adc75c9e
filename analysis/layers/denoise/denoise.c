#include "analysis/layers/denoise/denoise.h"

#include "analysis/layers/denoise/distance.h"
#include "analysis/layers/denoise/heights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define QUIET 0.65 /* noise in voxels of the box */

struct job {
    const struct oct_denoise_setup *setup;
    size_t n;     /* A-lines */
    float *first; /* [n] aligned, without gaps and stray heights */
    float *known; /* [n] aligned; NaN: not found; then the crossings */
    float *spare; /* [n] */
    float *phi;   /* [dims] */
    double top;   /* of the box, px */
    double voxel; /* its depth, px */
    uint32_t dims[3];
    struct oct_denoise_report report;
};

/* ---- where phi changes its sign ---- */

static float crossing(const float *phi, uint32_t n_d, float first)
{
    float best = NAN;
    for (uint32_t d = 0; d + 1 < n_d; d++)
        if (phi[d] > 0 && phi[d + 1] <= 0) {
            const float at = (float)d + phi[d] / (phi[d] - phi[d + 1]);
            if (!(fabsf(best - first) <= fabsf(at - first)))
                best = at;
        }
    return best;
}

uint64_t oct_denoise_crossings(const float *phi, const uint32_t dims[3], const float *first,
                               float *heights)
{
    const size_t n = (size_t)dims[0] * dims[1];
    uint64_t n_without = 0;
    for (size_t i = 0; i < n; i++) {
        const float from = first[i];
        heights[i] = isfinite(from) ? crossing(phi + i * dims[2], dims[2], from) : NAN;
        n_without += isfinite(from) && isnan(heights[i]);
    }
    return n_without;
}

/* ---- heights to phi and back ---- */

static double shift_of(const double *shift_px, size_t b)
{
    return shift_px ? shift_px[b] : 0;
}

static enum oct_err align(struct job *job, const float *positions, const double *shift_px,
                          struct oct_error *err)
{
    const uint32_t n_lines = job->setup->n_lines;
    job->first = calloc(3 * job->n + 1, sizeof(*job->first));
    if (!job->first)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu heights", job->n);
    job->known = job->first + job->n;
    job->spare = job->known + job->n;
    for (size_t i = 0; i < job->n; i++) {
        const double height = (double)positions[i] + shift_of(shift_px, i / n_lines);
        job->known[i] = job->first[i] = isfinite(height) ? (float)height : NAN;
    }
    return OCT_OK;
}

/* How many of n rows of n_values, `step` and `apart` floats apart, have a height. */
static uint32_t count_rows(const float *heights, uint32_t n, size_t step, uint32_t n_values,
                           size_t apart)
{
    uint32_t n_rows = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool any = false;
        for (uint32_t k = 0; k < n_values; k++)
            any |= isfinite(heights[i * step + k * apart]);
        n_rows += any;
    }
    return n_rows;
}

/* Enough B-scans, and enough A-lines of them, for a patch. */
static bool suffices(const struct job *job)
{
    const uint32_t n_b = job->setup->n_bscans, n_j = job->setup->n_lines;
    const unsigned patch = job->setup->params.patch;
    return count_rows(job->known, n_b, n_j, n_j, 1) >= patch &&
           count_rows(job->known, n_j, 1, n_b, n_j) >= patch;
}

/* The box ends where neither the band nor a patch of it reaches; phi is exact as far. */
static enum oct_err fill_phi(struct job *job, struct oct_error *err)
{
    const struct oct_levelset_params *p = &job->setup->params;
    const double reach = p->delta + sqrt(3) * (p->patch / 2) + 0.5;
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < job->n; i++) {
        low = fmin(low, (double)job->first[i]);
        high = fmax(high, (double)job->first[i]);
    }
    job->voxel = fmax(1, job->report.rough_px / QUIET);
    const double top = floor(low - reach * job->voxel);
    const double depth = ceil((high - top) / job->voxel + reach) + 1;
    if (!(depth < 16384))
        return oct_fail(err, OCT_E_ARG, "heights from %g to %g px cannot be one surface", low,
                        high);
    job->top = top;
    memcpy(job->dims, (uint32_t[3]){job->setup->n_bscans, job->setup->n_lines, (uint32_t)depth},
           sizeof(job->dims));
    for (size_t i = 0; i < job->n; i++)
        job->first[i] = (float)(((double)job->first[i] - top) / job->voxel);
    job->phi = malloc((job->n * job->dims[2] + 1) * sizeof(*job->phi));
    if (!job->phi)
        return oct_fail(err, OCT_E_NO_MEMORY,
                        "level set: out of memory for a box of %u x %u x %u voxels, which takes "
                        "%zu MB",
                        job->dims[0], job->dims[1], job->dims[2],
                        job->n * job->dims[2] * sizeof(*job->phi) / 1000000);
    return oct_distance_of_heights(job->first, job->dims, reach, job->setup->workers, job->phi,
                                   err);
}

static enum oct_err compute(struct job *job, struct oct_error *err)
{
    const struct oct_levelset_ops *ops;
    struct oct_levelset_engine *engine;
    struct oct_levelset_setup setup = {
        .params = job->setup->params,
        .workers = job->setup->workers,
        .gpus = job->setup->gpus,
        .deadline_ms = job->setup->deadline_ms,
    };
    const double noise = job->report.rough_px, strength = job->setup->strength;
    memcpy(setup.dims, job->dims, sizeof(setup.dims));
    if (strength > 0 && noise > 0) {
        const double scale = (strength / noise) * (strength / noise);
        setup.params.beta *= scale;
        setup.params.c2 *= scale;
    }
    enum oct_err e = oct_levelset_select(&ops, &engine, job->setup->backend, &setup, err);
    if (e != OCT_OK)
        return e;
    e = ops->denoise(engine, job->phi, job->phi, &job->report.levelset, err);
    job->report.running = ops->running ? ops->running(engine) : ops->name;
    ops->destroy(engine);
    return e;
}

/* Strays widen the first estimate of the noise, by which they are found. */
static enum oct_err tame(struct job *job, struct oct_error *err)
{
    const uint32_t n_b = job->setup->n_bscans, n_j = job->setup->n_lines;
    const double alike = job->setup->alike;
    job->report.rough_px = oct_heights_noise(job->known, n_b, n_j, 0);
    memcpy(job->spare, job->first, job->n * sizeof(*job->spare));
    const enum oct_err e = oct_heights_tame(job->spare, n_b, n_j, job->report.rough_px, err);
    if (e != OCT_OK)
        return e;
    for (size_t i = 0; i < job->n; i++)
        if (isnan(job->known[i]))
            job->spare[i] = NAN;
    job->report.rough_px = oct_heights_noise(job->spare, n_b, n_j, 0);
    /* What is tamed has less of the noise that is alike along the lines. */
    job->report.noise_px = oct_heights_noise(alike > 0 ? job->known : job->spare, n_b, n_j, alike);
    return oct_heights_tame(job->first, n_b, n_j, job->report.rough_px, err);
}

/* Of the crossings, from the heights as they came. */
static enum oct_err refine(struct job *job, const float *positions, const double *shift_px,
                           struct oct_error *err)
{
    const uint32_t n_b = job->setup->n_bscans, n_j = job->setup->n_lines;
    const double noise = job->report.noise_px, strength = job->setup->strength;
    for (size_t i = 0; i < job->n; i++)
        job->first[i] = (float)((double)positions[i] + shift_of(shift_px, i / n_j));
    memcpy(job->spare, job->known, job->n * sizeof(*job->spare));
    enum oct_err e = oct_heights_fill(job->spare, n_b, n_j, err);
    if (e == OCT_OK && isfinite(job->spare[0]) && noise > 0)
        e = oct_heights_refine(job->first, n_b, n_j, job->setup->alike,
                               strength > 0 ? strength : noise, noise, job->spare, err);
    for (size_t i = 0; i < job->n && e == OCT_OK; i++)
        if (isfinite(job->known[i]))
            job->known[i] = job->spare[i];
    return e;
}

static enum oct_err denoise(struct job *job, const double *shift_px, float *positions,
                            struct oct_error *err)
{
    const uint32_t n_b = job->setup->n_bscans, n_j = job->setup->n_lines;
    enum oct_err e = oct_heights_fill(job->first, n_b, n_j, err);
    if (e == OCT_OK)
        e = tame(job, err);
    if (e != OCT_OK || (e = fill_phi(job, err)) != OCT_OK || (e = compute(job, err)) != OCT_OK)
        return e;
    for (size_t i = 0; i < job->n; i++)
        if (isnan(job->known[i]))
            job->first[i] = NAN;
    job->report.n_lost = oct_denoise_crossings(job->phi, job->dims, job->first, job->known);
    for (size_t i = 0; i < job->n; i++)
        job->known[i] = (float)((double)job->known[i] * job->voxel + job->top);
    if (!job->setup->params.common_step && (e = refine(job, positions, shift_px, err)) != OCT_OK)
        return e;
    for (size_t i = 0; i < job->n; i++)
        positions[i] = (float)((double)job->known[i] - shift_of(shift_px, i / n_j));
    return OCT_OK;
}

enum oct_err oct_denoise_heights(const struct oct_denoise_setup *setup, float *positions,
                                 const double *shift_px, struct oct_denoise_report *report,
                                 struct oct_error *err)
{
    struct job job = {.setup = setup, .n = (size_t)setup->n_bscans * setup->n_lines};
    job.report.running = "cpu";
    enum oct_err e = oct_levelset_params_check(&setup->params, err);
    if (e != OCT_OK)
        return e;
    if (!(setup->strength >= 0) || !isfinite(setup->strength))
        return oct_fail(err, OCT_E_ARG, "strength is %g voxels; give 0 or more", setup->strength);
    e = align(&job, positions, shift_px, err);
    if (e == OCT_OK && suffices(&job))
        e = denoise(&job, shift_px, positions, err);
    if (e == OCT_OK && report)
        *report = job.report;
    free(job.first);
    free(job.phi);
    return e;
}
