#include "analysis/average/average.h"

#include "analysis/align/rigid.h"
#include "analysis/average/pixels.h"
#include "analysis/average/prepare.h"
#include "analysis/average/window.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP_PX (1 / 64.0)
#define PIXELS_A_PIECE 32768u
#define MISSING_SHARE 4u /* a B-scan that misses more than a quarter of its lines is left out */
#define LEAST_OVERLAP 0.5
/* After a flyback a B-scan at the same place scores about as the one before did; another place of
 * the same tissue has its layers, but less of them lies on top of each other. */
#define SAME_PLACE 0.7

static const struct oct_image_number numbers[] = {
    {"averaged", 1}, {"rejected", 1}, {"resets", 1}, {"score", 1}, {"shift_px", 2},
};

/* An image that is made, and the B-scan it is of. */
struct made {
    void *pixels; /* as the form says */
    struct oct_bscan_info info;
    double lo, hi;
    double numbers[OCT_IMAGE_MAX_NUMBERS];
    bool is_due; /* to be taken */
};

static const char *const register_names[] = {"rigid", "none", NULL};
static const char *const domain_names[] = {"linear", "db", NULL};

#define S struct oct_average_settings
static const struct oct_param param_rows[] = {
    {OCT_PARAM("bscans", S, bscans), OCT_PARAM_LIVE, .least = 1, .most = OCT_AVERAGE_MOST_BSCANS,
     .standard = "1", .unit = "B-scans",
     .meaning = "The average is of the last so many; 1: off, unless scan.repeats is above 1."},
    {OCT_PARAM_CHOICE("register", S, registration, register_names), OCT_PARAM_LIVE,
     .first = OCT_AVERAGE_RIGID, .standard = "rigid",
     .meaning = "B-scans are shifted onto the average first (rigid), or taken as they come."},
    {OCT_PARAM("max_shift_px", S, max_shift_px), OCT_PARAM_LIVE, .least = 1, .most = 1024,
     .standard = "32", .unit = "pixels",
     .meaning = "Largest shift along A-lines and along depth that is looked for."},
    {OCT_PARAM("min_score", S, min_score), OCT_PARAM_LIVE, .least = -1, .most = 1, .standard = "0",
     .meaning = "A B-scan that correlates less with the average is left out, besides what matches "
                "by chance."},
    {OCT_PARAM_CHOICE("domain", S, domain, domain_names), OCT_PARAM_LIVE,
     .first = OCT_AVERAGE_LINEAR, .standard = "linear",
     .meaning = "What is averaged: intensity, or its decibels, which the noise floor biases."},
    {OCT_PARAM("record", S, record), .when = OCT_CONFIG_IDLE, .standard = "no",
     .meaning = "Recordings have the average too: /analysis/average, also named /average."},
};
#undef S
const struct oct_params oct_average_params = OCT_PARAMS(param_rows);

struct oct_analysis {
    struct oct_image_form input, form; /* of B-scans, of results */
    uint32_t n_bscans;                 /* V */
    struct oct_average_settings settings;

    /* Of settings that average; else empty. */
    bool is_on;
    struct oct_average_window window;
    struct oct_average_prepare prepare;
    struct oct_rigid *rigid; /* NULL: without registration */
    float *values;           /* [M][D] of the domain, bounded */
    uint8_t *line_valid;     /* [M] */
    float *line;             /* [2][D] */

    bool any, has_reference;
    bool is_given; /* the block's image */
    struct oct_bscan_info newest;
    unsigned n_in_a_row; /* rejected */
    uint64_t n_rejected, n_resets;
    double score, score_before;     /* of the newest, and of the one taken in before it */
    struct oct_average_shift shift; /* of the newest */
    struct made now, before;        /* `before`: of the block before, not taken yet */

    /* While a B-scan is pushed. */
    const struct oct_image_frame *bscan;
    struct oct_error *err;
};

