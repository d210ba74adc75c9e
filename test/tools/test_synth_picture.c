/* Pictures of the synthetic retina against its own truth: layers, camera, cones. */
#include "test/rig/tap.h"

#include "pipeline/plan/geometry.h"
#include "test/rig/synth_scene.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

/* ---- layers ---- */

/* Peak of the mean of five neighbouring A-lines within 10 pixels of the truth, minus the truth. */
static double peak_error(const struct synth_scene *s, enum oct_surface which, uint32_t bscan,
                         uint32_t j, const float *mean)
{
    double truth = synth_surface(s, which, bscan, j);
    uint32_t first = (uint32_t)lround(truth) - 10, best = 0;
    float sum[21] = {0}, line[21];

    for (uint32_t i = j - 2; i <= j + 2; i++) {
        synth_reconstruct(s, bscan, i, mean, first, 21, line);
        for (int d = 0; d < 21; d++)
            sum[d] += line[d];
    }
    for (uint32_t d = 1; d < 21; d++)
        best = sum[d] > sum[best] ? d : best;
    return first + best - truth;
}

static void expect_surface(const struct synth_scene *s, enum oct_surface which, double share_within)
{
    float mean[SYNTH_N_SAMPLES];
    unsigned n = 0, n_within = 0;
    double sum = 0;

    for (uint32_t b = 0; b < SYNTH_N_RENDERED; b += 6) {
        synth_bscan_mean(s, b, mean);
        for (uint32_t j = 2; j + 2 < SYNTH_N_LINES; j += 5) {
            if (synth_vessel(s, b, j) > 0)
                continue;
            double error = peak_error(s, which, b, j, mean);
            sum += error;
            n_within += fabs(error) <= 1.5;
            n++;
        }
    }
    assert_true(n > 150);
    if (n_within < share_within * n || fabs(sum / n) > 0.6)
        fail_msg("%s: %u of %u within 1.5 px, mean error %.2f px", oct_surface_names[which],
                 n_within, n, sum / n);
}

static void ilm_and_isos_lie_where_the_truth_says(void **state)
{
    expect_surface(*state, OCT_SURFACE_ILM, 0.9);
    expect_surface(*state, OCT_SURFACE_ISOS, 0.95);
}

/* Mean profile around a surface over A-lines j_first .. j_last - 1 of all B-scans; 41 pixels. */
static void flatten(const struct synth_scene *s, enum oct_surface which, uint32_t j_first,
                    uint32_t j_last, uint32_t b_step, double profile[41])
{
    float mean[SYNTH_N_SAMPLES], line[41];

    for (int d = 0; d < 41; d++)
        profile[d] = 0;
    for (uint32_t b = 0; b < SYNTH_N_RENDERED; b += b_step) {
        synth_bscan_mean(s, b, mean);
        for (uint32_t j = j_first; j < j_last; j++) {
            if (synth_vessel(s, b, j) > 0)
                continue;
            synth_reconstruct(s, b, j, mean, (uint32_t)lround(synth_surface(s, which, b, j)) - 20,
                              41, line);
            for (int d = 0; d < 41; d++)
                profile[d] += (double)line[d];
        }
    }
}

static void rpe_lies_where_the_truth_says(void **state)
{
    for (uint32_t j = 0; j < SYNTH_N_LINES; j += 40) {
        double profile[41];
        int best = 12; /* 8 pixels either side: COST is further away */
        flatten(*state, OCT_SURFACE_RPE, j, j + 40, 4, profile);
        for (int d = 12; d <= 28; d++)
            best = profile[d] > profile[best] ? d : best;
        if (abs(best - 20) > 1)
            fail_msg("A-lines %u..%u: RPE off by %d px", j, j + 39, best - 20);
    }
}

/* Mean level between two surfaces, `inset` pixels inside both, in dB. */
static double level_db(const struct synth_scene *s, enum oct_surface from, enum oct_surface to,
                       double inset)
{
    float mean[SYNTH_N_SAMPLES], line[SYNTH_DEPTH];
    double sum = 0;
    unsigned n = 0;

    synth_bscan_mean(s, 8, mean);
    for (uint32_t j = 150; j < SYNTH_N_LINES; j += 2) {
        uint32_t first = (uint32_t)lround(synth_surface(s, from, 8, j) + inset);
        uint32_t last = (uint32_t)lround(synth_surface(s, to, 8, j) - inset);
        if (synth_vessel(s, 8, j) > 0 || last < first)
            continue;
        synth_reconstruct(s, 8, j, mean, first, last - first + 1, line);
        for (uint32_t d = 0; d <= last - first; d++, n++)
            sum += (double)line[d];
    }
    assert_true(n > 20);
    return 10 * log10(sum / n);
}

