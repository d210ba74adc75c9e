#include "tools/analyse/surfaces_run.h"

#include "formats/recording.h"
#include "formats/volumes.h"
#include "numeric/picture.h"
#include "pipeline/base/clock.h"
#include "tools/picture_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MOST_DB 1e6F
#define MOST_COUNTS 1e20F /* of counts^2, and of what does not say what it is */

enum oct_layer oct_surfaces_run_first(const struct oct_surfaces_run *run)
{
    return run->given->has_layer[OCT_LAYER_ILM] ? OCT_LAYER_ILM : OCT_LAYER_RPE;
}

bool oct_surfaces_run_has_um(const struct oct_surfaces_run *run)
{
    return run->um[0] > 0 && run->um[1] > 0 && run->um[2] > 0;
}

/* ---- pictures ---- */

/* The layers stand out in dB; 0 counts and less have none. */
static enum oct_err make_db(struct oct_picture *picture, struct oct_error *err)
{
    const size_t n = (size_t)picture->height * picture->width;
    for (size_t i = 0; i < n; i++)
        picture->pixels[i] =
            picture->pixels[i] > 0 ? (float)(10 * log10((double)picture->pixels[i])) : NAN;
    return oct_picture_mask_not_finite(picture, err);
}

/* What no light makes is as what is not finite: next to it float sums keep nothing of the rest. */
static enum oct_err leave_out(struct oct_picture *picture, float most, struct oct_error *err)
{
    const size_t n = (size_t)picture->height * picture->width;
    bool is_wild = false;
    for (size_t i = 0; i < n; i++)
        if (fabsf(picture->pixels[i]) > most) {
            picture->pixels[i] = NAN;
            is_wild = true;
        }
    return is_wild ? oct_picture_mask_not_finite(picture, err) : OCT_OK;
}

enum oct_err oct_surfaces_run_read(struct oct_surfaces_run *run, uint32_t b,
                                   struct oct_picture *picture, struct oct_error *err)
{
    *picture = (struct oct_picture){0};
    if (*run->cancel)
        return oct_fail(err, OCT_E_STATE, "interrupted; nothing was written");
    enum oct_err e = oct_pictures_read(run->pictures, b, picture, NULL, err);
    if (!e)
        e = leave_out(picture, run->is_db && !run->is_linear ? MOST_DB : MOST_COUNTS, err);
    if (!e && run->is_linear)
        e = make_db(picture, err);
    if (!e && run->is_turned)
        e = oct_picture_transpose(picture, err);
    if (e)
        oct_picture_finish(picture);
    return e;
}

static enum oct_err read_bscan(void *context, uint32_t b, struct oct_picture *picture,
                               struct oct_error *err)
{
    return oct_surfaces_run_read(context, b, picture, err);
}

static void show(void *context, uint64_t done, uint64_t all)
{
    struct oct_surfaces_run *run = context;
    oct_progress_show(&run->progress, done, all);
}

/* ---- the volume ---- */

static bool has_end(const char *path, const char *end)
{
    const size_t n = strlen(path), n_end = strlen(end);
    return n > n_end && strcasecmp(path + n - n_end, end) == 0;
}

/* What a volume says beside its pictures. */
static enum oct_err look_at_volume(struct oct_surfaces_run *run, const char *path,
                                   struct oct_error *err)
{
    struct oct_volume_info info;
    const enum oct_err e = oct_volume_look(path, &info, err);
    if (e)
        return e;
    run->um[0] = info.um[0];
    run->is_linear = info.is_linear;
    if (strcmp(info.eye, "OD") == 0)
        run->eye = OCT_SURFACES_EYE_OD;
    if (strcmp(info.eye, "OS") == 0)
        run->eye = OCT_SURFACES_EYE_OS;
    return OCT_OK;
}

static bool is_hdf5(const char *path)
{
    return oct_recording_names_dataset(path) || oct_recording_is_volume(path);
}

/* Pictures are parts of a volume, these are whole ones. */
static enum oct_err check_inputs(const struct oct_surfaces_run *run, struct oct_error *err)
{
    for (unsigned i = 0; run->n_inputs > 1 && i < run->n_inputs; i++)
        if (is_hdf5(run->inputs[i]))
            return oct_fail(err, OCT_E_CONFIG, "%s and %u more: one volume at a time",
                            run->inputs[i], run->n_inputs - 1);
    return OCT_OK;
}

static enum oct_err look_at_file(struct oct_surfaces_run *run, struct oct_error *err)
{
    const char *path = run->inputs[0];
    run->is_turned = run->given->depth_is_given ? run->given->depth_is_down
                                                : !is_hdf5(path) && !has_end(path, ".npy");
    return is_hdf5(path) ? look_at_volume(run, path, err) : OCT_OK;
}

