/* Loops over depths, for the instruction set that the file is compiled for. */
#include "analysis/flow/kernels.h"
#include "pipeline/base/vector.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

#define UNROLL _Pragma("GCC unroll 16")
#define ABREAST (WIDTH > 8 ? 2 : 4) /* registers whose sums are made at once */
#define NEAR 0.20271003f            /* tan 0.2 */

INLINE float sum_of(vec v)
{
    float lanes_of[WIDTH], sum = 0;
    store(lanes_of, v);
    for (unsigned i = 0; i < WIDTH; i++)
        sum += lanes_of[i];
    return sum;
}

/* WIDTH values re, im to planes. */
INLINE void unravel(const float *values, vec *re, vec *im)
{
    const vec low = load(values), high = load(values + WIDTH);
#if defined(__AVX512F__)
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
    *re = _mm512_permutex2var_ps(low, even, high);
    *im = _mm512_permutex2var_ps(low, odd, high);
#elif defined(__AVX2__)
    const __m256d even = _mm256_castps_pd(_mm256_shuffle_ps(low, high, 0x88));
    const __m256d odd = _mm256_castps_pd(_mm256_shuffle_ps(low, high, 0xdd));
    *re = _mm256_castpd_ps(_mm256_permute4x64_pd(even, 0xd8));
    *im = _mm256_castpd_ps(_mm256_permute4x64_pd(odd, 0xd8));
#else
    *re = __builtin_shufflevector(low, high, 0, 2, 4, 6);
    *im = __builtin_shufflevector(low, high, 1, 3, 5, 7);
#endif
}

static float split(const float *restrict values, uint32_t n, float *restrict re, float *restrict im,
                   float *restrict power)
{
    vec sums = all(0);
    float rest = 0;
    uint32_t d = 0;
    for (; d + WIDTH <= n; d += WIDTH) {
        vec x, y;
        unravel(values + 2 * d, &x, &y);
        store(re + d, x);
        store(im + d, y);
        const vec square = x * x + y * y;
        store(power + d, load(power + d) + square);
        sums += square;
    }
    for (; d < n; d++) {
        re[d] = values[2 * d];
        im[d] = values[2 * d + 1];
        const float square = re[d] * re[d] + im[d] * im[d];
        power[d] += square;
        rest += square;
    }
    return sum_of(sums) + rest;
}

static void sum_blocks(const float *restrict power, uint32_t n, float *restrict blocks)
{
    for (uint32_t d = 0; d + OCT_FLOW_BLOCK <= n; d += OCT_FLOW_BLOCK) {
        vec block = all(0);
        UNROLL
        for (unsigned i = 0; i < OCT_FLOW_BLOCK; i += WIDTH)
            block += load(power + d + i);
        blocks[d / OCT_FLOW_BLOCK] = sum_of(block);
    }
}

static void cross(struct oct_flow_line a, struct oct_flow_line b, uint32_t n, float sum[2])
{
    vec re = all(0), im = all(0);
    float rest[2] = {0, 0};
    uint32_t d = 0;
    for (; d + WIDTH <= n; d += WIDTH) {
        const vec ar = load(a.re + d), ai = load(a.im + d);
        const vec br = load(b.re + d), bi = load(b.im + d);
        re += ar * br + ai * bi;
        im += ai * br - ar * bi;
    }
    for (; d < n; d++) {
        rest[0] += a.re[d] * b.re[d] + a.im[d] * b.im[d];
        rest[1] += a.im[d] * b.re[d] - a.re[d] * b.im[d];
    }
    sum[0] = sum_of(re) + rest[0];
    sum[1] = sum_of(im) + rest[1];
}

