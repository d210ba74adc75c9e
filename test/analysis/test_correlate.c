/* The CPU's correlation: the suite of all engines, and its invariances. */
#include "analysis/correlate/correlate.h"
#include "test/rig/correlate_oracle.h"
#include "test/rig/correlate_suite.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A correlation that has run; g is f where there is no reference. */
struct rig {
    struct oct_correlator_setup setup;
    struct oct_picture f, g;
    bool cross;
    float *c2d;
};

static size_t n_shifts(const struct oct_correlator_setup *s)
{
    return (2 * (size_t)s->max_dy + 1) * (2 * (size_t)s->max_dx + 1);
}

static float c_at(const struct rig *r, int dy, int dx)
{
    const int width = 2 * (int)r->setup.max_dx + 1;
    return r->c2d[(dy + (int)r->setup.max_dy) * width + dx + (int)r->setup.max_dx];
}

static void correlate(struct rig *r)
{
    struct oct_correlator *c;
    unsigned which;
    r->setup.height = r->f.height;
    r->setup.width = r->f.width;
    r->setup.g_height = r->cross ? r->g.height : r->f.height;
    r->setup.g_width = r->cross ? r->g.width : r->f.width;
    r->setup.n_batch = 1;
    r->c2d = malloc(n_shifts(&r->setup) * sizeof(float));
    must(oct_correlator_cpu.create(&c, &r->setup, &failure) ||
         (r->cross && oct_correlator_cpu.set_reference(c, &r->g, &failure)) ||
         oct_correlator_cpu.run(c, &r->f, 1, r->c2d, &which, &failure));
    oct_correlator_cpu.destroy(c);
}

static void finish(struct rig *r)
{
    free(r->c2d);
    oct_picture_finish(&r->f);
    oct_picture_finish(&r->g);
}

#define FOR_EACH_NORM(norm)                                                                        \
    for (enum oct_correlation_norm norm = OCT_CORRELATION_OVERLAP; norm <= OCT_CORRELATION_ZNCC;   \
         norm++)

/* ---- invariances ---- */

static struct rig two(uint32_t height, uint32_t width, enum oct_correlation_norm norm, bool masked)
{
    struct rig r = {.setup = {.max_dy = 9, .max_dx = 12, .norm = norm, .masked = masked}};
    r.cross = true;
    r.setup.min_overlap = 0.3;
    oct_oracle_picture(&r.f, height, width, OCT_ORACLE_U8, 11);
    oct_oracle_picture(&r.g, height, width, OCT_ORACLE_U8, 12);
    if (masked)
        oct_oracle_mask(&r.f, 13);
    return r;
}

static void assert_same(float a, float b, double within)
{
    if (isnan(a) != isnan(b) || fabs((double)a - (double)b) > within)
        fail_msg("%.9g is not %.9g", (double)a, (double)b);
}

TEST(swapped_pictures_mirror_the_shifts)
{
    FOR_EACH_NORM(norm)
    for (unsigned masked = 0; masked < 2; masked++) {
        struct rig a = two(40, 33, norm, masked), b = two(40, 33, norm, masked);
        const struct oct_picture f = b.f;
        b.f = b.g;
        b.g = f;
        correlate(&a);
        correlate(&b);
        for (int dy = -9; dy <= 9; dy++)
            for (int dx = -12; dx <= 12; dx++)
                assert_same(c_at(&a, dy, dx), c_at(&b, -dy, -dx), 1e-6);
        finish(&a);
        finish(&b);
    }
}

TEST(transposed_pictures_transpose_the_shifts)
{
    FOR_EACH_NORM(norm)
    for (unsigned masked = 0; masked < 2; masked++) {
        struct rig a = two(36, 41, norm, masked), b = two(36, 41, norm, masked);
        assert_int_equal(oct_picture_transpose(&b.f, NULL), OCT_OK);
        assert_int_equal(oct_picture_transpose(&b.g, NULL), OCT_OK);
        b.setup.max_dy = a.setup.max_dx;
        b.setup.max_dx = a.setup.max_dy;
        correlate(&a);
        correlate(&b);
        for (int dy = -9; dy <= 9; dy++)
            for (int dx = -12; dx <= 12; dx++)
                assert_same(c_at(&a, dy, dx), c_at(&b, dx, dy), 1e-6);
        finish(&a);
        finish(&b);
    }
}

