#include "tools/analyse/surfaces_mask.h"

#include "analysis/surface/distance.h"
#include "formats/pictures.h"
#include "formats/results.h"
#include "pipeline/base/clock.h"
#include "tools/analyse/surfaces_files.h"
#include "tools/commands.h"
#include "tools/outputs.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DISTANCE 28378.0 /* voxels: the diagonal of the largest box */

/* ---- what is given ---- */

static enum oct_err open_box(struct oct_surfaces_mask *mask, struct oct_pictures *pictures,
                             struct oct_error *err)
{
    const uint64_t n = oct_pictures_count(pictures);
    uint32_t height, width;
    oct_pictures_size(pictures, 0, &height, &width);
    if (n < mask->params.patch || n > INT32_MAX)
        return oct_fail(err, OCT_E_FORMAT, "%s: %" PRIu64 " pictures: a volume has %u at least",
                        mask->path, n, mask->params.patch);
    if (n * height * width > OCT_LEVELSET_MOST_VOXELS)
        return oct_fail(err, OCT_E_FORMAT, "%s: %" PRIu64 " x %u x %u voxels are too many",
                        mask->path, n, height, width);
    mask->dims[0] = (uint32_t)n;
    mask->dims[1] = height;
    mask->dims[2] = width;
    mask->before = calloc(n * height, width * sizeof(float));
    mask->phi = calloc(n * height, width * sizeof(float));
    if (!mask->before || !mask->phi)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", mask->path);
    return OCT_OK;
}

/* Values below 0 tell signed distances from a mask. */
static enum oct_err read_box(struct oct_surfaces_mask *mask, struct oct_pictures *pictures,
                             struct oct_error *err)
{
    const size_t n = (size_t)mask->dims[1] * mask->dims[2];
    double most = 0;
    for (uint32_t b = 0; b < mask->dims[0]; b++) {
        struct oct_picture picture = {0};
        enum oct_err e = oct_pictures_read(pictures, b, &picture, NULL, err);
        if (!e && *mask->cancel)
            e = oct_fail(err, OCT_E_STATE, "interrupted; nothing was written");
        for (size_t i = 0; i < n && !e; i++) {
            const float value = picture.pixels[i];
            if (!oct_picture_is_valid(&picture, i) || !isfinite(value))
                e = oct_fail(err, OCT_E_FORMAT, "%s: picture %u holds a value that is not finite",
                             mask->path, b);
            mask->is_distance = mask->is_distance || value < 0;
            most = fabs((double)value) > fabs(most) ? (double)value : most;
            mask->before[b * n + i] = value;
        }
        oct_picture_finish(&picture);
        if (e)
            return e;
    }
    if (mask->is_distance && fabs(most) > MOST_DISTANCE)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: holds %g, no distance in voxels; limit distances to the band's "
                        "surroundings, as 100",
                        mask->path, most);
    return OCT_OK;
}

static size_t n_voxels(const struct oct_surfaces_mask *mask)
{
    return (size_t)mask->dims[0] * mask->dims[1] * mask->dims[2];
}

static enum oct_err measure_distance(struct oct_surfaces_mask *mask, struct oct_error *err)
{
    const size_t n = n_voxels(mask);
    uint8_t *tissue = calloc(n + 1, 1);
    if (!tissue)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", mask->path);
    size_t n_tissue = 0;
    for (size_t i = 0; i < n; i++) {
        tissue[i] = mask->before[i] != 0;
        n_tissue += tissue[i];
    }
    enum oct_err e =
        n_tissue > 0 && n_tissue < n
            ? oct_distance_of_mask(tissue, mask->dims, oct_surfaces_reach(&mask->params),
                                   mask->workers, mask->before, err)
            : oct_fail(err, OCT_E_FORMAT, "%s: is %s throughout: there is no boundary", mask->path,
                       n_tissue ? "tissue" : "0");
    free(tissue);
    return e;
}

/* ---- denoising ---- */

static uint64_t count_tissue(const float *phi, size_t n)
{
    uint64_t n_tissue = 0;
    for (size_t i = 0; i < n; i++)
        n_tissue += phi[i] < 0;
    return n_tissue;
}

