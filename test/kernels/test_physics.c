/* What the plan and the CPU engine make of light whose answer is known from physics. */
#include "test/rig/physics.h"

#include "kernels/engines.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N OCT_PHYSICS_N
#define P2 OCT_PHYSICS_P2
#define M OCT_PHYSICS_LINES
#define DEPTH 1024

static const double pi = 3.14159265358979323846;

/* Intensities [M][DEPTH] in counts^2 (log: dB) of one B-scan through a fresh plan and engine. */
static void reconstruct(const struct oct_calibration *cal, uint16_t *spectra, bool log,
                        float *pixels)
{
    struct oct_error err = {.text = ""};
    struct oct_geometry geometry;
    struct oct_plan *plan;
    struct oct_engine *engine;
    uint8_t line_valid[M];
    memset(line_valid, 1, sizeof(line_valid));
    assert_int_equal(oct_geometry_init(&geometry, N, M, 1, 0, DEPTH, OCT_SAMPLE_F32, &err), OCT_OK);
    assert_int_equal(oct_plan_create(&plan, &geometry, cal, &oct_chain_thesis, &err), OCT_OK);
    struct oct_engine_options options = {.n_threads = 1, .simd = "auto"};
    assert_int_equal(oct_engine_cpu.create(&engine, plan, &options, &err), OCT_OK);
    struct oct_raw_frame in = {.spectra = spectra, .line_valid = line_valid};
    struct oct_image_frame out = {.pixels = pixels}, *done;
    struct oct_engine_job job = {
        .in = &in, .out = &out, .display = {.log = log, .range = OCT_RANGE_AUTO}};
    assert_int_equal(oct_engine_cpu.submit(engine, &job, 1), OCT_OK);
    assert_int_equal(oct_engine_cpu.collect(engine, 60000000, &done), OCT_OK);
    assert_int_equal(done->status, OCT_OK);
    oct_engine_cpu.destroy(engine);
    oct_plan_destroy(plan);
}

/* The peak of line 0. */
static struct oct_physics_peak peak_of(const struct oct_calibration *cal, const double *lambda_nm,
                                       const struct oct_physics_mirror *mirror)
{
    static _Thread_local uint16_t spectra[M * N];
    static _Thread_local float pixels[M * DEPTH];
    oct_physics_spectra(lambda_nm, mirror, spectra);
    reconstruct(cal, spectra, false, pixels);
    return oct_physics_peak(pixels, DEPTH);
}

/* z of a depth pixel, so that the tests can choose where in the picture a mirror stands. */
static double depth_um(const double *lambda_nm, double pixel)
{
    return pixel / oct_physics_pixel(lambda_nm, 1);
}

static void check_mirrors(int falling)
{
    static const double pixels[] = {60, 211.3, 400.7, 613.5, 902.2};
    double lambda_nm[N];
    oct_physics_wavelengths(lambda_nm, falling);
    struct oct_calibration cal = {.wavelengths_nm = lambda_nm, .n_wavelengths = N};
    for (int i = 0; i < 5; i++) {
        struct oct_physics_mirror mirror = {.z_um = depth_um(lambda_nm, pixels[i]),
                                            .amplitude = 5000};
        struct oct_physics_peak peak = peak_of(&cal, lambda_nm, &mirror);
        printf("# mirror at %7.2f um: pixel %7.2f, found at %8.3f\n", mirror.z_um, pixels[i],
               peak.at_px);
        assert_true(fabs(peak.at_px - pixels[i]) < 0.5);
    }
}

static void mirrors_stand_where_they_are_when_wavelengths_rise(void **state)
{
    check_mirrors(0);
}

static void mirrors_stand_where_they_are_when_wavelengths_fall(void **state)
{
    check_mirrors(1);
}

static void the_plan_knows_how_deep_a_pixel_is(void **state)
{
    double lambda_nm[N];
    struct oct_error err;
    struct oct_geometry geometry;
    struct oct_plan *plan;
    oct_physics_wavelengths(lambda_nm, 0);
    struct oct_calibration cal = {.wavelengths_nm = lambda_nm, .n_wavelengths = N};
    assert_int_equal(oct_geometry_init(&geometry, N, M, 1, 0, 0, OCT_SAMPLE_U8, &err), OCT_OK);
    assert_int_equal(oct_plan_create(&plan, &geometry, &cal, &oct_chain_thesis, &err), OCT_OK);
    assert_true(fabs(plan->axial_um / depth_um(lambda_nm, 1) - 1) < 1e-9);
    oct_plan_destroy(plan);
}