static bool has_blocks(const struct oct_analysis *a)
{
    return a->settings.repeats > 1;
}

static bool averages(const struct oct_average_settings *s)
{
    return s->bscans > 1 || s->repeats > 1;
}

static uint32_t n_of_window(const struct oct_average_settings *s)
{
    return s->repeats > 1 ? s->repeats : s->bscans;
}

static size_t n_pixels(const struct oct_analysis *a)
{
    return (size_t)a->input.dims[0] * a->input.dims[1];
}

static bool is_db(const struct oct_analysis *a)
{
    return a->input.quantity == OCT_QUANTITY_INTENSITY_DB;
}

static void begin_anew(struct oct_analysis *a)
{
    oct_average_window_clear(&a->window);
    a->n_in_a_row = 0;
}

static void reset_window(struct oct_analysis *a)
{
    a->n_resets += a->window.n > 0;
    begin_anew(a);
}

/* ---- a B-scan comes in ---- */

/* To the domain, bounded. */
static void to_domain(const struct oct_analysis *a, float *to, const float *from, uint32_t depth)
{
    const bool in_db = a->settings.domain == OCT_AVERAGE_DB;
    if (is_db(a) && !in_db)
        oct_pixels_from_db(to, from, depth);
    else if (!is_db(a) && in_db)
        oct_pixels_to_db(to, from, depth);
    else if (in_db)
        oct_pixels_bound(to, from, depth, -120, 240);
    else
        oct_pixels_bound(to, from, depth, OCT_PIXELS_LEAST, OCT_PIXELS_MOST);
}

/* A line without any light never came: zeros have none. Adds the intensity to the picture that is
 * registered. */
static void bring_in_line(struct oct_analysis *a, uint32_t j)
{
    const bool in_db = a->settings.domain == OCT_AVERAGE_DB;
    const uint32_t depth = a->input.dims[1];
    float *to = a->values + (size_t)j * depth;
    const float *intensity = to;
    to_domain(a, to, a->bscan->values + (size_t)j * depth, depth);
    if (in_db && a->rigid) {
        oct_pixels_from_db(a->line, to, depth);
        intensity = a->line;
    }
    const float least = in_db ? -119.99f : 1.002e-12f;
    a->line_valid[j] = a->bscan->info.missing_lines == 0 || oct_pixels_any_above(to, depth, least);
    if (a->rigid && a->line_valid[j])
        oct_average_prepare_add(&a->prepare, j, intensity);
}

static enum oct_err bring_in(struct oct_analysis *a)
{
    if (a->rigid)
        oct_average_prepare_begin(&a->prepare);
    for (uint32_t j = 0; j < a->input.dims[0]; j++)
        bring_in_line(a, j);
    return a->rigid ? oct_average_prepare_end(&a->prepare, a->err) : OCT_OK;
}

static double to_step(double px)
{
    return round(px / STEP_PX) * STEP_PX;
}

enum match { MATCHES, DIFFERS, NOT_COMPARED };

/* Sets score and shift of the B-scan that was brought in. */
static enum oct_err compare(struct oct_analysis *a, enum match *match)
{
    a->score = NAN;
    a->shift = (struct oct_average_shift){.lines = 0};
    *match = NOT_COMPARED;
    if (a->rigid && !a->has_reference)
        begin_anew(a);
    if (!a->rigid || a->window.n == 0)
        return OCT_OK;
    struct oct_shift found;
    const enum oct_err e = oct_rigid_find(a->rigid, &a->prepare.picture, &found, a->err);
    if (e)
        return e;
    a->score = found.score;
    *match = DIFFERS;
    if (!found.is_match || !(found.score >= a->settings.min_score))
        return OCT_OK;
    a->shift.lines = to_step(found.dy * a->prepare.bin_lines);
    a->shift.depth = to_step(found.dx * a->prepare.bin_depth);
    if (fabs(a->shift.lines) <= a->settings.max_shift_px &&
        fabs(a->shift.depth) <= a->settings.max_shift_px)
        *match = MATCHES;
    return OCT_OK;
}