/* Gains and offsets that are powers of two keep the pixels' digits; others round them. */
TEST(gain_and_offset_change_nothing)
{
    const float gain[] = {1024, 0.37f, 1e-18f, 3e12f}, offset[] = {-7, 5000, 0, 1e12f};
    FOR_EACH_NORM(norm)
    for (unsigned i = 0; i < 4; i++) {
        struct rig a = two(40, 33, norm, false), b = two(40, 33, norm, false);
        for (size_t k = 0; k < (size_t)40 * 33; k++)
            b.f.pixels[k] = gain[i] * b.f.pixels[k] + offset[i];
        correlate(&a);
        correlate(&b);
        for (int dy = -9; dy <= 9; dy++)
            for (int dx = -12; dx <= 12; dx++)
                assert_same(c_at(&a, dy, dx), c_at(&b, dy, dx), i == 1 ? 2e-5 : 1e-6);
        finish(&a);
        finish(&b);
    }
}

TEST(a_picture_with_itself_is_one_at_no_shift)
{
    FOR_EACH_NORM(norm)
    for (unsigned i = 0; i < 4; i++) {
        struct rig r = two(40, 33, norm, i & 1);
        r.cross = i & 2;
        memcpy(r.g.pixels, r.f.pixels, (size_t)40 * 33 * sizeof(float));
        must(oct_picture_mask_not_finite(&r.g, &failure));
        correlate(&r);
        assert_same(c_at(&r, 0, 0), 1, 1e-6);
        for (size_t k = 0; k < n_shifts(&r.setup); k++)
            assert_true(isnan(r.c2d[k]) || (double)fabsf(r.c2d[k]) <= 1 + 1e-6);
        finish(&r);
    }
}

/* The content of f lies 4 rows further down and 3 columns further left in g. */
TEST(the_maximum_says_how_f_moves_onto_g)
{
    struct rig r = two(48, 40, OCT_CORRELATION_ZNCC, false);
    for (int y = 0; y < 44; y++)
        for (int x = 3; x < 40; x++)
            r.g.pixels[(y + 4) * 40 + x - 3] = r.f.pixels[y * 40 + x];
    correlate(&r);
    assert_same(c_at(&r, 4, -3), 1, 1e-6);
    finish(&r);
}

/* ---- what is refused ---- */

static void expect(const struct oct_correlator_setup *setup, const char *text)
{
    struct oct_correlator *c;
    struct oct_error err = {.text = ""};
    assert_int_equal(oct_correlator_cpu.create(&c, setup, &err), OCT_E_ARG);
    assert_null(c);
    if (!strstr(err.text, text))
        fail_msg("'%s' does not say '%s'", err.text, text);
}

TEST(shifts_beyond_the_pictures_are_refused)
{
    struct oct_correlator_setup s = {
        .height = 20, .width = 30, .g_height = 20, .g_width = 30, .max_dy = 20, .max_dx = 4};
    expect(&s, "the largest are 19 x 29");
    s.max_dy = 3;
    s.max_dx = 30;
    expect(&s, "the largest are 19 x 29");
    s.max_dx = 3;
    s.g_width = 20000;
    expect(&s, "a side has 1 to 16384");
    s.g_width = 0;
    expect(&s, "a side has 1 to 16384");
}