static void layers_differ_in_brightness_as_in_an_oct_picture(void **state)
{
    const struct synth_scene *s = *state;
    double nfl = level_db(s, OCT_SURFACE_ILM, OCT_SURFACE_NFL_GCL, 5);
    double ganglion = level_db(s, OCT_SURFACE_NFL_GCL, OCT_SURFACE_IPL_INL, 6);
    double inl = level_db(s, OCT_SURFACE_IPL_INL, OCT_SURFACE_INL_OPL, 6);
    double opl = level_db(s, OCT_SURFACE_INL_OPL, OCT_SURFACE_OPL_ONL, 5);
    double onl = level_db(s, OCT_SURFACE_OPL_ONL, OCT_SURFACE_ELM, 12);
    double elm = level_db(s, OCT_SURFACE_ELM, OCT_SURFACE_ELM, 0);
    double isos = level_db(s, OCT_SURFACE_ISOS, OCT_SURFACE_ISOS, 0);
    double cost = level_db(s, OCT_SURFACE_COST, OCT_SURFACE_COST, 0);
    double rpe = level_db(s, OCT_SURFACE_RPE, OCT_SURFACE_RPE, 0);
    double choroid = level_db(s, OCT_SURFACE_BRUCH, OCT_SURFACE_CHOROID_SCLERA, 8);

    assert_true(nfl > ganglion + 3 && ganglion > inl + 3 && opl > inl + 3 && opl > onl + 6);
    assert_true(inl > onl + 2 && elm > onl + 3 && isos > elm + 8);
    assert_true(isos > nfl && rpe > nfl && cost > nfl - 3 && choroid < rpe - 6 && choroid > onl);
}

static void the_brightest_layer_stands_35_to_48_db_above_the_noise(void **state)
{
    const struct synth_scene *s = *state;
    float mean[SYNTH_N_SAMPLES], line[SYNTH_DEPTH];
    double noise = 0, peak = 0;

    synth_bscan_mean(s, 20, mean);
    for (uint32_t j = 0; j < SYNTH_N_LINES; j += 4) {
        synth_reconstruct(s, 20, j, mean, 0, SYNTH_DEPTH, line);
        for (uint32_t d = 40; d < 80; d++) /* vitreous */
            noise += (double)line[d] / (40.0 * SYNTH_N_LINES / 4);
        for (uint32_t d = 80; d < SYNTH_DEPTH; d++)
            peak = fmax(peak, (double)line[d]);
    }
    double snr_db = 10 * log10(peak / noise);
    assert_true(snr_db > 35 && snr_db < 48);
}

static void vessels_cast_shadows_on_the_rpe(void **state)
{
    const struct synth_scene *s = *state;
    float mean[SYNTH_N_SAMPLES], line[5];
    double lit = 0, dark = 0;
    unsigned n_lit = 0, n_dark = 0;

    for (uint32_t b = 0; b < SYNTH_N_RENDERED; b += 2) {
        synth_bscan_mean(s, b, mean);
        for (uint32_t j = 0; j < SYNTH_N_LINES; j++) {
            bool is_dark = synth_vessel(s, b, j) > 10;
            if (!is_dark && (synth_vessel(s, b, j) > 0 || j % 8))
                continue;
            synth_reconstruct(s, b, j, mean,
                              (uint32_t)lround(synth_surface(s, OCT_SURFACE_RPE, b, j)) - 2, 5,
                              line);
            for (int d = 0; d < 5; d++)
                *(is_dark ? &dark : &lit) += (double)line[d];
            n_lit += is_dark ? 0 : 1;
            n_dark += is_dark ? 1 : 0;
        }
    }
    assert_true(n_dark > 30);
    assert_true(dark / n_dark < 0.5 * lit / n_lit);
}

/* ---- camera ---- */

