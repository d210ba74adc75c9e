/* The analysis `angiogram`: what lies beside the pictures of `flow` becomes the image of a
 * volume. */
#include "analysis/enface/enface.h"
#include "analysis/flow/flow.h"
#include "pipeline/base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EVERY_NS UINT64_C(100000000) /* a growing volume */

enum { N_PLACES, N_MOVED };
static const struct oct_image_number numbers[] = {{"places", 1}, {"moved", 1}};

struct volume {
    float *values; /* [n_rows][M] */
    struct oct_bscan_info newest;
    uint32_t n_places, n_moved;
};

struct oct_analysis {
    struct oct_scan_protocol scan;
    struct oct_flow_settings settings;
    uint32_t n_lines, n_places, row_step, n_rows; /* M, P, and of the image */
    bool is_live;
    struct volume growing, left; /* left: of a volume that ended early and was not taken yet */
    bool any, has_left, changed, is_whole;
    uint64_t taken_ns;
};

static size_t n_of_volume(const struct oct_analysis *a)
{
    return (size_t)a->n_rows * a->n_lines;
}

static void empty_volume(struct oct_analysis *a)
{
    for (size_t i = 0; i < n_of_volume(a); i++)
        a->growing.values[i] = NAN;
    a->growing.n_places = a->growing.n_moved = 0;
    a->any = a->changed = a->is_whole = false;
}

/* The volume before ended early, or nobody has taken it since it is whole. */
static void leave_volume(struct oct_analysis *a)
{
    if (a->changed || !a->is_whole) {
        const struct volume growing = a->left;
        a->left = a->growing;
        a->growing = growing;
        a->has_left = true;
    }
    empty_volume(a);
}

/* A place becomes a row. beside: [M + 1], flow.h */
static void add_row(struct oct_analysis *a, uint32_t place, const float *beside)
{
    const bool has_moved = beside[a->n_lines] > 0;
    float *row = a->growing.values + (size_t)(place / a->row_step) * a->n_lines;
    for (uint32_t j = 0; j < a->n_lines; j++)
        row[j] = has_moved ? NAN : beside[j];
    a->growing.n_places++;
    a->growing.n_moved += has_moved;
    a->any = a->changed = true;
    a->is_whole = place + 1 == a->n_places;
}

static enum oct_err angiogram_push(struct oct_analysis *a, const struct oct_image_frame *flow,
                                   struct oct_error *err)
{
    const uint32_t n_at_once = a->scan.interleave;
    const uint32_t first = flow->info.bscan / (a->scan.repeats * n_at_once) * n_at_once;
    if (!flow->values)
        return oct_fail(err, OCT_E_STATE, "angiogram: flow's pictures come without their rows");
    if (a->any && flow->info.volume != a->growing.newest.volume)
        leave_volume(a);
    a->growing.newest = flow->info;
    for (uint32_t k = 0; k < n_at_once && first + k < a->n_places; k++)
        add_row(a, first + k, flow->values + k * (a->n_lines + 1));
    return OCT_OK;
}

static void angiogram_end(struct oct_analysis *a)
{
    a->changed = a->changed || (a->any && !a->is_whole);
    a->is_whole = a->any;
}

static enum oct_err angiogram_take(struct oct_analysis *a, struct oct_image_frame *result,
                                   struct oct_error *err)
{
    const struct volume *image = a->has_left ? &a->left : &a->growing;
    const bool due = a->is_whole || (a->is_live && oct_clock_ns() - a->taken_ns >= EVERY_NS);
    (void)err;
    if (!a->has_left && !(a->changed && due))
        return OCT_E_AGAIN;
    memcpy(result->pixels, image->values, n_of_volume(a) * sizeof(float));
    oct_enface_limits(image->values, n_of_volume(a), &result->lo, &result->hi);
    result->info = image->newest;
    result->whole = a->has_left || a->is_whole;
    result->numbers[N_PLACES] = image->n_places;
    result->numbers[N_MOVED] = image->n_moved;
    if (!a->has_left) {
        a->changed = false;
        a->taken_ns = oct_clock_ns();
    }
    a->has_left = false;
    return OCT_OK;
}

