/* Level sets of octctl surfaces: --phi, and --mask, the boundary of a binary volume, or of one of
 * signed distances, denoised (analysis/layers/denoise/levelset.h). */
#include "analysis/layers/denoise/distance.h"
#include "formats/result_files.h"
#include "formats/results.h"
#include "tools/alloc.h"
#include "tools/analyse/surfaces.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DISTANCE 28378.0 /* voxels: the diagonal of the largest box */

#define M struct oct_surfaces_mask
static const struct oct_result_field mask_rows[] = {
    {OCT_RESULT("given_as", M, given_as)},
    {OCT_RESULT("tissue_before", M, n_before), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("tissue", M, n), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("band", M, report.n_band), .h5 = "n_band"},
    {OCT_RESULT("c2", M, report.c2)},
    {OCT_RESULT("backend", M, running)},
};
#undef M
static const struct oct_result_fields mask_fields = OCT_RESULT_FIELDS(mask_rows);

static const struct oct_result_field report_rows[] = {
    {OCT_RESULT("c2", struct oct_levelset_report, c2)},
    {OCT_RESULT("n_band", struct oct_levelset_report, n_band)},
};
static const struct oct_result_fields report_fields = OCT_RESULT_FIELDS(report_rows);

void oct_surfaces_write_params(struct oct_results *results,
                               const struct oct_levelset_params *params)
{
    const bool is_full = params->weights == OCT_LEVELSET_FULL;
    oct_results_text(results, NULL, "weights", is_full ? "full" : "local");
    oct_results_text(results, NULL, "step", params->common_step ? "common" : "own");
    oct_results_number(results, NULL, "delta_px", params->delta);
    oct_results_count(results, NULL, "patch_px", params->patch);
    if (is_full)
        oct_results_count(results, NULL, "most", params->most);
    else
        oct_results_count(results, NULL, "reach_px", params->reach);
    oct_results_number(results, NULL, "c1", params->c1);
    oct_results_number(results, NULL, "beta", params->beta);
    oct_results_count(results, NULL, "rank", params->rank);
    oct_results_count(results, NULL, "steps", params->steps);
}

/* Voxels from the surface on that patches about the band see. */
static double reach_of(const struct oct_levelset_params *params)
{
    return ceil(params->delta + params->patch / 2 * sqrt(3)) + 1;
}

/* c2 is multiplied by more. */
static enum oct_err denoise_box(const struct oct_surfaces_job *s, const uint32_t dims[3],
                                double more, const float *before, float *phi,
                                struct oct_levelset_report *report, const char **running,
                                struct oct_error *err)
{
    const struct oct_levelset_ops *ops;
    struct oct_levelset_engine *engine;
    struct oct_levelset_setup setup = {
        .params = s->params, .workers = s->job.workers, .gpus = s->job.gpus};
    memcpy(setup.dims, dims, sizeof(setup.dims));
    setup.params.beta *= more;
    enum oct_err e = oct_levelset_select(&ops, &engine, s->job.backend, &setup, err);
    if (e)
        return e;
    e = ops->denoise(engine, before, phi, report, err);
    const char *name = ops->running ? ops->running(engine) : ops->name;
    *running = strcmp(name, "cuda") == 0 ? "cuda" : "cpu"; /* outlives the engine */
    ops->destroy(engine);
    return e;
}

/* ---- --phi ---- */

struct box {
    uint32_t dims[3];
    double origin_px;    /* depth of its first voxel, as aligned */
    float *heights;      /* [V][M] in the box */
    float *before, *phi; /* [dims] */
    struct oct_levelset_report report;
};

/* The nearest known height of the row, then of the column. */
static void fill_gaps(float *heights, size_t n, size_t step)
{
    size_t last = n;
    for (size_t i = 0; i < n; i++) {
        if (isnan(heights[i * step]))
            continue;
        const size_t first = last == n ? 0 : last + 1;
        for (size_t k = first; k < i; k++)
            heights[k * step] =
                last == n || 2 * k >= last + i ? heights[i * step] : heights[last * step];
        last = i;
    }
    for (size_t k = last == n ? n : last + 1; k < n; k++)
        heights[k * step] = heights[last * step];
}