static void cross_shifts(struct oct_flow_line a, struct oct_flow_line b, uint32_t n,
                         float sum[OCT_FLOW_SHIFTS][2])
{
    vec re[OCT_FLOW_SHIFTS], im[OCT_FLOW_SHIFTS];
    uint32_t d = 0;
    UNROLL
    for (int i = 0; i < (int)OCT_FLOW_SHIFTS; i++)
        re[i] = im[i] = all(0);
    for (; d + WIDTH <= n; d += WIDTH) {
        const vec ar = load(a.re + d), ai = load(a.im + d);
        UNROLL
        for (int i = 0; i < (int)OCT_FLOW_SHIFTS; i++) {
            const vec br = load(b.re + d - i), bi = load(b.im + d - i);
            re[i] += ar * br + ai * bi;
            im[i] += ai * br - ar * bi;
        }
    }
    for (int i = 0; i < (int)OCT_FLOW_SHIFTS; i++) {
        float rest[2] = {0, 0};
        for (uint32_t at = d; at < n; at++) {
            rest[0] += a.re[at] * (b.re + at)[-i] + a.im[at] * (b.im + at)[-i];
            rest[1] += a.im[at] * (b.re + at)[-i] - a.re[at] * (b.im + at)[-i];
        }
        sum[i][0] = sum_of(re[i]) + rest[0];
        sum[i][1] = sum_of(im[i]) + rest[1];
    }
}

/* What a depth of lines one after another adds; T: a register or a float. */
#define JOIN(T, GET)                                                                               \
    T ar = GET(lines[0].re + d), ai = GET(lines[0].im + d), before = ar * ar + ai * ai;            \
    T in_same = before - before, in_both = in_same, in_all = before;                               \
    for (unsigned i = 1; i < n_lines; i++) {                                                       \
        const T br = GET(lines[i].re + d), bi = GET(lines[i].im + d);                              \
        const T power = br * br + bi * bi;                                                         \
        in_same += turns[i][0] * (ar * br + ai * bi) + turns[i][1] * (ai * br - ar * bi);          \
        in_both += before + power;                                                                 \
        in_all += power;                                                                           \
        ar = br;                                                                                   \
        ai = bi;                                                                                   \
        before = power;                                                                            \
    }
#define VALUE(at) (*(at))

static void join(const struct oct_flow_line *lines, const float (*turns)[2], unsigned n_lines,
                 uint32_t n, float *restrict same, float *restrict both, float *restrict intensity)
{
    uint32_t d = 0;
    for (; d + WIDTH <= n; d += WIDTH) {
        JOIN(vec, load)
        store(same + d, load(same + d) + in_same);
        store(both + d, load(both + d) + 0.5f * in_both);
        store(intensity + d, load(intensity + d) + in_all);
    }
    for (; d < n; d++) {
        JOIN(float, VALUE)
        same[d] += in_same;
        both[d] += 0.5f * in_both;
        intensity[d] += in_all;
    }
}

static void turn_line(struct oct_flow_line from, const float turn[2], uint32_t n,
                      float *restrict re, float *restrict im, float *restrict power)
{
    const float c = turn[0], s = turn[1];
    for (uint32_t d = 0; d < n; d++) {
        const float x = from.re[d], y = from.im[d];
        re[d] = x * c - y * s;
        im[d] = x * s + y * c;
        power[d] = x * x + y * y;
    }
}

static void turn_to(struct oct_flow_line from, const float turn[2], uint32_t n, float *re,
                    float *im)
{
    const vec c = all(turn[0]), s = all(turn[1]);
    for (uint32_t d = 0; d < n; d += WIDTH) {
        const vec x = load(from.re + d), y = load(from.im + d);
        store(re + d, x * c - y * s);
        store(im + d, x * s + y * c);
    }
}

static void powers(const float *restrict power_a, const float *restrict power_b, uint32_t n,
                   float *restrict both)
{
    for (uint32_t d = 0; d < n; d++)
        both[d] += 0.5f * (power_a[d] + power_b[d]);
}

