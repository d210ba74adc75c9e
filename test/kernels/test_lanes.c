/* Our own transforms against direct sums in double precision: every length, every instruction set
 * of this machine. */
#include "kernels/recon/lanes.h"
#include "kernels/recon/stages.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;
static const uint32_t lengths[] = {2048, 4096}; /* P1 */

#define UNTOUCHED (-1.0f)

/* Rounding noise of float transforms grows with the square root of log n; measured: 6e-7 of the
 * root mean square at most. A wrong digit of a twiddle is far beyond. */
#define MOST_NOISE 1e-6

static const struct oct_stages *set(unsigned i)
{
    static const char *const names[] = {"avx2", "avx512"};
    return oct_stages_select(names[i]);
}

static void *grab(size_t n, size_t size)
{
    size_t bytes = (n * size + 63) / 64 * 64;
    void *memory = aligned_alloc(64, bytes);
    assert_non_null(memory);
    memset(memory, 0, bytes);
    return memory;
}

static float uniform(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) / (1u << 23) - 1;
}

/* ---- in double precision ---- */

struct turns {
    uint32_t n;
    double *re, *im; /* [n] exp(-2 pi i k / n) */
};

static struct turns make_turns(uint32_t n)
{
    struct turns t = {n, grab(n, sizeof(double)), grab(n, sizeof(double))};
    for (uint32_t k = 0; k < n; k++) {
        t.re[k] = cos(2 * pi * k / n);
        t.im[k] = -sin(2 * pi * k / n);
    }
    return t;
}

static void free_turns(struct turns *t)
{
    free(t->re);
    free(t->im);
}

/* Bin k of x, or with sign -1 of the unscaled inverse. */
static void direct_sum(const struct turns *t, const double *re, const double *im, uint32_t k,
                       int sign, double sum[2])
{
    sum[0] = sum[1] = 0;
    for (uint32_t i = 0, at = 0; i < t->n; i++, at = (at + k) % t->n) {
        double c = t->re[at], s = sign * t->im[at];
        sum[0] += re[i] * c - im[i] * s;
        sum[1] += re[i] * s + im[i] * c;
    }
}

/* ---- the half sample ---- */

struct half {
    uint32_t n;
    float *even[2], *odd[2], *filter, *work;
    double *expected[2];
};

/* The samples are noise, the filter any complex one; all bins count alike. */
static void make_half(struct half *h, uint32_t n)
{
    uint32_t seed = n;
    struct turns t = make_turns(n);
    double *x[2], *y[2], sum[2];

    h->n = n;
    h->filter = grab(2 * (size_t)n, sizeof(float));
    h->work = grab(oct_lane_work_floats(n), sizeof(float));
    for (int i = 0; i < 2; i++) {
        h->even[i] = grab(n, sizeof(float));
        h->odd[i] = grab(n, sizeof(float));
        h->expected[i] = grab(n, sizeof(double));
        x[i] = grab(n, sizeof(double));
        y[i] = grab(n, sizeof(double));
        for (uint32_t k = 0; k < n; k++) {
            x[i][k] = h->even[i][k] = uniform(&seed);
            h->filter[(uint32_t)i * n + k] = uniform(&seed) / (float)n;
        }
    }
    for (uint32_t k = 0; k < n; k++) {
        double re = h->filter[k], im = h->filter[n + k];
        direct_sum(&t, x[0], x[1], k, 1, sum);
        y[0][k] = sum[0] * re - sum[1] * im;
        y[1][k] = sum[0] * im + sum[1] * re;
    }
    for (uint32_t k = 0; k < n; k++) {
        direct_sum(&t, y[0], y[1], k, -1, sum);
        h->expected[0][k] = sum[0];
        h->expected[1][k] = sum[1];
    }
    for (int i = 0; i < 2; i++) {
        free(x[i]);
        free(y[i]);
    }
    free_turns(&t);
}

static void free_half(struct half *h)
{
    for (int i = 0; i < 2; i++) {
        free(h->even[i]);
        free(h->odd[i]);
        free(h->expected[i]);
    }
    free(h->filter);
    free(h->work);
}

static double half_noise(const struct half *h)
{
    double worst = 0, power = 0;
    for (int i = 0; i < 2; i++)
        for (uint32_t k = 0; k < h->n; k++) {
            double off = fabs(h->odd[i][k] - h->expected[i][k]);
            worst = off > worst ? off : worst;
            power += h->expected[i][k] * h->expected[i][k];
        }
    return worst / sqrt(power / h->n);
}

