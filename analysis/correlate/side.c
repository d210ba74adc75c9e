#include "analysis/correlate/side.h"

#include "pipeline/base/aligned.h"
#include "pipeline/base/wide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- sums over overlaps ---- */

struct oct_box_overlap oct_box_overlap_at(uint32_t f_side, uint32_t g_side, int64_t shift)
{
    const int64_t first = shift < 0 ? -shift : 0;
    const int64_t until = (int64_t)g_side - shift;
    const int64_t end = until < f_side ? until : f_side;
    if (end <= first)
        return (struct oct_box_overlap){0, 0};
    return (struct oct_box_overlap){(uint32_t)first, (uint32_t)end};
}

bool oct_boxes_init(struct oct_boxes *boxes, uint32_t height, uint32_t width, uint32_t g_height,
                    uint32_t max_dy)
{
    uint32_t n_slots = 0;
    *boxes = (struct oct_boxes){.height = height, .width = width};
    boxes->slot = malloc(((size_t)height + 1) * sizeof(*boxes->slot));
    boxes->columns = oct_aligned_alloc(64, width, sizeof(double));
    if (!boxes->slot || !boxes->columns)
        goto fail;
    memset(boxes->slot, 0xff, ((size_t)height + 1) * sizeof(*boxes->slot));
    for (int64_t dy = -(int64_t)max_dy; dy <= (int64_t)max_dy; dy++) {
        const struct oct_box_overlap rows = oct_box_overlap_at(height, g_height, dy);
        boxes->slot[rows.first] = boxes->slot[rows.end] = 0;
    }
    for (uint32_t y = 0; y <= height; y++)
        if (boxes->slot[y] == 0)
            boxes->slot[y] = n_slots++;
    boxes->kept = oct_aligned_calloc(64, (size_t)n_slots * ((size_t)width + 1), sizeof(double));
    if (!boxes->kept)
        goto fail;
    return true;
fail:
    oct_boxes_finish(boxes);
    return false;
}

void oct_boxes_finish(struct oct_boxes *boxes)
{
    free(boxes->slot);
    free(boxes->kept);
    free(boxes->columns);
    *boxes = (struct oct_boxes){0};
}

static double *kept_row(const struct oct_boxes *boxes, uint32_t y)
{
    return boxes->kept + (size_t)boxes->slot[y] * ((size_t)boxes->width + 1);
}

OCT_WIDE static void add(double *restrict sums, const float *restrict row, uint32_t n)
{
    for (uint32_t x = 0; x < n; x++)
        sums[x] += (double)row[x];
}

OCT_WIDE static void subtract(double *restrict strip, const double *restrict below,
                              const double *restrict above, uint32_t n)
{
    for (uint32_t x = 0; x < n; x++)
        strip[x] = below[x] - above[x];
}

/* The sums above row 0 stay the zeros of the allocation. */
void oct_boxes_add_row(struct oct_boxes *boxes, uint32_t y, const float *row)
{
    double sum = 0;
    if (y == 0)
        memset(boxes->columns, 0, boxes->width * sizeof(double));
    add(boxes->columns, row, boxes->width);
    if (boxes->slot[y + 1] == UINT32_MAX)
        return;
    double *sums = kept_row(boxes, y + 1);
    for (uint32_t x = 0; x < boxes->width; x++)
        sums[x + 1] = sum += boxes->columns[x];
}

void oct_boxes_strip(const struct oct_boxes *boxes, struct oct_box_overlap rows, double *strip)
{
    subtract(strip, kept_row(boxes, rows.end), kept_row(boxes, rows.first), boxes->width + 1);
}

/* ---- life ---- */

enum oct_err oct_side_init(struct oct_side *side, uint32_t g_height, uint32_t max_dy,
                           unsigned boxes_of, struct oct_error *err)
{
    for (unsigned kind = 0; kind < OCT_N_FIELDS; kind++) {
        struct oct_field *field = &side->field[kind];
        if (!(boxes_of >> kind & 1))
            continue;
        field->strip = oct_aligned_alloc(64, (size_t)side->width + 1, sizeof(double));
        field->has_boxes =
            oct_boxes_init(&field->boxes, side->height, side->width, g_height, max_dy);
        if (!field->strip || !field->has_boxes)
            return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for sums over %u x %u pixels",
                            side->height, side->width);
    }
    return OCT_OK;
}

void oct_side_finish(struct oct_side *side)
{
    for (unsigned kind = 0; kind < OCT_N_FIELDS; kind++) {
        oct_boxes_finish(&side->field[kind].boxes);
        free(side->field[kind].strip);
        free(side->field[kind].spectrum);
    }
    *side = (struct oct_side){0};
}