/* A picture that is refused is named, those before it are done, and the reference stays. */
TEST(pictures_without_contrast_are_refused)
{
    struct rig r = two(20, 30, OCT_CORRELATION_ZNCC, true);
    r.setup.max_dx = 9;
    correlate(&r);
    struct oct_correlator *c;
    struct oct_error err = {.text = ""};
    struct oct_picture list[3] = {r.f, {0}, {0}};
    float *c2d = malloc(3 * n_shifts(&r.setup) * sizeof(float));
    unsigned which = 9;
    oct_oracle_picture(&list[1], 20, 30, OCT_ORACLE_U8, 1);
    oct_oracle_picture(&list[2], 20, 29, OCT_ORACLE_U8, 1);
    r.setup.n_batch = 3;
    assert_int_equal(oct_correlator_cpu.create(&c, &r.setup, &err), OCT_OK);
    assert_int_equal(oct_correlator_cpu.set_reference(c, &r.g, &err), OCT_OK);
    assert_int_equal(oct_correlator_cpu.run(c, list, 3, c2d, &which, &err), OCT_E_ARG);
    assert_int_equal(which, 2);
    assert_non_null(strstr(err.text, "20 x 29"));
    for (unsigned i = 0; i < 600; i++)
        list[1].pixels[i] = 0.1f;
    assert_int_equal(oct_correlator_cpu.set_reference(c, &list[1], &err), OCT_E_ARG);
    assert_int_equal(oct_correlator_cpu.run(c, list, 2, c2d, &which, &err), OCT_E_ARG);
    assert_int_equal(which, 1);
    assert_string_equal(err.text, "no contrast");
    list[1].pixels[333] = NAN;
    assert_int_equal(oct_correlator_cpu.run(c, list, 2, c2d, &which, &err), OCT_E_ARG);
    assert_string_equal(err.text, "pixels that are not finite and not masked");
    for (size_t i = 0; i < n_shifts(&r.setup); i++)
        assert_same(c2d[i], r.c2d[i], 0);
    for (unsigned i = 0; i < 600; i++)
        list[1].pixels[i] = i % 11 ? NAN : (float)i;
    assert_int_equal(oct_picture_mask_not_finite(&list[1], &err), OCT_OK);
    must_fail(oct_correlator_cpu.run(c, list, 2, c2d, &which, &failure), OCT_E_ARG, "9.2 %");
    oct_correlator_cpu.destroy(c);
    oct_picture_finish(&list[1]);
    oct_picture_finish(&list[2]);
    free(c2d);
    finish(&r);
}

/* With a GPU the CUDA engine computes the same, without one the CPU does. */
TEST(select_takes_what_there_is)
{
    struct rig r = two(30, 30, OCT_CORRELATION_OVERLAP, false);
    const struct oct_correlator_ops *ops;
    struct oct_correlator *c;
    struct oct_error err = {.text = ""};
    char why[200];
    unsigned which;
    correlate(&r);
    float *c2d = malloc(n_shifts(&r.setup) * sizeof(float));
    const enum oct_err cuda =
        oct_correlator_select(&ops, &c, "cuda", &r.setup, why, sizeof(why), &err);
    if (cuda) {
        assert_int_equal(cuda, OCT_E_BACKEND);
        assert_true(strlen(err.text) > 0);
    } else {
        ops->destroy(c);
    }
    assert_int_equal(oct_correlator_select(&ops, &c, "auto", &r.setup, why, sizeof(why), &err),
                     OCT_OK);
    assert_non_null(strstr(why, cuda ? "on cpu: " : "on cuda"));
    assert_int_equal(ops->set_reference(c, &r.g, &err), OCT_OK);
    assert_int_equal(ops->run(c, &r.f, 1, c2d, &which, &err), OCT_OK);
    for (size_t i = 0; i < n_shifts(&r.setup); i++)
        assert_same(c2d[i], r.c2d[i], cuda ? 0 : 5e-6);
    ops->destroy(c);
    free(c2d);
    finish(&r);
}

int main(void)
{
    const int n_failed = oct_correlate_suite_run(&oct_correlator_cpu, 0, true);
    return test_run() + n_failed > 0;
}
