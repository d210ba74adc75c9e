#include "daemon/calibrate.h"

#include "analysis/calibrate/sharpen_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LINES 256u /* of a B-scan, evenly spread */
#define RANGE_DB 50.0F  /* below the brightest pixel after */
#define N_SLOTS 3u

struct work {
    const struct oct_plan *plan; /* the session's; NULL once the search is prepared */
    uint32_t limit, first, last; /* depths of the picture */
    struct oct_sharpen *sharpen;
    uint16_t *spectra; /* [OCT_CALIBRATE_BSCANS][M][N] */
    size_t bscan_samples, n_taken;
    struct oct_bscan_info info; /* of the first */
    struct oct_sharpen_result result;
    struct oct_sharpen_dispersion whole;
    uint32_t n_lines;
    uint8_t *picture; /* [2][n_lines][last - first] */
    double lo, hi;
};

/* Depths of the picture: those that the session shows, as far as there are any. */
static void depths_of(const struct oct_plan *plan, uint32_t *first, uint32_t *last)
{
    const struct oct_geometry *g = &plan->geometry;
    const uint32_t most = g->upsampled / 4;
    *first = g->crop_first < most ? g->crop_first : 0;
    *last = g->crop_last < most ? g->crop_last : most;
}

static uint32_t lines_of(const struct oct_plan *plan)
{
    return plan->geometry.n_lines < MOST_LINES ? plan->geometry.n_lines : MOST_LINES;
}

void *oct_calibrate_create(const struct oct_plan *plan, uint32_t limit)
{
    struct work *work = calloc(1, sizeof(*work));
    if (!work)
        return NULL;
    work->plan = plan;
    work->limit = limit;
    depths_of(plan, &work->first, &work->last);
    return work;
}

static void destroy(void *context)
{
    struct work *work = context;
    oct_sharpen_destroy(work->sharpen);
    free(work->spectra);
    free(work->whole.table);
    free(work->picture);
    free(work);
}

/* Planning transforms may wait for others who plan. */
static enum oct_err prepare(void *context, struct oct_error *err)
{
    struct work *work = context;
    const struct oct_geometry *g = &work->plan->geometry;
    struct oct_sharpen_setup setup = oct_sharpen_standard;
    setup.plan = work->plan;
    setup.limit = work->limit;
    setup.n_bscans = OCT_CALIBRATE_BSCANS;
    setup.n_lines = OCT_CALIBRATE_BSCANS * lines_of(work->plan);
    setup.last_px = work->last;
    setup.with_curves = false;
    work->bscan_samples = (size_t)g->n_lines * g->n_samples;
    work->spectra = malloc(OCT_CALIBRATE_BSCANS * work->bscan_samples * sizeof(*work->spectra));
    if (!work->spectra)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for B-scans");
    enum oct_err e = oct_sharpen_create(&work->sharpen, &setup, err);
    work->plan = NULL;
    return e;
}

static void copy_bscan(void *context, const struct oct_raw_frame *frame)
{
    struct work *work = context;
    if (work->n_taken == 0)
        work->info = frame->info;
    oct_samples_unpack(work->spectra + work->n_taken++ * work->bscan_samples, frame->spectra,
                       work->bscan_samples, frame->format);
}

/* ---- the picture ---- */

static float db_of(float intensity)
{
    return 10 * log10f(fmaxf(intensity, 1e-12F));
}

static void to_pixels(const struct work *work, const float *intensity, uint32_t n_depth,
                      uint8_t *pixel)
{
    for (uint32_t j = 0; j < work->n_lines; j++)
        for (uint32_t d = work->first; d < work->last; d++) {
            const float db = db_of(intensity[(size_t)j * n_depth + d]);
            const float grey = (db - (float)work->lo) / RANGE_DB * 255;
            *pixel++ = (uint8_t)lrintf(fminf(fmaxf(grey, 0), 255));
        }
}

static enum oct_err draw(struct work *work, struct oct_error *err)
{
    const double none[2] = {0, 0};
    const uint32_t n_depth = oct_sharpen_depth(work->sharpen);
    work->n_lines = oct_sharpen_picture_lines(work->sharpen);
    const size_t n = (size_t)work->n_lines * n_depth;
    const size_t n_pixels = (size_t)work->n_lines * (work->last - work->first);
    float *intensity = malloc(n * sizeof(*intensity)), top = 0;
    work->picture = malloc(2 * n_pixels + 1);
    if (intensity && work->picture) {
        oct_sharpen_picture(work->sharpen, work->result.remaining, intensity);
        for (size_t i = 0; i < n; i++)
            top = fmaxf(top, intensity[i]);
        work->hi = db_of(top);
        work->lo = work->hi - RANGE_DB;
        to_pixels(work, intensity, n_depth, work->picture + n_pixels);
        oct_sharpen_picture(work->sharpen, none, intensity);
        to_pixels(work, intensity, n_depth, work->picture);
    }
    const bool has_memory = intensity && work->picture;
    free(intensity);
    return has_memory ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a picture");
}