static void product(struct oct_flow_line a, struct oct_flow_line b, uint32_t n, float *restrict re,
                    float *restrict im)
{
    const float *restrict ar = a.re, *restrict ai = a.im, *restrict br = b.re, *restrict bi = b.im;
    for (uint32_t d = 0; d < n; d++) {
        re[d] = ar[d] * br[d] + ai[d] * bi[d];
        im[d] = ai[d] * br[d] - ar[d] * bi[d];
    }
}

static void add_pair(struct oct_flow_line a, struct oct_flow_line b, uint32_t n, float *restrict re,
                     float *restrict im, float *restrict power, float sum[2])
{
    vec sum_re = all(0), sum_im = all(0);
    float rest[2] = {0, 0};
    uint32_t d = 0;
    for (; d + WIDTH <= n; d += WIDTH) {
        const vec ar = load(a.re + d), ai = load(a.im + d);
        const vec br = load(b.re + d), bi = load(b.im + d);
        const vec x = ar * br + ai * bi, y = ai * br - ar * bi;
        store(re + d, load(re + d) + x);
        store(im + d, load(im + d) + y);
        store(power + d, load(power + d) + 0.5f * (ar * ar + ai * ai + br * br + bi * bi));
        sum_re += x;
        sum_im += y;
    }
    for (; d < n; d++) {
        const float ar = a.re[d], ai = a.im[d], br = b.re[d], bi = b.im[d];
        const float x = ar * br + ai * bi, y = ai * br - ar * bi;
        re[d] += x;
        im[d] += y;
        power[d] += 0.5f * (ar * ar + ai * ai + br * br + bi * bi);
        rest[0] += x;
        rest[1] += y;
    }
    sum[0] = sum_of(sum_re) + rest[0];
    sum[1] = sum_of(sum_im) + rest[1];
}

static void add_power(struct oct_flow_line a, uint32_t n, float *restrict power)
{
    for (uint32_t d = 0; d < n; d++)
        power[d] += a.re[d] * a.re[d] + a.im[d] * a.im[d];
}

static void modulus(const float *restrict re, const float *restrict im, uint32_t n,
                    float *restrict same)
{
    for (uint32_t d = 0; d < n; d++)
        same[d] += sqrtf(re[d] * re[d] + im[d] * im[d]);
}

static void amplitudes(const float *restrict power_a, const float *restrict power_b, float share,
                       uint32_t n, float *restrict same, float *restrict both)
{
    for (uint32_t d = 0; d < n; d++) {
        const float sum = power_a[d] + power_b[d];
        const float share_alike = 2 * sqrtf(power_a[d] * power_b[d]) / (sum > 0 ? sum : 1);
        same[d] += share * (sum > 0 ? share_alike : 1);
        both[d] += share;
    }
}

static void add(const float *restrict power, uint32_t n, float *restrict sum)
{
    for (uint32_t d = 0; d < n; d++)
        sum[d] += power[d];
}

static void mean_of(const float *restrict sum, const float *restrict count, uint32_t n,
                    float *restrict mean)
{
    for (uint32_t d = 0; d < n; d++)
        mean[d] = sum[d] / count[d];
}

#if defined(__AVX512F__)
#define MOST_NEAR_TAPS 16u
/* What lies t values on from the first of two registers. */
#define SHIFTED(first, second, t)                                                                  \
    _mm512_castsi512_ps(                                                                           \
        _mm512_alignr_epi32(_mm512_castps_si512(second), _mm512_castps_si512(first), t))
#define ADD_TAP(t)                                                                                 \
    if ((t) < n_taps) {                                                                            \
        const vec tap = all(taps[t]);                                                              \
        sum[0] += tap * (SHIFTED(v[0], v[1], WIDTH - (t)) + SHIFTED(v[1], v[2], t));               \
        sum[1] += tap * (SHIFTED(v[1], v[2], WIDTH - (t)) + SHIFTED(v[2], v[3], t));               \
    }