/* Counts a B-scan out; true: enough of that, it is the first of a new window after all. */
static bool reject(struct oct_analysis *a)
{
    a->n_rejected++;
    if (a->window.n == 1) { /* the one before it goes instead */
        begin_anew(a);
        return true;
    }
    if (++a->n_in_a_row < OCT_AVERAGE_MOST_REJECTED)
        return false;
    reset_window(a);
    return true;
}

static void add(struct oct_analysis *a)
{
    if (a->window.n == 0)
        a->shift = (struct oct_average_shift){.lines = 0};
    oct_average_window_add(&a->window, a->values, a->line_valid, a->shift);
    a->n_in_a_row = 0;
}

/* ---- the image ---- */

static void write_line(struct oct_analysis *a, uint32_t line, const float *mean)
{
    const uint32_t depth = a->input.dims[1];
    const size_t at = (size_t)line * depth;
    const bool in_db = a->settings.domain == OCT_AVERAGE_DB;
    float *shown = a->line + depth;
    if (is_db(a) && !in_db)
        oct_pixels_to_db(shown, mean, depth);
    else if (!is_db(a) && in_db)
        oct_pixels_from_db(shown, mean, depth);
    else
        memcpy(shown, mean, depth * sizeof(*shown));
    if (a->form.type == OCT_SAMPLE_F32)
        memcpy((float *)a->now.pixels + at, shown, depth * sizeof(*shown));
    else
        oct_pixels_to_u8((uint8_t *)a->now.pixels + at, shown, depth, (float)a->now.lo,
                         (float)a->now.hi);
}

/* A line that no B-scan of the window has is NaN. */
static void add_to_reference(struct oct_analysis *a, uint32_t line, const float *mean)
{
    const uint32_t depth = a->input.dims[1];
    float *intensity = a->line + depth;
    if (!oct_pixels_any_above(mean, depth, -1000))
        return;
    if (a->settings.domain == OCT_AVERAGE_DB)
        oct_pixels_from_db(intensity, mean, depth);
    else
        oct_pixels_bound(intensity, mean, depth, OCT_PIXELS_LEAST, OCT_PIXELS_MOST);
    oct_average_prepare_add(&a->prepare, line, intensity);
}

/* The mean becomes the image, and the reference of the next B-scan: without contrast there is
 * none. */
static enum oct_err make_image(struct oct_analysis *a)
{
    float *mean = a->line;
    if (a->rigid)
        oct_average_prepare_begin(&a->prepare);
    for (uint32_t j = 0; j < a->input.dims[0]; j++) {
        oct_average_window_mean(&a->window, j, mean);
        write_line(a, j, mean);
        if (a->rigid)
            add_to_reference(a, j, mean);
    }
    if (!a->rigid)
        return OCT_OK;
    enum oct_err e = oct_average_prepare_end(&a->prepare, a->err);
    e = e ? e : oct_rigid_set_reference(a->rigid, &a->prepare.picture, a->err);
    a->has_reference = e == OCT_OK;
    return e == OCT_E_ARG ? OCT_OK : e;
}

/* Says of the newest B-scan what became of it. */
static void note_numbers(struct oct_analysis *a, const struct oct_bscan_info *info)
{
    a->now.info = *info;
    a->now.numbers[OCT_AVERAGE_AVERAGED] = a->window.n;
    a->now.numbers[OCT_AVERAGE_REJECTED] = (double)a->n_rejected;
    a->now.numbers[OCT_AVERAGE_RESETS] = (double)a->n_resets;
    a->now.numbers[OCT_AVERAGE_SCORE] = a->score;
    a->now.numbers[OCT_AVERAGE_SHIFT_LINES] = a->shift.lines;
    a->now.numbers[OCT_AVERAGE_SHIFT_DEPTH] = a->shift.depth;
}

