/* How a layer moves against another, by octd's analysis `trace`; the plots draw it
 * (draw/plots.c). */
#include "pipeline/base/clock.h"
#include "viewer/draw/pen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST 1e9                   /* hostile numbers: differences of what is kept are finite */
#define LATE_NS (5 * OCT_NS_PER_S) /* no table for so long: octd makes none any more */
#define MOST_ROWS 65536u

static enum oct_err check(const struct oct_image_header *header, struct oct_error *err)
{
    if (!oct_view_image_is_table(header, MOST_ROWS))
        return oct_fail(err, OCT_E_FORMAT, "%.40s: a trace is a table of labelled f32 numbers",
                        header->dataset);
    return OCT_OK;
}

/* The brightest pixel of each part of the depth. */
static void keep_line(uint8_t line[OCT_VIEW_TRACE_DEPTHS], const struct oct_view_model *model,
                      double at)
{
    const struct oct_picture_header *h = &model->shown.header;
    for (uint32_t k = 0; k < OCT_VIEW_TRACE_DEPTHS; k++) {
        double most = -INFINITY;
        for (uint64_t d = (uint64_t)k * h->depth / OCT_VIEW_TRACE_DEPTHS;
             d < (uint64_t)(k + 1) * h->depth / OCT_VIEW_TRACE_DEPTHS; d++)
            most = fmax(most, oct_view_picture_value(&model->shown, (uint32_t)at, (uint32_t)d));
        line[k] = model->has_picture ? oct_view_contrast_level(&model->contrast, most) : 0;
    }
}

/* A place behind the newest point. */
static unsigned make_room(struct oct_view_trace *t)
{
    if (t->n < OCT_VIEW_TRACE_MOST)
        return t->n++;
    memmove(t->points, t->points + 1, (t->n - 1) * sizeof(t->points[0]));
    memmove(t->lines, t->lines + 1, (t->n - 1) * sizeof(t->lines[0]));
    return t->n - 1;
}

void oct_view_trace_set(struct oct_view_trace *t, const struct oct_view_image *table,
                        const struct oct_view_model *model)
{
    const struct oct_image_header *h = &table->header;
    const float *row = table->values;
    if (check(h, NULL))
        return;
    /* Of more rows than are kept the last. */
    const uint32_t first = h->dims[0] > OCT_VIEW_TRACE_MOST ? h->dims[0] - OCT_VIEW_TRACE_MOST : 0;
    const bool is_of_lines = h->dims[0] > 1 && h->dims[0] == model->shown.header.n_lines;
    row += (size_t)first * h->dims[1];
    for (uint32_t i = first; i < h->dims[0]; i++, row += h->dims[1]) {
        const double time_s = oct_image_header_value(h, row, "time_s");
        const double nm = oct_image_header_value(h, row, "nm");
        const double moved = isnan(nm) ? oct_image_header_value(h, row, "rad") : nm;
        const double sd = oct_image_header_value(h, row, isnan(nm) ? "sd_rad" : "sd_nm");
        if (!(fabs(time_s) < MOST) || !(fabs(moved) < MOST))
            continue;
        if (strcmp(t->acquisition_id, h->acquisition_id) != 0 ||
            (t->n > 0 && time_s <= t->points[t->n - 1].time_s))
            t->n = 0;
        memcpy(t->acquisition_id, h->acquisition_id, sizeof(t->acquisition_id));
        t->unit = isnan(nm) ? "rad" : "nm";
        const unsigned to = make_room(t);
        t->points[to].time_s = time_s;
        t->points[to].moved = moved;
        t->points[to].sd = sd >= 0 && sd < MOST ? sd : 0;
        keep_line(t->lines[to], model, is_of_lines ? i : fmax(model->cursor_line, 0));
    }
    t->serial++;
    t->came_ns = table->arrival_ns;
}

bool oct_view_model_has_trace(const struct oct_view_model *model)
{
    const struct oct_view_trace *t = &model->trace;
    return t->n > 0 && !model->playback.active &&
           (model->frozen || model->now_ns < t->came_ns || model->now_ns - t->came_ns < LATE_NS);
}

void oct_view_trace_text(const struct oct_view_model *model, char *text, size_t n_bytes)
{
    const struct oct_view_trace *t = &model->trace;
    text[0] = '\0';
    if (t->n > 0)
        snprintf(text, n_bytes, "trace, %s: %.4g, sd %.2g", t->unit, t->points[t->n - 1].moved,
                 t->points[t->n - 1].sd);
}

static void take(struct oct_view_model *model, struct oct_view_image *image)
{
    if (!model->frozen)
        oct_view_trace_set(&model->trace, image, model);
}

static bool wanted(const struct oct_view_model *model)
{
    return model->settings.arrangement == OCT_ARRANGEMENT_FOUR;
}

const struct oct_view_overlay oct_view_overlay_trace = {
    .topic = "trace",
    .check = check,
    .wanted = wanted,
    .take = take,
};
