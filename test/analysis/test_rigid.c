/* Rigid registration: shifts that are known, to the fraction of a pixel, with noise and without;
 * and what must not change them. */
#include "analysis/align/rigid.h"
#include "test/rig/engine_scene.h"
#include "test/rig/match_suite.h"
#include "test/rig/tap.h"
#include "test/rig/waves.h"

#include <math.h>
#include <string.h>

struct rig {
    struct oct_waves waves;
    struct oct_rigid *rigid;
    uint64_t random;
    uint32_t height, width;
};

static void open_rig(struct rig *r, uint32_t height, uint32_t width, uint32_t max_shift,
                     double shortest, bool masked)
{
    struct oct_error err = {.text = ""};
    *r = (struct rig){.random = 7, .height = height, .width = width};
    oct_waves_init(&r->waves, 11, shortest, 60);
    const struct oct_rigid_setup setup = {.height = height,
                                          .width = width,
                                          .max_dy = max_shift,
                                          .max_dx = max_shift,
                                          .min_overlap = 0.3,
                                          .masked = masked,
                                          .backend = "cpu"};
    if (oct_rigid_create(&r->rigid, &setup, &err))
        fail_msg("%s", err.text);
}

static void close_rig(struct rig *r)
{
    oct_rigid_destroy(r->rigid);
}

static struct oct_picture draw(struct rig *r, double dy, double dx, double noise)
{
    return oct_waves_picture(&r->waves, r->height, r->width, dy, dx, noise, &r->random);
}

static struct oct_shift find(struct rig *r, const struct oct_picture *moving,
                             const struct oct_picture *reference)
{
    struct oct_error err = {.text = ""};
    struct oct_shift shift;
    if (oct_rigid_set_reference(r->rigid, reference, &err) ||
        oct_rigid_find(r->rigid, moving, &shift, &err))
        fail_msg("%s", err.text);
    return shift;
}

/* RMS error a coordinate over n pairs with shifts of up to `most` pixels. */
static double rms_error(struct rig *r, double most, double noise, unsigned n)
{
    double sum = 0;
    for (unsigned i = 0; i < n; i++) {
        double dy = most * (2 * oct_random_uniform(&r->random) - 1);
        double dx = most * (2 * oct_random_uniform(&r->random) - 1);
        struct oct_picture reference = draw(r, 0, 0, noise), moving = draw(r, dy, dx, noise);
        struct oct_shift shift = find(r, &moving, &reference);
        sum += (shift.dy - dy) * (shift.dy - dy) + (shift.dx - dx) * (shift.dx - dx);
        oct_picture_finish(&reference);
        oct_picture_finish(&moving);
    }
    return sqrt(sum / (2 * n));
}

static void shifts_are_found_to_the_fraction_of_a_pixel(void **state)
{
    static const struct {
        double noise, most_error;
    } rows[] = {{0, 0.01}, {0.5, 0.04}, {1, 0.12}};
    struct rig r;
    open_rig(&r, 256, 256, 40, 8, false);
    for (unsigned i = 0; i < 3; i++) {
        double error = rms_error(&r, 20, rows[i].noise, 6);
        print_message("noise %.1f: %.4f px RMS\n", rows[i].noise, error);
        assert_true(error <= rows[i].most_error);
    }
    close_rig(&r);
}

/* ---- how sure a shift is ---- */

enum { N_REALISATIONS = 40 };

/* A clean picture with noise, and with structure that is its own as speckle is: smooth noise. */
static void soil(struct rig *r, struct oct_picture *to, const struct oct_picture *clean,
                 double noise, double own)
{
    const size_t n = (size_t)r->height * r->width, w = r->width;
    float *p = to->pixels;
    memset(p, 0, n * sizeof(float));
    oct_waves_add_noise(to, 4 * own, &r->random); /* what is left of it has the variance own^2 */
    for (size_t i = 0; i + w + 1 < n && own > 0; i++)
        p[i] = (p[i] + p[i + 1] + p[i + w] + p[i + w + 1]) / 4;
    for (size_t i = n - 1; i > w && own > 0; i--)
        p[i] = (p[i] + p[i - 1] + p[i - w] + p[i - w - 1]) / 4;
    for (size_t i = 0; i < n; i++)
        p[i] += clean->pixels[i];
    oct_waves_add_noise(to, noise, &r->random);
}

