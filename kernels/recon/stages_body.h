/* The stages themselves. Included by stages_plain.c, stages_avx2.c and stages_avx512.c, which are
 * compiled for their instruction set and name the table (OCT_STAGES_TABLE, OCT_STAGES_NAME,
 * OCT_STAGES_LANES). Loops are written so that gcc vectorises them; intrinsics stand only where it
 * cannot: permutes. */
#include "kernels/recon/stages.h"

#include <math.h>
#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

static void mean(float *restrict whole, float *restrict rest, const uint32_t *restrict sum,
                 uint32_t n_lines, size_t n)
{
    if (n_lines == 0) {
        memset(whole, 0, n * sizeof(*whole));
        memset(rest, 0, n * sizeof(*rest));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        /* Below 2^31 and of either sign, which every instruction set converts; exact. */
        double total = (double)(int32_t)(sum[i] ^ 0x80000000u) + 0x1p31;
        double value = total / n_lines;
        double floor = (double)(int32_t)value;
        whole[i] = (float)floor;
        rest[i] = (float)(value - floor);
    }
}

static void subtract(float *restrict z, const uint16_t *restrict a, const float *restrict whole,
                     const float *restrict rest, size_t n)
{
    for (size_t i = 0; i < n; i++)
        z[i] = whole ? ((float)a[i] - whole[i]) - rest[i] : (float)a[i];
}

static void subtract_pair(float *restrict z, const uint16_t *restrict a, const uint16_t *restrict b,
                          const float *restrict whole, const float *restrict rest, size_t n)
{
    if (!whole)
        for (size_t i = 0; i < n; i++) {
            z[2 * i] = (float)a[i];
            z[2 * i + 1] = b ? (float)b[i] : 0.0f;
        }
    else if (b)
        for (size_t i = 0; i < n; i++) {
            z[2 * i] = ((float)a[i] - whole[i]) - rest[i];
            z[2 * i + 1] = ((float)b[i] - whole[i]) - rest[i];
        }
    else
        for (size_t i = 0; i < n; i++) {
            z[2 * i] = ((float)a[i] - whole[i]) - rest[i];
            z[2 * i + 1] = 0.0f;
        }
}

static void energy(const float *z, size_t n, float sum[2])
{
    float lane[16] = {0}; /* partial sums, so that no order of addition is in the way */
    for (size_t i = 0; i < 2 * n; i += 16)
        for (size_t k = 0; k < 16; k++)
            lane[k] += z[i + k] * z[i + k];
    sum[0] = sum[1] = 0;
    for (size_t k = 0; k < 16; k++)
        sum[k % 2] += lane[k];
}

static void multiply(float *restrict z, const float *restrict h, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        float re = z[2 * k], im = z[2 * k + 1];
        z[2 * k] = re * h[2 * k] - im * h[2 * k + 1];
        z[2 * k + 1] = re * h[2 * k + 1] + im * h[2 * k];
    }
}

static void compose(float *restrict z, const float *restrict re, const float *restrict im,
                    const float *restrict factor, size_t n)
{
    for (size_t d = 0; d < n && !factor; d++) {
        z[2 * d] = re[d];
        z[2 * d + 1] = im[d];
    }
    for (size_t d = 0; d < n && factor; d++) {
        const float c = factor[2 * d], s = factor[2 * d + 1];
        z[2 * d] = re[d] * c - im[d] * s;
        z[2 * d + 1] = re[d] * s + im[d] * c;
    }
}

/* ---- resampling: both lines of a pair at once, as re and im ---- */

/* Any block: plain loads at computed indices. sum: interleaved [8]. */
static inline void gather_block(float *restrict sum, const float *restrict even,
                                const float *restrict odd, const struct oct_resample *r, size_t q0)
{
    for (size_t q = 0; q < OCT_RESAMPLE_BLOCK; q++) {
        const float *e = even + 2 * (size_t)r->even_first[q0 + q];
        const float *o = odd + 2 * (size_t)r->odd_first[q0 + q];
        float a = 0, b = 0;
        for (unsigned t = 0; t < r->n_half_taps; t++) {
            float we = r->even_weight[2 * ((size_t)t * r->n + q0 + q)];
            float wo = r->odd_weight[2 * ((size_t)t * r->n + q0 + q)];
            a += we * e[2 * t] + wo * o[2 * t];
            b += we * e[2 * t + 1] + wo * o[2 * t + 1];
        }
        sum[2 * q] = a;
        sum[2 * q + 1] = b;
    }
}

