#include "analysis/surface/live.h"

#include "analysis/surface/live_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct oct_image_number numbers[OCT_SURFACES_N_NUMBERS] = {
    [OCT_SURFACES_FOUND] = {"found", 1},
    [OCT_SURFACES_THICKNESS] = {"thickness", 1},
    [OCT_SURFACES_DEPTH_UM] = {"depth_um", 1},
};

#define S struct oct_surfaces_settings
static const struct oct_param param_rows[] = {
    {OCT_PARAM("enabled", S, enabled), OCT_PARAM_LIVE, .standard = "no",
     .meaning = "Inner limiting membrane (ilm) and pigment epithelium (rpe) are found in B-scans."},
    {OCT_PARAM("every", S, every), OCT_PARAM_LIVE, .least = 1, .most = OCT_SURFACES_MOST_EVERY,
     .standard = "1", .unit = "B-scans",
     .meaning = "One of so many B-scans is searched; 1: each, as far as the machine follows."},
    {OCT_PARAM("least_um", S, least_um), OCT_PARAM_LIVE, .least = 1, .most = 1e4, .standard = "100",
     .unit = "um", .meaning = "Least distance from the ilm to the rpe."},
    {OCT_PARAM("most_um", S, most_um), OCT_PARAM_LIVE, .least = 1, .most = 1e4, .standard = "600",
     .unit = "um", .meaning = "Greatest distance."},
    {OCT_PARAM("min_quality", S, min_quality), OCT_PARAM_LIVE, .least = 0, .most = 1e3,
     .standard = "8",
     .meaning = "Step of brightness that makes a layer, in standard deviations beside the layers."},
    {OCT_PARAM_OF_FORM("slab", S, slab, &oct_param_slab), OCT_PARAM_LIVE, .standard = "",
     .takes = "LAYER[+-UM]:LAYER[+-UM], or nothing",
     .meaning = "Depths of the topic slab, as ilm+10:ilm+40; empty: none."},
    {OCT_PARAM("record", S, record), .when = OCT_CONFIG_IDLE, .standard = "no",
     .meaning = "Recordings have the layers, and the slab: /analysis/surfaces, /analysis/slab."},
};
#undef S
const struct oct_params oct_surfaces_params = OCT_PARAMS(param_rows);

struct oct_analysis {
    struct oct_surfaces_live live;
    uint32_t n_lines;

    struct oct_layer_sequence *sequence;      /* NULL while it is not enabled */
    const struct oct_sequence_layers *layers; /* to be taken; NULL: none are */
    struct oct_bscan_info info;               /* of their B-scan */
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

/* Whether B-scans that were traced stay known. */
static bool keeps_sequence(const struct oct_surfaces_settings *a,
                           const struct oct_surfaces_settings *b)
{
    return a->enabled == b->enabled && oct_surfaces_trace_alike(a, b);
}

/* ---- the contract's functions ---- */

static enum oct_err surfaces_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                                  struct oct_error *err)
{
    (void)err;
    if (!a->sequence ||
        !oct_layer_sequence_has_turn(a->sequence, &bscan->info, a->live.settings.every))
        return OCT_OK;
    a->layers = oct_layer_sequence_run(a->sequence, bscan);
    a->info = bscan->info;
    return OCT_OK;
}

static enum oct_err surfaces_take(struct oct_analysis *a, struct oct_image_frame *result,
                                  struct oct_error *err)
{
    static const unsigned position_rows[OCT_N_LAYERS] = {OCT_SURFACES_ILM, OCT_SURFACES_RPE};
    static const unsigned quality_rows[OCT_N_LAYERS] = {OCT_SURFACES_ILM_QUALITY,
                                                        OCT_SURFACES_RPE_QUALITY};
    const struct oct_sequence_layers *l = a->layers;
    const size_t row_bytes = a->n_lines * sizeof(float);
    float *rows = result->pixels;
    (void)err;
    if (!l)
        return OCT_E_AGAIN;
    for (unsigned layer = 0; layer < OCT_N_LAYERS; layer++) {
        memcpy(rows + (size_t)position_rows[layer] * a->n_lines, l->position[layer], row_bytes);
        memcpy(rows + (size_t)quality_rows[layer] * a->n_lines, l->quality[layer], row_bytes);
    }
    const double depth_um = oct_surfaces_live_depth_um(&a->live);
    result->numbers[OCT_SURFACES_FOUND] = l->n_found / (double)a->n_lines;
    result->numbers[OCT_SURFACES_THICKNESS] = l->thickness_px * (isnan(depth_um) ? 1 : depth_um);
    result->numbers[OCT_SURFACES_DEPTH_UM] = depth_um;
    result->info = a->info;
    a->layers = NULL;
    return OCT_OK;
}

