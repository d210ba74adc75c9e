/* What the transforms of lanes_body.h are made of: complex registers, butterflies, transposes and
 * the picking of neighbours, for the instruction set that the file is compiled for.
 *
 * A point is a pair of registers, re and im. Loops over the points of a butterfly are unrolled, so
 * that points are registers, not memory. */
#ifndef OCT_KERNELS_RECON_LANES_VECTOR_H
#define OCT_KERNELS_RECON_LANES_VECTOR_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define UNROLL _Pragma("GCC unroll 32")
#define INLINE static inline __attribute__((always_inline))

#ifdef __AVX512F__
#define WIDTH 16
typedef __m512 vec;
typedef __m512i index_vec;
#else
#define WIDTH 8
typedef __m256 vec;
typedef __m256i index_vec;
#endif
#define PARTS (16 / WIDTH) /* registers that hold the 16 lanes of a vector */

struct point {
    vec re, im;
};

INLINE vec load(const float *from)
{
    return *(const vec *)from;
}

/* A load that is made once: gcc folds a plain one into each of the sums that use it, and loads are
 * then what the spread waits for. */
INLINE vec load_once(const float *from)
{
    vec v = load(from);
#ifdef __AVX512F__
    __asm__("" : "+v"(v));
#elif defined(__AVX2__)
    __asm__("" : "+x"(v));
#endif
    return v;
}

INLINE vec load_any(const float *from)
{
#ifdef __AVX512F__
    return _mm512_loadu_ps(from);
#else
    return _mm256_loadu_ps(from);
#endif
}

INLINE void store(float *to, vec v)
{
    *(vec *)to = v;
}

/* c + a * b and c - a * b, rounded once. Where that is done is chosen here and not by the compiler
 * (-ffp-contract=off): the same numbers come out of any build. */
INLINE vec plus(vec c, vec a, vec b)
{
#ifdef __AVX512F__
    return _mm512_fmadd_ps(a, b, c);
#else
    return _mm256_fmadd_ps(a, b, c);
#endif
}

INLINE vec minus(vec c, vec a, vec b)
{
#ifdef __AVX512F__
    return _mm512_fnmadd_ps(a, b, c);
#else
    return _mm256_fnmadd_ps(a, b, c);
#endif
}

INLINE vec all(float x)
{
#ifdef __AVX512F__
    return _mm512_set1_ps(x);
#else
    return _mm256_set1_ps(x);
#endif
}

INLINE struct point times(struct point z, vec re, vec im)
{
    return (struct point){minus(z.re * re, z.im, im), plus(z.re * im, z.im, re)};
}

INLINE struct point times_scalar(struct point z, float re, float im)
{
    return times(z, all(re), all(im));
}

/* ---- small transforms, in place ---- */

INLINE void dft2(struct point *a, struct point *b)
{
    struct point x = *a, y = *b;
    *a = (struct point){x.re + y.re, x.im + y.im};
    *b = (struct point){x.re - y.re, x.im - y.im};
}

INLINE void dft4(struct point *a, struct point *b, struct point *c, struct point *d)
{
    dft2(a, c);
    dft2(b, d);
    struct point e = *c, f = *d; /* e - i f, e + i f */
    dft2(a, b);
    *c = (struct point){e.re + f.im, e.im - f.re};
    *d = (struct point){e.re - f.im, e.im + f.re};
    struct point swap = *b;
    *b = *c;
    *c = swap;
}

/* The same where c and d are 0. */
INLINE void dft4_half(struct point *a, struct point *b, struct point *c, struct point *d)
{
    struct point e = *a, f = *b;
    *a = (struct point){e.re + f.re, e.im + f.im};
    *b = (struct point){e.re + f.im, e.im - f.re};
    *c = (struct point){e.re - f.re, e.im - f.im};
    *d = (struct point){e.re - f.im, e.im + f.re};
}

