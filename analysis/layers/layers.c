#include "analysis/layers/layers.h"

#include "analysis/enface/enface.h"
#include "analysis/layers/find/pixels.h"
#include "analysis/layers/find/sequence.h"
#include "pipeline/base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EVERY_NS UINT64_C(100000000) /* a growing volume */

static const struct oct_image_number numbers[OCT_SURFACES_N_NUMBERS] = {
    [OCT_SURFACES_FOUND] = {"found", 1},
    [OCT_SURFACES_THICKNESS] = {"thickness", 1},
    [OCT_SURFACES_DEPTH_UM] = {"depth_um", 1},
};

#define S struct oct_surfaces_settings
static const struct oct_param param_rows[] = {
    {OCT_PARAM("enabled", S, enabled), OCT_PARAM_LIVE, .standard = "no",
     .meaning = "The seven borders of the retina's layers are found in B-scans."},
    {OCT_PARAM("every", S, every), OCT_PARAM_LIVE, .least = 1, .most = OCT_SURFACES_MOST_EVERY,
     .standard = "1", .unit = "B-scans",
     .meaning = "One of so many B-scans is searched; 1: each, as far as the machine follows."},
    {OCT_PARAM("least_um", S, least_um), OCT_PARAM_LIVE, .below = "most_um", .least = 1,
     .most = 1e4, .standard = "100", .unit = "um",
     .meaning = "Least distance from the ilm to the rpe."},
    {OCT_PARAM("most_um", S, most_um), OCT_PARAM_LIVE, .least = 1, .most = 1e4, .standard = "600",
     .unit = "um", .meaning = "Greatest distance."},
    {OCT_PARAM("min_quality", S, min_quality), OCT_PARAM_LIVE, .least = 0, .most = 10,
     .standard = "3", .meaning = "What a border needs in an A-line, of 0 to 10; noise has 2."},
    {OCT_PARAM_OF_FORM("slab", S, slab, &oct_param_slab), OCT_PARAM_LIVE, .standard = "",
     .takes = "LAYER[+-UM]:LAYER[+-UM], a name, or nothing",
     .meaning = "Depths of the topic slab, as ilm+10:ilm+40, or superficial, deep; empty: none."},
    {OCT_PARAM("record", S, record), .when = OCT_CONFIG_IDLE, .standard = "no",
     .meaning = "Recordings have the layers, and the slab: /analysis/surfaces, /analysis/slab."},
};
#undef S
const struct oct_params oct_surfaces_params = OCT_PARAMS(param_rows);

/* The image of a volume. */
struct image {
    float *values; /* [n_rows][M] */
    struct oct_bscan_info newest;
};

/* What there is while the analysis is not at rest; else all NULL. */
struct parts {
    struct oct_layer_sequence *sequence;
    /* Of slab. */
    struct image growing, left; /* left: of a volume that ended early and was not taken yet */
    float *line;                /* [D] */
};

struct oct_analysis {
    bool is_slab; /* else surfaces */
    struct oct_image_form input;
    struct oct_spacing spacing;
    struct oct_surfaces_settings settings;
    double depth_um; /* of a pixel; NaN: not known */
    struct parts parts;
    const struct oct_sequence_layers *layers; /* surfaces: to be taken; slab: of what comes */

    /* Of surfaces. */
    struct oct_bscan_info info; /* of the layers' B-scan */

    /* Of slab. */
    uint32_t n_bscans, n_rows, row_step;
    bool is_live;
    bool any, has_left;
    bool changed, is_whole; /* since it was taken last; of the growing one */
    uint64_t taken_ns;
};

/* ---- settings ---- */