static void the_standard_deviation_is_that_of_the_errors(void **state)
{
    static const struct {
        double noise, own;
    } rows[] = {{0.3, 0}, {1, 0}, {2, 0}, {0.3, 0.7}};
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double squares[2] = {0}, sd[2] = {0};
        struct rig r;
        open_rig(&r, 96, 112, 16, 6, false);
        struct oct_picture g = draw(&r, 0, 0, 0), f = draw(&r, 5.3, -3.6, 0);
        struct oct_picture noisy[2] = {draw(&r, 0, 0, 0), draw(&r, 0, 0, 0)};
        for (unsigned k = 0; k < N_REALISATIONS; k++) {
            soil(&r, &noisy[0], &g, rows[i].noise, rows[i].own);
            soil(&r, &noisy[1], &f, rows[i].noise, rows[i].own);
            const struct oct_shift shift = find(&r, &noisy[1], &noisy[0]);
            squares[0] += (shift.dy - 5.3) * (shift.dy - 5.3) / N_REALISATIONS;
            squares[1] += (shift.dx + 3.6) * (shift.dx + 3.6) / N_REALISATIONS;
            sd[0] += shift.sd_dy / N_REALISATIONS;
            sd[1] += shift.sd_dx / N_REALISATIONS;
        }
        for (unsigned axis = 0; axis < 2; axis++) {
            const double ratio = sqrt(squares[axis]) / sd[axis];
            print_message("noise %.1f, own %.1f: %.4f px RMS, %.2f of what is said\n",
                          rows[i].noise, rows[i].own, sqrt(squares[axis]), ratio);
            assert_true(ratio > 0.7 && ratio < 1.5);
        }
        struct oct_picture *all[] = {&f, &g, &noisy[0], &noisy[1]};
        for (unsigned k = 0; k < 4; k++)
            oct_picture_finish(all[k]);
        close_rig(&r);
    }
}

/* A B-scan: seven layers that wave slowly along the A-lines, strong; fine structure in it, weak. */
static struct oct_picture draw_bscan(struct rig *r, double dy, double dx, double noise)
{
    static const double layers[7][3] = {{0, 2, 1},      {14, 6, 0.5}, {30, 3, 0.8},  {55, 8, 0.4},
                                        {75, 2.5, 1.2}, {85, 2, 1},   {100, 10, 0.6}};
    struct oct_picture p = draw(r, dy, dx, 0);
    for (uint32_t i = 0; i < r->height * r->width; i++) {
        const double y = i / r->width + dy, x = i % r->width + dx;
        const double surface = 60 + 6 * sin(0.032 * y) + 3 * sin(0.076 * y + 1);
        double value = 0;
        for (unsigned k = 0; k < 7; k++) {
            const double u = (x - surface - layers[k][0]) / layers[k][1];
            value += layers[k][2] * exp(-u * u / 2);
        }
        p.pixels[i] = (float)(3 * value + 0.3 * (double)p.pixels[i]);
    }
    oct_waves_add_noise(&p, noise, &r->random);
    return p;
}

/* Smoothed, or weighted as all frequencies alike, such B-scans are off by more in one of the
 * two. */
static void bscans_keep_their_fractions_along_the_lines_and_in_depth(void **state)
{
    static const struct {
        double noise, most_error;
    } rows[] = {{0, 0.02}, {0.5, 0.06}, {1, 0.15}};
    struct rig r;
    open_rig(&r, 192, 256, 16, 4, false);
    for (unsigned i = 0; i < 3; i++) {
        double squares[2] = {0};
        for (unsigned k = 0; k < 8; k++) {
            const double dy = 6 * oct_random_uniform(&r.random) - 3;
            const double dx = 6 * oct_random_uniform(&r.random) - 3;
            struct oct_picture f = draw_bscan(&r, dy, dx, rows[i].noise);
            struct oct_picture g = draw_bscan(&r, 0, 0, rows[i].noise);
            const struct oct_shift shift = find(&r, &f, &g);
            squares[0] += (shift.dy - dy) * (shift.dy - dy) / 8;
            squares[1] += (shift.dx - dx) * (shift.dx - dx) / 8;
            oct_picture_finish(&f);
            oct_picture_finish(&g);
        }
        print_message("noise %.1f: %.4f px RMS along the lines, %.4f in depth\n", rows[i].noise,
                      sqrt(squares[0]), sqrt(squares[1]));
        assert_true(sqrt(squares[0]) <= rows[i].most_error);
        assert_true(sqrt(squares[1]) <= rows[i].most_error);
    }
    close_rig(&r);
}