static void angiogram_reset(struct oct_analysis *a)
{
    a->has_left = false;
    empty_volume(a);
}

/* Places that were found otherwise do not lie in one image; a row that waits in flow's results yet
 * may. */
static enum oct_err angiogram_configure(struct oct_analysis *a, const void *settings,
                                        struct oct_error *err)
{
    struct oct_flow_settings *s = &a->settings, wanted;
    (void)err;
    memcpy(&wanted, settings, sizeof(wanted));
    s->min_z = wanted.min_z; /* rows are without it */
    s->record = wanted.record;
    /* Equal ones are equal in every byte (config/analysis.h).
     * NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
    if (memcmp(s, &wanted, sizeof(wanted)) != 0)
        empty_volume(a);
    memcpy(s, &wanted, sizeof(wanted));
    return OCT_OK;
}

static bool angiogram_is_at_rest(const struct oct_analysis *a)
{
    return !a->settings.enabled;
}

static void angiogram_destroy(struct oct_analysis *a)
{
    if (!a)
        return;
    free(a->growing.values);
    free(a->left.values);
    free(a);
}

static enum oct_err angiogram_create(struct oct_analysis **out,
                                     const struct oct_analysis_setup *setup,
                                     struct oct_image_form *form, struct oct_error *err)
{
    struct oct_analysis *a = calloc(1, sizeof(*a));
    const struct oct_image_form *flow = setup->input;
    *out = NULL;
    if (a) {
        a->scan = oct_flow_scan(&setup->scan);
        memcpy(&a->settings, setup->settings, sizeof(a->settings));
        a->n_lines = flow->dims[flow->rank - 2];
        a->n_places = (setup->n_bscans + a->scan.repeats - 1) / a->scan.repeats;
        a->row_step = oct_enface_row_step(a->n_places, a->n_lines);
        a->n_rows = (a->n_places + a->row_step - 1) / a->row_step;
        a->is_live = setup->live;
        a->growing.values = malloc(n_of_volume(a) * sizeof(float));
        a->left.values = malloc(n_of_volume(a) * sizeof(float));
    }
    if (!a || !a->growing.values || !a->left.values) {
        angiogram_destroy(a);
        return oct_fail(err, OCT_E_NO_MEMORY, "angiogram: out of memory");
    }
    empty_volume(a);
    *out = a;
    *form = (struct oct_image_form){
        .name = "angiogram",
        .quantity = OCT_QUANTITY_SIGNIFICANCE,
        .type = OCT_SAMPLE_F32,
        .rank = 2,
        .dims = {a->n_rows, a->n_lines},
        .spacing_um = {setup->spacing.bscan_um * a->scan.repeats * a->row_step,
                       setup->spacing.line_um},
        .axes = {"place", "line"},
        .of_volume = true,
        .bscans_an_image = a->scan.repeats * a->scan.interleave,
        .numbers = numbers,
        .n_numbers = sizeof(numbers) / sizeof(numbers[0]),
    };
    return OCT_OK;
}

static bool angiogram_is_asked(const void *settings)
{
    return ((const struct oct_flow_settings *)settings)->enabled;
}

const struct oct_analysis_ops oct_angiogram_cpu = {
    .name = "angiogram",
    .backend = "cpu",
    .meaning = "The flow of a volume from above, of depths between layers: one row a place.",
    .input = OCT_STAGE_PICTURES,
    .of = "flow",
    .settings_bytes = sizeof(struct oct_flow_settings),
    .settings_of = "flow",
    .check = oct_flow_settings_check,
    .is_asked = angiogram_is_asked,
    .create = angiogram_create,
    .run =
        {
            .push = angiogram_push,
            .take = angiogram_take,
            .end = angiogram_end,
            .reset = angiogram_reset,
            .configure = angiogram_configure,
            .is_at_rest = angiogram_is_at_rest,
            .destroy = angiogram_destroy,
        },
};
