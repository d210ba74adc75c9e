/* The synthetic spectrometer: that its truth is the contract's, and its light what physics says. */
#include "test/rig/spectrometer.h"
#include "test/rig/tap.h"

#include "pipeline/plan/grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define N 832u

static void expect_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.9g, expected %.9g +- %.3g", value, expected, tolerance);
}

static void places_are_those_of_the_contracts_k_grid(void **state)
{
    struct oct_spectrometer_setup setup = oct_spectrometer_standard;
    for (int falling = 0; falling < 2; falling++) {
        struct oct_spectrometer s;
        struct oct_geometry g;
        struct oct_k_grid grid;
        struct oct_error err;
        setup.span_nm = falling ? -90 : 90;
        oct_spectrometer_rig(&s, &setup);
        struct oct_calibration cal = {.kmap_px = s.kmap_px, .n_kmap = N};
        assert_int_equal(oct_geometry_init(&g, N, 1, 1, 0, 0, OCT_SAMPLE_F32, &err), OCT_OK);
        assert_int_equal(oct_k_grid_init(&grid, &g, &cal, &err), OCT_OK);
        assert_int_equal(grid.n, s.upsampled);
        for (uint32_t i = 0; i < N; i++)
            expect_near(oct_k_grid_place(&grid, 2 * (g.left + i)), s.place[i], 2e-4);
        oct_k_grid_finish(&grid);
        oct_spectrometer_finish(&s);
    }
}

/* Places are linear in the wave number, slopes are their derivative, and a depth pixel is one
 * period of 2 k z over P2 steps. */
static void places_follow_the_wave_number(void **state)
{
    struct oct_spectrometer s;
    oct_spectrometer_rig(&s, NULL);
    double step = 2 * PI * (1 / s.wavelengths_nm[N - 1] - 1 / s.wavelengths_nm[0]) /
                  (s.place[N - 1] - s.place[0]);
    for (uint32_t i = 1; i + 1 < N; i++) {
        double k = 2 * PI * (1 / s.wavelengths_nm[i] - 1 / s.wavelengths_nm[0]);
        expect_near((s.place[i] - s.place[0]) * step, k, 1e-12);
        expect_near(s.slope[i], (s.place[i + 1] - s.place[i - 1]) / 2, 1e-5);
    }
    expect_near(2 * fabs(step) * s.upsampled * s.axial_um * 1e3, 2 * PI, 1e-9);
    oct_spectrometer_finish(&s);
}

/* The argument of the fringe, integrated over a pixel and a spot in small steps. */
static void the_fall_off_is_that_of_pixel_and_spot(void **state)
{
    struct oct_spectrometer_setup setup = oct_spectrometer_standard;
    struct oct_spectrometer s;
    double counts[N];
    setup.a2 = setup.a3 = 0;
    setup.spot_px = 1.3;
    oct_spectrometer_rig(&s, &setup);
    const double depth = 700, sigma = 1.3 / sqrt(8 * log(2));
    const struct oct_reflector mirror = {depth, 0.3, 0.4};
    oct_spectrometer_light(&s, &mirror, 1, counts);
    for (uint32_t i = 100; i < N - 100; i += 37) {
        double sum = 0, weights = 0;
        for (double spot = -5 * sigma; spot <= 5 * sigma; spot += sigma / 10)
            for (int p = 0; p < 40; p++) {
                double x = spot + (p + 0.5) / 40 - 0.5, w;
                double bend = i + 1 < N ? (s.slope[i + 1] - s.slope[i - 1]) / 2 : 0;
                w = exp(-0.5 * spot * spot / (sigma * sigma));
                double q = s.place[i] + x * s.slope[i] + x * x / 2 * bend;
                sum += w * cos(2 * PI * depth * q / s.upsampled + 0.4);
                weights += w;
            }
        expect_near((counts[i] - s.dark) / s.source[i] - 1, 0.3 * sum / weights, 3e-4);
    }
    oct_spectrometer_finish(&s);
}

/* Read with the truth, mirrors lie where they were put, as wide as the source allows, at every
 * depth up to 0.9 P2/4; read with an even map they do not. */
static void the_truth_makes_mirrors_as_wide_as_the_limit(void **state)
{
    static const double depths[] = {60, 200.25, 450.5, 700.125, 921};
    struct oct_spectrometer_setup setup = oct_spectrometer_standard;
    for (int bump = 0; bump < 2; bump++) {
        struct oct_spectrometer s;
        double counts[N], even[N];
        setup.bump = 0.5 * bump;
        oct_spectrometer_rig(&s, &setup);
        for (uint32_t i = 0; i < N; i++)
            even[i] = s.place[0] + (s.place[N - 1] - s.place[0]) * i / (N - 1.0);
        for (size_t d = 0; d < sizeof(depths) / sizeof(depths[0]); d++) {
            double at, fwhm, intensity;
            oct_spectrometer_rig_line(&s, depths[d], 1, 7, counts);
            oct_spectrometer_rig_peak(&s, counts, NULL, depths[d], &at, &fwhm, &intensity);
            expect_near(at, depths[d], 0.02);
            expect_near(fwhm / s.limit_px, 1, 0.02);
        }
        const struct oct_spectrometer_reading naive = {.place = even};
        double at, fwhm, intensity;
        oct_spectrometer_rig_peak(&s, counts, &naive, 921, &at, &fwhm, &intensity);
        assert_true(fwhm > 2 * s.limit_px);
        oct_spectrometer_finish(&s);
    }
}