static void assert_shift(const struct oct_shift *shift, double dy, double dx, double within)
{
    if (!(fabs(shift->dy - dy) <= within) || !(fabs(shift->dx - dx) <= within))
        fail_msg("(%.4f, %.4f) instead of (%.4f, %.4f)", shift->dy, shift->dx, dy, dx);
}

/* Element (y, x) of one is (x, y) of the other, or (y, width - 1 - x). */
static struct oct_picture transposed(const struct oct_picture *p, bool mirrored)
{
    struct oct_picture out;
    struct oct_error err;
    uint32_t height = mirrored ? p->height : p->width, width = mirrored ? p->width : p->height;
    assert_int_equal(oct_picture_init(&out, height, width, false, &err), OCT_OK);
    for (uint32_t y = 0; y < p->height; y++)
        for (uint32_t x = 0; x < p->width; x++) {
            size_t to = mirrored ? (size_t)y * width + (width - 1 - x) : (size_t)x * width + y;
            out.pixels[to] = p->pixels[(size_t)y * p->width + x];
        }
    return out;
}

static void what_must_not_change_a_shift_does_not(void **state)
{
    struct rig r;
    open_rig(&r, 192, 192, 48, 8, false);
    struct oct_picture f = draw(&r, 7.3, -11.6, 0.3), g = draw(&r, 0, 0, 0.3);
    struct oct_shift forth = find(&r, &f, &g), back = find(&r, &g, &f), self = find(&r, &g, &g);
    assert_shift(&forth, 7.3, -11.6, 0.05); /* the sign: f lies on g moved by +d */
    assert_shift(&back, -forth.dy, -forth.dx, 1e-3);
    assert_shift(&self, 0, 0, 1e-3);
    assert_true(fabs(self.score - 1) < 1e-5 && fabs(forth.score - back.score) < 1e-5);

    struct oct_picture f_t = transposed(&f, false), g_t = transposed(&g, false);
    struct oct_picture f_m = transposed(&f, true), g_m = transposed(&g, true);
    struct oct_shift turned = find(&r, &f_t, &g_t), mirrored = find(&r, &f_m, &g_m);
    assert_shift(&turned, forth.dx, forth.dy, 1e-3);
    assert_shift(&mirrored, forth.dy, -forth.dx, 1e-3);

    for (size_t i = 0; i < (size_t)192 * 192; i++)
        f.pixels[i] = 60000 + 50 * f.pixels[i];
    struct oct_shift scaled = find(&r, &f, &g);
    assert_shift(&scaled, forth.dy, forth.dx, 1e-3);
    assert_true(fabs(scaled.score - forth.score) < 1e-5);
    struct oct_picture *all[] = {&f, &g, &f_t, &g_t, &f_m, &g_m};
    for (unsigned i = 0; i < 6; i++)
        oct_picture_finish(all[i]);
    close_rig(&r);
}

/* ZNCC by its definition, in double, over all shifts. */
static void best_by_definition(const struct oct_picture *f, const struct oct_picture *g, int most,
                               int *dy, int *dx, double *score)
{
    *score = -2;
    *dy = *dx = 0;
    for (int v = -most; v <= most; v++)
        for (int u = -most; u <= most; u++) {
            double n = 0, s[5] = {0};
            for (int y = 0; y < (int)f->height; y++)
                for (int x = 0; x < (int)f->width; x++) {
                    int gy = y + v, gx = x + u;
                    if (gy < 0 || gx < 0 || gy >= (int)g->height || gx >= (int)g->width)
                        continue;
                    size_t at = (size_t)y * f->width + (size_t)x;
                    size_t g_at = (size_t)gy * g->width + (size_t)gx;
                    if ((f->valid && !f->valid[at]) || (g->valid && !g->valid[g_at]))
                        continue;
                    double a = (double)f->pixels[at], b = (double)g->pixels[g_at];
                    n++;
                    s[0] += a;
                    s[1] += b;
                    s[2] += a * a;
                    s[3] += b * b;
                    s[4] += a * b;
                }
            double z = (s[4] - s[0] * s[1] / n) /
                       sqrt((s[2] - s[0] * s[0] / n) * (s[3] - s[1] * s[1] / n));
            if (z > *score) {
                *score = z;
                *dy = v;
                *dx = u;
            }
        }
}