/* Widths of one mirror: without dispersion, with it, and with it compensated by cal. */
static void check_compensation(const double *lambda_nm, const struct oct_physics_mirror *dispersed,
                               const struct oct_calibration *compensating)
{
    struct oct_calibration plain = {.wavelengths_nm = compensating->wavelengths_nm,
                                    .n_wavelengths = compensating->n_wavelengths};
    struct oct_physics_mirror clean = {.z_um = dispersed->z_um, .amplitude = dispersed->amplitude};
    struct oct_physics_peak best = peak_of(&plain, lambda_nm, &clean);
    struct oct_physics_peak worst = peak_of(&plain, lambda_nm, dispersed);
    struct oct_physics_peak compensated = peak_of(compensating, lambda_nm, dispersed);
    printf("# width %.3f px without dispersion, %.3f with, %.3f compensated\n", best.width_px,
           worst.width_px, compensated.width_px);
    assert_true(worst.width_px > 1.5 * best.width_px);
    assert_true(fabs(compensated.width_px / best.width_px - 1) < 0.1);
    assert_true(fabs(compensated.at_px - best.at_px) < 0.5);
    assert_true(fabs(compensated.height / best.height - 1) < 0.05);
}

static void coefficients_compensate_dispersion(void **state)
{
    for (int falling = 0; falling < 2; falling++) {
        double lambda_nm[N];
        oct_physics_wavelengths(lambda_nm, falling);
        struct oct_physics_mirror mirror = {
            .z_um = depth_um(lambda_nm, 333.3), .amplitude = 5000, .a2 = 90, .a3 = 40};
        struct oct_calibration cal = {.wavelengths_nm = lambda_nm, .n_wavelengths = N};
        cal.coefficient[2] = mirror.a2;
        cal.coefficient[3] = mirror.a3;
        check_compensation(lambda_nm, &mirror, &cal);
    }
}

/* What a lab found on its own spectrum, 832 samples from -1 to 1, is taken as it is; over the
 * padded line the same numbers are another curve and compensate nothing. */
static void coefficients_over_the_camera_compensate_dispersion(void **state)
{
    for (int falling = 0; falling < 2; falling++) {
        double lambda_nm[N];
        oct_physics_wavelengths(lambda_nm, falling);
        struct oct_physics_mirror mirror = {.z_um = depth_um(lambda_nm, 333.3),
                                            .amplitude = 5000,
                                            .a2 = 15,
                                            .a3 = 3,
                                            .over_camera = 1};
        struct oct_calibration cal = {.wavelengths_nm = lambda_nm, .n_wavelengths = N};
        cal.coefficient[2] = mirror.a2;
        cal.coefficient[3] = mirror.a3;
        struct oct_physics_peak grid = peak_of(&cal, lambda_nm, &mirror);
        cal.dispersion_over = OCT_DISPERSION_OVER_SPECTRUM;
        check_compensation(lambda_nm, &mirror, &cal);
        struct oct_physics_peak spectrum = peak_of(&cal, lambda_nm, &mirror);
        printf("# width %.3f px over the spectrum, %.3f over the grid\n", spectrum.width_px,
               grid.width_px);
        assert_true(grid.width_px > 1.3 * spectrum.width_px);
    }
}

static void a_file_of_phases_compensates_dispersion(void **state)
{
    double lambda_nm[N];
    double *phase = malloc(2 * P2 * sizeof(double));
    assert_non_null(phase);
    oct_physics_wavelengths(lambda_nm, 0);
    struct oct_physics_mirror mirror = {
        .z_um = depth_um(lambda_nm, 333.3), .amplitude = 5000, .a2 = -120, .a3 = 25};
    for (int q = 0; q < P2; q++) {
        double t = 2.0 * q / (P2 - 1) - 1, theta = mirror.a2 * t * t + mirror.a3 * t * t * t;
        phase[2 * q] = cos(theta);
        phase[2 * q + 1] = -sin(theta);
    }
    struct oct_calibration cal = {
        .wavelengths_nm = lambda_nm, .n_wavelengths = N, .dispersion = phase, .n_dispersion = P2};
    check_compensation(lambda_nm, &mirror, &cal);
    free(phase);
}