static enum oct_err look_at_first(struct oct_surfaces_run *run, struct oct_error *err)
{
    struct oct_pictures_info info;
    struct oct_picture first = {0};
    const uint64_t n = oct_pictures_count(run->pictures);
    if (n < OCT_SURFACES_LEAST_BSCANS || n > INT32_MAX)
        return oct_fail(err, OCT_E_FORMAT, "%s: %llu B-scan%s: a volume has %u at least",
                        run->inputs[0], (unsigned long long)n, n == 1 ? "" : "s",
                        OCT_SURFACES_LEAST_BSCANS);
    const enum oct_err e = oct_pictures_read(run->pictures, 0, &first, &info, err);
    if (e)
        return e;
    run->n_bscans = (uint32_t)n;
    run->n_lines = run->is_turned ? first.width : first.height;
    run->depth = run->is_turned ? first.height : first.width;
    run->is_db = info.is_db || run->is_linear;
    run->um[1] = info.um[run->is_turned];
    run->um[2] = info.um[!run->is_turned];
    oct_picture_finish(&first);
    for (int axis = 0; axis < 3; axis++) {
        if (run->given->um[axis] > 0)
            run->um[axis] = run->given->um[axis];
        if (!(run->um[axis] > 0))
            run->um[axis] = NAN;
    }
    return OCT_OK;
}

/* What was asked for needs what is not known. */
static enum oct_err check_given(const struct oct_surfaces_run *run, struct oct_error *err)
{
    const struct oct_surfaces_given *g = run->given;
    const double *at = g->fovea_px;
    if (g->has_fovea &&
        !(at[0] >= 0 && at[1] >= 0 && at[0] <= run->n_bscans - 1.0 && at[1] <= run->n_lines - 1.0))
        return oct_fail(err, OCT_E_CONFIG, "--fovea %s: lies outside 0,0 to %u,%u", g->fovea,
                        run->n_bscans - 1, run->n_lines - 1);
    if (g->has_fovea && !oct_surfaces_run_has_um(run))
        return oct_fail(err, OCT_E_CONFIG,
                        "--fovea: the spacing is not known; --pixel-um gives it");
    for (unsigned i = 0; i < g->n_slabs; i++)
        if (isnan(run->um[2]) &&
            (g->slab[i].first.offset_um != 0 || g->slab[i].last.offset_um != 0))
            return oct_fail(err, OCT_E_CONFIG,
                            "--slab %s: the depth of a pixel is not known; --pixel-um gives it",
                            g->slabs[i]);
    return OCT_OK;
}

enum oct_err oct_surfaces_run_begin(struct oct_surfaces_run *run, struct oct_error *err)
{
    const struct oct_pictures_options options = {.what = OCT_PICTURES_FRAMES};
    run->um[0] = NAN;
    run->progress.what = "B-scans";
    run->progress.started_ns = oct_clock_ns();
    enum oct_err e = check_inputs(run, err);
    e = e ? e : oct_pictures_open(&run->pictures, run->inputs, run->n_inputs, &options, err);
    e = e ? e : look_at_file(run, err);
    e = e ? e : look_at_first(run, err);
    e = e ? e : check_given(run, err);
    e = e ? e : oct_picture_skip(run->given->skip, run->n_bscans, &run->skip, err);
    if (run->given->which_eye != OCT_SURFACES_EYE_UNKNOWN)
        run->eye = run->given->which_eye;
    return e;
}

/* ---- the layers ---- */

static enum oct_err find(struct oct_surfaces_run *run, struct oct_error *err)
{
    struct oct_surfaces_setup setup = {.n_lines = run->n_lines,
                                       .depth = run->depth,
                                       .bscan_um = run->um[0],
                                       .align = !run->given->no_align,
                                       .skip = run->skip,
                                       .workers = run->workers,
                                       .backend = run->backend,
                                       .gpus = run->gpus};
    const struct oct_volume_source source = {
        .context = run, .n_bscans = run->n_bscans, .read = read_bscan, .progress = show};
    oct_trace_params_default(&setup.trace);
    setup.trace.depth_um = run->um[2];
    setup.trace.line_um = run->um[1];
    return oct_surfaces_find(&setup, &source, &run->surfaces, err);
}

void oct_surfaces_run_denoise_setup(const struct oct_surfaces_run *run,
                                    struct oct_denoise_setup *setup)
{
    *setup = (struct oct_denoise_setup){.n_bscans = run->n_bscans,
                                        .n_lines = run->n_lines,
                                        .params = run->params,
                                        .strength =
                                            isnan(run->given->strength) ? 0 : run->given->strength,
                                        .backend = run->backend,
                                        .gpus = run->gpus,
                                        .workers = run->workers};
}

static uint64_t count_known(const float *values, size_t n)
{
    uint64_t n_known = 0;
    for (size_t i = 0; i < n; i++)
        n_known += isfinite(values[i]) != 0;
    return n_known;
}