static enum oct_err compute(void *context, const atomic_bool *cancelled, struct oct_error *err)
{
    struct work *work = context;
    for (size_t k = 0; k < work->n_taken; k++)
        oct_sharpen_add(work->sharpen, work->spectra + k * work->bscan_samples, NULL);
    free(work->spectra);
    work->spectra = NULL;
    enum oct_err e = oct_sharpen_run(work->sharpen, cancelled, &work->result, err);
    e = e ? e
          : oct_sharpen_combine(oct_sharpen_plan(work->sharpen), work->result.remaining,
                                &work->whole, err);
    return e ? e : draw(work, err);
}

static void describe(const void *context, struct cJSON *result)
{
    const struct work *work = context;
    oct_sharpen_describe(&work->result, &work->whole, result);
}

const struct oct_errand_ops oct_calibrate_ops = {.name = "calibrate",
                                                 .prepare = prepare,
                                                 .take = copy_bscan,
                                                 .compute = compute,
                                                 .describe = describe,
                                                 .destroy = destroy};

/* ---- the topic ---- */

/* The whole dispersion over the spectrum, a2 to a5 in rad; of both halves sharpness and width. */
static const struct oct_image_number numbers[] = {
    {"dispersion", OCT_MAX_DISPERSION_ORDER - 1}, {"sharpness", 2}, {"width_px", 2}};

enum oct_err oct_calibrate_topic_init(struct oct_calibrate_topic *topic,
                                      const struct oct_plan *plan,
                                      const struct oct_spacing *spacing, struct oct_error *err)
{
    uint32_t first, last;
    depths_of(plan, &first, &last);
    const double thinning = (double)plan->geometry.n_lines / lines_of(plan);
    *topic = (struct oct_calibrate_topic){
        .form = {.name = "calibrate",
                 .quantity = OCT_QUANTITY_INTENSITY_DB,
                 .type = OCT_SAMPLE_U8,
                 .rank = 2,
                 .dims = {2 * lines_of(plan), last - first},
                 .spacing_um = {spacing->line_um * thinning, spacing->depth_um},
                 .axes = {"line", "depth"},
                 .numbers = numbers,
                 .n_numbers = sizeof(numbers) / sizeof(numbers[0])}};
    return oct_ring_create(&topic->ring, N_SLOTS, oct_image_slot_bytes_of(&topic->form, NULL), NULL,
                           NULL, err);
}

void oct_calibrate_topic_finish(struct oct_calibrate_topic *topic)
{
    oct_ring_destroy(topic->ring);
    *topic = (struct oct_calibrate_topic){.ring = NULL};
}

static void fill_numbers(const struct work *work, double *number)
{
    for (int m = 2; m <= OCT_MAX_DISPERSION_ORDER; m++)
        *number++ = work->whole.is_table ? NAN : work->whole.over_spectrum[m];
    *number++ = work->result.before;
    *number++ = work->result.after;
    *number++ = work->result.width_before_px;
    *number++ = work->result.width_after_px;
}

void oct_calibrate_show(const struct oct_errand *errand, struct oct_calibrate_topic *topic)
{
    const struct work *work = errand->work;
    const uint32_t *most = topic->form.dims;
    uint64_t slot;
    if (errand->ops != &oct_calibrate_ops || errand->runs || errand->err.code ||
        work->result.state != OCT_SHARPEN_FOUND || work->last - work->first != most[1] ||
        2 * work->n_lines > most[0] || oct_ring_acquire(topic->ring, 0, &slot))
        return;
    struct oct_image_frame *frame = oct_image_slot_begin(topic->ring, slot, &topic->form, NULL);
    frame->info = work->info;
    frame->status = OCT_OK;
    frame->dims[0] = 2 * work->n_lines;
    frame->whole = true;
    frame->lo = work->lo;
    frame->hi = work->hi;
    fill_numbers(work, frame->numbers);
    memcpy(frame->pixels, work->picture, 2 * (size_t)work->n_lines * most[1]);
    oct_ring_publish(topic->ring);
}
