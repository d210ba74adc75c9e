#include "analysis/enface/enface.h"
#include "analysis/surface/live_parts.h"
#include "analysis/surface/pixels.h"
#include "pipeline/base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EVERY_NS UINT64_C(100000000) /* a growing volume */

/* The image of a volume. */
struct image {
    float *values; /* [n_rows][M] */
    struct oct_bscan_info newest;
};

/* What there is while a slab is named; else all NULL. */
struct parts {
    struct oct_layer_sequence *sequence;
    struct image growing, left; /* left: of a volume that ended early and was not taken yet */
    float *line;                /* [D] */
};

struct oct_analysis {
    struct oct_surfaces_live live;
    uint32_t n_bscans, n_lines, depth; /* V, M, D */
    uint32_t n_rows, row_step;
    double depth_um; /* as taken where it is not known */
    bool is_live;

    struct parts parts;
    const struct oct_sequence_layers *layers; /* of the B-scans that come */
    bool any, has_left;
    bool changed, is_whole; /* since it was taken last; of the growing one */
    uint64_t taken_ns;

    /* While a B-scan is pushed. */
    struct oct_surface_pixels shown;
    float *row;
};

static size_t n_values(const struct oct_analysis *a)
{
    return (size_t)a->n_rows * a->n_lines;
}

static void empty(struct oct_analysis *a)
{
    for (size_t i = 0; i < n_values(a); i++)
        a->parts.growing.values[i] = NAN;
    a->any = a->changed = a->is_whole = false;
}

/* ---- a B-scan becomes a row ---- */

static void project(struct oct_analysis *a)
{
    for (uint32_t j = 0; j < a->n_lines; j++) {
        const float *position[OCT_N_LAYERS];
        for (unsigned layer = 0; layer < OCT_N_LAYERS; layer++)
            position[layer] = a->layers->position[layer] + j;
        a->row[j] = NAN;
        if (!oct_surface_pixels_came(&a->shown, j))
            continue;
        oct_surface_pixels_values(&a->shown, j, a->parts.line);
        oct_slab_project(&a->live.settings.slab, a->parts.line, 1, a->depth, a->depth_um, position,
                         &a->row[j]);
    }
}

static void add_row(struct oct_analysis *a, const struct oct_image_frame *bscan)
{
    if (oct_layer_sequence_has_turn(a->parts.sequence, &bscan->info, a->live.settings.every))
        a->layers = oct_layer_sequence_run(a->parts.sequence, bscan);
    a->row = a->parts.growing.values + (size_t)(bscan->info.bscan / a->row_step) * a->n_lines;
    oct_surface_pixels_begin(&a->shown, &a->live.input, bscan);
    project(a);
    a->shown.bscan = NULL;
}

/* ---- the contract's functions ---- */

/* The volume before ended early, or nobody has taken it since it is whole: it waits to be taken,
 * and the new one gets the other memory. */
static void leave_volume(struct oct_analysis *a)
{
    if (a->changed || !a->is_whole) {
        const struct image growing = a->parts.left;
        a->parts.left = a->parts.growing;
        a->parts.growing = growing;
        a->has_left = true;
    }
    empty(a);
}

static enum oct_err slab_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                              struct oct_error *err)
{
    const struct oct_bscan_info *info = &bscan->info;
    if (!a->parts.sequence)
        return OCT_OK;
    if (info->bscan >= a->n_bscans)
        return oct_fail(err, OCT_E_ARG, "B-scan %u of a volume that has %u", info->bscan,
                        a->n_bscans);
    if (a->any && info->volume != a->parts.growing.newest.volume)
        leave_volume(a);
    add_row(a, bscan);
    a->parts.growing.newest = *info;
    a->any = a->changed = true;
    a->is_whole = info->bscan + 1 == a->n_bscans;
    return OCT_OK;
}

static void give(const struct oct_analysis *a, const struct image *image, bool whole,
                 struct oct_image_frame *result)
{
    memcpy(result->pixels, image->values, n_values(a) * sizeof(float));
    oct_enface_limits(image->values, n_values(a), &result->lo, &result->hi);
    result->info = image->newest;
    result->whole = whole;
}

static enum oct_err slab_take(struct oct_analysis *a, struct oct_image_frame *result,
                              struct oct_error *err)
{
    (void)err;
    if (a->has_left) {
        give(a, &a->parts.left, true, result);
        a->has_left = false;
        return OCT_OK;
    }
    const bool due = a->is_whole || (a->is_live && oct_clock_ns() - a->taken_ns >= EVERY_NS);
    if (!a->changed || !due)
        return OCT_E_AGAIN;
    give(a, &a->parts.growing, a->is_whole, result);
    a->changed = false;
    a->taken_ns = oct_clock_ns();
    return OCT_OK;
}

static void slab_end(struct oct_analysis *a)
{
    a->changed = a->changed || (a->any && !a->is_whole);
    a->is_whole = a->any;
}

static void slab_reset(struct oct_analysis *a)
{
    if (!a->parts.sequence)
        return;
    oct_layer_sequence_reset(a->parts.sequence);
    empty(a);
    a->has_left = false;
}