#define COS_8 0.923879532511286756f /* pi / 8 */
#define SIN_8 0.382683432365089772f
#define SQRT_HALF 0.707106781186547524f

/* z * W_8, z * W_8^3 */
INLINE struct point eighth(struct point z)
{
    return (struct point){(z.re + z.im) * SQRT_HALF, (z.im - z.re) * SQRT_HALF};
}

INLINE struct point three_eighths(struct point z)
{
    return (struct point){(z.im - z.re) * SQRT_HALF, (z.re + z.im) * -SQRT_HALF};
}

INLINE struct point quarter(struct point z)
{
    return (struct point){z.im, -z.re};
}

/* Bin k of the result lies in x[2 * (k % 4) + k / 4]. */
INLINE void dft8(struct point *x)
{
    dft4(&x[0], &x[2], &x[4], &x[6]);
    dft4(&x[1], &x[3], &x[5], &x[7]);
    x[3] = eighth(x[3]);
    x[5] = quarter(x[5]);
    x[7] = three_eighths(x[7]);
    UNROLL
    for (int k = 0; k < 8; k += 2)
        dft2(&x[k], &x[k + 1]);
}

#define BIN_8(k) (2 * ((k) % 4) + (k) / 4)

/* A transform of 16 in two halves of four steps, so that a caller loads what step i < 4 of the
 * first needs, x[i + 4 j], just before, and stores what step i of the second makes, bins i + 4 j,
 * just after: fewer points are registers at once. Bin k lies in x[BIN_16(k)]. */
INLINE void dft16_turn(struct point *x, int i)
{
    if (i == 1) {
        x[5] = times_scalar(x[5], COS_8, -SIN_8);
        x[9] = eighth(x[9]);
        x[13] = times_scalar(x[13], SIN_8, -COS_8);
    } else if (i == 2) {
        x[6] = eighth(x[6]);
        x[10] = quarter(x[10]);
        x[14] = three_eighths(x[14]);
    } else if (i == 3) {
        x[7] = times_scalar(x[7], SIN_8, -COS_8);
        x[11] = three_eighths(x[11]);
        x[15] = times_scalar(x[15], -COS_8, SIN_8);
    }
}

INLINE void dft16_first(struct point *x, int i)
{
    dft4(&x[i], &x[i + 4], &x[i + 8], &x[i + 12]);
    dft16_turn(x, i);
}

/* Where x[8] and those behind are 0, which they need not be set to. */
INLINE void dft16_first_half(struct point *x, int i)
{
    dft4_half(&x[i], &x[i + 4], &x[i + 8], &x[i + 12]);
    dft16_turn(x, i);
}

INLINE void dft16_second(struct point *x, int i)
{
    dft4(&x[4 * i], &x[4 * i + 1], &x[4 * i + 2], &x[4 * i + 3]);
}

#define BIN_16(k) (4 * ((k) % 4) + (k) / 4)

/* W_32^(n k), n < 8, k < 4 */
static const float turns_32[4][8][2] = {
    {{1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}},
    {{1, 0},
     {0.980785280403230449f, -0.195090322016128268f},
     {COS_8, -SIN_8},
     {0.831469612302545237f, -0.555570233019602225f},
     {SQRT_HALF, -SQRT_HALF},
     {0.555570233019602225f, -0.831469612302545237f},
     {SIN_8, -COS_8},
     {0.195090322016128268f, -0.980785280403230449f}},
    {{1, 0},
     {COS_8, -SIN_8},
     {SQRT_HALF, -SQRT_HALF},
     {SIN_8, -COS_8},
     {0, -1},
     {-SIN_8, -COS_8},
     {-SQRT_HALF, -SQRT_HALF},
     {-COS_8, -SIN_8}},
    {{1, 0},
     {0.831469612302545237f, -0.555570233019602225f},
     {SIN_8, -COS_8},
     {-0.195090322016128268f, -0.980785280403230449f},
     {-SQRT_HALF, -SQRT_HALF},
     {-0.980785280403230449f, -0.195090322016128268f},
     {-COS_8, SIN_8},
     {-0.555570233019602225f, 0.831469612302545237f}},
};

