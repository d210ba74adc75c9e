/* Bounds of distances, for the instruction set that the file is compiled for. */
#include "analysis/layers/denoise/lanes.h"
#include "analysis/layers/denoise/patch_search.h"

#include <string.h>

#define STEP 8u /* coordinates from one look to the next */

static void boxes(const float *low, const float *high, uint32_t n, uint32_t own, float *distance)
{
    memset(distance, 0, n * sizeof(*distance));
    for (unsigned c = 0; c < OCT_PATCH_HEAD; c++, low += n, high += n) {
        const float own_low = low[own], own_high = high[own];
        for (uint32_t i = 0; i < n; i++) {
            const float below = own_low - high[i], above = low[i] - own_high;
            const float gap = below > above ? below : above, beside = gap > 0 ? gap : 0;
            distance[i] += beside * beside;
        }
    }
}

static void compare(const float *x, const float *y, unsigned n_columns, const float *reach,
                    uint16_t near[OCT_PATCH_LANES])
{
    for (unsigned i = 0; i < OCT_PATCH_LANES; i++) {
        const vec limit = all(reach[i]);
        vec sum[PARTS];
        unsigned bits = 1;
        UNROLL
        for (unsigned part = 0; part < PARTS; part++)
            sum[part] = all(0);
        for (unsigned c = 0; bits && c < n_columns;) {
            const unsigned end = c + STEP < n_columns ? c + STEP : n_columns;
            for (; c < end; c++)
                UNROLL
            for (unsigned part = 0; part < PARTS; part++) {
                const float *at = y + c * OCT_PATCH_LANES + part * WIDTH;
                const vec d = load(at) - all(x[c * OCT_PATCH_LANES + i]);
                sum[part] += d * d;
            }
            bits = 0;
            UNROLL
            for (unsigned part = 0; part < PARTS; part++)
                bits |= (~bits_of(below(limit, sum[part])) & ((1u << WIDTH) - 1)) << part * WIDTH;
        }
        near[i] = (uint16_t)bits;
    }
}

const struct oct_patch_bounds OCT_SIMD_TABLE(oct_patch_bounds) = {boxes, compare};