static void test_half_sample(void **state)
{
    for (size_t c = 0; c < sizeof(lengths) / sizeof(lengths[0]); c++) {
        struct half h;
        struct oct_lane_fft fft;
        make_half(&h, lengths[c]);
        assert_int_equal(oct_lane_fft_init(&fft, lengths[c]), OCT_OK);
        for (unsigned i = 0; i < 2; i++) {
            if (!set(i))
                continue;
            const float *const even[2] = {h.even[0], h.even[1]};
            for (int k = 0; k < 2; k++)
                memset(h.odd[k], 0xff, h.n * sizeof(float)); /* NaN */
            set(i)->lanes->half_sample(h.odd, even, &fft, h.filter, h.work);
            double noise = half_noise(&h);
            printf("# %s, %u points there and back: %.1e\n", set(i)->name, h.n, noise);
            assert_true(noise < MOST_NOISE);
        }
        oct_lane_fft_finish(&fft);
        free_half(&h);
    }
}

/* ---- to depth ---- */

struct depth {
    struct oct_plan *plan;
    float *even[2], *odd[2], *power[2], *work;
    double *expected[2]; /* [P2 / 2] amplitudes */
    double rms[2];
};

/* k = t^3 over the padded line: it stands nearly still at one end and runs at three times the pace
 * at the other, so that some blocks of outputs reach too far for a permute. */
static struct oct_plan *make_plan(uint32_t n, enum oct_interpolation interpolation)
{
    enum { KNOTS = 257 };
    struct oct_error err;
    struct oct_geometry g;
    struct oct_plan *plan;
    double kmap[KNOTS], *phase = grab(4 * (size_t)n, sizeof(double));
    uint32_t seed = 7;

    for (int i = 0; i < KNOTS; i++) {
        double t = 0.03 + 0.97 * i / (KNOTS - 1);
        kmap[i] = t * t * t * (n - 1);
    }
    for (uint32_t q = 0; q < 2 * n; q++) {
        double angle = 2 * pi * uniform(&seed);
        phase[2 * (size_t)q] = cos(angle);
        phase[2 * (size_t)q + 1] = sin(angle);
    }
    const struct oct_calibration cal = {
        .kmap_px = kmap, .n_kmap = KNOTS, .dispersion = phase, .n_dispersion = 2 * (size_t)n};
    assert_int_equal(oct_geometry_init(&g, n, 2, 1, 0, 0, OCT_SAMPLE_F32, &err), OCT_OK);
    const struct oct_chain chain = {.dc = OCT_DC_NONE, .interpolation = interpolation};
    assert_int_equal(oct_plan_create(&plan, &g, &cal, &chain, &err), OCT_OK);
    free(phase);
    return plan;
}

/* v of one line from the plan's tables, and all its amplitudes. */
static void expect(struct depth *d, int line, const struct turns *t)
{
    const struct oct_plan *plan = d->plan;
    uint32_t n = t->n;
    double *re = grab(n, sizeof(double)), *im = grab(n, sizeof(double)), sum[2];

    for (uint32_t q = 0; q < n; q++) {
        double v = 0;
        for (unsigned k = 0; k < plan->n_taps; k++) {
            uint32_t at = plan->tap_first[q] + k;
            const float *from = at % 2 ? d->odd[line] : d->even[line];
            v += (double)plan->weight[(size_t)k * n + q] * from[at / 2];
        }
        re[q] = v * plan->phase_re[q];
        im[q] = v * plan->phase_im[q];
        d->rms[line] += re[q] * re[q] + im[q] * im[q];
    }
    d->rms[line] = sqrt(d->rms[line]);
    for (uint32_t k = 0; k < n / 2; k++) {
        direct_sum(t, re, im, k, 1, sum);
        d->expected[line][k] = hypot(sum[0], sum[1]);
    }
    free(re);
    free(im);
}

static void make_depth(struct depth *d, uint32_t p1, enum oct_interpolation interpolation)
{
    uint32_t seed = p1;
    struct turns t = make_turns(2 * p1);
    *d = (struct depth){.plan = make_plan(p1, interpolation)};
    d->work = grab(2 * oct_lane_work_floats(2 * p1), sizeof(float));
    for (int i = 0; i < 2; i++) {
        d->even[i] = grab(p1 + OCT_LANES, sizeof(float));
        d->odd[i] = grab(p1 + OCT_LANES, sizeof(float));
        d->power[i] = grab(p1, sizeof(float));
        d->expected[i] = grab(p1, sizeof(double));
        for (uint32_t k = 0; k < p1; k++) {
            d->even[i][k] = uniform(&seed);
            d->odd[i][k] = uniform(&seed);
        }
        expect(d, i, &t);
    }
    free_turns(&t);
}