#define ADD_5_TAPS(t)                                                                              \
    do {                                                                                           \
        ADD_TAP(t)                                                                                 \
        ADD_TAP(t + 1)                                                                             \
        ADD_TAP(t + 2)                                                                             \
        ADD_TAP(t + 3)                                                                             \
        ADD_TAP(t + 4)                                                                             \
    } while (0)

/* Neighbours come out of registers: loads across the borders of cache lines take twice as long. */
static void smooth_near(const float *from, const float *taps, unsigned n_taps, uint32_t n,
                        float *to)
{
    vec v[4] = {load(from - WIDTH), load(from)};
    for (uint32_t d = 0; d < n; d += 2 * WIDTH) {
        v[2] = load(from + d + WIDTH);
        v[3] = load(from + d + 2 * WIDTH);
        vec sum[2] = {all(taps[0]) * v[1], all(taps[0]) * v[2]};
        ADD_5_TAPS(1);
        ADD_5_TAPS(6);
        ADD_5_TAPS(11);
        store(to + d, sum[0]);
        store(to + d + WIDTH, sum[1]);
        v[0] = v[2];
        v[1] = v[3];
    }
}
#endif

static void smooth(const float *from, const float *taps, unsigned n_taps, uint32_t n, float *to)
{
#if defined(__AVX512F__)
    if (n_taps <= MOST_NEAR_TAPS) {
        smooth_near(from, taps, n_taps, n, to);
        return;
    }
#endif
    for (uint32_t d = 0; d < n; d += ABREAST * WIDTH) {
        const float *at = from + d;
        vec sum[ABREAST];
        UNROLL
        for (unsigned k = 0; k < ABREAST; k++)
            sum[k] = all(taps[0]) * load(at + k * WIDTH);
        for (int t = 1; t < (int)n_taps; t++) {
            const vec tap = all(taps[t]);
            UNROLL
            for (unsigned k = 0; k < ABREAST; k++)
                sum[k] += tap * (load(at + k * WIDTH - t) + load(at + k * WIDTH + t));
        }
        UNROLL
        for (unsigned k = 0; k < ABREAST; k++)
            store(to + d + k * WIDTH, sum[k]);
    }
}

static void combine(const float *const *rows, const float *taps, unsigned n_rows, uint32_t n,
                    float *to)
{
    for (uint32_t d = 0; d < n; d += 2 * WIDTH) {
        vec first = all(0), second = all(0);
        for (unsigned i = 0; i < n_rows; i++) {
            const vec tap = all(taps[i]);
            first += tap * load(rows[i] + d);
            second += tap * load(rows[i] + d + WIDTH);
        }
        store(to + d, first);
        store(to + d + WIDTH, second);
    }
}

/* ABREAST registers of d and isnr, as larger() takes the second of two where the first is NaN. */
INLINE void judge_at(const struct oct_flow_sums *sums, const float *weight, const float *share,
                     float noise, float noise_pairs, uint32_t at, float *d, float *isnr)
{
    vec sum[OCT_FLOW_N_SUMS][ABREAST];
    UNROLL
    for (unsigned k = 0; k < OCT_FLOW_N_SUMS; k++)
        UNROLL
    for (unsigned i = 0; i < ABREAST; i++)
        sum[k][i] = all(0);
    for (unsigned row = 0; row < sums->n; row++)
        UNROLL
    for (unsigned k = 0; k < OCT_FLOW_N_SUMS; k++)
        UNROLL
    for (unsigned i = 0; i < ABREAST; i++)
        sum[k][i] += sums->taps[row] * load(sums->rows[k][row] + at + i * WIDTH);
    UNROLL
    for (unsigned i = 0; i < ABREAST; i++) {
        const uint32_t own = i * WIDTH;
        const vec both = sum[OCT_FLOW_BOTH][i];
        const vec signal = sum[OCT_FLOW_INTENSITY][i] * load(share + at + own) - noise;
        const vec left =
            larger(both - noise_pairs * load(weight + at + own), OCT_FLOW_LEAST_SHARE * both);
        store(d + own, 1 - sum[OCT_FLOW_SAME][i] / left);
        store(isnr + own, noise / larger(signal, all(OCT_FLOW_LEAST_SIGNAL * noise)));
    }
}