static void samples_have_twelve_bits_and_next_to_none_saturate(void **state)
{
    struct synth_scene *s = *state;
    size_t n = (size_t)SYNTH_N_RENDERED * SYNTH_N_LINES * SYNTH_N_SAMPLES, n_at_end = 0;
    uint16_t most = 0, least = UINT16_MAX;

    for (size_t i = 0; i < n; i++) {
        most = s->spectra[i] > most ? s->spectra[i] : most;
        least = s->spectra[i] < least ? s->spectra[i] : least;
        n_at_end += s->spectra[i] == 4095 || s->spectra[i] == 0;
    }
    assert_in_range(most, 2048, 4095);
    assert_in_range(least, 1, 400);
    assert_true((double)n_at_end < 1e-4 * (double)n);
    assert_true((double)s->n_saturated < 1e-4 * (double)n);
}

/* Full width at half maximum and peak of the IS/OS line's profile, for a sign of the dispersion
 * phase. */
static unsigned isos_width_px(struct synth_scene *s, double sign, double *peak_out)
{
    enum { n = 41 };
    double profile[n] = {0}, peak = 0;
    float mean[SYNTH_N_SAMPLES], line[SYNTH_N_SAMPLES];
    unsigned width = 0;
    uint32_t centre = (uint32_t)lround(synth_surface(s, OCT_SURFACE_ISOS, 10, 30));

    synth_bscan_mean(s, 10, mean);
    for (uint32_t d = 0; d < n; d++) {
        float complex kernel[SYNTH_N_SAMPLES];
        for (uint32_t i = 0; i < SYNTH_N_SAMPLES; i++)
            kernel[i] = synth_kernel_at(s, i, centre - n / 2 + d, sign);
        for (uint32_t j = 20; j < 40; j++) {
            const uint16_t *samples =
                s->spectra + ((size_t)10 * SYNTH_N_LINES + j) * SYNTH_N_SAMPLES;
            for (size_t i = 0; i < SYNTH_N_SAMPLES; i++)
                line[i] = (float)samples[i] - mean[i];
            profile[d] += (double)synth_intensity(line, kernel);
        }
        peak = fmax(peak, profile[d]);
    }
    for (int d = 0; d < n; d++)
        width += profile[d] > 0.5 * peak;
    *peak_out = peak;
    return width;
}

static void the_dispersion_coefficients_sharpen_the_picture(void **state)
{
    double peak, peak_none, peak_wrong;
    unsigned width = isos_width_px(*state, 1, &peak), none = isos_width_px(*state, 0, &peak_none);

    isos_width_px(*state, -1, &peak_wrong);
    if (width > 7 || none < 2 * width || peak < 1.8 * peak_none || peak_none < 1.3 * peak_wrong)
        fail_msg("IS/OS is %u px wide with the phase, %u without; peak %.0f with it, %.0f "
                 "without, %.0f with the wrong sign",
                 width, none, peak, peak_none, peak_wrong);
}

static void the_depth_scale_is_the_contracts(void **state)
{
    const struct synth_scene *s = *state;
    const double *nm = s->facts->wavelengths_nm;
    double n_positions = 2.0 * oct_geometry_padded(SYNTH_N_SAMPLES);
    double dk = 2e3 * PI *
                (1 / synth_padded_wavelength(nm, SYNTH_N_SAMPLES, 0) -
                 1 / synth_padded_wavelength(nm, SYNTH_N_SAMPLES, n_positions - 1)) /
                (n_positions - 1);

    assert_float_equal((float)s->facts->axial_um, (float)(PI / (dk * n_positions)), 1e-5f);
    /* Not linear in k, or no resampling would be needed. */
    double middle = (s->q[0] + s->q[SYNTH_N_SAMPLES - 1]) / 2;
    assert_true(fabs(s->q[SYNTH_N_SAMPLES / 2] - middle) > 5);
}

/* ---- cones ---- */

/* Distance from a place to the nearest cone moved by (dx, dy). */
static double nearest_cone_um(const struct oct_retina_facts *facts, double x, double y, double dx,
                              double dy)
{
    double best = 1e9;

    for (size_t i = 0; i < facts->n_cones; i++) {
        double u = facts->cones[4 * i] + dx - x, v = facts->cones[4 * i + 1] + dy - y;
        best = fmin(best, u * u + v * v);
    }
    return sqrt(best);
}

