#include "analysis/average/pixels.h"

#include "pipeline/base/wide.h"

#include <math.h>
#include <string.h>

#define DB_PER_OCTAVE 3.010299956639812f
#define LEAST_DB (-120.0f)
#define MOST_DB 240.0f

/* Adding it rounds a float of less than 2^22 to an integer, which its low bits then hold. */
#define ROUNDER 12582912.0f

union bits {
    float value;
    int32_t bits;
};

static inline int32_t bits_of(float x)
{
    return (union bits){.value = x}.bits;
}

static inline float float_of(int32_t bits)
{
    return (union bits){.bits = bits}.value;
}

/* NaN: least. */
static inline float bound(float x, float least, float most)
{
    x = x > least ? x : least;
    return x < most ? x : most;
}

/* 2^x for |x| < 126: 2^i times the Taylor series of 2^f, |f| <= 1/2, to 2e-6. */
static inline float exp2_of(float x)
{
    const float rounded = x + ROUNDER, f = (x - (rounded - ROUNDER)) * 0.6931471806f;
    const float power =
        1 + f * (1 + f * (0.5f + f * (1 / 6.0f + f * (1 / 24.0f + f * (1 / 120.0f)))));
    return float_of(bits_of(power) + (bits_of(rounded) - bits_of(ROUNDER)) * (1 << 23));
}

/* log2 of a normal number: its exponent and 2 atanh(s) / ln 2, s = (m - 1) / (m + 1), of its
 * mantissa m in [sqrt(1/2), sqrt(2)), to 1e-6. */
static inline float log2_of(float x)
{
    const int32_t bits = bits_of(x), exponent = (bits - bits_of(0.70710678f)) >> 23;
    const float m = float_of(bits - exponent * (1 << 23));
    const float s = (m - 1) / (m + 1), s2 = s * s;
    const float series = s * (1 + s2 * (1 / 3.0f + s2 * (1 / 5.0f + s2 * (1 / 7.0f))));
    return (float)exponent + series * 2.8853900818f;
}

OCT_WIDE void oct_pixels_from_db(float *restrict intensity, const float *restrict db, size_t n)
{
    for (size_t i = 0; i < n; i++)
        intensity[i] = exp2_of(bound(db[i], LEAST_DB, MOST_DB) * (1 / DB_PER_OCTAVE));
}

/* NaN stays NaN: a pixel without weight. */
OCT_WIDE void oct_pixels_to_db(float *restrict db, const float *restrict intensity, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float x = intensity[i];
        const float y = log2_of(bound(x, OCT_PIXELS_LEAST, OCT_PIXELS_MOST)) * DB_PER_OCTAVE;
        db[i] = x == x ? y : x;
    }
}

OCT_WIDE void oct_pixels_bound(float *restrict to, const float *restrict value, size_t n,
                               float least, float most)
{
    for (size_t i = 0; i < n; i++)
        to[i] = bound(value[i], least, most);
}

OCT_WIDE bool oct_pixels_any_above(const float *value, size_t n, float limit)
{
    int any = 0;
    for (size_t i = 0; i < n; i++)
        any |= value[i] > limit;
    return any;
}

OCT_WIDE void oct_pixels_blend(float *restrict to, const float *x, float a, const float *y, float b,
                               size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = a * x[i] + b * y[i];
}

OCT_WIDE void oct_pixels_add(double *restrict sum, const float *restrict value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += (double)value[i];
}

OCT_WIDE void oct_pixels_replace(double *restrict sum, const float *restrict new_value,
                                 float *restrict old_value, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sum[i] += (double)new_value[i] - (double)old_value[i];
        old_value[i] = new_value[i];
    }
}

OCT_WIDE void oct_pixels_weigh(float *restrict weight, const float *new_weight, float new_part,
                               const float *old_weight, float old_part, size_t n)
{
    for (size_t i = 0; i < n; i++)
        weight[i] += new_part * new_weight[i] - old_part * old_weight[i];
}

OCT_WIDE void oct_pixels_mean(float *restrict mean, const double *restrict sum,
                              const float *restrict weight, size_t n)
{
    for (size_t i = 0; i < n; i++)
        mean[i] = weight[i] > 0 ? (float)sum[i] / weight[i] : NAN;
}

static void bin_by(float *restrict bins, const float *restrict value, size_t n_bins, unsigned bin)
{
    for (size_t i = 0; i < n_bins; i++)
        for (unsigned k = 0; k < bin; k++)
            bins[i] += value[i * bin + k];
}

/* Known lengths are what gcc unrolls. */
void oct_pixels_bin(float *bins, const float *value, size_t n_bins, unsigned bin)
{
    if (bin == 4)
        bin_by(bins, value, n_bins, 4);
    else if (bin == 2)
        bin_by(bins, value, n_bins, 2);
    else
        bin_by(bins, value, n_bins, bin);
}

OCT_WIDE void oct_pixels_to_u8(uint8_t *restrict pixel, const float *restrict value, size_t n,
                               float lo, float hi)
{
    const float scale = hi > lo || hi < lo ? 255 / (hi - lo) : 0;
    for (size_t i = 0; i < n; i++)
        pixel[i] = (uint8_t)(int32_t)(bound((value[i] - lo) * scale, 0, 255) + 0.5f);
}