/* The width of a Gaussian's transform: 2 ln 2 / pi * lambda^2 / width, of the amplitude; that of
 * the intensity is narrower by the root of 2. */
static void the_limit_of_a_gaussian_source_is_known(void **state)
{
    struct oct_spectrometer_setup setup = oct_spectrometer_standard;
    struct oct_spectrometer s;
    setup.source_nm = 20;
    oct_spectrometer_rig(&s, &setup);
    double um = 2 * log(2) / PI * 850 * 850 / 20 / sqrt(2) * 1e-3;
    expect_near(s.limit_px * s.axial_um, um, 0.003 * um);
    oct_spectrometer_finish(&s);
}

static void signal_to_noise_is_as_asked(void **state)
{
    struct oct_spectrometer_setup setup = oct_spectrometer_standard;
    for (double snr_db = 30; snr_db < 70; snr_db += 30) {
        struct oct_spectrometer s;
        double counts[N], noise[16], peak = 0, floor = 0, peak_first;
        setup.snr_db = snr_db;
        setup.spot_px = 0;
        oct_spectrometer_rig(&s, &setup);
        for (unsigned line = 0; line < 40; line++) {
            double at, fwhm;
            oct_spectrometer_rig_line(&s, 100, 0.1 * line, 100 + line, counts);
            oct_spectrometer_rig_depths(&s, counts, NULL, 600, 20, 16, noise);
            if (line < 2) {
                oct_spectrometer_rig_peak(&s, counts, NULL, 100, &at, &fwhm, &peak_first);
                peak += peak_first / 2;
            }
            for (unsigned i = 0; i < 16; i++)
                floor += noise[i] / (40 * 16);
        }
        expect_near(10 * log10(peak / floor), snr_db, 0.7);
        oct_spectrometer_finish(&s);
    }
}

static void bscans_repeat_and_saturate_and_have_the_source_as_mean(void **state)
{
    struct oct_spectrometer_setup setup = oct_spectrometer_standard;
    const struct oct_reflector mirror = {300, 0.3, 0};
    struct oct_spectrometer s;
    struct oct_error err;
    uint64_t n_clipped;
    oct_spectrometer_rig(&s, NULL);
    uint16_t *a = oct_spectrometer_rig_mirror(&s, 300, 16, 5);
    uint16_t *b = oct_spectrometer_rig_mirror(&s, 300, 16, 5);
    uint16_t *c = oct_spectrometer_rig_mirror(&s, 300, 16, 6);
    assert_memory_equal(a, b, 16 * N * sizeof(*a));
    assert_true(memcmp(a, c, 16 * N * sizeof(*a)) != 0);
    double excess = 0;
    for (uint32_t i = 0; i < N; i++) {
        double mean = 0;
        for (uint32_t j = 0; j < 16; j++)
            mean += a[j * N + i] / 16.0;
        excess += (mean - s.dark - s.source[i]) / N;
        expect_near(mean, s.dark + s.source[i], 6 * s.read_counts * sqrt(5) / 4 + 0.5);
    }
    expect_near(excess, 0, 0.2);
    oct_spectrometer_finish(&s);
    setup.gain = 2;
    oct_spectrometer_rig(&s, &setup);
    assert_int_equal(oct_spectrometer_bscan(&s, &mirror, 1, 1, 16, 5, a, &n_clipped, &err), OCT_OK);
    assert_true(n_clipped > 16);
    uint16_t most = 0;
    for (uint32_t i = 0; i < 16 * N; i++)
        most = a[i] > most ? a[i] : most;
    assert_int_equal(most, 4095);
    oct_spectrometer_finish(&s);
    free(a);
    free(b);
    free(c);
}

static void what_is_no_spectrometer_is_refused(void **state)
{
    struct oct_spectrometer_setup wrong[5];
    struct oct_spectrometer s;
    struct oct_error err;
    for (size_t i = 0; i < 5; i++)
        wrong[i] = oct_spectrometer_standard;
    wrong[0].n_samples = 3;
    wrong[1].bits = 17;
    wrong[2].quadratic = 0.5;
    wrong[3].span_nm = 0;
    wrong[4].snr_db = NAN;
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(oct_spectrometer_init(&s, &wrong[i], &err), OCT_E_ARG);
        oct_spectrometer_finish(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_those_of_the_contracts_k_grid),
        cmocka_unit_test(places_follow_the_wave_number),
        cmocka_unit_test(the_fall_off_is_that_of_pixel_and_spot),
        cmocka_unit_test(the_truth_makes_mirrors_as_wide_as_the_limit),
        cmocka_unit_test(the_limit_of_a_gaussian_source_is_known),
        cmocka_unit_test(signal_to_noise_is_as_asked),
        cmocka_unit_test(bscans_repeat_and_saturate_and_have_the_source_as_mean),
        cmocka_unit_test(what_is_no_spectrometer_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
