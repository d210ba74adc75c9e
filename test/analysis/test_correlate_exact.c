/* Exact sums against direct ones in int64, bit by bit, and C made from them. */
#include "analysis/correlate/exact.h"
#include "test/rig/correlate_oracle.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct oct_correlator_setup
setup_of(const struct oct_picture *f, const struct oct_picture *g, uint32_t max_dy, uint32_t max_dx)
{
    return (struct oct_correlator_setup){.height = f->height,
                                         .width = f->width,
                                         .g_height = g->height,
                                         .g_width = g->width,
                                         .max_dy = max_dy,
                                         .max_dx = max_dx,
                                         .masked = true};
}

static size_t n_shifts(const struct oct_correlator_setup *s)
{
    return (2 * (size_t)s->max_dy + 1) * (2 * (size_t)s->max_dx + 1);
}

static int64_t *exact_sums(const struct oct_picture *f, const struct oct_picture *g,
                           const struct oct_correlator_setup *s)
{
    struct oct_exact *x;
    int64_t *sums = malloc(n_shifts(s) * sizeof(*sums));
    float *c2d = malloc(n_shifts(s) * sizeof(*c2d));
    must(oct_exact_create(&x, s, &failure) || oct_exact_correlation(x, f, g, sums, c2d, &failure));
    oct_exact_destroy(x);
    free(c2d);
    return sums;
}

/* step: every how many-th shift is compared. */
static void compare(const struct oct_picture *f, const struct oct_picture *g, uint32_t max_dy,
                    uint32_t max_dx, size_t step)
{
    const struct oct_correlator_setup s = setup_of(f, g, max_dy, max_dx);
    const int width = 2 * (int)max_dx + 1;
    int64_t *sums = exact_sums(f, g, &s);
    for (size_t i = 0; i < n_shifts(&s); i += step) {
        const int dy = (int)i / width - (int)max_dy, dx = (int)i % width - (int)max_dx;
        const int64_t want = oct_oracle_integer(f, g, dy, dx);
        if (sums[i] != want)
            fail_msg("%u x %u at (%d, %d): %lld, not %lld", f->height, f->width, dy, dx,
                     (long long)sums[i], (long long)want);
    }
    free(sums);
}

TEST(sums_are_the_direct_ones_bit_by_bit)
{
    uint32_t random = 7;
    for (unsigned i = 0; i < 5; i++)
        for (unsigned kind = OCT_ORACLE_U8; kind <= OCT_ORACLE_U16_FLAT; kind++)
            for (unsigned masks = 0; masks < 2; masks++) {
                const uint32_t h = 16 + oct_oracle_random(&random) % 20,
                               w = 16 + oct_oracle_random(&random) % 20, gh = 16 + h / 2,
                               gw = w + 3;
                struct oct_picture f, g;
                oct_oracle_picture(&f, h, w, kind, random);
                oct_oracle_picture(&g, gh, gw, kind, random + 1);
                if (masks) {
                    oct_oracle_mask(&f, 3);
                    oct_oracle_mask(&g, 4);
                }
                compare(&f, &f, h - 1, w - 1, 7);
                compare(&f, &g, 12, w, 5);
                oct_picture_finish(&f);
                oct_picture_finish(&g);
            }
}

/* Large sums, of which f32 and unsplit transforms know only the first digits. */
TEST(large_pictures_of_16_bits_are_exact)
{
    struct oct_picture f, g;
    oct_oracle_picture(&f, 700, 500, OCT_ORACLE_U16, 1);
    oct_oracle_picture(&g, 700, 500, OCT_ORACLE_U16, 2);
    for (size_t i = 0; i < 40000; i++) /* a part at the ends of the range */
        f.pixels[i] = g.pixels[i + 13] = i / 500 % 2 ? 65535 : 0;
    compare(&f, &g, 90, 90, 4001);
    compare(&f, &f, 90, 90, 4001);
    oct_picture_finish(&f);
    oct_picture_finish(&g);
}

TEST(c_is_made_from_the_sums)
{
    for (unsigned i = 0; i < 16; i++) {
        struct oct_picture f, g;
        struct oct_exact *x;
        oct_oracle_picture(&f, 22, 19, OCT_ORACLE_U16_FLAT, 1);
        oct_oracle_picture(&g, 22, 19, OCT_ORACLE_U16_FLAT, 2);
        if (i & 4)
            oct_oracle_mask(&f, 3);
        struct oct_correlator_setup s = setup_of(&f, &g, 10, 18);
        s.norm = i & 1 ? OCT_CORRELATION_EQ1 : OCT_CORRELATION_OVERLAP;
        s.keep_mean = i & 2;
        const struct oct_picture *other = i & 8 ? &f : &g;
        int64_t *sums = malloc(n_shifts(&s) * sizeof(*sums));
        float *c2d = malloc(n_shifts(&s) * sizeof(*c2d));
        must(oct_exact_create(&x, &s, &failure));
        must(oct_exact_correlation(x, &f, other, sums, c2d, &failure));
        for (int dy = -10; dy <= 10; dy++)
            for (int dx = -18; dx <= 18; dx++) {
                double n;
                const size_t at = (size_t)((dy + 10) * 37 + dx + 18);
                const double want = oct_oracle_correlation(&f, other, &s, 0, dy, dx, &n);
                assert_true(sums[at] == oct_oracle_integer(&f, other, dy, dx));
                if (isnan(want) != isnan(c2d[at]) ||
                    fabs((double)c2d[at] - want) > 1e-7 * fabs(want) + 1e-9)
                    fail_msg("case %u at (%d, %d): %.9g, not %.9g", i, dy, dx, (double)c2d[at],
                             want);
            }
        oct_exact_destroy(x);
        free(sums);
        free(c2d);
        oct_picture_finish(&f);
        oct_picture_finish(&g);
    }
}

TEST(pixels_that_are_no_integers_are_refused)
{
    const float bad[] = {0.5f, -1, 65536, NAN, INFINITY};
    struct oct_picture f;
    struct oct_exact *x;
    struct oct_error err = {.text = ""};
    int64_t sums[25];
    float c2d[25];
    oct_oracle_picture(&f, 16, 20, OCT_ORACLE_U16, 1);
    struct oct_correlator_setup s = setup_of(&f, &f, 2, 2);
    assert_int_equal(oct_exact_create(&x, &s, &err), OCT_OK);
    for (unsigned i = 0; i < 5; i++) {
        f.pixels[3 * 20 + 7] = bad[i];
        must_fail(oct_exact_correlation(x, &f, &f, sums, c2d, &failure), OCT_E_FORMAT,
                  "pixel 7 of row 3 is");
    }
    oct_exact_destroy(x);
    s.norm = OCT_CORRELATION_ZNCC;
    assert_int_equal(oct_exact_create(&x, &s, &err), OCT_E_ARG);
    assert_null(x);
    oct_picture_finish(&f);
}