#if defined(__AVX512F__)
/* 8 complex values from 16 neighbours: k is monotonic, so a two-source permute of two registers
 * does the work of a gather. */
static inline __m512 pick(const float *from, __m512i at)
{
    return _mm512_castpd_ps(_mm512_permutex2var_pd(_mm512_castps_pd(_mm512_loadu_ps(from)), at,
                                                   _mm512_castps_pd(_mm512_loadu_ps(from + 16))));
}

static inline __m512 taps_block(const float *even, const float *odd, const struct oct_resample *r,
                                size_t b)
{
    size_t q0 = b * OCT_RESAMPLE_BLOCK;
    if (!r->direct[b]) {
        float sum[2 * OCT_RESAMPLE_BLOCK];
        gather_block(sum, even, odd, r, q0);
        return _mm512_loadu_ps(sum);
    }
    const float *e = even + 2 * (size_t)r->even_base[b], *o = odd + 2 * (size_t)r->odd_base[b];
    __m512i at_even = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(r->even_offset + q0)));
    __m512i at_odd = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(r->odd_offset + q0)));
    __m512 sum = _mm512_mul_ps(_mm512_load_ps(r->even_weight + 2 * q0), pick(e, at_even));
    sum = _mm512_fmadd_ps(_mm512_load_ps(r->odd_weight + 2 * q0), pick(o, at_odd), sum);
    if (r->n_half_taps == 2) {
        size_t w = 2 * ((size_t)r->n + q0);
        at_even = _mm512_add_epi64(at_even, _mm512_set1_epi64(1));
        at_odd = _mm512_add_epi64(at_odd, _mm512_set1_epi64(1));
        sum = _mm512_fmadd_ps(_mm512_load_ps(r->even_weight + w), pick(e, at_even), sum);
        sum = _mm512_fmadd_ps(_mm512_load_ps(r->odd_weight + w), pick(o, at_odd), sum);
    }
    return sum;
}

static void resample_pair(float *va, float *vb, const float *even, const float *odd,
                          const struct oct_resample *r)
{
    for (size_t b = 0; b < r->n / OCT_RESAMPLE_BLOCK; b++) {
        size_t at = 2 * b * OCT_RESAMPLE_BLOCK;
        __m512 sum = taps_block(even, odd, r, b), phase = _mm512_load_ps(r->phase + at);
        _mm512_store_ps(va + at, _mm512_mul_ps(_mm512_moveldup_ps(sum), phase));
        _mm512_store_ps(vb + at, _mm512_mul_ps(_mm512_movehdup_ps(sum), phase));
    }
}

#elif defined(__AVX2__)
/* 4 complex values at computed places, each loaded as one double. */
static inline __m256 pick(const float *from, const int32_t *first)
{
    return _mm256_castpd_ps(
        _mm256_i32gather_pd((const double *)from, _mm_load_si128((const __m128i *)first), 8));
}

static void resample_pair(float *va, float *vb, const float *even, const float *odd,
                          const struct oct_resample *r)
{
    for (size_t q = 0; q < r->n; q += 4) {
        __m256 sum =
            _mm256_mul_ps(_mm256_load_ps(r->even_weight + 2 * q), pick(even, r->even_first + q));
        sum = _mm256_fmadd_ps(_mm256_load_ps(r->odd_weight + 2 * q), pick(odd, r->odd_first + q),
                              sum);
        if (r->n_half_taps == 2) {
            size_t w = 2 * ((size_t)r->n + q);
            sum = _mm256_fmadd_ps(_mm256_load_ps(r->even_weight + w),
                                  pick(even + 2, r->even_first + q), sum);
            sum = _mm256_fmadd_ps(_mm256_load_ps(r->odd_weight + w),
                                  pick(odd + 2, r->odd_first + q), sum);
        }
        __m256 phase = _mm256_load_ps(r->phase + 2 * q);
        _mm256_store_ps(va + 2 * q, _mm256_mul_ps(_mm256_moveldup_ps(sum), phase));
        _mm256_store_ps(vb + 2 * q, _mm256_mul_ps(_mm256_movehdup_ps(sum), phase));
    }
}

