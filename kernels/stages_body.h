/* The stages themselves. Included by stages_plain.c, stages_avx2.c and stages_avx512.c, which are
 * compiled for their instruction set and name the table (OCT_STAGES_TABLE, OCT_STAGES_NAME). Loops
 * are written so that gcc vectorises them; intrinsics stand only where it cannot: permutes. */
#include "kernels/stages.h"

#include <math.h>
#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

static void accumulate(uint32_t *restrict sum, const uint16_t *restrict line, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += line[i];
}

static void subtract(float *restrict x, const uint16_t *restrict line, const float *restrict whole,
                     const float *restrict rest, size_t n)
{
    if (whole)
        for (size_t i = 0; i < n; i++)
            x[i] = ((float)line[i] - whole[i]) - rest[i];
    else
        for (size_t i = 0; i < n; i++)
            x[i] = (float)line[i];
}

static void shift(float *restrict z, const float *restrict shift_re, const float *restrict shift_im,
                  size_t n)
{
    for (size_t k = 0; k < n; k++) {
        float re = z[2 * k], im = z[2 * k + 1];
        z[2 * k] = re * shift_re[k] - im * shift_im[k];
        z[2 * k + 1] = re * shift_im[k] + im * shift_re[k];
    }
}

static void interleave(float *restrict u, const float *restrict even, const float *restrict odd,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        u[2 * i] = even[i];
        u[2 * i + 1] = odd[i];
    }
}

/* ---- resampling ---- */

/* Any block: plain loads at computed indices. */
#if defined(__AVX512F__) || !defined(__AVX2__)
static void gather_block(float *restrict sum, const float *restrict u, const struct oct_resample *r,
                         size_t q0)
{
    for (size_t q = 0; q < OCT_RESAMPLE_BLOCK; q++) {
        const float *from = u + r->tap_first[q0 + q];
        float s = 0;
        for (unsigned t = 0; t < r->n_taps; t++)
            s += r->weight[(size_t)t * r->n + q0 + q] * from[t];
        sum[q] = s;
    }
}
#endif

#if defined(__AVX512F__)
/* 16 outputs read at most 32 neighbouring inputs (k is monotonic), which two registers hold: a
 * two-source permute does the work of a gather. */
static inline __m512 taps_block(const float *u, const struct oct_resample *r, size_t b)
{
    size_t q0 = b * OCT_RESAMPLE_BLOCK;
    if (!r->direct[b]) {
        float sum[OCT_RESAMPLE_BLOCK];
        gather_block(sum, u, r, q0);
        return _mm512_loadu_ps(sum);
    }
    __m512 low = _mm512_loadu_ps(u + r->base[b]);
    __m512 high = _mm512_loadu_ps(u + r->base[b] + 16);
    __m512i at = _mm512_load_si512(r->offset + q0);
    __m512 sum =
        _mm512_mul_ps(_mm512_load_ps(r->weight + q0), _mm512_permutex2var_ps(low, at, high));
    for (unsigned t = 1; t < r->n_taps; t++) {
        at = _mm512_add_epi32(at, _mm512_set1_epi32(1));
        sum = _mm512_fmadd_ps(_mm512_load_ps(r->weight + (size_t)t * r->n + q0),
                              _mm512_permutex2var_ps(low, at, high), sum);
    }
    return sum;
}

static void resample(float *v, const float *u, const struct oct_resample *r)
{
    const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i second =
        _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    for (size_t b = 0; b < r->n / OCT_RESAMPLE_BLOCK; b++) {
        size_t q0 = b * OCT_RESAMPLE_BLOCK;
        __m512 sum = taps_block(u, r, b);
        __m512 re = _mm512_mul_ps(sum, _mm512_load_ps(r->phase_re + q0));
        __m512 im = _mm512_mul_ps(sum, _mm512_load_ps(r->phase_im + q0));
        _mm512_store_ps(v + 2 * q0, _mm512_permutex2var_ps(re, first, im));
        _mm512_store_ps(v + 2 * q0 + 16, _mm512_permutex2var_ps(re, second, im));
    }
}

static void resample_real(float *v, const float *u, const struct oct_resample *r)
{
    for (size_t b = 0; b < r->n / OCT_RESAMPLE_BLOCK; b++) {
        size_t q0 = b * OCT_RESAMPLE_BLOCK;
        _mm512_store_ps(v + q0,
                        _mm512_mul_ps(taps_block(u, r, b), _mm512_load_ps(r->phase_re + q0)));
    }
}

#elif defined(__AVX2__)
static inline __m256 taps_half(const float *u, const struct oct_resample *r, size_t q)
{
    __m256i at = _mm256_load_si256((const __m256i *)(r->tap_first + q));
    __m256 sum = _mm256_mul_ps(_mm256_load_ps(r->weight + q), _mm256_i32gather_ps(u, at, 4));
    for (unsigned t = 1; t < r->n_taps; t++)
        sum = _mm256_fmadd_ps(_mm256_load_ps(r->weight + (size_t)t * r->n + q),
                              _mm256_i32gather_ps(u + t, at, 4), sum);
    return sum;
}

