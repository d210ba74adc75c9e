#include "analysis/enface/enface.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/histogram.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVERY_NS UINT64_C(100000000) /* a growing volume */
#define N_BINS 1024u
#define MOST_COUNTED 65536u /* values that the limits are found from */

static const char *const projection_names[] = {"mean", "max", "slab", NULL};

#define S struct oct_enface_settings
static const struct oct_param param_rows[] = {
    {OCT_PARAM_CHOICE("enface_projection", S, projection, projection_names), OCT_PARAM_LIVE,
     .first = OCT_PROJECTION_MEAN, .standard = "mean",
     .meaning = "A pixel of the en-face picture: the A-line's mean, its maximum, a slab's mean."},
    {OCT_PARAM("enface_slab_first", S, slab_first), OCT_PARAM_LIVE, .below = "enface_slab_last",
     .least = 0, .most = 1, .standard = "0.4", .unit = "of the depth",
     .meaning = "Where the slab of enface_projection=slab begins."},
    {OCT_PARAM("enface_slab_last", S, slab_last), OCT_PARAM_LIVE, .least = 0, .most = 1,
     .standard = "0.6", .unit = "of the depth", .meaning = "Where it ends."},
};
#undef S
const struct oct_params oct_enface_params = OCT_PARAMS(param_rows);

struct oct_analysis {
    struct oct_image_form input;
    uint32_t n_bscans, n_lines, depth; /* V, M, D */
    uint32_t n_rows, row_step;
    bool live;
    struct oct_enface_settings settings;

    /* [OCT_N_PROJECTIONS][n_rows][M] each: of the volume that grows, and of the one before it where
     * that ended before it was whole and nobody has taken it yet. */
    float *growing, *left;
    struct oct_bscan_info newest, left_newest;
    bool any, has_left;
    bool changed, is_whole; /* since it was taken last; of the growing one */
    uint64_t taken_ns;
};

static size_t n_values(const struct oct_analysis *a)
{
    return (size_t)a->n_rows * a->n_lines;
}

uint32_t oct_enface_row_step(uint32_t n_bscans, uint32_t n_lines)
{
    const uint32_t most_rows = OCT_ENFACE_MOST_VALUES / n_lines; /* >= 64 */
    return (n_bscans + most_rows - 1) / most_rows;
}

static void empty(struct oct_analysis *a)
{
    for (size_t i = 0; i < OCT_N_PROJECTIONS * n_values(a); i++)
        a->growing[i] = NAN;
    a->any = a->changed = a->is_whole = false;
}

/* ---- an A-line becomes a value ---- */

static struct oct_enface_line sum_u8(const uint8_t *pixel, uint32_t n)
{
    uint32_t sum = 0; /* n < 2^24 pixels of 255 */
    uint8_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += pixel[i];
        most = pixel[i] > most ? pixel[i] : most;
    }
    return (struct oct_enface_line){sum / (double)n, most};
}

struct oct_enface_line oct_enface_line(const float *pixels, uint32_t n)
{
    double sum = 0, most = -INFINITY;
    uint32_t n_finite = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!isfinite(pixels[i]))
            continue;
        sum += (double)pixels[i];
        most = (double)pixels[i] > most ? (double)pixels[i] : most;
        n_finite++;
    }
    return n_finite ? (struct oct_enface_line){sum / n_finite, most}
                    : (struct oct_enface_line){NAN, NAN};
}

static struct oct_enface_line sum_line(const struct oct_analysis *a,
                                       const struct oct_image_frame *bscan, uint32_t line,
                                       uint32_t first, uint32_t n)
{
    size_t at = (size_t)line * a->depth + first;
    if (a->input.type == OCT_SAMPLE_F32)
        return oct_enface_line((const float *)bscan->pixels + at, n);
    struct oct_enface_line s = sum_u8((const uint8_t *)bscan->pixels + at, n);
    double step = (bscan->hi - bscan->lo) / 255.0;
    return (struct oct_enface_line){bscan->lo + s.mean * step, bscan->lo + s.most * step};
}