enum oct_err oct_surfaces_live_check(const struct oct_surfaces_settings *s,
                                     const struct oct_image_form *input, struct oct_error *err)
{
    if (s->every < 1 || s->every > OCT_SURFACES_MOST_EVERY)
        return oct_fail(err, OCT_E_CONFIG, "surfaces: every 1st to %uth B-scan is possible",
                        OCT_SURFACES_MOST_EVERY);
    if (!(s->least_um > 0 && s->least_um < s->most_um && isfinite(s->most_um)))
        return oct_fail(err, OCT_E_CONFIG,
                        "surfaces: a thickness of %g to %g um cannot be: the least must be above 0 "
                        "and below the most",
                        s->least_um, s->most_um);
    if (!(s->min_quality >= 0 && isfinite(s->min_quality)))
        return oct_fail(err, OCT_E_CONFIG, "surfaces: a least quality of 0 or more is possible");
    if (!s->enabled && s->slab.is_none)
        return OCT_OK;
    for (unsigned i = 0; i < 2; i++)
        if (input->dims[i] < OCT_SURFACES_LEAST_SIZE || input->dims[i] > OCT_SURFACES_MOST_SIZE)
            return oct_fail(err, OCT_E_CONFIG,
                            "surfaces: B-scans of %u A-lines and %u depths are too %s: %u to %u of "
                            "each are possible",
                            input->dims[0], input->dims[1],
                            input->dims[i] < OCT_SURFACES_LEAST_SIZE ? "small" : "large",
                            OCT_SURFACES_LEAST_SIZE, OCT_SURFACES_MOST_SIZE);
    return OCT_OK;
}

/* Neither is NaN. */
static bool is_equal(double a, double b)
{
    return !(a < b) && !(a > b);
}

static bool is_same_bound(const struct oct_slab_bound *a, const struct oct_slab_bound *b)
{
    return a->layer == b->layer && is_equal(a->offset_um, b->offset_um);
}

static bool rests_by(const struct oct_analysis *a, const struct oct_surfaces_settings *settings)
{
    return a->is_slab ? settings->slab.is_none : !settings->enabled;
}

/* Whether B-scans that were traced stay known, and the volume that grows goes on. */
static bool keeps_parts(const struct oct_analysis *a, const struct oct_surfaces_settings *wanted)
{
    const struct oct_surfaces_settings *s = &a->settings;
    return rests_by(a, s) == rests_by(a, wanted) && is_equal(s->least_um, wanted->least_um) &&
           is_equal(s->most_um, wanted->most_um) && is_equal(s->min_quality, wanted->min_quality) &&
           (!a->is_slab || (is_same_bound(&s->slab.first, &wanted->slab.first) &&
                            is_same_bound(&s->slab.last, &wanted->slab.last)));
}

/* ---- life ---- */

static size_t n_values(const struct oct_analysis *a)
{
    return (size_t)a->n_rows * a->input.dims[0];
}

static void empty_volume(struct oct_analysis *a)
{
    for (size_t i = 0; i < n_values(a); i++)
        a->parts.growing.values[i] = NAN;
    a->any = a->changed = a->is_whole = false;
}

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
    const struct oct_layer_sequence_setup setup = {
        .input = &a->input,
        .spacing = a->spacing,
        .least_um = settings->least_um,
        .most_um = settings->most_um,
        .min_quality = settings->min_quality,
    };
    const enum oct_err e = oct_layer_sequence_create(&parts->sequence, &setup, err);
    if (e || !a->is_slab)
        return e;
    parts->growing.values = malloc(n_values(a) * sizeof(float));
    parts->left.values = malloc(n_values(a) * sizeof(float));
    parts->line = malloc(a->input.dims[1] * sizeof(*parts->line));
    return parts->growing.values && parts->left.values && parts->line
               ? OCT_OK
               : oct_fail(err, OCT_E_NO_MEMORY, "slab: out of memory for %u x %u values", a->n_rows,
                          a->input.dims[0]);
}

/* Replaces the parts where new ones can be made. */
static enum oct_err make_parts(struct oct_analysis *a, const struct oct_surfaces_settings *settings,
                               struct oct_error *err)
{
    struct parts parts = {.sequence = NULL};
    const enum oct_err e = rests_by(a, settings) ? OCT_OK : open_parts(a, &parts, settings, err);
    if (e) {
        finish_parts(&parts);
        return e;
    }
    finish_parts(&a->parts);
    a->parts = parts;
    a->layers = NULL;
    a->has_left = false;
    if (parts.growing.values)
        empty_volume(a);
    return OCT_OK;
}

static enum oct_err layers_configure(struct oct_analysis *a, const void *settings,
                                     struct oct_error *err)
{
    const struct oct_surfaces_settings *wanted = settings;
    enum oct_err e = oct_surfaces_live_check(wanted, &a->input, err);
    if (!e && !keeps_parts(a, wanted))
        e = make_parts(a, wanted, err);
    if (!e)
        a->settings = *wanted;
    return e;
}

static bool layers_is_at_rest(const struct oct_analysis *a)
{
    return rests_by(a, &a->settings);
}