static enum oct_err denoise(struct oct_surfaces_mask *mask, struct oct_error *err)
{
    const struct oct_levelset_ops *ops;
    struct oct_levelset_engine *engine;
    struct oct_levelset_setup setup = {
        .params = mask->params, .workers = mask->workers, .gpus = mask->gpus};
    memcpy(setup.dims, mask->dims, sizeof(setup.dims));
    enum oct_err e = oct_levelset_select(&ops, &engine, mask->backend, &setup, err);
    if (e)
        return e;
    e = ops->denoise(engine, mask->before, mask->phi, &mask->report, err);
    const char *running = ops->running ? ops->running(engine) : ops->name;
    mask->running = strcmp(running, "cuda") == 0 ? "cuda" : "cpu"; /* outlives the engine */
    ops->destroy(engine);
    return e;
}

enum oct_err oct_surfaces_mask_run(struct oct_surfaces_mask *mask, struct oct_error *err)
{
    const struct oct_pictures_options options = {.what = OCT_PICTURES_FRAMES, .any_side = true};
    const uint64_t began_ns = oct_clock_ns();
    struct oct_pictures *pictures;
    enum oct_err e = oct_pictures_open(&pictures, &mask->path, 1, &options, err);
    if (e)
        return e;
    e = open_box(mask, pictures, err);
    e = e ? e : read_box(mask, pictures, err);
    oct_pictures_close(pictures);
    if (!e && !mask->is_distance)
        e = measure_distance(mask, err);
    e = e ? e : denoise(mask, err);
    if (e)
        return e;
    mask->n_before = count_tissue(mask->before, n_voxels(mask));
    mask->n = count_tissue(mask->phi, n_voxels(mask));
    mask->seconds = (double)(oct_clock_ns() - began_ns) * 1e-9;
    return OCT_OK;
}

void oct_surfaces_mask_finish(struct oct_surfaces_mask *mask)
{
    free(mask->before);
    free(mask->phi);
    mask->before = mask->phi = NULL;
}

/* ---- what is written ---- */

static void write_slices(struct oct_results *f, const struct oct_surfaces_mask *mask,
                         uint8_t *tissue)
{
    const uint64_t dims[3] = {mask->dims[0], mask->dims[1], mask->dims[2]};
    const size_t n = (size_t)mask->dims[1] * mask->dims[2];
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
}

enum oct_err oct_surfaces_mask_h5(void *context, const char *path, bool force,
                                  struct oct_error *err)
{
    const struct oct_surfaces_mask *mask = context;
    struct oct_results *f;
    uint8_t *tissue = malloc((size_t)mask->dims[1] * mask->dims[2]);
    if (!tissue)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    const enum oct_err e = oct_results_create(&f, path, "mask", force, err);
    if (e) {
        free(tissue);
        return e;
    }
    write_slices(f, mask, tissue);
    free(tissue);
    oct_outputs_source(f, &mask->path, 1);
    oct_surfaces_write_levelset(f, &mask->params);
    oct_results_text(f, NULL, "given_as", mask->is_distance ? "signed distances" : "mask");
    oct_results_text(f, NULL, "backend", mask->running);
    oct_results_number(f, NULL, "c2", mask->report.c2);
    oct_results_count(f, NULL, "n_band", mask->report.n_band);
    return oct_results_publish(f, err);
}

void oct_surfaces_mask_print(const struct oct_surfaces_mask *mask, const char *out)
{
    printf("%s: %u x %u x %u voxels, %" PRIu64 " of the tissue (%" PRIu64 " before), %" PRIu64
           " in the band, %s, %.1f s\n",
           out, mask->dims[0], mask->dims[1], mask->dims[2], mask->n, mask->n_before,
           mask->report.n_band, mask->running, mask->seconds);
}

enum oct_err oct_surfaces_mask_json(const struct oct_surfaces_mask *mask, const char *out,
                                    struct oct_error *err)
{
    cJSON *o = cJSON_CreateObject();
    const double dims[3] = {mask->dims[0], mask->dims[1], mask->dims[2]};
    cJSON_AddItemToObject(o, "dims", cJSON_CreateDoubleArray(dims, 3));
    cJSON_AddStringToObject(o, "given_as", mask->is_distance ? "signed distances" : "mask");
    cJSON_AddNumberToObject(o, "tissue_before", (double)mask->n_before);
    cJSON_AddNumberToObject(o, "tissue", (double)mask->n);
    cJSON_AddNumberToObject(o, "band", (double)mask->report.n_band);
    cJSON_AddNumberToObject(o, "c2", mask->report.c2);
    cJSON_AddStringToObject(o, "backend", mask->running);
    cJSON_AddNumberToObject(o, "seconds", mask->seconds);
    cJSON_AddStringToObject(o, "out", out);
    const bool printed = oct_command_print_json(o);
    cJSON_Delete(o);
    return printed ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}
