#include "kernels/recon/percentile.h"

#include <string.h>

#define LOWER_SHIFT (OCT_HISTOGRAM_SHIFT - OCT_HISTOGRAM_BITS)
#define BLOCK 128u /* bins */

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

/* One upper bin resolved: v->refined counts its values by their lower bits, `coarse` the same in
 * blocks of bins. Of v->refined only blocks that hold a value are in use: B-scans may be short, and
 * it is long. */
struct refinement {
    uint32_t bin; /* OCT_HISTOGRAM_BINS: none yet */
    uint32_t coarse[OCT_HISTOGRAM_BINS / BLOCK];
};

static uint32_t lower_bits(float value)
{
    return (oct_histogram_key(value) >> LOWER_SHIFT) & (OCT_HISTOGRAM_BINS - 1);
}

static void refine(const struct oct_percentile_values *v, uint32_t upper, struct refinement *r)
{
    size_t n = v->stages->pick(v->picked, v->values, v->n, upper);
    *r = (struct refinement){.bin = upper};
    for (size_t i = 0; i < n; i++)
        r->coarse[lower_bits(v->picked[i]) / BLOCK]++;
    for (uint32_t c = 0; c < OCT_HISTOGRAM_BINS / BLOCK; c++)
        if (r->coarse[c])
            memset(v->refined + (size_t)c * BLOCK, 0, BLOCK * sizeof(*v->refined));
    for (size_t i = 0; i < n; i++)
        v->refined[lower_bits(v->picked[i])]++;
}

/* Value at a rank inside the refined bin, which holds more values than that. */
static double value_at(const struct oct_percentile_values *v, const struct refinement *r,
                       size_t rank_in_bin)
{
    uint32_t c = 0, lower;
    size_t below = 0;
    while (c + 1 < OCT_HISTOGRAM_BINS / BLOCK && below + r->coarse[c] <= rank_in_bin)
        below += r->coarse[c++];
    lower = c * BLOCK;
    while (lower + 1 < (c + 1) * BLOCK && below + v->refined[lower] <= rank_in_bin)
        below += v->refined[lower++];
    return value_of(r->bin << OCT_HISTOGRAM_SHIFT | lower << LOWER_SHIFT | 1u << (LOWER_SHIFT - 1));
}

/* *p: the place of a rank found before, {0} for none; becomes that of the last one found. */
static double find_one(const struct oct_percentile_values *v, double percent, struct place *p,
                       struct refinement *r)
{
    double rank = (double)v->n_missing + percent / 100 * (double)(v->n - v->n_missing - 1), at[2];
    size_t r0 = (size_t)rank;
    if (p->below > r0)
        *p = (struct place){0};
    for (size_t k = 0; k < 2; k++) {
        size_t wanted = r0 + k < v->n ? r0 + k : r0;
        v->stages->find_bin(v->counts, wanted, &p->bin, &p->below);
        if (p->bin != r->bin)
            refine(v, p->bin, r);
        at[k] = value_at(v, r, wanted - p->below);
    }
    return at[0] + (at[1] - at[0]) * (rank - (double)r0);
}

void oct_percentiles_find(const struct oct_percentile_values *v, double lo_percent,
                          double hi_percent, double *lo, double *hi)
{
    struct refinement r = {.bin = OCT_HISTOGRAM_BINS};
    struct place p = {0};
    *lo = find_one(v, lo_percent, &p, &r);
    *hi = find_one(v, hi_percent, &p, &r);
}

/* Whether a B-scan whose white is hi shows nothing: all of it, but for the resolution of a
 * percentile, at the floor of step 8. */
static bool shows_nothing(double hi, bool log)
{
    return hi < (log ? -119.999 : 1e-12);
}

void oct_smoothed_range_update(struct oct_smoothed_range *range, const struct oct_bscan_info *info,
                               const struct oct_display *display, double *lo, double *hi)
{
    const bool goes_on =
        range->started && range->acquisition == info->acquisition && range->volume == info->volume;
    const bool nothing = shows_nothing(*hi, display->log);
    if (goes_on) {
        /* Written so that limits without smoothing, and those of pictures that are alike, stay
         * exactly what they are: black and white of an even picture would part by a rounding. */
        const double s = display->smoothing_bscans, before = nothing ? 1 : s / (1 + s);
        *lo += (range->lo - *lo) * before;
        *hi += (range->hi - *hi) * before;
    }
    if (!nothing)
        *range = (struct oct_smoothed_range){true, info->acquisition, info->volume, *lo, *hi};
}