/* ---- a look at a picture ---- */

static void set_levels(struct oct_side *side, const struct oct_picture_statistics *look)
{
    const double n = (double)side->height * side->width, valid = (double)look->n_valid / n;
    const double scale = (double)side->scale;
    side->field[OCT_FIELD_MASK].level = (float)valid;
    side->field[OCT_FIELD_VALUES].level = 0;
    side->squares = look->variance * (double)look->n_valid * scale * scale;
    if (side->keep_mean) {
        side->field[OCT_FIELD_VALUES].level = (float)(scale * look->mean * valid);
        side->squares += scale * look->mean * scale * look->mean * (double)look->n_valid;
        side->mean_hi = side->mean_lo = 0;
    }
    side->field[OCT_FIELD_SQUARES].level = (float)(side->squares / n);
}

enum oct_err oct_side_check(const struct oct_picture *picture, struct oct_picture_statistics *look,
                            struct oct_error *err)
{
    oct_picture_look(picture, look);
    const double part = (double)look->n_valid / ((double)picture->height * picture->width);
    if (part < 0.1)
        return oct_fail(err, OCT_E_ARG, "only %.1f %% of the pixels are valid, less than 10 %%",
                        100 * part);
    if (!isfinite(look->variance))
        return oct_fail(err, OCT_E_ARG, "pixels that are not finite and not masked");
    return look->variance > 0 ? OCT_OK : oct_fail(err, OCT_E_ARG, "no contrast");
}

enum oct_err oct_side_look(struct oct_side *side, const struct oct_picture *picture,
                           struct oct_error *err)
{
    if (picture->height != side->height || picture->width != side->width)
        return oct_fail(err, OCT_E_ARG, "the picture has %u x %u pixels, not %u x %u",
                        picture->height, picture->width, side->height, side->width);
    struct oct_picture_statistics look;
    const enum oct_err e = oct_side_check(picture, &look, err);
    if (e)
        return e;
    int exponent;
    frexp(sqrt(look.variance), &exponent);
    exponent = exponent > 120 ? 120 : exponent < -120 ? -120 : exponent;
    side->picture = picture;
    side->n_valid = look.n_valid;
    side->scale = (float)ldexp(1, -exponent);
    const double mean = look.mean * (double)side->scale;
    side->mean_hi = (float)mean;
    side->mean_lo = (float)(mean - (double)side->mean_hi);
    set_levels(side, &look);
    return OCT_OK;
}

/* ---- rows ---- */

static void fill_values(const struct oct_side *side, uint32_t y, float level, float *row)
{
    const float *pixels = side->picture->pixels + (size_t)y * side->width;
    const float scale = side->scale, hi = side->mean_hi, lo = side->mean_lo;
    if (!side->picture->valid) {
        for (uint32_t x = 0; x < side->width; x++)
            row[x] = scale * pixels[x] - hi - lo - level;
        return;
    }
    const uint8_t *valid = side->picture->valid + (size_t)y * side->width;
    for (uint32_t x = 0; x < side->width; x++)
        row[x] = (valid[x] ? scale * pixels[x] - hi - lo : 0) - level;
}

static void fill_mask(const struct oct_side *side, uint32_t y, float level, float *row)
{
    const uint8_t *valid = side->picture->valid;
    for (uint32_t x = 0; x < side->width; x++)
        row[x] = (!valid || valid[(size_t)y * side->width + x] ? 1.0f : 0.0f) - level;
}

static void square(const float *values, uint32_t n, float level, float *row)
{
    for (uint32_t x = 0; x < n; x++)
        row[x] = values[x] * values[x] - level;
}

static void fill(void *context, uint32_t y, float *row)
{
    struct oct_field_rows *rows = context;
    struct oct_side *side = rows->side;
    struct oct_field *field = &side->field[rows->kind], *squares = &side->field[OCT_FIELD_SQUARES];
    switch (rows->kind) {
    case OCT_FIELD_VALUES:
        fill_values(side, y, field->level, row);
        if (squares->has_boxes) {
            square(row, side->width, squares->level, rows->scratch);
            oct_boxes_add_row(&squares->boxes, y, rows->scratch);
        }
        break;
    case OCT_FIELD_MASK:
        fill_mask(side, y, field->level, row);
        break;
    default:
        fill_values(side, y, 0, rows->scratch);
        square(rows->scratch, side->width, field->level, row);
        return;
    }
    if (field->has_boxes)
        oct_boxes_add_row(&field->boxes, y, row);
}

struct oct_fft2_rows oct_side_rows(struct oct_field_rows *rows)
{
    return (struct oct_fft2_rows){
        .height = rows->side->height, .width = rows->side->width, .fill = fill, .context = rows};
}