#else
static void resample_pair(float *restrict va, float *restrict vb, const float *restrict even,
                          const float *restrict odd, const struct oct_resample *r)
{
    for (size_t q0 = 0; q0 < r->n; q0 += OCT_RESAMPLE_BLOCK) {
        float sum[2 * OCT_RESAMPLE_BLOCK];
        gather_block(sum, even, odd, r, q0);
        for (size_t q = 0; q < OCT_RESAMPLE_BLOCK; q++) {
            const float *phase = r->phase + 2 * (q0 + q);
            va[2 * (q0 + q)] = sum[2 * q] * phase[0];
            va[2 * (q0 + q) + 1] = sum[2 * q] * phase[1];
            vb[2 * (q0 + q)] = sum[2 * q + 1] * phase[0];
            vb[2 * (q0 + q) + 1] = sum[2 * q + 1] * phase[1];
        }
    }
}
#endif

/* ---- nufft: a pair that shares the tables ---- */

static inline void interleave(float *restrict to, const float *restrict re,
                              const float *restrict im)
{
    for (size_t l = 0; l < OCT_SPREAD_BLOCK; l++) {
        to[2 * l] = re[l];
        to[2 * l + 1] = im[l];
    }
}

static void spread_pair(float *restrict fa, float *restrict fb, const float *restrict a,
                        const float *restrict b, const struct oct_spread_blocks *blocks)
{
    enum { N = OCT_SPREAD_BLOCK };
    for (size_t k = 0; k < blocks->n_blocks; k++) {
        const struct oct_spread_block *block = &blocks->block[k];
        const float *w = blocks->weight + block->at * 2 * N;
        const float *xa = a + block->base, *xb = b + block->base;
        float sum[4][N] = {{0}};
        for (size_t t = 0; t < block->n_taps; t++, w += 2 * N)
            for (size_t l = 0; l < N; l++) {
                sum[0][l] += w[l] * xa[t + l];
                sum[1][l] += w[N + l] * xa[t + l];
                sum[2][l] += w[l] * xb[t + l];
                sum[3][l] += w[N + l] * xb[t + l];
            }
        interleave(fa + 2 * N * k, sum[0], sum[1]);
        interleave(fb + 2 * N * k, sum[2], sum[3]);
    }
}

static void intensity_gained(float *restrict value, const float *restrict z,
                             const float *restrict gain, size_t n)
{
    for (size_t d = 0; d < n; d++)
        value[d] = gain[d] * (z[2 * d] * z[2 * d] + z[2 * d + 1] * z[2 * d + 1]);
}

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