/* ---- blocks ---- */

static bool is_same_block(const struct oct_analysis *a, const struct oct_bscan_info *info)
{
    return info->volume == a->newest.volume &&
           info->bscan / a->settings.repeats == a->newest.bscan / a->settings.repeats;
}

/* The block before was not whole: it is given as far as it came. */
static void leave_block(struct oct_analysis *a)
{
    if (a->window.n > 0 && !a->is_given) {
        struct made made = a->now;
        a->now = a->before;
        a->before = made;
        a->before.is_due = true;
    }
    a->is_given = false;
    begin_anew(a);
}

/* ---- the contract's functions ---- */

/* Nothing moved it. */
static enum oct_err leave_out(struct oct_analysis *a)
{
    a->shift = (struct oct_average_shift){NAN, NAN};
    return OCT_OK;
}

/* What became of a B-scan that was brought in. */
static enum oct_err judge(struct oct_analysis *a, const struct oct_image_frame *bscan,
                          bool is_flyback)
{
    enum match match;
    enum oct_err e = compare(a, &match);
    if (e)
        return e;
    if (bscan->info.missing_lines > a->input.dims[0] / MISSING_SHARE) {
        a->n_rejected++;
        return leave_out(a);
    }
    const bool is_new_place =
        is_flyback &&
        (match == DIFFERS || (match == MATCHES && a->score < SAME_PLACE * a->score_before));
    if (is_new_place)
        reset_window(a);
    else if (match == DIFFERS && !reject(a))
        return leave_out(a);
    a->score_before = match == MATCHES && !is_new_place ? a->score : NAN;
    add(a);
    a->now.lo = bscan->lo;
    a->now.hi = bscan->hi;
    return make_image(a);
}

static enum oct_err average_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                                 struct oct_error *err)
{
    const struct oct_bscan_info *info = &bscan->info;
    if (!a->is_on)
        return OCT_OK;
    if (has_blocks(a) && a->any && !is_same_block(a, info))
        leave_block(a);
    const bool is_flyback =
        !has_blocks(a) && a->any && info->volume != a->newest.volume && a->n_bscans > 1;
    if (is_flyback && !a->rigid)
        reset_window(a);
    a->any = true;
    a->newest = *info;
    a->bscan = bscan;
    a->err = err;
    enum oct_err e = bring_in(a);
    e = e ? e : judge(a, bscan, is_flyback);
    if (e)
        return e;
    note_numbers(a, info);
    const bool is_last = info->bscan % a->settings.repeats + 1 == a->settings.repeats;
    a->now.is_due = a->window.n > 0 && (!has_blocks(a) || is_last);
    a->is_given = a->is_given || a->now.is_due;
    return OCT_OK;
}

static void give(const struct oct_analysis *a, struct made *made, struct oct_image_frame *result)
{
    memcpy(result->pixels, made->pixels, oct_image_form_bytes(&a->form));
    memcpy(result->numbers, made->numbers, sizeof(result->numbers));
    result->info = made->info;
    result->lo = made->lo;
    result->hi = made->hi;
    made->is_due = false;
}

static enum oct_err average_take(struct oct_analysis *a, struct oct_image_frame *result,
                                 struct oct_error *err)
{
    (void)err;
    if (a->before.is_due)
        give(a, &a->before, result);
    else if (a->now.is_due)
        give(a, &a->now, result);
    else
        return OCT_E_AGAIN;
    return OCT_OK;
}

static void average_end(struct oct_analysis *a)
{
    if (!a->is_on || !has_blocks(a))
        return;
    a->now.is_due = a->window.n > 0 && !a->is_given;
    a->is_given = true;
}

static void average_reset(struct oct_analysis *a)
{
    a->any = a->is_given = false;
    a->now.is_due = a->before.is_due = false;
    if (a->is_on)
        reset_window(a);
}