/* ---- transposes ---- */

#ifdef __AVX512F__
#define UNPACK_LOW _mm512_unpacklo_ps
#define UNPACK_HIGH _mm512_unpackhi_ps
#define PAIR(which, a, b)                                                                          \
    _mm512_castpd_ps(_mm512_unpack##which##_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)))

/* 4 by 4 floats in each 128 bits of four registers. */
INLINE void transpose_quarters(vec *x)
{
    vec a = UNPACK_LOW(x[0], x[1]), b = UNPACK_LOW(x[2], x[3]);
    vec c = UNPACK_HIGH(x[0], x[1]), d = UNPACK_HIGH(x[2], x[3]);
    x[0] = PAIR(lo, a, b);
    x[1] = PAIR(hi, a, b);
    x[2] = PAIR(lo, c, d);
    x[3] = PAIR(hi, c, d);
}

/* Element j of row i goes to element i of row j. */
INLINE void transpose(vec *x)
{
    UNROLL
    for (int i = 0; i < WIDTH; i += 4)
        transpose_quarters(x + i);
    UNROLL
    for (int c = 0; c < 4; c++) {
        vec a = _mm512_shuffle_f32x4(x[c], x[4 + c], 0x88);
        vec b = _mm512_shuffle_f32x4(x[c], x[4 + c], 0xdd);
        vec d = _mm512_shuffle_f32x4(x[8 + c], x[12 + c], 0x88);
        vec e = _mm512_shuffle_f32x4(x[8 + c], x[12 + c], 0xdd);
        x[c] = _mm512_shuffle_f32x4(a, d, 0x88);
        x[4 + c] = _mm512_shuffle_f32x4(b, e, 0x88);
        x[8 + c] = _mm512_shuffle_f32x4(a, d, 0xdd);
        x[12 + c] = _mm512_shuffle_f32x4(b, e, 0xdd);
    }
}

/* x[i] = row i, transposed; and back. */
INLINE void load_transposed(vec *x, const float *row, size_t stride)
{
    UNROLL
    for (size_t i = 0; i < WIDTH; i++)
        x[i] = load(row + i * stride);
    transpose(x);
}

INLINE void store_transposed(float *row, size_t stride, vec *x)
{
    transpose(x);
    UNROLL
    for (size_t i = 0; i < WIDTH; i++)
        store(row + i * stride, x[i]);
}
#else
/* 4 by 4 floats in each half of four registers: by shuffles alone, which newer CPUs do two at a
 * time, unlike what unpacks or crosses halves. */
INLINE void transpose_quarters(vec *x)
{
    vec a = _mm256_shuffle_ps(x[0], x[1], 0x44), b = _mm256_shuffle_ps(x[2], x[3], 0x44);
    vec c = _mm256_shuffle_ps(x[0], x[1], 0xee), d = _mm256_shuffle_ps(x[2], x[3], 0xee);
    x[0] = _mm256_shuffle_ps(a, b, 0x88);
    x[1] = _mm256_shuffle_ps(a, b, 0xdd);
    x[2] = _mm256_shuffle_ps(c, d, 0x88);
    x[3] = _mm256_shuffle_ps(c, d, 0xdd);
}

/* x[i] = element i of 8 rows; and back. The halves change places on the way from or to memory. */
INLINE void load_transposed(vec *x, const float *row, size_t stride)
{
    UNROLL
    for (size_t h = 0; h < 8; h += 4) {
        UNROLL
        for (size_t i = 0; i < 4; i++) {
            __m256 low = _mm256_castps128_ps256(_mm_load_ps(row + i * stride + h));
            x[h + i] = _mm256_insertf128_ps(low, _mm_load_ps(row + (i + 4) * stride + h), 1);
        }
        transpose_quarters(x + h);
    }
}

INLINE void store_transposed(float *row, size_t stride, vec *x)
{
    UNROLL
    for (size_t h = 0; h < 8; h += 4) {
        transpose_quarters(x + h);
        UNROLL
        for (size_t i = 0; i < 4; i++) {
            _mm_store_ps(row + i * stride + h, _mm256_castps256_ps128(x[h + i]));
            _mm_store_ps(row + (i + 4) * stride + h, _mm256_extractf128_ps(x[h + i], 1));
        }
    }
}
#endif

/* ---- neighbours ---- */

/* Offsets come in pairs of 16 bits, even and odd. A permute looks at the lowest bits alone; to
 * widen each for itself would take the port that permutes. */
#ifdef __AVX512F__
INLINE index_vec load_offsets(const int16_t *from)
{
    return _mm512_load_si512(from);
}

INLINE index_vec lower(index_vec at, bool direct)
{
    return direct ? at : _mm512_and_si512(at, _mm512_set1_epi32(0xffff));
}

INLINE index_vec upper(index_vec at)
{
    return _mm512_srli_epi32(at, 16);
}

/* Both a step further. */
INLINE index_vec next(index_vec at)
{
    return _mm512_add_epi32(at, _mm512_set1_epi32(0x10001));
}

/* WIDTH neighbours, put where they belong: the work of a gather, as k is monotonic. */
INLINE vec pick(const float *from, index_vec at)
{
    return _mm512_permutexvar_ps(at, _mm512_loadu_ps(from));
}

INLINE vec gather(const float *from, index_vec at)
{
    return _mm512_i32gather_ps(at, from, 4);
}
#else
INLINE index_vec load_offsets(const int16_t *from)
{
    return _mm256_load_si256((const __m256i *)(const void *)from);
}

INLINE index_vec lower(index_vec at, bool direct)
{
    return direct ? at : _mm256_and_si256(at, _mm256_set1_epi32(0xffff));
}

INLINE index_vec upper(index_vec at)
{
    return _mm256_srli_epi32(at, 16);
}

INLINE index_vec next(index_vec at)
{
    return _mm256_add_epi32(at, _mm256_set1_epi32(0x10001));
}

INLINE vec pick(const float *from, index_vec at)
{
    return _mm256_permutevar8x32_ps(_mm256_loadu_ps(from), at);
}

INLINE vec gather(const float *from, index_vec at)
{
    return _mm256_i32gather_ps(from, at, 4);
}
#endif

/* The samples of a block's usual taps: loaded once where registers can be shifted together, since
 * what begins anywhere in a line of the cache is two of them. */
#ifdef __AVX512F__
struct samples {
    vec low, high;
};

INLINE struct samples load_samples(const float *from)
{
    return (struct samples){load_any(from), load_any(from + WIDTH)};
}

#define SHIFTED(t)                                                                                 \
    case t:                                                                                        \
        return _mm512_castsi512_ps(                                                                \
            _mm512_alignr_epi32(_mm512_castps_si512(s.high), _mm512_castps_si512(s.low), t))

/* Those from sample t on; t is known when this is compiled. */
INLINE vec samples_from(struct samples s, uint32_t t)
{
    switch (t) {
        SHIFTED(1);
        SHIFTED(2);
        SHIFTED(3);
        SHIFTED(4);
        SHIFTED(5);
        SHIFTED(6);
        SHIFTED(7);
        SHIFTED(8);
        SHIFTED(9);
        SHIFTED(10);
        SHIFTED(11);
    default:
        return s.low;
    }
}
#else
struct samples {
    const float *from;
};

INLINE struct samples load_samples(const float *from)
{
    return (struct samples){from};
}

INLINE vec samples_from(struct samples s, uint32_t t)
{
    return load_any(s.from + t);
}
#endif

#endif