/* The heights as aligned, and the box that holds them with a margin. */
static enum oct_err make_box(struct box *box, const struct oct_surfaces_job *s, double margin,
                             struct oct_error *err)
{
    const float *found = s->layer[s->first].found;
    const size_t m = s->n_lines, n = s->n_bscans * m;
    double least = INFINITY, most = -INFINITY;
    box->heights = oct_alloc(n, sizeof(float));
    for (size_t i = 0; i < n; i++) {
        const double at = (double)found[i] + s->surfaces.shift_px[i / m];
        box->heights[i] = (float)at;
        least = fmin(least, at);
        most = fmax(most, at);
    }
    if (!(least <= most))
        return oct_fail(err, OCT_E_FORMAT, "--phi: the layer was not found anywhere");
    for (size_t b = 0; b < s->n_bscans; b++)
        fill_gaps(box->heights + b * m, m, 1);
    for (size_t j = 0; j < m; j++)
        fill_gaps(box->heights + j, s->n_bscans, m);
    box->origin_px = floor(least) - margin;
    box->dims[0] = s->n_bscans;
    box->dims[1] = s->n_lines;
    box->dims[2] = (uint32_t)(ceil(most) - box->origin_px + margin) + 1;
    for (size_t i = 0; i < n; i++)
        box->heights[i] -= (float)box->origin_px;
    return OCT_OK;
}

static enum oct_err make_phi(struct box *box, const struct oct_surfaces_job *s,
                             struct oct_error *err)
{
    const double reach = reach_of(&s->params), noise = s->layer[s->first].denoised.rough_px;
    const char *running;
    enum oct_err e = make_box(box, s, reach + 1, err);
    if (e)
        return e;
    const size_t n = (size_t)box->dims[0] * box->dims[1] * box->dims[2];
    box->before = oct_alloc(n, sizeof(float));
    box->phi = oct_alloc(n, sizeof(float));
    e = oct_distance_of_heights(box->heights, box->dims, reach, s->job.workers, box->before, err);
    const bool is_scaled = s->choice.strength > 0 && noise > 0;
    return e ? e
             : denoise_box(s, box->dims, is_scaled ? pow(s->choice.strength / noise, 2) : 1,
                           box->before, box->phi, &box->report, &running, err);
}

static enum oct_err write_box(const struct box *box, const struct oct_surfaces_job *s,
                              const char *path, bool force, struct oct_error *err)
{
    static const char *const axes[3] = {"bscan", "line", "depth"};
    static const char *const names[2] = {"/phi_before", "/phi"};
    const float *const volumes[2] = {box->before, box->phi};
    const uint64_t dims[3] = {box->dims[0], box->dims[1], box->dims[2]};
    struct oct_results *f;
    const enum oct_err e = oct_results_create(&f, path, "level-set", force, err);
    if (e)
        return e;
    for (unsigned i = 0; i < 2; i++) {
        const unsigned dataset = oct_results_dataset(f, names[i], OCT_RESULTS_F32, 3, dims, "px");
        oct_results_write(f, dataset, volumes[i]);
        oct_results_text(f, names[i], "sign", "negative in the tissue");
        oct_results_number(f, names[i], "origin_px", box->origin_px);
        oct_results_axes(f, dataset, axes, s->um);
    }
    oct_surfaces_write_params(f, &s->params);
    oct_result_attributes(f, NULL, &report_fields, &box->report);
    return oct_results_publish(f, err);
}

enum oct_err oct_surfaces_write_phi(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct oct_surfaces_job *s = job;
    struct box box = {.heights = NULL};
    enum oct_err e = make_phi(&box, s, err);
    if (!e)
        e = write_box(&box, s, path, force, err);
    free(box.heights);
    free(box.before);
    free(box.phi);
    return e;
}

