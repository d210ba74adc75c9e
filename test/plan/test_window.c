/* Spectral shaping: the windows' shapes, the amplitude of a mirror, and what a window does to the
 * side lobes and the width of a real, lumpy source. */
#include "pipeline/plan/window.h"
#include "test/rig/tap.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define PI 3.14159265358979323846
#define N 800u
#define P2 4096u
#define DEPTH 300.0 /* of the mirror, in pixels */

/* Places of an uneven axis that takes 1600 of P2 steps. */
static void make_places(double *q)
{
    for (uint32_t i = 0; i < N; i++) {
        double t = (double)i / (N - 1);
        q[i] = 1200 + 1600 * (t + 0.1 * t * (1 - t));
    }
}

/* Two humps and a ripple finer than what is smoothed. */
static void make_source(double *source)
{
    for (uint32_t i = 0; i < N; i++) {
        double t = (double)i / (N - 1);
        source[i] = 2000 * exp(-pow((t - 0.3) / 0.13, 2)) + 1400 * exp(-pow((t - 0.7) / 0.1, 2)) +
                    5 * sin(900 * t) + 20;
    }
}

TEST(known_points)
{
    static const struct {
        enum oct_window window;
        double at_0, at_half, at_1;
    } cases[] = {
        {OCT_WINDOW_NONE, 1, 1, 1},          {OCT_WINDOW_HANN, 1, 0.5, 0},
        {OCT_WINDOW_HAMMING, 1, 0.54, 0.08}, {OCT_WINDOW_BLACKMAN, 1, 0.34, 0},
        {OCT_WINDOW_GAUSS, 1, 0.5, 0.0625},  {OCT_WINDOW_FLAT, 1, 1, 1},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        enum oct_window w = cases[c].window;
        assert_true(fabs(oct_window_at(w, 0.5, 0) - cases[c].at_0) < 1e-12);
        for (int side = -1; side <= 1; side += 2) {
            assert_true(fabs(oct_window_at(w, 0.5, side * 0.5) - cases[c].at_half) < 1e-12);
            assert_true(fabs(oct_window_at(w, 0.5, side) - cases[c].at_1) < 1e-12);
            assert_true(oct_window_at(w, 0.5, side * 1.0001) == 0);
        }
        assert_true(oct_window_at(w, 0.5, NAN) == 0);
    }
    assert_true(fabs(oct_window_at(OCT_WINDOW_GAUSS, 0.2, 0.2) - 0.5) < 1e-12);
}

TEST(none_changes_nothing)
{
    const struct oct_shaping none = {.window = OCT_WINDOW_NONE};
    double q[N];
    struct oct_shape s;
    make_places(q);
    assert_int_equal(oct_shape_init(&s, &none, q, N, NULL, NULL), OCT_OK);
    assert_true(oct_shape_at(&s, -5) == 1 && oct_shape_at(&s, q[7]) == 1);
    oct_shape_finish(&s);
}

TEST(the_source_is_smoothed_and_keeps_its_level)
{
    double flat[N], step[N], smooth[N];
    for (uint32_t i = 0; i < N; i++) {
        flat[i] = 7;
        step[i] = i < N / 2 ? -100 : 100;
    }
    assert_int_equal(oct_source_smooth(flat, N, smooth), OCT_OK);
    for (uint32_t i = 0; i < N; i++)
        assert_true(fabs(smooth[i] - 7) < 1e-9);
    assert_int_equal(oct_source_smooth(step, N, smooth), OCT_OK);
    assert_true(smooth[N / 2 - 13] == 0); /* below 0 is no light */
    /* One sigma, 12.5 samples, past the step: the error function of 1 / sqrt 2, 68.27 of 100. */
    double at_sigma = smooth[N / 2 + 12];
    assert_true(fabs(at_sigma - 100 * erf(1 / sqrt(2))) < 0.2);
    assert_int_equal(oct_source_smooth(flat, 1, smooth), OCT_OK);
    assert_true(smooth[0] == 7);
}

/* |B| at a depth of the exact sum with this shape, of a mirror seen with the source. */
static double amplitude(const struct oct_shape *s, const double *q, const double *source, double d)
{
    double complex sum = 0;
    for (uint32_t i = 0; i < N; i++)
        sum += source[i] * cos(2 * PI * DEPTH * q[i] / P2) * oct_place_slope(q, N, i) *
               oct_shape_at(s, q[i]) * cexp(-2 * PI * I * d * q[i] / P2);
    return cabs(sum) / N;
}

struct line {
    double peak, width_px, lobe_db; /* at DEPTH; full at half of it; highest beyond the minimum */
};

/* The highest lobe: behind the first minimum of the falling flank, up to 150 pixels away. */
static struct line look_at(const struct oct_shape *s, const double *q, const double *source)
{
    struct line line = {.peak = amplitude(s, q, source, DEPTH)};
    double away = 0, before = line.peak, now, lobe = 0;
    while (amplitude(s, q, source, DEPTH + away) > line.peak / 2)
        away += 0.02;
    line.width_px = 2 * away;
    while ((now = amplitude(s, q, source, DEPTH + away)) <= before) {
        before = now;
        away += 0.1;
    }
    for (; away < 150; away += 0.1)
        lobe = fmax(lobe, amplitude(s, q, source, DEPTH + away));
    line.lobe_db = 20 * log10(lobe / line.peak);
    return line;
}

