#include "analysis/cones/live.h"

#include "analysis/cones/cones.h"
#include "analysis/cones/square.h"
#include "analysis/enface/enface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const labels[OCT_CONES_N_COLUMNS] = {
    [OCT_CONES_SPACING_PX] = "spacing_px", [OCT_CONES_SPACING_UM] = "spacing_um",
    [OCT_CONES_ROWS_UM] = "rows_um",       [OCT_CONES_PER_MM2] = "cells_per_mm2",
    [OCT_CONES_STRENGTH] = "strength",     [OCT_CONES_RING_SPACING_PX] = "ring_spacing_px",
    [OCT_CONES_COUNTED] = "cones",         [OCT_CONES_SPACING_SE_PX] = "spacing_se_px",
    [OCT_CONES_REGULARITY] = "regularity",
};

struct oct_analysis {
    struct oct_analysis *enface; /* of oct_enface_cpu: gathers the volume */
    struct oct_image_form form;  /* of its results */
    struct oct_square square;
    struct oct_picture picture; /* square pixels */
    float *values, *merged;     /* one result of en face; room for square.h */
    struct oct_cones *cones;    /* NULL: no scale, or the picture is too small */
};

static struct oct_enface_settings slab_of(const void *settings)
{
    struct oct_enface_settings s = *(const struct oct_enface_settings *)settings;
    s.projection = OCT_PROJECTION_SLAB;
    return s;
}

/* ---- the contract's functions ---- */

static enum oct_err cones_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                               struct oct_error *err)
{
    return oct_enface_cpu.run.push(a->enface, bscan, err);
}

static void fill_row(const struct oct_analysis *a, const struct oct_cones_result *found, float *row)
{
    const double um = found->spacing_px * a->square.um;
    row[OCT_CONES_SPACING_PX] = (float)found->spacing_px;
    row[OCT_CONES_SPACING_UM] = (float)um;
    row[OCT_CONES_ROWS_UM] = (float)oct_cones_rows(um);
    row[OCT_CONES_PER_MM2] = (float)(oct_cones_per_area(um) * OCT_UM2_PER_MM2);
    row[OCT_CONES_STRENGTH] = (float)found->strength;
    row[OCT_CONES_RING_SPACING_PX] = (float)found->ring_spacing_px;
    row[OCT_CONES_COUNTED] = found->found ? (float)found->count.n : NAN;
    row[OCT_CONES_SPACING_SE_PX] = (float)found->count.spacing_se;
    row[OCT_CONES_REGULARITY] = (float)found->count.regularity;
}

static enum oct_err cones_take(struct oct_analysis *a, struct oct_image_frame *result,
                               struct oct_error *err)
{
    struct oct_image_frame volume = {.form = &a->form, .info = result->info, .pixels = a->values};
    memcpy(volume.dims, a->form.dims, sizeof(volume.dims));
    enum oct_err e = oct_enface_cpu.run.take(a->enface, &volume, err);
    if (e)
        return e;
    result->info = volume.info;
    struct oct_cones_result found = oct_cones_none;
    if (a->cones) {
        oct_square_run(&a->square, a->values, a->merged, &a->picture);
        /* A volume without contrast, or of which too little came, has no ring. */
        e = oct_cones_find(a->cones, &a->picture, &found, err);
        if (e && e != OCT_E_ARG)
            return e;
    }
    fill_row(a, &found, result->pixels);
    return OCT_OK;
}

static void cones_end(struct oct_analysis *a)
{
    oct_enface_cpu.run.end(a->enface);
}

static void cones_reset(struct oct_analysis *a)
{
    oct_enface_cpu.run.reset(a->enface);
}

static enum oct_err cones_configure(struct oct_analysis *a, const void *settings,
                                    struct oct_error *err)
{
    const struct oct_enface_settings slab = slab_of(settings);
    return oct_enface_cpu.run.configure(a->enface, &slab, err);
}

static void cones_destroy(struct oct_analysis *a)
{
    if (!a)
        return;
    oct_enface_cpu.run.destroy(a->enface);
    oct_cones_destroy(a->cones);
    oct_picture_finish(&a->picture);
    free(a->values);
    free(a->merged);
    free(a);
}

/* The finder, if the picture can be one. */
static enum oct_err open_finder(struct oct_analysis *a, struct oct_error *err)
{
    const uint32_t height = a->form.dims[0], width = a->form.dims[1];
    const double um_y = a->form.spacing_um[0], um_x = a->form.spacing_um[1];
    const bool has_scale = um_y > 0 && um_x > 0 && isfinite(um_y) && isfinite(um_x);
    oct_square_plan(&a->square, height, width, has_scale ? um_y : 1, has_scale ? um_x : 1);
    if (!has_scale)
        a->square.um = NAN;
    const struct oct_cones_setup setup = {.height = a->square.out_height,
                                          .width = a->square.out_width,
                                          .is_db = a->form.quantity == OCT_QUANTITY_INTENSITY_DB,
                                          .masked = true};
    if ((!has_scale && height != width) || setup.height < OCT_PICTURE_LEAST_SIDE ||
        setup.width < OCT_PICTURE_LEAST_SIDE)
        return OCT_OK;
    enum oct_err e = oct_picture_init(&a->picture, setup.height, setup.width, true, err);
    return e ? e : oct_cones_create(&a->cones, &setup, err);
}

static enum oct_err cones_create(struct oct_analysis **out, const struct oct_analysis_setup *setup,
                                 struct oct_image_form *form, struct oct_error *err)
{
    *out = NULL;
    struct oct_analysis *a = calloc(1, sizeof(*a));
    if (!a)
        return oct_fail(err, OCT_E_NO_MEMORY, "cones: out of memory");
    struct oct_analysis_setup of_enface = *setup;
    const struct oct_enface_settings slab = slab_of(setup->settings);
    of_enface.settings = &slab;
    of_enface.live = false; /* gives whole volumes alone */
    enum oct_err e = oct_enface_cpu.create(&a->enface, &of_enface, &a->form, err);
    if (e)
        goto fail;
    const size_t n = (size_t)a->form.dims[0] * a->form.dims[1];
    a->values = malloc(n * sizeof(float));
    a->merged = malloc(n * sizeof(float));
    e = a->values && a->merged ? open_finder(a, err)
                               : oct_fail(err, OCT_E_NO_MEMORY, "cones: out of memory");
    if (e)
        goto fail;
    *form = (struct oct_image_form){
        .name = "cones",
        .quantity = OCT_QUANTITY_NUMBERS,
        .type = OCT_SAMPLE_F32,
        .rank = 1,
        .dims = {OCT_CONES_N_COLUMNS},
        .spacing_um = {NAN},
        .axes = {"column"},
        .labels = labels,
        .of_volume = true,
    };
    *out = a;
    return OCT_OK;
fail:
    cones_destroy(a);
    return e;
}

const struct oct_analysis_ops oct_cones_cpu = {
    .name = "cones",
    .backend = "cpu",
    .meaning = "Spacing and density of the cones in the slab, volume by volume.",
    .input = OCT_STAGE_PICTURES,
    .settings_bytes = sizeof(struct oct_enface_settings),
    .settings_of = "enface", /* it looks at the slab */
    .create = cones_create,
    .run =
        {
            .push = cones_push,
            .take = cones_take,
            .end = cones_end,
            .reset = cones_reset,
            .configure = cones_configure,
            .destroy = cones_destroy,
        },
};