/* ---- --mask ---- */

static size_t n_voxels(const struct oct_surfaces_mask *mask)
{
    return (size_t)mask->dims[0] * mask->dims[1] * mask->dims[2];
}

static enum oct_err measure_mask(struct oct_surfaces_job *s, const struct oct_pictures *pictures,
                                 struct oct_error *err)
{
    struct oct_surfaces_mask *mask = &s->mask;
    const uint64_t n = oct_pictures_count(pictures);
    oct_pictures_size(pictures, 0, &mask->dims[1], &mask->dims[2]);
    if (n < s->params.patch || n > INT32_MAX)
        return oct_fail(err, OCT_E_FORMAT, "%s: %" PRIu64 " pictures: a volume has %u at least",
                        s->given.mask, n, s->params.patch);
    if (n * mask->dims[1] * mask->dims[2] > OCT_LEVELSET_MOST_VOXELS)
        return oct_fail(err, OCT_E_FORMAT, "%s: %" PRIu64 " x %u x %u voxels are too many",
                        s->given.mask, n, mask->dims[1], mask->dims[2]);
    mask->dims[0] = (uint32_t)n;
    mask->before = oct_alloc(n_voxels(mask), sizeof(float));
    mask->phi = oct_alloc(n_voxels(mask), sizeof(float));
    return OCT_OK;
}

/* Values below 0 tell signed distances from a mask. *most: the largest value, whatever its sign. */
static enum oct_err read_slice(struct oct_surfaces_job *s, struct oct_pictures *pictures,
                               uint32_t b, double *most, struct oct_error *err)
{
    struct oct_surfaces_mask *mask = &s->mask;
    const size_t n = (size_t)mask->dims[1] * mask->dims[2];
    struct oct_picture picture = {0};
    enum oct_err e = oct_pictures_read(pictures, b, &picture, NULL, err);
    if (!e)
        e = oct_job_go_on(&s->job, err);
    for (size_t i = 0; i < n && !e; i++) {
        const float value = picture.pixels[i];
        if (!oct_picture_is_valid(&picture, i) || !isfinite(value))
            e = oct_fail(err, OCT_E_FORMAT, "%s: picture %u holds a value that is not finite",
                         s->given.mask, b);
        mask->is_distance = mask->is_distance || value < 0;
        *most = fabs((double)value) > fabs(*most) ? (double)value : *most;
        mask->before[b * n + i] = value;
    }
    oct_picture_finish(&picture);
    return e;
}

static enum oct_err read_mask(struct oct_surfaces_job *s, struct oct_error *err)
{
    const struct oct_pictures_options options = {.what = OCT_PICTURES_FRAMES, .any_side = true};
    struct oct_surfaces_mask *mask = &s->mask;
    struct oct_pictures *pictures;
    double most = 0;
    enum oct_err e = oct_pictures_open(&pictures, &s->given.mask, 1, &options, err);
    if (!e)
        e = measure_mask(s, pictures, err);
    for (uint32_t b = 0; b < mask->dims[0] && !e; b++)
        e = read_slice(s, pictures, b, &most, err);
    oct_pictures_close(pictures);
    if (!e && mask->is_distance && fabs(most) > MOST_DISTANCE)
        e = oct_fail(err, OCT_E_FORMAT,
                     "%s: holds %g, no distance in voxels; limit distances to the band's "
                     "surroundings, as 100",
                     s->given.mask, most);
    mask->given_as = mask->is_distance ? "signed distances" : "mask";
    return e;
}

static enum oct_err measure_distance(struct oct_surfaces_job *s, struct oct_error *err)
{
    const struct oct_surfaces_mask *mask = &s->mask;
    const size_t n = n_voxels(mask);
    uint8_t *tissue = oct_alloc(n, 1);
    size_t n_tissue = 0;
    for (size_t i = 0; i < n; i++) {
        tissue[i] = mask->before[i] != 0;
        n_tissue += tissue[i];
    }
    const enum oct_err e =
        n_tissue > 0 && n_tissue < n
            ? oct_distance_of_mask(tissue, mask->dims, reach_of(&s->params), s->job.workers,
                                   mask->before, err)
            : oct_fail(err, OCT_E_FORMAT, "%s: is %s throughout: there is no boundary",
                       s->given.mask, n_tissue ? "tissue" : "0");
    free(tissue);
    return e;
}