static enum oct_err denoise(struct oct_surfaces_run *run, struct oct_error *err)
{
    const size_t n = (size_t)run->n_bscans * run->n_lines;
    struct oct_denoise_setup setup;
    oct_surfaces_given_levelset(run->given, &run->params);
    oct_surfaces_run_denoise_setup(run, &setup);
    for (unsigned i = 0; i < OCT_N_LAYERS; i++) {
        enum oct_err e = OCT_OK;
        if (!run->given->has_layer[i])
            continue;
        if (*run->cancel)
            return oct_fail(err, OCT_E_STATE, "interrupted; nothing was written");
        if (!(run->found[i] = malloc(n * sizeof(float))))
            return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u B-scans", run->n_bscans);
        memcpy(run->found[i], run->surfaces.position[i], n * sizeof(float));
        if (run->given->is_denoised)
            e = oct_denoise_heights(&setup, run->surfaces.position[i],
                                    run->given->no_align ? NULL : run->surfaces.shift_px,
                                    &run->denoised[i], err);
        if (e)
            return e;
        run->n_known[i] = count_known(run->surfaces.position[i], n);
    }
    return OCT_OK;
}

/* ---- what follows from them ---- */

static void measure_grid(struct oct_surfaces_run *run)
{
    const struct oct_surfaces_given *g = run->given;
    const double *um = run->um;
    if (!oct_surfaces_run_has_um(run))
        return;
    run->has_fovea = g->has_fovea;
    memcpy(run->fovea_px, g->fovea_px, sizeof(run->fovea_px));
    if (!run->has_fovea)
        run->has_fovea = oct_thickness_fovea(run->thickness, run->n_bscans, run->n_lines, um[0],
                                             um[1], &run->fovea_px[0], &run->fovea_px[1]);
    if (!run->has_fovea || run->n_thickness == 0)
        return;
    const struct oct_etdrs_setup setup = {.n_bscans = run->n_bscans,
                                          .n_lines = run->n_lines,
                                          .bscan_um = um[0],
                                          .line_um = um[1],
                                          .fovea_b = run->fovea_px[0],
                                          .fovea_j = run->fovea_px[1],
                                          .has_sides = run->eye != OCT_SURFACES_EYE_UNKNOWN,
                                          .nasal_is_right = run->eye == OCT_SURFACES_EYE_OD,
                                          .superior_is_last = g->superior_is_last};
    oct_etdrs_measure(&setup, run->thickness, &run->etdrs);
    run->has_etdrs = true;
}

static enum oct_err measure_thickness(struct oct_surfaces_run *run, struct oct_error *err)
{
    const size_t n = (size_t)run->n_bscans * run->n_lines;
    if (!oct_surfaces_given_both(run->given))
        return OCT_OK;
    if (!(run->thickness = malloc(n * sizeof(float))))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u B-scans", run->n_bscans);
    run->n_thickness = oct_thickness_map(run->surfaces.position[OCT_LAYER_ILM],
                                         run->surfaces.position[OCT_LAYER_RPE], n,
                                         isnan(run->um[2]) ? 1 : run->um[2], run->thickness);
    measure_grid(run);
    return OCT_OK;
}

/* Of one B-scan into all slabs. */
static enum oct_err project(struct oct_surfaces_run *run, uint32_t b, struct oct_error *err)
{
    const size_t row = (size_t)b * run->n_lines;
    const float *const position[OCT_N_LAYERS] = {run->surfaces.position[OCT_LAYER_ILM] + row,
                                                 run->surfaces.position[OCT_LAYER_RPE] + row};
    struct oct_picture picture;
    const enum oct_err e = oct_surfaces_run_read(run, b, &picture, err);
    const size_t n = (size_t)run->n_lines * run->depth;
    if (e)
        return e;
    for (size_t i = 0; picture.valid && i < n; i++)
        if (!picture.valid[i])
            picture.pixels[i] = NAN;
    for (unsigned i = 0; i < run->given->n_slabs; i++)
        oct_slab_project(&run->given->slab[i], picture.pixels, run->n_lines, run->depth, run->um[2],
                         position, run->slab[i] + row);
    oct_picture_finish(&picture);
    return OCT_OK;
}

static enum oct_err make_slabs(struct oct_surfaces_run *run, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < run->given->n_slabs; i++) {
        run->slab[i] = malloc((size_t)run->n_bscans * run->n_lines * sizeof(float));
        if (!run->slab[i])
            return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u B-scans", run->n_bscans);
    }
    for (uint32_t b = 0; run->given->n_slabs > 0 && b < run->n_bscans && !e; b++)
        e = project(run, b, err);
    return e;
}

enum oct_err oct_surfaces_run_all(struct oct_surfaces_run *run, struct oct_error *err)
{
    enum oct_err e = find(run, err);
    e = e ? e : denoise(run, err);
    e = e ? e : measure_thickness(run, err);
    e = e ? e : make_slabs(run, err);
    run->seconds = oct_progress_seconds(&run->progress);
    return e;
}

void oct_surfaces_run_finish(struct oct_surfaces_run *run)
{
    oct_surfaces_finish(&run->surfaces);
    for (unsigned i = 0; i < OCT_N_LAYERS; i++)
        free(run->found[i]);
    for (unsigned i = 0; i < OCT_SURFACES_MOST_SLABS; i++)
        free(run->slab[i]);
    free(run->thickness);
    free(run->skip);
    oct_pictures_close(run->pictures);
    *run = (struct oct_surfaces_run){.given = run->given};
}
