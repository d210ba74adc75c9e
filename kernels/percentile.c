#include "kernels/percentile.h"

#include <string.h>

#define LOWER_SHIFT (OCT_HISTOGRAM_SHIFT - OCT_HISTOGRAM_BITS)

static float value_of(uint32_t key)
{
    uint32_t bits = key ^ ((key >> 31) ? 0x80000000u : 0xffffffffu);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Where a rank lies: the bin that holds it, and how many values lie in lower bins. */
struct place {
    uint32_t bin;
    size_t below;
};

/* `from`: the place of a lower rank, {0} for none. */
static struct place find_bin(const uint32_t *counts, size_t rank, struct place from)
{
    enum { STEP = 16 };
    struct place p = from;
    while (p.bin + STEP < OCT_HISTOGRAM_BINS) { /* most bins are empty: they go by in strides */
        uint32_t together = 0;
        for (uint32_t b = 0; b < STEP; b++)
            together += counts[p.bin + b];
        if (p.below + together > rank)
            break;
        p.below += together;
        p.bin += STEP;
    }
    while (p.bin + 1 < OCT_HISTOGRAM_BINS && p.below + counts[p.bin] <= rank)
        p.below += counts[p.bin++];
    return p;
}

/* The values of one upper bin by their lower bits, into v->refined. */
static void refine(const struct oct_percentile_values *v, uint32_t upper)
{
    size_t n = v->stages->pick(v->picked, v->values, v->n, upper);
    memset(v->refined, 0, OCT_HISTOGRAM_BINS * sizeof(*v->refined));
    for (size_t i = 0; i < n; i++)
        v->refined[(oct_histogram_key(v->picked[i]) >> LOWER_SHIFT) & (OCT_HISTOGRAM_BINS - 1)]++;
}

/* Value at a rank inside the upper bin that `refined` resolves. */
static double value_at(const uint32_t *refined, uint32_t upper, size_t rank_in_bin)
{
    struct place p = find_bin(refined, rank_in_bin, (struct place){0});
    return value_of(upper << OCT_HISTOGRAM_SHIFT | p.bin << LOWER_SHIFT | 1u << (LOWER_SHIFT - 1));
}

/* *refined_bin: the upper bin that v->refined resolves, OCT_HISTOGRAM_BINS for none. */
static double find_one(const struct oct_percentile_values *v, double percent, uint32_t *refined_bin)
{
    double rank = percent / 100 * (double)(v->n - 1), at[2];
    size_t r0 = (size_t)rank;
    struct place p = {0};
    for (size_t k = 0; k < 2; k++) {
        size_t r = r0 + k < v->n ? r0 + k : r0;
        p = find_bin(v->counts, r, p);
        if (p.bin != *refined_bin)
            refine(v, p.bin);
        *refined_bin = p.bin;
        at[k] = value_at(v->refined, p.bin, r - p.below);
    }
    return at[0] + (at[1] - at[0]) * (rank - (double)r0);
}

void oct_percentiles_find(const struct oct_percentile_values *v, double lo_percent,
                          double hi_percent, double *lo, double *hi)
{
    uint32_t refined_bin = OCT_HISTOGRAM_BINS;
    *lo = find_one(v, lo_percent, &refined_bin);
    *hi = find_one(v, hi_percent, &refined_bin);
}

void oct_smoothed_range_update(struct oct_smoothed_range *range, uint32_t acquisition,
                               uint64_t volume, double smoothing_bscans, double *lo, double *hi)
{
    if (range->started && range->acquisition == acquisition && range->volume == volume) {
        *lo = range->lo + (*lo - range->lo) / (1 + smoothing_bscans);
        *hi = range->hi + (*hi - range->hi) / (1 + smoothing_bscans);
    }
    *range = (struct oct_smoothed_range){true, acquisition, volume, *lo, *hi};
}