static void judge(const struct oct_flow_sums *sums, const float *weight, const float *share,
                  float noise, float noise_pairs, uint32_t n, float *d, float *isnr)
{
    uint32_t at = 0;
    for (; at + ABREAST * WIDTH <= n; at += ABREAST * WIDTH)
        judge_at(sums, weight, share, noise, noise_pairs, at, d + at, isnr + at);
    if (at < n) {
        float rest[2][ABREAST * WIDTH];
        judge_at(sums, weight, share, noise, noise_pairs, at, rest[0], rest[1]);
        memcpy(d + at, rest[0], (n - at) * sizeof(float));
        memcpy(isnr + at, rest[1], (n - at) * sizeof(float));
    }
}

static void score(const float *restrict d, const float *restrict isnr, float bulk, float share,
                  float least, uint32_t n, float *restrict z)
{
    for (uint32_t i = 0; i < n; i++)
        z[i] = (d[i] - bulk) / sqrtf(share * isnr[i] * isnr[i] + least * least);
}

/* In the noise d may be anything. */
static void project(const float *d, float *z, const float *isnr, uint32_t n, uint32_t reach,
                    float bulk, float share, float *strongest)
{
    float most = 0;
    for (uint32_t at = 0; at + reach < n; at += WIDTH) {
        const vec top = all(most), here = load(d + at);
        const lanes flows = below(all(OCT_FLOW_LEAST_Z), load(z + at)),
                    lit = below(load(isnr + at), all(1));
        store(strongest + at, top);
        if (!bits_of(below(top, choose(flows, choose(lit, here, top), top))))
            continue;
        for (uint32_t i = at; i < at + WIDTH && i < n; i++) {
            most = z[i] > OCT_FLOW_LEAST_Z && isnr[i] < 1 && d[i] > most ? d[i] : most;
            strongest[i] = most;
        }
    }
    for (uint32_t at = reach; at < n; at++) {
        const float own = d[at] - bulk; /* z over this is 1 / sd */
        const float less = share * strongest[at - reach] * z[at] / own;
        z[at] -= fabsf(own) > 0 ? less : 0;
    }
}

static void show(const float *restrict d, const float *restrict z, float least, uint32_t n,
                 float *restrict shown, uint8_t *restrict bytes)
{
    for (uint32_t i = 0; i < n && shown; i++)
        shown[i] = z[i] >= least ? d[i] : 0 * d[i];
    for (uint32_t i = 0; i < n && bytes; i++) {
        const float value = z[i] >= least && d[i] > 0 ? d[i] : 0;
        bytes[i] = (uint8_t)(int32_t)((value < 1 ? value : 1) * 255 + 0.5f);
    }
}

static float largest(const float *values, uint32_t n)
{
    float lanes_of[WIDTH], most = -INFINITY;
    vec tops = all(-INFINITY);
    uint32_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH)
        tops = larger(load(values + i), tops); /* the second where the first is NaN */
    store(lanes_of, tops);
    for (unsigned lane = 0; lane < WIDTH; lane++)
        most = lanes_of[lane] > most ? lanes_of[lane] : most;
    for (; i < n; i++)
        most = values[i] > most ? values[i] : most;
    return most > -INFINITY ? most : NAN;
}

/* To 2e-6 rad. */
INLINE vec angle_of(vec re, vec im)
{
    const vec zero = all(0), x = larger(re, zero - re), y = larger(im, zero - im);
    const vec t = smaller(x, y) / larger(larger(x, y), all(FLT_MIN)), t2 = t * t;
    const vec first =
        t *
        (0.99997726f +
         t2 * (-0.33262347f +
               t2 * (0.19354346f + t2 * (-0.11643287f + t2 * (0.05265332f + t2 * -0.01172120f)))));
    const vec half = choose(below(x, y), 1.57079633f - first, first);
    const vec whole = choose(below(re, zero), 3.14159265f - half, half);
    return choose(below(im, zero), zero - whole, whole);
}