static void decibels(float *restrict value, const float *restrict power, size_t n)
{
    for (size_t d = 0; d < n; d++)
        value[d] = decibel(power[d] > 1e-12f ? power[d] : 1e-12f);
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

/* ---- percentiles ---- */

/* Few, or the few in which there are some to be kept: without branches, which nothing could
 * predict. */
static inline size_t sift_each(float *restrict kept, const float *restrict value, size_t n,
                               float from, float to, size_t *restrict below)
{
    size_t n_kept = 0, n_below = 0;
    for (size_t d = 0; d < n; d++) {
        const float v = value[d];
        kept[n_kept] = v;
        n_kept += (unsigned)(v >= from) & (unsigned)(v < to);
        n_below += v < from;
    }
    *below += n_below;
    return n_kept;
}

#define SIFT_GROUPS 32u /* of sift_both, at once */

static inline void sift_rest(struct oct_sieve *s, const float *value, size_t n)
{
    s->n += sift_each(s->kept + s->n, value, n, s->bounds.from, s->bounds.to, &s->below);
}

#if defined(__AVX512F__)
static inline size_t keep_of_64(float *kept, const __m512 v[4], __m512 low, __m512 high)
{
    size_t n_kept = 0;
    for (int k = 0; k < 4; k++) {
        const __mmask16 is_low = _mm512_cmp_ps_mask(v[k], low, _CMP_LT_OQ);
        const __mmask16 hit = _kandn_mask16(is_low, _mm512_cmp_ps_mask(v[k], high, _CMP_LT_OQ));
        /* Compressed in a register: AMD's compressing stores are slow. */
        _mm512_storeu_ps(kept + n_kept, _mm512_maskz_compress_ps(hit, v[k]));
        n_kept += (size_t)__builtin_popcount(hit);
    }
    return n_kept;
}

static inline __m512 most_of_64(const __m512 v[4])
{
    return _mm512_max_ps(_mm512_max_ps(v[0], v[1]), _mm512_max_ps(v[2], v[3]));
}

static size_t sift(float *restrict kept, const float *restrict value, size_t n, float from,
                   float to, size_t *restrict below)
{
    const __m512 low = _mm512_set1_ps(from), high = _mm512_set1_ps(to);
    const __m512i one = _mm512_set1_epi32(1);
    __m512i n_low = _mm512_setzero_si512();
    size_t n_kept = 0, n_below = 0, d = 0;
    for (; d + 64 <= n; d += 64) {
        __m512 v[4];
        for (int k = 0; k < 4; k++)
            v[k] = _mm512_loadu_ps(value + d + 16 * k);
        if (!_mm512_cmp_ps_mask(most_of_64(v), low, _CMP_GE_OQ)) {
            n_below += 64;
            continue;
        }
        for (int k = 0; k < 4; k++)
            n_low =
                _mm512_mask_add_epi32(n_low, _mm512_cmp_ps_mask(v[k], low, _CMP_LT_OQ), n_low, one);
        n_kept += keep_of_64(kept + n_kept, v, low, high);
    }
    *below += n_below + (size_t)_mm512_reduce_add_epi32(n_low);
    return n_kept + sift_each(kept + n_kept, value + d, n - d, from, to, below);
}

/* Which groups have something to be kept is noted first: a third of them have, and a branch there
 * is hard to predict. Signs of differences tell it: vector units make these faster than
 * comparisons into mask registers. */
static void sift_both(struct oct_sieve *low, struct oct_sieve *high, const float *restrict value,
                      size_t n)
{
    /* -0 in place of 0: -0 - -0 is +0, whose sign says that it is not below. */
    const __m512 low_from = _mm512_set1_ps(-(0 - low->bounds.from));
    const __m512 low_to = _mm512_set1_ps(-(0 - low->bounds.to));
    const __m512 high_from = _mm512_set1_ps(high->bounds.from);
    const __m512 high_to = _mm512_set1_ps(high->bounds.to);
    __m512i n_low = _mm512_setzero_si512(), n_high = n_low;
    size_t d = 0;
    while (d + 64 <= n) {
        const float *low_at[SIFT_GROUPS], *high_at[SIFT_GROUPS];
        unsigned n_low_at = 0, n_high_at = 0;
        for (unsigned g = 0; g < SIFT_GROUPS && d + 64 <= n; g++, d += 64) {
            __m512 v[4];
            __m512i hits = _mm512_setzero_si512();
            for (int k = 0; k < 4; k++)
                v[k] = _mm512_loadu_ps(value + d + 16 * k);
            for (int k = 0; k < 4; k++) {
                const __m512i is_low = _mm512_castps_si512(_mm512_sub_ps(v[k], low_from));
                const __m512i is_lower = _mm512_castps_si512(_mm512_sub_ps(v[k], low_to));
                n_low = _mm512_add_epi32(n_low, _mm512_srli_epi32(is_low, 31));
                hits = _mm512_ternarylogic_epi32(hits, is_low, is_lower, 0xf2); /* hits | ~b & c */
            }
            low_at[n_low_at] = value + d;
            n_low_at += _mm512_movepi32_mask(hits) != 0;
            high_at[n_high_at] = value + d;
            n_high_at += _mm512_cmp_ps_mask(most_of_64(v), high_from, _CMP_GE_OQ) != 0;
        }
        for (unsigned g = 0; g < n_low_at; g++) {
            __m512 v[4];
            for (int k = 0; k < 4; k++)
                v[k] = _mm512_loadu_ps(low_at[g] + 16 * k);
            low->n += keep_of_64(low->kept + low->n, v, low_from, low_to);
        }
        for (unsigned g = 0; g < n_high_at; g++) {
            __m512 v[4];
            for (int k = 0; k < 4; k++) {
                v[k] = _mm512_loadu_ps(high_at[g] + 16 * k);
                const __mmask16 is_high = _mm512_cmp_ps_mask(v[k], high_from, _CMP_GE_OQ);
                n_high = _mm512_mask_add_epi32(n_high, is_high, n_high, _mm512_set1_epi32(1));
            }
            high->n += keep_of_64(high->kept + high->n, v, high_from, high_to);
        }
    }
    low->below += (size_t)_mm512_reduce_add_epi32(n_low);
    high->below += d - (size_t)_mm512_reduce_add_epi32(n_high);
    sift_rest(low, value + d, n - d);
    sift_rest(high, value + d, n - d);
}
#elif defined(__AVX2__)
/* Those of four values whose bits are set come first. */
static const int32_t first_set[16][4] __attribute__((aligned(16))) = {
    {0}, {0},    {1},    {0, 1},    {2},    {0, 2},    {1, 2},    {0, 1, 2},
    {3}, {0, 3}, {1, 3}, {0, 1, 3}, {2, 3}, {0, 2, 3}, {1, 2, 3}, {0, 1, 2, 3},
};

static inline size_t keep_of_4(float *kept, const float *value, unsigned hits)
{
    const __m128i order = _mm_load_si128((const __m128i *)(const void *)first_set[hits]);
    _mm_storeu_ps(kept, _mm_permutevar_ps(_mm_loadu_ps(value), order));
    return (size_t)__builtin_popcount(hits);
}

/* Which of eight values are hits; *n_low loses one in each lane whose value is too low. */
static inline __m256 hits_of_8(__m256 v, __m256 low, __m256 high, __m256i *n_low)
{
    __m256 is_low = _mm256_cmp_ps(v, low, _CMP_LT_OQ);
    *n_low = _mm256_add_epi32(*n_low, _mm256_castps_si256(is_low));
    return _mm256_andnot_ps(is_low, _mm256_cmp_ps(v, high, _CMP_LT_OQ));
}

static inline __m256 either(const __m256 hit[4])
{
    return _mm256_or_ps(_mm256_or_ps(hit[0], hit[1]), _mm256_or_ps(hit[2], hit[3]));
}

static inline __m256 most_of_32(const __m256 v[4])
{
    return _mm256_max_ps(_mm256_max_ps(v[0], v[1]), _mm256_max_ps(v[2], v[3]));
}

static inline size_t keep_of_32(float *kept, const float *value, __m256 low, __m256 high,
                                __m256i *n_low)
{
    size_t n_kept = 0;
    for (int k = 0; k < 4; k++) {
        const __m256 hit = hits_of_8(_mm256_loadu_ps(value + 8 * k), low, high, n_low);
        const unsigned hits = (unsigned)_mm256_movemask_ps(hit);
        n_kept += keep_of_4(kept + n_kept, value + 8 * k, hits & 15);
        n_kept += keep_of_4(kept + n_kept, value + 8 * k + 4, hits >> 4);
    }
    return n_kept;
}

static inline size_t sum_of_lanes(__m256i counts)
{
    uint32_t lane[8];
    size_t sum = 0;
    _mm256_storeu_si256((__m256i *)(void *)lane, counts);
    for (int k = 0; k < 8; k++)
        sum += lane[k];
    return sum;
}

static size_t sift(float *restrict kept, const float *restrict value, size_t n, float from,
                   float to, size_t *restrict below)
{
    const __m256 low = _mm256_set1_ps(from), high = _mm256_set1_ps(to);
    __m256i n_low = _mm256_setzero_si256();
    size_t n_kept = 0, n_below = 0, d = 0;
    for (; d + 32 <= n; d += 32) {
        const float *at = value + d;
        __m256 v[4];
        for (int k = 0; k < 4; k++)
            v[k] = _mm256_loadu_ps(at + 8 * k);
        if (!_mm256_movemask_ps(_mm256_cmp_ps(most_of_32(v), low, _CMP_GE_OQ)))
            n_below += 32;
        else
            n_kept += keep_of_32(kept + n_kept, at, low, high, &n_low);
    }
    *below += n_below + sum_of_lanes(_mm256_sub_epi32(_mm256_setzero_si256(), n_low));
    return n_kept + sift_each(kept + n_kept, value + d, n - d, from, to, below);
}

static void sift_both(struct oct_sieve *low, struct oct_sieve *high, const float *restrict value,
                      size_t n)
{
    const __m256 from[2] = {_mm256_set1_ps(low->bounds.from), _mm256_set1_ps(high->bounds.from)};
    const __m256 to[2] = {_mm256_set1_ps(low->bounds.to), _mm256_set1_ps(high->bounds.to)};
    __m256i n_low[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()}, again = n_low[0];
    size_t d = 0;
    while (d + 32 <= n) {
        const float *low_at[SIFT_GROUPS], *high_at[SIFT_GROUPS];
        unsigned n_low_at = 0, n_high_at = 0, g = 0;
        for (; g < SIFT_GROUPS && d + 32 <= n; g++, d += 32) {
            __m256 v[4], hit[4];
            for (int k = 0; k < 4; k++) {
                v[k] = _mm256_loadu_ps(value + d + 8 * k);
                hit[k] = hits_of_8(v[k], from[0], to[0], &n_low[0]);
            }
            const __m256 any = either(hit);
            low_at[n_low_at] = value + d;
            n_low_at += !_mm256_testz_ps(any, any);
            high_at[n_high_at] = value + d;
            n_high_at += _mm256_movemask_ps(_mm256_cmp_ps(most_of_32(v), from[1], _CMP_GE_OQ)) != 0;
        }
        for (unsigned i = 0; i < n_low_at; i++)
            low->n += keep_of_32(low->kept + low->n, low_at[i], from[0], to[0], &again);
        for (unsigned i = 0; i < n_high_at; i++)
            high->n += keep_of_32(high->kept + high->n, high_at[i], from[1], to[1], &n_low[1]);
        high->below += 32 * (size_t)(g - n_high_at);
    }
    low->below += sum_of_lanes(_mm256_sub_epi32(_mm256_setzero_si256(), n_low[0]));
    high->below += sum_of_lanes(_mm256_sub_epi32(_mm256_setzero_si256(), n_low[1]));
    sift_rest(low, value + d, n - d);
    sift_rest(high, value + d, n - d);
}
#else
static size_t sift(float *restrict kept, const float *restrict value, size_t n, float from,
                   float to, size_t *restrict below)
{
    enum { STEP = 32 }; /* in most there is nothing to be kept, which vector code tells */
    size_t n_kept = 0, d = 0;
    for (; d + STEP <= n; d += STEP) {
        uint32_t n_low = 0, n_lower = 0;
        for (size_t k = 0; k < STEP; k++) {
            n_low += value[d + k] < from ? 1u : 0u;
            n_lower += value[d + k] < to ? 1u : 0u;
        }
        if (n_lower > n_low)
            n_kept += sift_each(kept + n_kept, value + d, STEP, from, to, below);
        else
            *below += n_low;
    }
    return n_kept + sift_each(kept + n_kept, value + d, n - d, from, to, below);
}

static void sift_both(struct oct_sieve *low, struct oct_sieve *high, const float *value, size_t n)
{
    struct oct_sieve *both[2] = {low, high};
    for (int i = 0; i < 2; i++) {
        struct oct_sieve *s = both[i];
        s->n += sift(s->kept + s->n, value, n, s->bounds.from, s->bounds.to, &s->below);
    }
}
#endif

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
    .lanes = OCT_STAGES_LANES,
    .mean = mean,
    .subtract = subtract,
    .subtract_pair = subtract_pair,
    .energy = energy,
    .multiply = multiply,
    .compose = compose,
    .resample_pair = resample_pair,
    .spread_pair = spread_pair,
    .intensity_gained = intensity_gained,
    .intensity = intensity,
    .intensity_db = intensity_db,
    .decibels = decibels,
    .min_max = min_max,
    .sift = sift,
    .sift_both = sift_both,
    .to_u8 = to_u8,
};