/* En face brightness at IS/OS within 1 um of a cone, relative to that 3 um and more from one. */
static double cone_contrast(const struct synth_scene *s, double dx, double dy)
{
    float mean[SYNTH_N_SAMPLES], line[5];
    double near = 0, far = 0, pitch = s->facts->width_um / SYNTH_N_LINES;
    unsigned n_near = 0, n_far = 0;

    for (uint32_t b = 0; b < SYNTH_N_RENDERED; b += 4) {
        const double *motion = s->truth.motion_um + (size_t)3 * (SYNTH_FIRST_BSCAN + b);
        synth_bscan_mean(s, b, mean);
        for (uint32_t j = 195; j < SYNTH_N_LINES; j++) {
            double x = j * pitch + motion[0];
            double y = (SYNTH_FIRST_BSCAN + b) * s->facts->height_um / SYNTH_N_BSCANS + motion[1];
            double d = nearest_cone_um(s->facts, x, y, dx, dy), sum = 0;
            if (synth_vessel(s, b, j) > 0 || (d > 1 && d < 3))
                continue;
            synth_reconstruct(s, b, j, mean,
                              (uint32_t)lround(synth_surface(s, OCT_SURFACE_ISOS, b, j)) - 2, 5,
                              line);
            for (int i = 0; i < 5; i++)
                sum += (double)line[i];
            near += d <= 1 ? sum : 0;
            far += d >= 3 ? sum : 0;
            n_near += d <= 1;
            n_far += d >= 3;
        }
    }
    assert_true(n_near > 15 && n_far > 30);
    return near / n_near / (far / n_far);
}

static void the_isos_layer_is_bright_at_the_cones_and_dark_between_them(void **state)
{
    double contrast = cone_contrast(*state, 0, 0), elsewhere = cone_contrast(*state, 47, 53);

    if (contrast < 2.5 || elsewhere > 1.6)
        fail_msg("at cones / between: %.2f; at places moved away from them: %.2f", contrast,
                 elsewhere);
}

/* Mean distance to the nearest other cone, of cones between two eccentricities. */
static double spacing_um(const struct oct_retina_facts *facts, double from, double to)
{
    double sum = 0;
    unsigned n = 0;

    for (size_t i = 0; i < facts->n_cones && n < 200; i++) {
        const double *c = facts->cones + 4 * i;
        double e = hypot(c[0] - facts->fovea_um[0], c[1] - facts->fovea_um[1]), best = 1e9;
        if (e < from || e >= to || c[0] < 0 || c[1] < 0)
            continue;
        for (size_t k = 0; k < facts->n_cones; k++)
            if (k != i)
                best =
                    fmin(best, hypot(c[0] - facts->cones[4 * k], c[1] - facts->cones[4 * k + 1]));
        sum += best;
        n++;
    }
    assert_true(n > 50);
    return sum / n;
}

static void cones_stand_further_apart_away_from_the_fovea(void **state)
{
    const struct oct_retina_facts *facts = ((struct synth_scene *)*state)->facts;
    double centre = spacing_um(facts, 0, 40), far = spacing_um(facts, 350, 400);

    assert_true(centre > 2.0 && centre < 3.2);
    assert_true(far > 4.8 && far < 6.8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_have_twelve_bits_and_next_to_none_saturate),
        cmocka_unit_test(ilm_and_isos_lie_where_the_truth_says),
        cmocka_unit_test(rpe_lies_where_the_truth_says),
        cmocka_unit_test(layers_differ_in_brightness_as_in_an_oct_picture),
        cmocka_unit_test(the_brightest_layer_stands_35_to_48_db_above_the_noise),
        cmocka_unit_test(vessels_cast_shadows_on_the_rpe),
        cmocka_unit_test(the_dispersion_coefficients_sharpen_the_picture),
        cmocka_unit_test(the_depth_scale_is_the_contracts),
        cmocka_unit_test(the_isos_layer_is_bright_at_the_cones_and_dark_between_them),
        cmocka_unit_test(cones_stand_further_apart_away_from_the_fovea),
    };

    return cmocka_run_group_tests(tests, synth_scene_make, synth_scene_drop);
}
