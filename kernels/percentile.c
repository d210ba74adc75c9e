#include "kernels/percentile.h"

#include <math.h>
#include <string.h>

#define UPPER_SHIFT 18 /* 32 - 14 */
#define LOWER_SHIFT 4  /* 18 - 14 */

/* Rising with the float, also below zero. */
static inline uint32_t key_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits ^ ((bits >> 31) ? 0xffffffffu : 0x80000000u);
}

static float value_of(uint32_t key)
{
    uint32_t bits = key ^ ((key >> 31) ? 0x80000000u : 0xffffffffu);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

void oct_histogram_add(uint32_t *counts, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        counts[key_of(values[i]) >> UPPER_SHIFT]++;
}

/* The bin that holds `rank`, and how many values lie in lower bins. */
static uint32_t find_bin(const uint32_t *counts, size_t rank, size_t *below)
{
    size_t seen = 0;
    uint32_t bin = 0;
    while (bin + 1 < OCT_HISTOGRAM_BINS && seen + counts[bin] <= rank)
        seen += counts[bin++];
    *below = seen;
    return bin;
}

static void refine(uint32_t *refined, uint32_t upper, const float *values, size_t n)
{
    memset(refined, 0, OCT_HISTOGRAM_BINS * sizeof(*refined));
    for (size_t i = 0; i < n; i++) {
        uint32_t key = key_of(values[i]);
        if (key >> UPPER_SHIFT == upper)
            refined[(key >> LOWER_SHIFT) & (OCT_HISTOGRAM_BINS - 1)]++;
    }
}

/* Value at a rank inside the upper bin that `refined` resolves. */
static double value_at(const uint32_t *refined, uint32_t upper, size_t rank_in_bin)
{
    size_t below;
    uint32_t lower = find_bin(refined, rank_in_bin, &below);
    return value_of(upper << UPPER_SHIFT | lower << LOWER_SHIFT | 1u << (LOWER_SHIFT - 1));
}

double oct_histogram_percentile(const uint32_t *counts, uint32_t *refined, const float *values,
                                size_t n, double percent)
{
    double rank = percent / 100 * (double)(n - 1);
    size_t r0 = (size_t)rank, r1 = r0 + 1 < n ? r0 + 1 : r0, below0, below1;
    uint32_t bin0 = find_bin(counts, r0, &below0), bin1 = find_bin(counts, r1, &below1);

    refine(refined, bin0, values, n);
    double at0 = value_at(refined, bin0, r0 - below0);
    if (bin1 != bin0)
        refine(refined, bin1, values, n);
    double at1 = value_at(refined, bin1, r1 - below1);
    return at0 + (at1 - at0) * (rank - (double)r0);
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
