#include "analysis/correlate/boxes.h"

#include "pipeline/base/aligned.h"
#include "pipeline/base/wide.h"

#include <stdlib.h>
#include <string.h>

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