static bool slab_is_at_rest(const struct oct_analysis *a)
{
    return a->live.settings.slab.is_none;
}

/* ---- settings ---- */

static bool is_same_bound(const struct oct_slab_bound *a, const struct oct_slab_bound *b)
{
    return a->layer == b->layer && oct_surfaces_is_equal(a->offset_um, b->offset_um);
}

/* Whether the volume that grows goes on. */
static bool keeps_parts(const struct oct_surfaces_settings *a,
                        const struct oct_surfaces_settings *b)
{
    return a->slab.is_none == b->slab.is_none && is_same_bound(&a->slab.first, &b->slab.first) &&
           is_same_bound(&a->slab.last, &b->slab.last) && oct_surfaces_trace_alike(a, b);
}

/* ---- life ---- */

static void finish_parts(struct parts *parts)
{
    oct_layer_sequence_destroy(parts->sequence);
    free(parts->growing.values);
    free(parts->left.values);
    free(parts->line);
    *parts = (struct parts){.sequence = NULL};
}

static enum oct_err open_parts(const struct oct_analysis *a, struct parts *parts,
                               const struct oct_surfaces_settings *settings, struct oct_error *err)
{
    enum oct_err e = oct_surfaces_live_sequence(&parts->sequence, &a->live, settings, err);
    if (e)
        return e;
    parts->growing.values = malloc(n_values(a) * sizeof(float));
    parts->left.values = malloc(n_values(a) * sizeof(float));
    parts->line = malloc(a->depth * sizeof(*parts->line));
    return parts->growing.values && parts->left.values && parts->line
               ? OCT_OK
               : oct_fail(err, OCT_E_NO_MEMORY, "slab: out of memory for %u x %u values", a->n_rows,
                          a->n_lines);
}

/* Replaces the parts where new ones can be made. */
static enum oct_err make_parts(struct oct_analysis *a, const struct oct_surfaces_settings *settings,
                               struct oct_error *err)
{
    struct parts parts = {.sequence = NULL};
    enum oct_err e = settings->slab.is_none ? OCT_OK : open_parts(a, &parts, settings, err);
    if (e) {
        finish_parts(&parts);
        return e;
    }
    finish_parts(&a->parts);
    a->parts = parts;
    a->layers = NULL;
    a->any = a->has_left = a->changed = a->is_whole = false;
    if (parts.sequence)
        empty(a);
    return OCT_OK;
}

static enum oct_err slab_configure(struct oct_analysis *a, const void *settings,
                                   struct oct_error *err)
{
    const struct oct_surfaces_settings *wanted = settings;
    enum oct_err e = oct_surfaces_live_check(wanted, &a->live.input, err);
    if (!e && !keeps_parts(&a->live.settings, wanted))
        e = make_parts(a, wanted, err);
    if (!e)
        a->live.settings = *wanted;
    return e;
}

static void slab_destroy(struct oct_analysis *a)
{
    if (!a)
        return;
    finish_parts(&a->parts);
    free(a);
}

static void describe(const struct oct_analysis *a, struct oct_image_form *form)
{
    *form = (struct oct_image_form){
        .name = "slab",
        .quantity = a->live.input.quantity,
        .type = OCT_SAMPLE_F32,
        .rank = 2,
        .dims = {a->n_rows, a->n_lines},
        .spacing_um = {a->live.spacing.bscan_um * a->row_step, a->live.spacing.line_um},
        .axes = {"bscan", "line"},
        .of_volume = true,
    };
}

static enum oct_err slab_create(struct oct_analysis **out, const struct oct_analysis_setup *setup,
                                struct oct_image_form *form, struct oct_error *err)
{
    struct oct_analysis *a = calloc(1, sizeof(*a));
    *out = NULL;
    if (!a)
        return oct_fail(err, OCT_E_NO_MEMORY, "slab: out of memory");
    enum oct_err e = oct_surfaces_live_init(&a->live, setup, err);
    const double depth_um = oct_surfaces_live_depth_um(&a->live);
    a->n_bscans = setup->n_bscans;
    a->n_lines = setup->input->dims[0];
    a->depth = setup->input->dims[1];
    a->is_live = setup->live;
    a->depth_um = isnan(depth_um) ? OCT_TRACE_DEPTH_UM : depth_um;
    a->row_step = oct_enface_row_step(a->n_bscans, a->n_lines);
    a->n_rows = (a->n_bscans + a->row_step - 1) / a->row_step;
    e = e ? e : make_parts(a, &a->live.settings, err);
    if (e) {
        slab_destroy(a);
        return e;
    }
    describe(a, form);
    *out = a;
    return OCT_OK;
}

const struct oct_analysis_ops oct_slab_analysis_cpu = {
    .name = "slab",
    .backend = "cpu",
    .meaning = "The volume from above, of depths between layers: one row a B-scan.",
    .input = OCT_STAGE_PICTURES,
    .settings_bytes = sizeof(struct oct_surfaces_settings),
    .create = slab_create,
    .run =
        {
            .push = slab_push,
            .take = slab_take,
            .end = slab_end,
            .reset = slab_reset,
            .configure = slab_configure,
            .is_at_rest = slab_is_at_rest,
            .destroy = slab_destroy,
        },
};