/* Binned and full searches (all but small pictures, small ones), with masks and without. */
static void the_whole_pixel_and_its_score_are_those_of_the_definition(void **state)
{
    static const uint32_t heights[] = {61, 97, 140}, widths[] = {70, 131, 133};
    for (unsigned i = 0; i < 12; i++) {
        struct rig r;
        bool masked = i & 1;
        uint32_t height = heights[i / 2 % 3], width = widths[i / 2 % 3];
        int dy = 0, dx = 0;
        double score;
        open_rig(&r, height, width, 12, 8, masked);
        struct oct_picture f = draw(&r, 3.2 - i, 5.4, i < 6 ? 0.3 : 2.5);
        struct oct_picture g = draw(&r, 0, 0, 0.3);
        for (size_t k = 0; masked && k < (size_t)40 * width; k++) {
            f.pixels[k + (size_t)5 * width] = k < (size_t)8 * width ? NAN : f.pixels[k];
            g.pixels[k] = k % width < 9 ? INFINITY : g.pixels[k];
        }
        if (masked) {
            assert_int_equal(oct_picture_mask_not_finite(&f, NULL), OCT_OK);
            assert_int_equal(oct_picture_mask_not_finite(&g, NULL), OCT_OK);
        }
        best_by_definition(&f, &g, 12, &dy, &dx, &score);
        struct oct_shift found = find(&r, &f, &g);
        assert_true(fabs(found.score - score) <= 1e-5);
        assert_true(fabs(found.dy - dy) <= 1 && fabs(found.dx - dx) <= 1);
        oct_picture_finish(&f);
        oct_picture_finish(&g);
        close_rig(&r);
    }
}

/* Binned and full searches, and one that falls back from one to the other: noise alone. */
static void plans_made_ahead_change_nothing(void **state)
{
    static const struct {
        uint32_t height;
        double noise;
    } rows[] = {{120, 0.3}, {64, 0.3}, {120, 30}};
    for (unsigned i = 0; i < 3; i++) {
        struct rig r, plain;
        struct oct_error err = {.text = ""};
        open_rig(&plain, rows[i].height, 256, 16, 8, false);
        r = plain;
        const struct oct_rigid_setup setup = {.height = r.height,
                                              .width = r.width,
                                              .max_dy = 16,
                                              .max_dx = 16,
                                              .min_overlap = 0.3,
                                              .backend = "cpu",
                                              .plans_ahead = true};
        assert_int_equal(oct_rigid_create(&r.rigid, &setup, &err), OCT_OK);
        struct oct_picture f = draw(&r, 3.2, -5.4, rows[i].noise);
        struct oct_picture g = draw(&r, 0, 0, rows[i].noise);
        const struct oct_shift shift = find(&r, &f, &g), expected = find(&plain, &f, &g);
        assert_memory_equal(&shift, &expected, sizeof(shift));
        oct_picture_finish(&f);
        oct_picture_finish(&g);
        close_rig(&r);
        close_rig(&plain);
    }
}

static void pictures_without_contrast_have_no_score(void **state)
{
    struct rig r;
    struct oct_error err = {.text = ""};
    struct oct_shift shift;
    open_rig(&r, 64, 80, 20, 8, false);
    struct oct_picture g = draw(&r, 0, 0, 0), flat = draw(&r, 0, 0, 0);
    assert_int_equal(oct_rigid_find(r.rigid, &g, &shift, &err), OCT_E_STATE);
    for (size_t i = 0; i < (size_t)64 * 80; i++)
        flat.pixels[i] = 17;
    assert_int_equal(oct_rigid_set_reference(r.rigid, &flat, &err), OCT_E_ARG);
    shift = find(&r, &flat, &g);
    assert_true(isnan(shift.score) && shift.dy == 0 && shift.dx == 0);
    struct oct_rigid *none;
    struct oct_rigid_setup setup = {.height = 64, .width = 80, .max_dy = 64, .backend = "cpu"};
    assert_int_equal(oct_rigid_create(&none, &setup, &err), OCT_E_ARG);
    assert_null(none);
    oct_picture_finish(&g);
    oct_picture_finish(&flat);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shifts_are_found_to_the_fraction_of_a_pixel),
        cmocka_unit_test(the_standard_deviation_is_that_of_the_errors),
        cmocka_unit_test(bscans_keep_their_fractions_along_the_lines_and_in_depth),
        cmocka_unit_test(what_must_not_change_a_shift_does_not),
        cmocka_unit_test(the_whole_pixel_and_its_score_are_those_of_the_definition),
        cmocka_unit_test(plans_made_ahead_change_nothing),
        cmocka_unit_test(pictures_without_contrast_have_no_score),
    };
    const int n_failed = oct_match_suite_run(&oct_matcher_cpu, 0);
    return n_failed + cmocka_run_group_tests(tests, NULL, NULL);
}
