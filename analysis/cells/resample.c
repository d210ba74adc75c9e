#include "analysis/cells/resample.h"

#include <math.h>

#define MOST_RATIO 1.02 /* of spacings that count as equal */

/* Pixels at multiples of `step` (1 or less) up to the last of n. The smallest part of a step may be
 * lost by rounding. */
static uint32_t count_of(uint32_t n, double step)
{
    return (uint32_t)floor((n - 1) / step + 1e-9) + 1;
}

void oct_cells_resample_plan(struct oct_cells_resample *plan, uint32_t x0, uint32_t y0,
                             uint32_t height, uint32_t width, const double um[2])
{
    const double ratio = um[0] / um[1]; /* above 1: rows lie farther apart than columns */
    *plan = (struct oct_cells_resample){.x0 = x0,
                                        .y0 = y0,
                                        .from_height = height,
                                        .from_width = width,
                                        .dy = ratio > MOST_RATIO ? 1 / ratio : 1,
                                        .dx = ratio < 1 / MOST_RATIO ? ratio : 1};
    plan->height = count_of(height, plan->dy);
    plan->width = count_of(width, plan->dx);
}

bool oct_cells_resample_is_identity(const struct oct_cells_resample *plan, uint32_t height,
                                    uint32_t width)
{
    return plan->height == height && plan->width == width && plan->from_height == height &&
           plan->from_width == width && plan->x0 == 0 && plan->y0 == 0;
}

/* Where a pixel lies: between a pixel and the next one, `step` elements on, with the next one's
 * weight. */
struct between {
    size_t first, step;
    float weight;
};

static struct between find_between(double at, uint32_t n, size_t stride)
{
    const uint32_t first = at < n - 1 ? (uint32_t)at : n - 1;
    const float weight = first + 1 < n ? (float)(at - first) : 0;
    return (struct between){first * stride, weight > 0 ? stride : 0, weight};
}

static float mix(float a, float b, float weight)
{
    return weight > 0 ? a + (b - a) * weight : a;
}

void oct_cells_resample_row(const struct oct_cells_resample *plan, const struct oct_picture *from,
                            struct oct_picture *to, uint32_t y)
{
    const size_t origin = (size_t)plan->y0 * from->width + plan->x0;
    const struct between v = find_between(y * plan->dy, plan->from_height, from->width);
    for (uint32_t x = 0; x < plan->width; x++) {
        const struct between h = find_between(x * plan->dx, plan->from_width, 1);
        const size_t i = origin + v.first + h.first, j = i + v.step;
        const size_t k = (size_t)y * plan->width + x;
        const bool is_valid = !from->valid || (from->valid[i] && from->valid[i + h.step] &&
                                               from->valid[j] && from->valid[j + h.step]);
        to->pixels[k] = 0;
        if (is_valid)
            to->pixels[k] = mix(mix(from->pixels[i], from->pixels[i + h.step], h.weight),
                                mix(from->pixels[j], from->pixels[j + h.step], h.weight), v.weight);
        if (to->valid)
            to->valid[k] = is_valid;
    }
}

void oct_cells_resample(const struct oct_cells_resample *plan, const struct oct_picture *from,
                        struct oct_picture *to)
{
    for (uint32_t y = 0; y < plan->height; y++)
        oct_cells_resample_row(plan, from, to, y);
}