/* Camera coordinate at which the spectrometer sees wave number k. */
static double coordinate_of(const double *lambda_nm, double k)
{
    double wanted = 2 * pi / k, low = -N, high = 2 * N; /* wider than the padded line */
    for (int i = 0; i < 80; i++) {
        double middle = (low + high) / 2;
        if (oct_physics_wavelength_at(lambda_nm, middle) < wanted)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

/* A k map over the whole padded line, a coordinate for each q, is the same grid as the wavelengths
 * give; between two of its entries it is straight in s, where the wavelengths are straight in
 * lambda, which bends k by its second order only. `reversed` gives the map from its other end:
 * then depth counts along falling s, and the picture is the same again. */
static void check_kmap(bool reversed)
{
    double lambda_nm[N], k_first, k_last;
    double *kmap = malloc(P2 * sizeof(double));
    uint16_t *spectra = malloc(M * N * sizeof(uint16_t));
    float *with_map = malloc(M * DEPTH * sizeof(float));
    float *with_lambda = malloc(M * DEPTH * sizeof(float));
    assert_true(kmap && spectra && with_map && with_lambda);
    oct_physics_wavelengths(lambda_nm, 0);
    oct_physics_k_range(lambda_nm, &k_first, &k_last);
    for (int q = 0; q < P2; q++)
        kmap[reversed ? P2 - 1 - q : q] =
            coordinate_of(lambda_nm, k_first + (k_last - k_first) * q / (P2 - 1));
    struct oct_physics_mirror mirror = {
        .z_um = depth_um(lambda_nm, 333.3), .amplitude = 5000, .a2 = 30};
    oct_physics_spectra(lambda_nm, &mirror, spectra);
    struct oct_calibration map = {.kmap_px = kmap, .n_kmap = P2};
    struct oct_calibration lambda = {.wavelengths_nm = lambda_nm, .n_wavelengths = N};
    reconstruct(&map, spectra, true, with_map);
    reconstruct(&lambda, spectra, true, with_lambda);
    float brightest = with_lambda[0];
    for (int i = 0; i < M * DEPTH; i++)
        brightest = fmaxf(brightest, with_lambda[i]);
    double worst = 0;
    for (int i = 0; i < M * DEPTH; i++)
        if (with_lambda[i] > brightest - 60)
            worst = fmax(worst, fabs((double)(with_map[i] - with_lambda[i])));
    printf("# largest difference within 60 dB of the brightest pixel: %.5f dB\n", worst);
    assert_true(worst < 0.05);
    free(kmap);
    free(spectra);
    free(with_map);
    free(with_lambda);
}

static void a_k_map_and_its_wavelengths_give_one_picture(void **state)
{
    check_kmap(false);
}

static void a_k_map_may_be_given_from_either_end(void **state)
{
    check_kmap(true);
}

static void twice_the_amplitude_is_6_db_more(void **state)
{
    double lambda_nm[N];
    oct_physics_wavelengths(lambda_nm, 0);
    struct oct_calibration cal = {.wavelengths_nm = lambda_nm, .n_wavelengths = N};
    struct oct_physics_mirror mirror = {.z_um = depth_um(lambda_nm, 300), .amplitude = 4000};
    struct oct_physics_peak once = peak_of(&cal, lambda_nm, &mirror);
    mirror.amplitude = 8000;
    struct oct_physics_peak twice = peak_of(&cal, lambda_nm, &mirror);
    double more = 10 * log10(twice.height / once.height);
    printf("# %.4f dB more\n", more);
    assert_true(fabs(more - 6.0206) < 0.01);
}

/* B is in camera counts: a fringe of amplitude a under a Gaussian of mean m over the N pixels has
 * a peak of a * m / 2, less what linear interpolation costs at that depth. */
static void the_peak_is_in_camera_counts(void **state)
{
    double lambda_nm[N], mean = 0, k[N];
    oct_physics_wavelengths(lambda_nm, 0);
    for (int i = 0; i < N; i++)
        k[i] = 2 * pi / lambda_nm[i];
    /* Even steps of k weigh the camera's pixels by how much k each spans. */
    for (int i = 0; i < N - 1; i++) {
        double in_camera = (k[i] - k[0]) / (k[N - 1] - k[0]);
        mean += exp(-pow((in_camera - 0.5) / 0.2, 2)) * fabs(k[i + 1] - k[i]);
    }
    double k_first, k_last;
    oct_physics_k_range(lambda_nm, &k_first, &k_last);
    double expected = 4000 * mean / fabs(k_last - k_first) * P2 / N / 2;
    struct oct_calibration cal = {.wavelengths_nm = lambda_nm, .n_wavelengths = N};
    struct oct_physics_mirror mirror = {.z_um = depth_um(lambda_nm, 40), .amplitude = 4000};
    double found = sqrt(peak_of(&cal, lambda_nm, &mirror).height);
    printf("# %.2f counts, expected %.2f\n", found, expected);
    assert_true(fabs(found / expected - 1) < 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mirrors_stand_where_they_are_when_wavelengths_rise),
        cmocka_unit_test(mirrors_stand_where_they_are_when_wavelengths_fall),
        cmocka_unit_test(the_plan_knows_how_deep_a_pixel_is),
        cmocka_unit_test(coefficients_compensate_dispersion),
        cmocka_unit_test(coefficients_over_the_camera_compensate_dispersion),
        cmocka_unit_test(a_file_of_phases_compensates_dispersion),
        cmocka_unit_test(a_k_map_and_its_wavelengths_give_one_picture),
        cmocka_unit_test(a_k_map_may_be_given_from_either_end),
        cmocka_unit_test(twice_the_amplitude_is_6_db_more),
        cmocka_unit_test(the_peak_is_in_camera_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