void oct_enface_slab(double slab_first, double slab_last, uint32_t depth, uint32_t *first,
                     uint32_t *n)
{
    double from = slab_first * depth, to = ceil(slab_last * depth);
    *first = from < depth - 1 ? (uint32_t)from : depth - 1;
    uint32_t last = to < depth ? (uint32_t)to : depth;
    *n = last > *first ? last - *first : 1;
}

static void add_row(struct oct_analysis *a, const struct oct_image_frame *bscan)
{
    float *row = a->growing + (size_t)(bscan->info.bscan / a->row_step) * a->n_lines;
    uint32_t first, n;
    oct_enface_slab(a->settings.slab_first, a->settings.slab_last, a->depth, &first, &n);
    for (uint32_t j = 0; j < a->n_lines; j++) {
        struct oct_enface_line all = sum_line(a, bscan, j, 0, a->depth);
        row[OCT_PROJECTION_MEAN * n_values(a) + j] = (float)all.mean;
        row[OCT_PROJECTION_MAX * n_values(a) + j] = (float)all.most;
        row[OCT_PROJECTION_SLAB * n_values(a) + j] = (float)sum_line(a, bscan, j, first, n).mean;
    }
}

/* ---- limits ---- */

void oct_enface_limits(const float *value, size_t n, double *lo, double *hi)
{
    uint32_t bins[N_BINS] = {0};
    size_t step = (n + MOST_COUNTED - 1) / MOST_COUNTED;
    double least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < n; i += step) {
        if (!isfinite(value[i]))
            continue;
        least = fmin(least, (double)value[i]);
        most = fmax(most, (double)value[i]);
    }
    *lo = 0;
    *hi = 1;
    if (!(most >= least))
        return;
    double range = fmax(most - least, 1e-9 + 1e-9 * fabs(most));
    for (size_t i = 0; i < n; i += step) {
        if (!isfinite(value[i]))
            continue;
        unsigned bin = (unsigned)(((double)value[i] - least) / range * (N_BINS - 1));
        bins[bin < N_BINS ? bin : N_BINS - 1]++;
    }
    *lo = least + oct_histogram_percentile(bins, N_BINS, 0.01) / (N_BINS - 1) * range;
    *hi = least + oct_histogram_percentile(bins, N_BINS, 0.995) / (N_BINS - 1) * range;
    if (!(*hi > *lo))
        *hi = *lo + range;
}

/* ---- the contract's functions ---- */

/* The volume before ended early, or nobody has taken it since it is whole: it waits to be taken,
 * and the new one gets the other memory. */
static void leave_volume(struct oct_analysis *a)
{
    if (a->any && (a->changed || !a->is_whole)) {
        float *growing = a->left;
        a->left = a->growing;
        a->growing = growing;
        a->left_newest = a->newest;
        a->has_left = true;
    }
    empty(a);
}

static enum oct_err enface_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                                struct oct_error *err)
{
    if (bscan->info.bscan >= a->n_bscans)
        return oct_fail(err, OCT_E_ARG, "B-scan %u of a volume that has %u", bscan->info.bscan,
                        a->n_bscans);
    if (a->any && bscan->info.volume != a->newest.volume)
        leave_volume(a);
    add_row(a, bscan);
    a->newest = bscan->info;
    a->any = a->changed = true;
    a->is_whole = bscan->info.bscan + 1 == a->n_bscans;
    return OCT_OK;
}

static void fill_result(const struct oct_analysis *a, const float *values,
                        const struct oct_bscan_info *newest, bool whole,
                        struct oct_image_frame *result)
{
    const float *chosen = values + (size_t)a->settings.projection * n_values(a);
    memcpy(result->pixels, chosen, n_values(a) * sizeof(float));
    oct_enface_limits(chosen, n_values(a), &result->lo, &result->hi);
    result->info = *newest;
    result->whole = whole;
}