static bool average_is_at_rest(const struct oct_analysis *a)
{
    return !a->is_on;
}

/* ---- life ---- */

static enum oct_err check_settings(const struct oct_average_settings *s, struct oct_error *err)
{
    if (s->bscans < 1 || s->bscans > OCT_AVERAGE_MOST_BSCANS || s->repeats < 1 ||
        s->repeats > OCT_AVERAGE_MOST_BSCANS || !(s->max_shift_px >= 1) ||
        !(s->min_score >= -1 && s->min_score <= 1) || (unsigned)s->registration > 1 ||
        (unsigned)s->domain > 1)
        return oct_fail(err, OCT_E_CONFIG,
                        "average: 1 to %u B-scans, a shift of 1 px at least and a score of -1 to 1",
                        OCT_AVERAGE_MOST_BSCANS);
    return OCT_OK;
}

enum oct_err oct_average_check(const struct oct_average_settings *settings, uint32_t n_lines,
                               uint32_t depth, struct oct_error *err)
{
    enum oct_err e = check_settings(settings, err);
    if (e || !averages(settings))
        return e;
    if ((e = oct_average_window_check(n_lines, depth, n_of_window(settings), err)))
        return e;
    return settings->registration == OCT_AVERAGE_RIGID
               ? oct_average_prepare_check(n_lines, depth, err)
               : OCT_OK;
}

/* What depends on settings. */
static void finish_parts(struct oct_analysis *a)
{
    oct_average_window_finish(&a->window);
    oct_average_prepare_finish(&a->prepare);
    oct_rigid_destroy(a->rigid);
    a->rigid = NULL;
    free(a->values);
    free(a->line_valid);
    free(a->line);
    free(a->now.pixels);
    free(a->before.pixels);
    a->values = a->line = NULL;
    a->line_valid = NULL;
    a->now = a->before = (struct made){.pixels = NULL};
    a->is_on = a->has_reference = a->is_given = false;
}

static uint32_t bins_of(double px, uint32_t bin, uint32_t n)
{
    double bins = ceil(px / bin);
    return bins < n - 1 ? (uint32_t)bins : n - 1;
}

static enum oct_err make_rigid(struct oct_analysis *a, struct oct_error *err)
{
    enum oct_err e = oct_average_prepare_init(&a->prepare, a->input.dims[0], a->input.dims[1], err);
    if (e)
        return e;
    const struct oct_picture *picture = &a->prepare.picture;
    const struct oct_rigid_setup setup = {
        .height = picture->height,
        .width = picture->width,
        .max_dy = bins_of(a->settings.max_shift_px, a->prepare.bin_lines, picture->height),
        .max_dx = bins_of(a->settings.max_shift_px, a->prepare.bin_depth, picture->width),
        .min_overlap = LEAST_OVERLAP,
        .smooth_px = oct_average_prepare_smoothing(&a->prepare),
        .backend = "cpu",
        .plans_ahead = true,
    };
    return oct_rigid_create(&a->rigid, &setup, err);
}

static enum oct_err make_parts(struct oct_analysis *a, struct oct_error *err)
{
    const uint32_t n_lines = a->input.dims[0], depth = a->input.dims[1];
    const size_t bytes = oct_image_form_bytes(&a->form);
    if (!averages(&a->settings))
        return OCT_OK;
    enum oct_err e =
        oct_average_window_init(&a->window, n_lines, depth, n_of_window(&a->settings), err);
    if (!e && a->settings.registration == OCT_AVERAGE_RIGID)
        e = make_rigid(a, err);
    if (e)
        return e;
    a->values = oct_aligned_alloc(64, n_pixels(a), sizeof(*a->values));
    a->line_valid = malloc(n_lines);
    a->line = oct_aligned_alloc(64, 2 * (size_t)depth, sizeof(*a->line));
    a->now.pixels = malloc(bytes);
    a->before.pixels = malloc(bytes);
    if (!a->values || !a->line_valid || !a->line || !a->now.pixels || !a->before.pixels)
        return oct_fail(err, OCT_E_NO_MEMORY, "average: out of memory");
    a->is_on = true;
    return OCT_OK;
}

