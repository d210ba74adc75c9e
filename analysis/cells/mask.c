#include "analysis/cells/mask.h"

#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void oct_cells_mask_init(struct oct_cells_mask *mask, uint32_t height, uint32_t width, double reach)
{
    *mask = (struct oct_cells_mask){.height = height, .width = width, .reach = reach};
}

void oct_cells_mask_finish(struct oct_cells_mask *mask)
{
    free(mask->valid);
    free(mask->near);
    free(mask->gap);
    *mask = (struct oct_cells_mask){0};
}

static bool allocate(struct oct_cells_mask *mask)
{
    const size_t n = (size_t)mask->height * mask->width;
    if (!mask->valid)
        mask->valid = oct_aligned_alloc(64, n, 1);
    if (!mask->near)
        mask->near = oct_aligned_alloc(64, n, 1);
    if (!mask->gap)
        mask->gap = oct_aligned_alloc(64, n, sizeof(*mask->gap));
    return mask->valid && mask->near && mask->gap;
}

/* ---- near ---- */

/* Half the chord of the circle `reach` in rows dy away. */
static int64_t half_chord(const struct oct_cells_mask *mask, int64_t dy)
{
    return (int64_t)floor(sqrt(mask->reach * mask->reach - (double)(dy * dy)));
}

/* Counts in gap[v][x] how many chords about masked runs begin at x, less those that ended: chords
 * of a run first .. last of row y. */
static void paint(struct oct_cells_mask *mask, int64_t y, int64_t first, int64_t last)
{
    const int64_t reach = (int64_t)mask->reach, width = mask->width;
    for (int64_t v = y > reach ? y - reach : 0; v <= y + reach && v < mask->height; v++) {
        const int64_t half = half_chord(mask, v - y);
        uint32_t *row = mask->gap + v * width;
        row[first > half ? first - half : 0]++;
        if (last + half + 1 < width)
            row[last + half + 1]--;
    }
}

static void find_near(struct oct_cells_mask *mask)
{
    const size_t width = mask->width;
    memset(mask->gap, 0, mask->height * width * sizeof(*mask->gap));
    for (uint32_t y = 0; y < mask->height; y++) {
        const uint8_t *valid = mask->valid + y * width;
        for (size_t x = 0; x < width; x++) {
            const size_t first = x;
            while (x < width && !valid[x])
                x++;
            if (x > first)
                paint(mask, y, (int64_t)first, (int64_t)x - 1);
        }
    }
    for (uint32_t y = 0; y < mask->height; y++) {
        uint32_t n = 0;
        for (size_t x = 0; x < width; x++) {
            n += mask->gap[y * width + x];
            mask->near[y * width + x] = n != 0;
        }
    }
}

enum oct_err oct_cells_mask_set(struct oct_cells_mask *mask, const struct oct_picture *picture,
                                struct oct_error *err)
{
    const size_t n = (size_t)mask->height * mask->width, width = mask->width;
    if (!allocate(mask))
        return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for a mask of %u x %u px",
                        mask->width, mask->height);
    for (uint32_t y = 0; y < mask->height; y++) {
        for (size_t i = y * width; i < (y + 1) * width; i++)
            mask->valid[i] = (!picture->valid || picture->valid[i]) && isfinite(picture->pixels[i]);
    }
    mask->any = memchr(mask->valid, 0, n) != NULL;
    if (mask->any)
        find_near(mask);
    return OCT_OK;
}

bool oct_cells_mask_is_near(const struct oct_cells_mask *mask, double x, double y)
{
    if (!mask->any)
        return false;
    const double top = fmax(ceil(y - mask->reach), 0);
    const double bottom = fmin(floor(y + mask->reach), mask->height - 1);
    for (double v = top; v <= bottom; v++) {
        const double half = sqrt(fmax(mask->reach * mask->reach - (v - y) * (v - y), 0));
        const double left = fmax(ceil(x - half), 0), right = fmin(floor(x + half), mask->width - 1);
        const uint8_t *row = mask->valid + (size_t)v * mask->width;
        if (right >= left && memchr(row + (size_t)left, 0, (size_t)(right - left) + 1))
            return true;
    }
    return false;
}

/* ---- filling ---- */

#define NONE UINT32_MAX

static void fill_downward(struct oct_cells_mask *mask, float *pixels, size_t stride)
{
    const size_t width = mask->width;
    for (uint32_t y = 0; y < mask->height; y++) {
        const uint8_t *valid = mask->valid + y * width;
        uint32_t *gap = mask->gap + y * width;
        float *row = pixels + y * stride;
        for (size_t x = 0; x < width; x++) {
            const uint32_t above = y > 0 ? (gap - width)[x] : NONE;
            gap[x] = valid[x] ? 0 : above == NONE ? NONE : above + 1;
            if (!valid[x])
                row[x] = above == NONE ? 0 : (row - stride)[x];
        }
    }
}

/* In gap the distance to the valid pixel above, which becomes that to the nearer one. */
static void fill_upward(struct oct_cells_mask *mask, float *pixels, size_t stride)
{
    const size_t width = mask->width;
    for (uint32_t y = mask->height - 1; y-- > 0;) {
        uint32_t *gap = mask->gap + y * width;
        float *row = pixels + y * stride;
        for (size_t x = 0; x < width; x++) {
            const uint32_t below = (gap + width)[x];
            if (below != NONE && below + 1 < gap[x]) {
                gap[x] = below + 1;
                row[x] = (row + stride)[x];
            }
        }
    }
}

/* The column that stands in for column x, which has no valid pixel. */
static size_t stand_in(const struct oct_cells_mask *mask, size_t x)
{
    for (size_t d = 1; d < mask->width; d++) {
        if (d <= x && mask->gap[x - d] != NONE)
            return x - d;
        if (x + d < mask->width && mask->gap[x + d] != NONE)
            return x + d;
    }
    return x;
}

void oct_cells_mask_fill(struct oct_cells_mask *mask, float *pixels, size_t stride)
{
    if (!mask->any)
        return;
    fill_downward(mask, pixels, stride);
    fill_upward(mask, pixels, stride);
    for (size_t x = 0; x < mask->width; x++) {
        if (mask->gap[x] != NONE)
            continue;
        const size_t from = stand_in(mask, x);
        for (uint32_t y = 0; y < mask->height; y++)
            pixels[y * stride + x] = pixels[y * stride + from];
    }
}