static void layers_reset(struct oct_analysis *a)
{
    if (!a->parts.sequence)
        return;
    oct_layer_sequence_reset(a->parts.sequence);
    a->layers = NULL;
    a->has_left = false;
    if (a->is_slab)
        empty_volume(a);
}

static void layers_destroy(struct oct_analysis *a)
{
    if (!a)
        return;
    finish_parts(&a->parts);
    free(a);
}

static enum oct_err layers_create(struct oct_analysis **out, bool is_slab,
                                  const struct oct_analysis_setup *setup, struct oct_error *err)
{
    const double um = setup->spacing.depth_um;
    struct oct_analysis *a = calloc(1, sizeof(*a));
    *out = NULL;
    if (!a)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", is_slab ? "slab" : "surfaces");
    a->is_slab = is_slab;
    a->input = *setup->input;
    a->spacing = setup->spacing;
    a->settings = *(const struct oct_surfaces_settings *)setup->settings;
    a->depth_um = um > 0 && isfinite(um) ? um : NAN;
    a->n_bscans = setup->n_bscans;
    a->is_live = setup->live;
    if (is_slab) {
        a->row_step = oct_enface_row_step(a->n_bscans, a->input.dims[0]);
        a->n_rows = (a->n_bscans + a->row_step - 1) / a->row_step;
    }
    enum oct_err e = oct_surfaces_live_check(&a->settings, &a->input, err);
    e = e ? e : make_parts(a, &a->settings, err);
    if (e)
        layers_destroy(a);
    else
        *out = a;
    return e;
}

/* ---- surfaces ---- */

static enum oct_err surfaces_create(struct oct_analysis **out,
                                    const struct oct_analysis_setup *setup,
                                    struct oct_image_form *form, struct oct_error *err)
{
    const enum oct_err e = layers_create(out, false, setup, err);
    if (!e)
        *form = (struct oct_image_form){
            .name = "surfaces",
            .quantity = OCT_QUANTITY_DEPTH,
            .type = OCT_SAMPLE_F32,
            .rank = 2,
            .dims = {OCT_SURFACES_N_ROWS, setup->input->dims[0]},
            .spacing_um = {NAN, setup->spacing.line_um},
            .axes = {"row", "line"},
            .numbers = numbers,
            .n_numbers = OCT_SURFACES_N_NUMBERS,
        };
    return e;
}

static enum oct_err surfaces_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                                  struct oct_error *err)
{
    struct oct_layer_sequence *sequence = a->parts.sequence;
    (void)err;
    if (!sequence || !oct_layer_sequence_has_turn(sequence, &bscan->info, a->settings.every))
        return OCT_OK;
    a->layers = oct_layer_sequence_run(sequence, bscan);
    a->info = bscan->info;
    return OCT_OK;
}

static enum oct_err surfaces_take(struct oct_analysis *a, struct oct_image_frame *result,
                                  struct oct_error *err)
{
    const struct oct_sequence_layers *l = a->layers;
    const size_t n_lines = a->input.dims[0];
    float *rows = result->pixels;
    (void)err;
    if (!l)
        return OCT_E_AGAIN;
    for (unsigned i = 0; i < OCT_N_LAYERS; i++) {
        memcpy(rows + i * n_lines, l->position[i], n_lines * sizeof(*rows));
        memcpy(rows + (OCT_N_LAYERS + i) * n_lines, l->quality[i], n_lines * sizeof(*rows));
    }
    result->numbers[OCT_SURFACES_FOUND] = l->n_found / (double)n_lines;
    result->numbers[OCT_SURFACES_THICKNESS] =
        l->thickness_px * (isnan(a->depth_um) ? 1 : a->depth_um);
    result->numbers[OCT_SURFACES_DEPTH_UM] = a->depth_um;
    result->info = a->info;
    a->layers = NULL;
    return OCT_OK;
}

static enum oct_err surfaces_check(const void *settings, const struct oct_analysis_setup *setup,
                                   struct oct_error *err)
{
    return oct_surfaces_live_check(settings, setup->input, err);
}