/* The window goes on where only what a B-scan must reach to come in has changed. */
static bool needs_parts_anew(const struct oct_average_settings *old,
                             const struct oct_average_settings *new_ones)
{
    return old->bscans != new_ones->bscans || old->registration != new_ones->registration ||
           old->domain != new_ones->domain || old->max_shift_px < new_ones->max_shift_px ||
           old->max_shift_px > new_ones->max_shift_px;
}

static enum oct_err average_configure(struct oct_analysis *a, const void *settings,
                                      struct oct_error *err)
{
    struct oct_average_settings wanted = *(const struct oct_average_settings *)settings;
    enum oct_err e = check_settings(&wanted, err);
    if (e)
        return e;
    wanted.repeats = a->settings.repeats;
    if (!needs_parts_anew(&a->settings, &wanted)) {
        a->settings = wanted;
        return OCT_OK;
    }
    struct oct_analysis next = *a;
    next.settings = wanted;
    next.window = (struct oct_average_window){.n = 0};
    next.prepare = (struct oct_average_prepare){.n_lines = 0};
    next.rigid = NULL;
    next.values = next.line = NULL;
    next.line_valid = NULL;
    next.now = next.before = (struct made){.pixels = NULL};
    next.is_on = next.has_reference = next.is_given = false;
    next.n_in_a_row = 0;
    e = make_parts(&next, err);
    if (e) {
        finish_parts(&next);
        return e;
    }
    finish_parts(a);
    *a = next;
    return OCT_OK;
}

static void average_destroy(struct oct_analysis *a)
{
    if (!a)
        return;
    finish_parts(a);
    free(a);
}

static void describe(struct oct_analysis *a, const struct oct_analysis_setup *setup)
{
    const uint32_t repeats = a->settings.repeats;
    a->form = (struct oct_image_form){
        .name = "average",
        .quantity = setup->input->quantity,
        .type = setup->input->type,
        .rank = 2,
        .dims = {setup->input->dims[0], setup->input->dims[1]},
        .spacing_um = {setup->spacing.line_um, setup->spacing.depth_um},
        .axes = {"line", "depth"},
        .bscans_an_image = repeats > 1 ? repeats : 0,
        .numbers = numbers,
        .n_numbers = sizeof(numbers) / sizeof(numbers[0]),
        .at_root = true,
    };
}

static enum oct_err average_create(struct oct_analysis **out,
                                   const struct oct_analysis_setup *setup,
                                   struct oct_image_form *form, struct oct_error *err)
{
    *out = NULL;
    enum oct_err e = check_settings(setup->settings, err);
    if (e)
        return e;
    struct oct_analysis *a = calloc(1, sizeof(*a));
    if (!a)
        return oct_fail(err, OCT_E_NO_MEMORY, "average: out of memory");
    a->input = *setup->input;
    a->n_bscans = setup->n_bscans;
    a->settings = *(const struct oct_average_settings *)setup->settings;
    describe(a, setup);
    e = make_parts(a, err);
    if (e) {
        average_destroy(a);
        return e;
    }
    *form = a->form;
    *out = a;
    return OCT_OK;
}

const struct oct_analysis_ops oct_average_cpu = {
    .name = "average",
    .backend = "cpu",
    .meaning = "The mean of the last B-scans, registered; or of the repeats of each place.",
    .input = OCT_STAGE_VALUES,
    .settings_bytes = sizeof(struct oct_average_settings),
    .most_behind = 2,
    .create = average_create,
    .run =
        {
            .push = average_push,
            .take = average_take,
            .end = average_end,
            .reset = average_reset,
            .configure = average_configure,
            .is_at_rest = average_is_at_rest,
            .destroy = average_destroy,
        },
};