static void free_depth(struct depth *d)
{
    for (int i = 0; i < 2; i++) {
        free(d->even[i]);
        free(d->odd[i]);
        free(d->power[i]);
        free(d->expected[i]);
    }
    free(d->work);
    oct_plan_destroy(d->plan);
}

/* Worst amplitude of the first n, of the root mean square; those behind must be untouched. */
static double depth_noise(const struct depth *d, int line, uint32_t n)
{
    double worst = 0;
    for (uint32_t k = 0; k < d->plan->geometry.padded; k++) {
        if (k >= n) {
            assert_true(d->power[line][k] == UNTOUCHED);
            continue;
        }
        double off = fabs(sqrt((double)d->power[line][k]) - d->expected[line][k]);
        worst = off > worst || isnan(off) ? off : worst;
    }
    return worst / d->rms[line];
}

static void run_depth(struct depth *d, const struct oct_lanes *lanes,
                      const struct oct_lane_taps *taps, const struct oct_lane_fft *fft,
                      unsigned n_out, bool both)
{
    const float *const even[2] = {d->even[0], d->even[1]}, *const odd[2] = {d->odd[0], d->odd[1]};
    float *const power[2] = {d->power[0], both ? d->power[1] : NULL};
    for (int i = 0; i < 2; i++)
        for (uint32_t k = 0; k < fft->n / 2; k++)
            d->power[i][k] = UNTOUCHED;
    lanes->to_depth(power, (float *[2]){NULL, NULL}, even, odd, taps, fft, n_out, d->work);
}

static void check_depth(struct depth *d, const struct oct_stages *stages)
{
    static const unsigned outs[] = {1, 4, 8};
    uint32_t p2 = d->plan->geometry.upsampled, n_gather = 0;
    struct oct_lane_fft fft;
    struct oct_lane_taps taps;
    double worst = 0;

    assert_int_equal(oct_lane_fft_init(&fft, p2), OCT_OK);
    assert_int_equal(oct_lane_taps_init(&taps, d->plan, stages->lanes->width), OCT_OK);
    for (uint32_t b = 0; b < p2 / taps.width; b++)
        n_gather += !taps.block[b].direct;
    assert_true(n_gather > 0 && n_gather < p2 / taps.width); /* both ways are taken */
    for (int i = 0; i < 6; i++) {
        bool both = i < 3;
        run_depth(d, stages->lanes, &taps, &fft, outs[i % 3], both);
        for (int line = 0; line < 2; line++) {
            double noise = depth_noise(d, line, line == 0 || both ? p2 / 16 * outs[i % 3] : 0);
            assert_true(noise < MOST_NOISE);
            worst = noise > worst ? noise : worst;
        }
    }
    printf("# %s, %u points, %u taps, %u of %u blocks gathered: %.1e\n", stages->name, p2,
           d->plan->n_taps, n_gather, p2 / taps.width, worst);
    oct_lane_taps_finish(&taps);
    oct_lane_fft_finish(&fft);
}

static void test_to_depth(void **state)
{
    static const enum oct_interpolation kinds[] = {OCT_INTERPOLATION_LINEAR,
                                                   OCT_INTERPOLATION_CUBIC};
    for (size_t c = 0; c < 2 * sizeof(lengths) / sizeof(lengths[0]); c++) {
        struct depth d;
        make_depth(&d, lengths[c / 2], kinds[c % 2]);
        for (unsigned i = 0; i < 2; i++)
            if (set(i))
                check_depth(&d, set(i));
        free_depth(&d);
    }
}

/* ---- which lines take this way ---- */

static void test_cover(void **state)
{
    assert_true(oct_lanes_cover(2048) && oct_lanes_cover(4096));
    assert_false(oct_lanes_cover(8192) || oct_lanes_cover(1024) || oct_lanes_cover(0));
    assert_null(oct_stages_plain.lanes);
    for (unsigned i = 0; i < 2; i++)
        if (set(i))
            assert_non_null(set(i)->lanes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half_sample),
        cmocka_unit_test(test_to_depth),
        cmocka_unit_test(test_cover),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