static uint32_t angles(struct oct_flow_line z, const float turn[2], uint32_t n, uint32_t step,
                       float *rad)
{
    const vec c = all(turn[0]), s = all(turn[1]);
    uint32_t n_rad = 0;
    for (uint32_t d = 0; d < n; d += step * OCT_FLOW_BLOCK)
        for (uint32_t i = d; i < d + OCT_FLOW_BLOCK && i < n; i += WIDTH) {
            const vec x = load(z.re + i), y = load(z.im + i);
            store(rad + n_rad, angle_of(x * c - y * s, x * s + y * c));
            n_rad += n - i < WIDTH ? n - i : WIDTH;
        }
    return n_rad;
}

/* How many of [n], a multiple of 2 WIDTH, are up to a value. */
INLINE float count_to(const float *rad, uint32_t n, float most)
{
    const vec top = all(most), none = all(0), one = all(1);
    vec first = none, second = none;
    for (uint32_t i = 0; i < n; i += 2 * WIDTH) {
        first += choose(below(top, load(rad + i)), none, one);
        second += choose(below(top, load(rad + i + WIDTH)), none, one);
    }
    return sum_of(first + second);
}

/* The least that is more than a value. */
INLINE float next_above(const float *rad, uint32_t n, float value)
{
    const vec floor = all(value), far = all(FLT_MAX);
    vec least = far;
    float lanes_of[WIDTH];
    for (uint32_t i = 0; i < n; i += WIDTH) {
        const vec here = load(rad + i);
        least = smaller(least, choose(below(floor, here), here, far));
    }
    store(lanes_of, least);
    for (unsigned i = 1; i < WIDTH; i++)
        lanes_of[0] = lanes_of[i] < lanes_of[0] ? lanes_of[i] : lanes_of[0];
    return lanes_of[0];
}

/* Halves the range until as many as lie below the median are below it. */
static float median_angle(float *rad, uint32_t n)
{
    const float rank = (float)((n - 1) / 2);
    const uint32_t n_whole = (n + 2 * WIDTH - 1) / (2 * WIDTH) * (2 * WIDTH);
    float low = -3.2f, high = 3.2f;
    for (uint32_t i = n; i < n_whole; i++)
        rad[i] = FLT_MAX;
    for (unsigned pass = 0; pass < 23; pass++) {
        const float middle = 0.5f * (low + high), n_to = count_to(rad, n_whole, middle);
        *(n_to > rank ? &high : &low) = middle;
        if (!(fabsf(n_to - rank) > 0))
            break;
    }
    const float median = next_above(rad, n_whole, low);
    return n % 2 || count_to(rad, n_whole, median) > rank + 1
               ? median
               : 0.5f * (median + next_above(rad, n_whole, median));
}

/* ABREAST registers of the sums in the window from depth d on; n_maps: known where it is built. */
INLINE void sum_around(const struct oct_flow_around *w, const float *const *rows, unsigned n_maps,
                       uint32_t d, vec sum[][ABREAST])
{
    UNROLL
    for (unsigned map = 0; map < n_maps; map++)
        UNROLL
    for (unsigned k = 0; k < ABREAST; k++)
        sum[map][k] = w->taps[0] * load(rows[map] + d + k * WIDTH);
    for (ptrdiff_t t = 1; t < (ptrdiff_t)w->n_taps; t++) {
        const vec tap = all(w->taps[t]);
        const ptrdiff_t off = t * w->step;
        UNROLL
        for (unsigned map = 0; map < n_maps; map++)
            UNROLL
        for (unsigned k = 0; k < ABREAST; k++) {
            const float *at = rows[map] + d + k * WIDTH;
            sum[map][k] += tap * (load(at - off) + load(at + off));
        }
    }
}

