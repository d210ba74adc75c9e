/* What passes_body.h does with registers of floats beside pipeline/base/vector.h. */
#ifndef OCT_ANALYSIS_WARP_PASSES_VECTOR_H
#define OCT_ANALYSIS_WARP_PASSES_VECTOR_H

#include "pipeline/base/vector.h"

typedef int32_t ints __attribute__((vector_size(4 * WIDTH)));

/* The first n values of a row, and 0 beyond; n may be more than a register holds. */
INLINE vec load_part(const float *from, size_t n)
{
#if defined(__AVX512F__)
    if (n < WIDTH)
        return _mm512_maskz_loadu_ps((__mmask16)((1U << n) - 1), from);
#else
    if (n < WIDTH) {
        float part[WIDTH] = {0};
        memcpy(part, from, n * sizeof(*part));
        return load(part);
    }
#endif
    return load(from);
}

INLINE void store_part(float *to, vec v, size_t n)
{
#if defined(__AVX512F__)
    if (n < WIDTH) {
        _mm512_mask_storeu_ps(to, (__mmask16)((1U << n) - 1), v);
        return;
    }
#else
    if (n < WIDTH) {
        float part[WIDTH];
        store(part, v);
        memcpy(to, part, n * sizeof(*part));
        return;
    }
#endif
    store(to, v);
}

/* 1 in the first n lanes, 0 beyond. */
INLINE vec ones(size_t n)
{
    static const float table[2 * WIDTH] = {
#if WIDTH == 16
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
#endif
#if WIDTH >= 8
        1,
        1,
        1,
        1,
#endif
        1,
        1,
        1,
        1
    };
    return load(table + WIDTH - (n < WIDTH ? n : WIDTH));
}

/* 0, 1, 2 ... */
INLINE vec counted(void)
{
    static const float table[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return load(table);
}

/* from[at] and from[at + 1] of each lane. */
INLINE void gather_pairs(const float *from, ints at, vec *low, vec *high)
{
#if defined(__AVX512F__)
    const __m256i first = _mm512_castsi512_si256((__m512i)at);
    const __m256i second = _mm512_extracti64x4_epi64((__m512i)at, 1);
    const __m512 a = _mm512_castpd_ps(_mm512_i32gather_pd(first, (const void *)from, 4));
    const __m512 b = _mm512_castpd_ps(_mm512_i32gather_pd(second, (const void *)from, 4));
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    *low = _mm512_permutex2var_ps(a, even, b);
    *high = _mm512_permutex2var_ps(a, _mm512_add_epi32(even, _mm512_set1_epi32(1)), b);
#elif defined(__AVX2__)
    const __m128i first = _mm256_castsi256_si128((__m256i)at);
    const __m128i second = _mm256_extracti128_si256((__m256i)at, 1);
    const __m256 a = _mm256_castpd_ps(_mm256_i32gather_pd((const void *)from, first, 4));
    const __m256 b = _mm256_castpd_ps(_mm256_i32gather_pd((const void *)from, second, 4));
    *low = _mm256_castpd_ps(
        _mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88)), 0xd8));
    *high = _mm256_castpd_ps(
        _mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd)), 0xd8));
#else
    float first[WIDTH], second[WIDTH];
    for (unsigned i = 0; i < WIDTH; i++) {
        first[i] = from[at[i]];
        second[i] = from[at[i] + 1];
    }
    *low = load(first);
    *high = load(second);
#endif
}

/* log x of normal x > 0, to an ulp or two: x = 2^e (1 + r), r of -0.29 to 0.41 (after Cephes). */
INLINE vec log_of(vec x)
{
    ints bits = (ints)x;
    const ints e = (bits - 0x3f3504f3) >> 23;
    bits -= e << 23;
    const vec r = (vec)bits - all(1), r2 = r * r, whole = (vec) __builtin_convertvector(e, vec);
    vec p = all(7.0376836292e-2F);
    p = p * r - all(1.1514610310e-1F);
    p = p * r + all(1.1676998740e-1F);
    p = p * r - all(1.2420140846e-1F);
    p = p * r + all(1.4249322787e-1F);
    p = p * r - all(1.6668057665e-1F);
    p = p * r + all(2.0000714765e-1F);
    p = p * r - all(2.4999993993e-1F);
    p = p * r + all(3.3333331174e-1F);
    return r + (r2 * (r * p - all(0.5F)) + whole * all(-2.12194440e-4F)) +
           whole * all(0.693359375F);
}

INLINE double sum_of(vec v)
{
    float lane[WIDTH];
    double sum = 0;
    store(lane, v);
    for (unsigned i = 0; i < WIDTH; i++)
        sum += (double)lane[i];
    return sum;
}

INLINE float least_of(vec v)
{
    float lane[WIDTH], least;
    store(lane, v);
    least = lane[0];
    for (unsigned i = 1; i < WIDTH; i++)
        least = lane[i] < least ? lane[i] : least;
    return least;
}

#endif