const struct oct_analysis_ops oct_surfaces_analysis_cpu = {
    .name = "surfaces",
    .backend = "cpu",
    .meaning = "The seven borders of the retina's layers in every n-th B-scan.",
    .input = OCT_STAGE_PICTURES,
    .settings_bytes = sizeof(struct oct_surfaces_settings),
    .keys = {{.params = &oct_surfaces_params}},
    .section = "Layers of the retina, found live: topics and datasets `surfaces`, `slab`.",
    .check = surfaces_check,
    .most_behind = 8,
    .create = surfaces_create,
    .run =
        {
            .push = surfaces_push,
            .take = surfaces_take,
            .reset = layers_reset,
            .configure = layers_configure,
            .is_at_rest = layers_is_at_rest,
            .destroy = layers_destroy,
        },
};

/* ---- slab ---- */

static enum oct_err slab_create(struct oct_analysis **out, const struct oct_analysis_setup *setup,
                                struct oct_image_form *form, struct oct_error *err)
{
    const enum oct_err e = layers_create(out, true, setup, err);
    if (!e)
        *form = (struct oct_image_form){
            .name = "slab",
            .quantity = setup->input->quantity,
            .type = OCT_SAMPLE_F32,
            .rank = 2,
            .dims = {(*out)->n_rows, setup->input->dims[0]},
            .spacing_um = {setup->spacing.bscan_um * (*out)->row_step, setup->spacing.line_um},
            .axes = {"bscan", "line"},
            .of_volume = true,
        };
    return e;
}

/* A B-scan becomes a row. */
static void add_row(struct oct_analysis *a, const struct oct_image_frame *bscan)
{
    const uint32_t n_lines = a->input.dims[0];
    float *row = a->parts.growing.values + (size_t)(bscan->info.bscan / a->row_step) * n_lines;
    struct oct_surface_pixels shown;
    if (oct_layer_sequence_has_turn(a->parts.sequence, &bscan->info, a->settings.every))
        a->layers = oct_layer_sequence_run(a->parts.sequence, bscan);
    oct_surface_pixels_begin(&shown, &a->input, bscan);
    for (uint32_t j = 0; j < n_lines; j++) {
        const float *position[OCT_N_LAYERS];
        for (unsigned layer = 0; layer < OCT_N_LAYERS; layer++)
            position[layer] = a->layers->position[layer] + j;
        row[j] = NAN;
        if (!oct_surface_pixels_came(&shown, j))
            continue;
        oct_surface_pixels_values(&shown, j, a->parts.line);
        oct_slab_project(&a->settings.slab, a->parts.line, 1, a->input.dims[1],
                         isnan(a->depth_um) ? OCT_TRACE_DEPTH_UM : a->depth_um, position, &row[j]);
    }
}

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
    empty_volume(a);
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

static enum oct_err slab_take(struct oct_analysis *a, struct oct_image_frame *result,
                              struct oct_error *err)
{
    const struct image *image = a->has_left ? &a->parts.left : &a->parts.growing;
    const bool due = a->is_whole || (a->is_live && oct_clock_ns() - a->taken_ns >= EVERY_NS);
    (void)err;
    if (!a->has_left && !(a->changed && due))
        return OCT_E_AGAIN;
    memcpy(result->pixels, image->values, n_values(a) * sizeof(float));
    oct_enface_limits(image->values, n_values(a), &result->lo, &result->hi);
    result->info = image->newest;
    result->whole = a->has_left || a->is_whole;
    if (!a->has_left) {
        a->changed = false;
        a->taken_ns = oct_clock_ns();
    }
    a->has_left = false;
    return OCT_OK;
}

static void slab_end(struct oct_analysis *a)
{
    a->changed = a->changed || (a->any && !a->is_whole);
    a->is_whole = a->any;
}

static bool slab_is_asked(const void *settings)
{
    return !((const struct oct_surfaces_settings *)settings)->slab.is_none;
}

const struct oct_analysis_ops oct_slab_analysis_cpu = {
    .name = "slab",
    .backend = "cpu",
    .meaning = "The volume from above, of depths between layers: one row a B-scan.",
    .input = OCT_STAGE_PICTURES,
    .settings_bytes = sizeof(struct oct_surfaces_settings),
    .settings_of = "surfaces",
    .check = surfaces_check,
    .is_asked = slab_is_asked,
    .create = slab_create,
    .run =
        {
            .push = slab_push,
            .take = slab_take,
            .end = slab_end,
            .reset = layers_reset,
            .configure = layers_configure,
            .is_at_rest = layers_is_at_rest,
            .destroy = layers_destroy,
        },
};