/* Adds of a register z where the window's sum is near the real axis. */
INLINE void add_near(vec x, vec y, vec re, vec im, vec *sum_re, vec *sum_im)
{
    const vec none = all(0);
    const lanes is_near = below(larger(y, none - y), x * NEAR);
    *sum_re += choose(is_near, re, none);
    *sum_im += choose(is_near, im, none);
}

static void sum_near(const struct oct_flow_around *window, struct oct_flow_line a,
                     struct oct_flow_line b, size_t stride, uint32_t n_pairs, uint32_t n,
                     float sum[2])
{
    const vec none = all(0);
    vec sum_re = none, sum_im = none;
    for (uint32_t d = 0; d < n; d += ABREAST * WIDTH) {
        vec around[2][ABREAST];
        sum_around(window, window->rows, 2, d, around);
        UNROLL
        for (unsigned k = 0; k < ABREAST; k++) {
            const size_t first = d + k * WIDTH;
            vec re = none, im = none;
            for (size_t i = first; i < first + n_pairs * stride; i += stride) {
                const vec ar = load(a.re + i), ai = load(a.im + i);
                const vec br = load(b.re + i), bi = load(b.im + i);
                re += ar * br + ai * bi;
                im += ai * br - ar * bi;
            }
            add_near(around[OCT_FLOW_RE][k], around[OCT_FLOW_IM][k], re, im, &sum_re, &sum_im);
        }
    }
    sum[0] = sum_of(sum_re);
    sum[1] = sum_of(sum_im);
}

/* Where all is dark nobody asks for the phase. */
INLINE void speed_at(const struct oct_flow_around *w, float dark, float least, float per_rad,
                     uint32_t d, float *v)
{
    const vec none = all(NAN);
    vec light[1][ABREAST], sum[2][ABREAST];
    unsigned any = 0;
    sum_around(w, w->rows + OCT_FLOW_POWER, 1, d, light);
    UNROLL
    for (unsigned k = 0; k < ABREAST; k++) {
        store(v + k * WIDTH, none);
        any |= bits_of(below(all(dark), light[0][k]));
    }
    if (!any)
        return;
    sum_around(w, w->rows, 2, d, sum);
    UNROLL
    for (unsigned k = 0; k < ABREAST; k++) {
        const vec re = sum[OCT_FLOW_RE][k], im = sum[OCT_FLOW_IM][k], much = least * light[0][k];
        const vec its =
            choose(below(re * re + im * im, much * much), none, per_rad * angle_of(re, im));
        store(v + k * WIDTH, choose(below(all(dark), light[0][k]), its, none));
    }
}

static void speed(const struct oct_flow_around *window, float dark, float least, float per_rad,
                  uint32_t n, float *v)
{
    uint32_t d = 0;
    for (; d + ABREAST * WIDTH <= n; d += ABREAST * WIDTH)
        speed_at(window, dark, least, per_rad, d, v + d);
    if (d < n) {
        float rest[ABREAST * WIDTH];
        speed_at(window, dark, least, per_rad, d, rest);
        memcpy(v + d, rest, (n - d) * sizeof(*v));
    }
}

const struct oct_flow_kernels OCT_SIMD_TABLE(oct_flow_kernels_table) = {
    .split = split,
    .sum_blocks = sum_blocks,
    .join = join,
    .cross = cross,
    .cross_shifts = cross_shifts,
    .turn = turn_line,
    .turn_to = turn_to,
    .powers = powers,
    .product = product,
    .add_pair = add_pair,
    .add_power = add_power,
    .modulus = modulus,
    .amplitudes = amplitudes,
    .add = add,
    .mean = mean_of,
    .smooth = smooth,
    .combine = combine,
    .judge = judge,
    .score = score,
    .project = project,
    .show = show,
    .largest = largest,
    .angles = angles,
    .median_angle = median_angle,
    .sum_near = sum_near,
    .speed = speed,
};