/* The line of a mirror seen with this source. */
static struct line shaped(struct oct_shaping shaping, const double *source,
                          const double *background)
{
    double q[N];
    struct oct_shape s;
    make_places(q);
    assert_int_equal(oct_shape_init(&s, &shaping, q, N, background, NULL), OCT_OK);
    struct line line = look_at(&s, q, source);
    oct_shape_finish(&s);
    printf("# window %d%s%s: width %.2f px, side lobes %.1f dB, amplitude %.2f\n",
           (int)shaping.window, shaping.flatten ? " flattened" : "",
           background ? "" : ", source unknown", line.width_px, line.lobe_db, line.peak);
    return line;
}

TEST(a_mirror_keeps_its_amplitude)
{
    double source[N], smooth[N];
    make_source(source);
    assert_int_equal(oct_source_smooth(source, N, smooth), OCT_OK);
    double wanted = shaped((struct oct_shaping){.window = OCT_WINDOW_NONE}, smooth, NULL).peak;
    for (int w = OCT_WINDOW_NONE; w <= (int)OCT_WINDOW_FLAT; w++)
        for (int flatten = 0; flatten < 2; flatten++) {
            struct oct_shaping shaping = {.window = (enum oct_window)w, .flatten = flatten};
            double got = shaped(shaping, smooth, source).peak;
            if (fabs(20 * log10(got / wanted)) > 0.001)
                fail_msg("window %d: %g instead of %g", w, got, wanted);
        }
}

/* A lumpy source has side lobes that no window alone takes away: they are the source's own. */
TEST(side_lobes_of_a_lumpy_source_fall)
{
    double source[N];
    make_source(source);
    struct line none = shaped((struct oct_shaping){.window = OCT_WINDOW_NONE}, source, source);
    struct line hann = shaped((struct oct_shaping){.window = OCT_WINDOW_HANN}, source, source);
    struct line both = shaped((struct oct_shaping){OCT_WINDOW_HANN, 0, true}, source, source);
    struct line flat = shaped((struct oct_shaping){.window = OCT_WINDOW_FLAT}, source, source);
    assert_true(hann.lobe_db > -10);
    assert_true(both.lobe_db < none.lobe_db - 13 && both.lobe_db < hann.lobe_db - 13);
    assert_true(flat.width_px < none.width_px && flat.width_px < both.width_px);
}

/* A source of the same light everywhere shows the window's own lines: Harris's table. */
TEST(a_flat_source_shows_the_windows_own_lobes)
{
    static const struct {
        enum oct_window window;
        double lobe_db, width; /* width in pixels of an unwindowed resolution, P2 / span */
    } cases[] = {
        {OCT_WINDOW_NONE, -13.3, 1.21},
        {OCT_WINDOW_HANN, -31.5, 2.00},
        {OCT_WINDOW_HAMMING, -42.7, 1.81},
        {OCT_WINDOW_BLACKMAN, -58.1, 2.35},
    };
    double q[N], source[N];
    for (uint32_t i = 0; i < N; i++) {
        q[i] = 1200 + 2.0 * i;
        source[i] = 100;
    }
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const struct oct_shaping shaping = {.window = cases[c].window};
        struct oct_shape s;
        assert_int_equal(oct_shape_init(&s, &shaping, q, N, NULL, NULL), OCT_OK);
        struct line line = look_at(&s, q, source);
        double width = line.width_px / (P2 / (2.0 * N));
        oct_shape_finish(&s);
        if (fabs(line.lobe_db - cases[c].lobe_db) > 0.3 || fabs(width - cases[c].width) > 0.04)
            fail_msg("window %d: lobes %.2f dB, width %.3f", (int)cases[c].window, line.lobe_db,
                     width);
    }
}

TEST(what_cannot_be_shaped_is_refused)
{
    const struct oct_shaping flat = {.window = OCT_WINDOW_FLAT};
    const struct oct_shaping hann = {.window = OCT_WINDOW_HANN};
    const double narrow[] = {10, 10.2, 10.4, 10.6}, wide[] = {10, 20, 30, 40};
    const double dark[] = {0, -1, 0, 0};
    struct oct_shape s;
    struct oct_error err;
    assert_int_equal(oct_shape_init(&s, &flat, wide, 4, NULL, &err), OCT_E_CONFIG);
    assert_non_null(strstr(err.text, "octctl background"));
    assert_string_equal(err.key, "calibration.background pipeline.window pipeline.flatten");
    oct_shape_finish(&s);
    must_fail(oct_shape_init(&s, &flat, wide, 4, dark, &failure), OCT_E_CONFIG, "no light");
    oct_shape_finish(&s);
    must_fail(oct_shape_init(&s, &hann, narrow, 4, NULL, &failure), OCT_E_CONFIG,
              "less than one of the P2 steps");
    oct_shape_finish(&s);
}