static void resample(float *v, const float *u, const struct oct_resample *r)
{
    for (size_t q = 0; q < r->n; q += 8) {
        __m256 sum = taps_half(u, r, q);
        __m256 re = _mm256_mul_ps(sum, _mm256_load_ps(r->phase_re + q));
        __m256 im = _mm256_mul_ps(sum, _mm256_load_ps(r->phase_im + q));
        __m256 low = _mm256_unpacklo_ps(re, im), high = _mm256_unpackhi_ps(re, im);
        _mm256_store_ps(v + 2 * q, _mm256_permute2f128_ps(low, high, 0x20));
        _mm256_store_ps(v + 2 * q + 8, _mm256_permute2f128_ps(low, high, 0x31));
    }
}

static void resample_real(float *v, const float *u, const struct oct_resample *r)
{
    for (size_t q = 0; q < r->n; q += 8)
        _mm256_store_ps(v + q, _mm256_mul_ps(taps_half(u, r, q), _mm256_load_ps(r->phase_re + q)));
}

#else
static void resample(float *restrict v, const float *restrict u, const struct oct_resample *r)
{
    for (size_t q0 = 0; q0 < r->n; q0 += OCT_RESAMPLE_BLOCK) {
        float sum[OCT_RESAMPLE_BLOCK];
        gather_block(sum, u, r, q0);
        for (size_t q = 0; q < OCT_RESAMPLE_BLOCK; q++) {
            v[2 * (q0 + q)] = sum[q] * r->phase_re[q0 + q];
            v[2 * (q0 + q) + 1] = sum[q] * r->phase_im[q0 + q];
        }
    }
}

static void resample_real(float *restrict v, const float *restrict u, const struct oct_resample *r)
{
    for (size_t q0 = 0; q0 < r->n; q0 += OCT_RESAMPLE_BLOCK) {
        float sum[OCT_RESAMPLE_BLOCK];
        gather_block(sum, u, r, q0);
        for (size_t q = 0; q < OCT_RESAMPLE_BLOCK; q++)
            v[q0 + q] = sum[q] * r->phase_re[q0 + q];
    }
}
#endif

/* ---- intensity ---- */

static void intensity(float *restrict value, const float *restrict z, size_t n)
{
    for (size_t d = 0; d < n; d++)
        value[d] = z[2 * d] * z[2 * d] + z[2 * d + 1] * z[2 * d + 1];
}

/* 10 * log10(x) for x in the normal range. x = 2^e * m with m in [1/sqrt2, sqrt2);
 * ln m = 2 atanh(t), t = (m - 1) / (m + 1), |t| <= 0.1716: the series to t^9 leaves 1e-9. */
static inline float decibel(float x)
{
    const float db_per_octave = 3.01029995664f, db_per_2neper = 8.68588963807f;
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    uint32_t up = bits - 0x3f3504f3u; /* bits of 1/sqrt2 */
    int32_t e = (int32_t)up >> 23;
    bits = (up & 0x007fffffu) + 0x3f3504f3u;
    float m;
    memcpy(&m, &bits, sizeof(m));
    float t = (m - 1.0f) / (m + 1.0f), s = t * t;
    float series = 1.0f + s * (0.333333333f + s * (0.2f + s * (0.142857143f + s * 0.111111111f)));
    return (float)e * db_per_octave + db_per_2neper * t * series;
}

static void intensity_db(float *restrict value, const float *restrict z, size_t n)
{
    for (size_t d = 0; d < n; d++) {
        float i = z[2 * d] * z[2 * d] + z[2 * d + 1] * z[2 * d + 1];
        value[d] = decibel(i > 1e-12f ? i : 1e-12f);
    }
}

static void min_max(const float *value, size_t n, float *min, float *max)
{
    float low = *min, high = *max;
    for (size_t d = 0; d < n; d++) {
        low = value[d] < low ? value[d] : low;
        high = value[d] > high ? value[d] : high;
    }
    *min = low;
    *max = high;
}

static void to_u8(uint8_t *restrict pixel, const float *restrict value, size_t n, float lo,
                  float scale)
{
    for (size_t d = 0; d < n; d++) {
        float p = (value[d] - lo) * scale + 0.5f;
        p = p > 0.0f ? p : 0.0f;
        p = p < 255.0f ? p : 255.0f;
        pixel[d] = (uint8_t)(int32_t)p;
    }
}

const struct oct_stages OCT_STAGES_TABLE = {
    .name = OCT_STAGES_NAME,
    .accumulate = accumulate,
    .subtract = subtract,
    .shift = shift,
    .interleave = interleave,
    .resample = resample,
    .resample_real = resample_real,
    .intensity = intensity,
    .intensity_db = intensity_db,
    .min_max = min_max,
    .to_u8 = to_u8,
};