static void surfaces_reset(struct oct_analysis *a)
{
    a->layers = NULL;
    if (a->sequence)
        oct_layer_sequence_reset(a->sequence);
}

static bool surfaces_is_at_rest(const struct oct_analysis *a)
{
    return !a->live.settings.enabled;
}

/* ---- life ---- */

static enum oct_err make_sequence(struct oct_analysis *a,
                                  const struct oct_surfaces_settings *settings,
                                  struct oct_error *err)
{
    struct oct_layer_sequence *sequence = NULL;
    if (settings->enabled) {
        const enum oct_err e = oct_surfaces_live_sequence(&sequence, &a->live, settings, err);
        if (e)
            return e;
    }
    oct_layer_sequence_destroy(a->sequence);
    a->sequence = sequence;
    a->layers = NULL;
    return OCT_OK;
}

static enum oct_err surfaces_configure(struct oct_analysis *a, const void *settings,
                                       struct oct_error *err)
{
    const struct oct_surfaces_settings *wanted = settings;
    enum oct_err e = oct_surfaces_live_check(wanted, &a->live.input, err);
    if (!e && !keeps_sequence(&a->live.settings, wanted))
        e = make_sequence(a, wanted, err);
    if (!e)
        a->live.settings = *wanted;
    return e;
}

static void surfaces_destroy(struct oct_analysis *a)
{
    if (!a)
        return;
    oct_layer_sequence_destroy(a->sequence);
    free(a);
}

static void describe(const struct oct_analysis *a, struct oct_image_form *form)
{
    *form = (struct oct_image_form){
        .name = "surfaces",
        .quantity = OCT_QUANTITY_DEPTH,
        .type = OCT_SAMPLE_F32,
        .rank = 2,
        .dims = {OCT_SURFACES_N_ROWS, a->n_lines},
        .spacing_um = {NAN, a->live.spacing.line_um},
        .axes = {"row", "line"},
        .numbers = numbers,
        .n_numbers = OCT_SURFACES_N_NUMBERS,
    };
}

static enum oct_err surfaces_create(struct oct_analysis **out,
                                    const struct oct_analysis_setup *setup,
                                    struct oct_image_form *form, struct oct_error *err)
{
    struct oct_analysis *a = calloc(1, sizeof(*a));
    *out = NULL;
    if (!a)
        return oct_fail(err, OCT_E_NO_MEMORY, "surfaces: out of memory");
    a->n_lines = setup->input->dims[0];
    enum oct_err e = oct_surfaces_live_init(&a->live, setup, err);
    e = e ? e : make_sequence(a, &a->live.settings, err);
    if (e) {
        surfaces_destroy(a);
        return e;
    }
    describe(a, form);
    *out = a;
    return OCT_OK;
}

const struct oct_analysis_ops oct_surfaces_analysis_cpu = {
    .name = "surfaces",
    .backend = "cpu",
    .meaning = "Inner limiting membrane and pigment epithelium of every n-th B-scan.",
    .input = OCT_STAGE_PICTURES,
    .settings_bytes = sizeof(struct oct_surfaces_settings),
    .most_behind = 8,
    .create = surfaces_create,
    .run =
        {
            .push = surfaces_push,
            .take = surfaces_take,
            .reset = surfaces_reset,
            .configure = surfaces_configure,
            .is_at_rest = surfaces_is_at_rest,
            .destroy = surfaces_destroy,
        },
};