static enum oct_err denoise_mask(void *job, struct oct_error *err)
{
    struct oct_surfaces_job *s = job;
    struct oct_surfaces_mask *mask = &s->mask;
    enum oct_err e = read_mask(s, err);
    if (!e && !mask->is_distance)
        e = measure_distance(s, err);
    if (!e)
        e = denoise_box(s, mask->dims, 1, mask->before, mask->phi, &mask->report, &mask->running,
                        err);
    for (size_t i = 0; !e && i < n_voxels(mask); i++) {
        mask->n_before += mask->before[i] < 0;
        mask->n += mask->phi[i] < 0;
    }
    return e;
}

static enum oct_err write_mask(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct oct_surfaces_job *s = job;
    const struct oct_surfaces_mask *mask = &s->mask;
    const uint64_t dims[3] = {mask->dims[0], mask->dims[1], mask->dims[2]};
    const size_t n = (size_t)dims[1] * dims[2];
    struct oct_results *f;
    const enum oct_err e = oct_results_create(&f, path, "mask", force, err);
    if (e)
        return e;
    uint8_t *tissue = oct_alloc(n, 1);
    const unsigned to_mask = oct_results_dataset(f, "/mask", OCT_RESULTS_U8, 3, dims, NULL);
    const unsigned to_phi = oct_results_dataset(f, "/phi", OCT_RESULTS_F32, 3, dims, "px");
    oct_results_text(f, "/phi", "sign", "negative in the tissue");
    for (uint64_t b = 0; b < dims[0]; b++) {
        const float *phi = mask->phi + b * n;
        for (size_t i = 0; i < n; i++)
            tissue[i] = phi[i] < 0;
        oct_results_write_rows(f, to_mask, b, 1, tissue);
        oct_results_write_rows(f, to_phi, b, 1, phi);
    }
    free(tissue);
    oct_outputs_source(f, &s->given.mask, 1);
    oct_surfaces_write_params(f, &s->params);
    oct_result_attributes(f, NULL, &mask_fields, mask);
    return oct_results_publish(f, err);
}

static enum oct_err list_mask(void *job, struct oct_error *err)
{
    struct oct_surfaces_job *s = job;
    (void)err;
    oct_job_add(&s->job, s->job.out, write_mask, s);
    return OCT_OK;
}

static void print_mask(const void *job)
{
    const struct oct_surfaces_job *s = job;
    const struct oct_surfaces_mask *mask = &s->mask;
    printf("%s: %u x %u x %u voxels", s->job.out, mask->dims[0], mask->dims[1], mask->dims[2]);
    oct_result_print(stdout,
                     ", {tissue} of the tissue ({tissue_before} before), {band} in the band, "
                     "{backend}",
                     &mask_fields, mask);
    printf(", %.1f s\n", s->job.seconds);
}

static void fill_mask_json(const void *job, cJSON *tree)
{
    const struct oct_surfaces_job *s = job;
    const double dims[3] = {s->mask.dims[0], s->mask.dims[1], s->mask.dims[2]};
    cJSON_AddItemToObject(tree, "dims", cJSON_CreateDoubleArray(dims, 3));
    oct_result_json(tree, &mask_fields, &s->mask);
    cJSON_AddNumberToObject(tree, "seconds", s->job.seconds);
    cJSON_AddStringToObject(tree, "out", s->job.out);
}

const struct oct_job_ops oct_surfaces_mask_job = {
    .progress = "pictures",
    .list = list_mask,
    .work = denoise_mask,
    .print = print_mask,
    .json = fill_mask_json,
};