static enum oct_err enface_take(struct oct_analysis *a, struct oct_image_frame *result,
                                struct oct_error *err)
{
    (void)err;
    if (a->has_left) {
        fill_result(a, a->left, &a->left_newest, true, result);
        a->has_left = false;
        return OCT_OK;
    }
    bool due = a->is_whole || (a->live && oct_clock_ns() - a->taken_ns >= EVERY_NS);
    if (!a->changed || !due)
        return OCT_E_AGAIN;
    fill_result(a, a->growing, &a->newest, a->is_whole, result);
    a->changed = false;
    a->taken_ns = oct_clock_ns();
    return OCT_OK;
}

static void enface_end(struct oct_analysis *a)
{
    a->changed = a->changed || (a->any && !a->is_whole);
    a->is_whole = a->any;
}

static void enface_reset(struct oct_analysis *a)
{
    empty(a);
    a->has_left = false;
}

static enum oct_err check_settings(const struct oct_enface_settings *s, struct oct_error *err)
{
    const enum oct_err e = oct_params_check(&oct_enface_params, s, "enface", err);
    if (e || s->slab_first < s->slab_last)
        return e;
    return oct_fail(err, OCT_E_CONFIG,
                    "analysis.enface_slab_first must be below analysis.enface_slab_last");
}

static enum oct_err enface_configure(struct oct_analysis *a, const void *settings,
                                     struct oct_error *err)
{
    enum oct_err e = check_settings(settings, err);
    if (e)
        return e;
    a->settings = *(const struct oct_enface_settings *)settings;
    a->changed = a->any;
    return OCT_OK;
}

static void enface_destroy(struct oct_analysis *a)
{
    if (!a)
        return;
    free(a->growing);
    free(a->left);
    free(a);
}

static void describe(const struct oct_analysis *a, const struct oct_analysis_setup *setup,
                     struct oct_image_form *form)
{
    *form = (struct oct_image_form){
        .name = "enface",
        .quantity = setup->input->quantity,
        .type = OCT_SAMPLE_F32,
        .rank = 2,
        .dims = {a->n_rows, a->n_lines},
        .spacing_um = {setup->spacing.bscan_um * a->row_step, setup->spacing.line_um},
        .axes = {"bscan", "line"},
        .of_volume = true,
    };
}

static enum oct_err enface_create(struct oct_analysis **out, const struct oct_analysis_setup *setup,
                                  struct oct_image_form *form, struct oct_error *err)
{
    *out = NULL;
    enum oct_err e = check_settings(setup->settings, err);
    if (e)
        return e;
    struct oct_analysis *a = calloc(1, sizeof(*a));
    if (!a)
        return oct_fail(err, OCT_E_NO_MEMORY, "enface: out of memory");
    a->input = *setup->input;
    a->n_bscans = setup->n_bscans;
    a->n_lines = setup->input->dims[0];
    a->depth = setup->input->dims[1];
    a->live = setup->live;
    a->settings = *(const struct oct_enface_settings *)setup->settings;
    a->row_step = oct_enface_row_step(a->n_bscans, a->n_lines);
    a->n_rows = (a->n_bscans + a->row_step - 1) / a->row_step;
    a->growing = malloc(OCT_N_PROJECTIONS * n_values(a) * sizeof(float));
    a->left = malloc(OCT_N_PROJECTIONS * n_values(a) * sizeof(float));
    if (!a->growing || !a->left) {
        e = oct_fail(err, OCT_E_NO_MEMORY, "enface: out of memory for %u x %u values", a->n_rows,
                     a->n_lines);
        enface_destroy(a);
        return e;
    }
    empty(a);
    describe(a, setup, form);
    *out = a;
    return OCT_OK;
}

const struct oct_analysis_ops oct_enface_cpu = {
    .name = "enface",
    .backend = "cpu",
    .meaning = "The volume from above: one value an A-line, one row a B-scan.",
    .input = OCT_STAGE_PICTURES,
    .settings_bytes = sizeof(struct oct_enface_settings),
    .keys = {{.params = &oct_enface_params}},
    .create = enface_create,
    .run =
        {
            .push = enface_push,
            .take = enface_take,
            .end = enface_end,
            .reset = enface_reset,
            .configure = enface_configure,
            .destroy = enface_destroy,
        },
};
