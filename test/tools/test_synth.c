/* The synthetic retina: its bytes, its bounds, its motion. */
#include "test/rig/tap.h"

#include "pipeline/plan/geometry.h"
#include "test/rig/synth_scene.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint16_t *render(const struct oct_retina_params *params, uint32_t volume, uint32_t first,
                        uint32_t n, size_t *bytes)
{
    struct oct_retina *retina = synth_retina(params);
    struct oct_error err = {0};
    uint16_t *spectra;

    *bytes = (size_t)n * params->n_lines * params->n_samples * 2;
    spectra = malloc(*bytes);
    assert_int_equal(oct_retina_render(retina, volume, first, n, spectra, NULL, &err), OCT_OK);
    oct_retina_destroy(retina);
    return spectra;
}

static void same_seed_gives_the_same_bytes_and_another_seed_or_volume_others(void **state)
{
    struct oct_retina_params a = synth_params(300, 20, 6, 7), b = synth_params(300, 20, 6, 8);
    size_t bytes;
    uint16_t *first = render(&a, 0, 0, 6, &bytes), *again = render(&a, 0, 0, 6, &bytes);
    uint16_t *other = render(&b, 0, 0, 6, &bytes), *later = render(&a, 1, 0, 6, &bytes);

    assert_memory_equal(first, again, bytes);
    assert_true(memcmp(first, other, bytes) != 0);
    assert_true(memcmp(first, later, bytes) != 0);
    free(first);
    free(again);
    free(other);
    free(later);
}

static void neither_threads_nor_the_order_of_rendering_change_a_byte(void **state)
{
    struct oct_retina_params one = synth_params(300, 20, 9, 7), five = one;
    size_t bytes, part_bytes;

    one.n_threads = 1;
    five.n_threads = 5;
    for (unsigned m = 0; m < OCT_N_EYE_MOTIONS; m++) {
        one.motion = five.motion = (enum oct_eye_motion)m;
        uint16_t *a = render(&one, 2, 0, 9, &bytes), *b = render(&five, 2, 0, 9, &bytes);
        uint16_t *part = render(&five, 2, 4, 3, &part_bytes);
        assert_memory_equal(a, b, bytes);
        assert_memory_equal(a + (size_t)4 * 20 * 300, part, part_bytes);
        free(a);
        free(b);
        free(part);
    }
}

static void fewer_bits_scale_the_samples(void **state)
{
    struct oct_retina_params params = synth_params(400, 16, 2, 3);
    size_t bytes;
    uint16_t most = 0;

    params.bits = 8;
    uint16_t *spectra = render(&params, 0, 0, 2, &bytes);
    for (size_t i = 0; i < bytes / 2; i++)
        most = spectra[i] > most ? spectra[i] : most;
    assert_in_range(most, 128, 255);
    free(spectra);
}

static void the_retina_stays_in_the_depth_range_for_any_camera_and_eye(void **state)
{
    static const uint32_t n_samples[] = {256, 832, 1024, 2048, 2049};

    for (uint64_t i = 0; i < 15; i++) {
        struct oct_retina_params params = synth_params(n_samples[i % 5], 24, 24, i);
        params.width_um = params.height_um = i % 2 ? 600 : 6000;
        params.motion = (enum oct_eye_motion)(i / 5 == 2 ? OCT_EYE_UNSTEADY : OCT_EYE_BSCANS);
        struct oct_retina *retina = synth_retina(&params);
        double depth_px = oct_geometry_padded(params.n_samples) / 2.0; /* P2 / 4 */
        struct oct_retina_truth truth;
        assert_int_equal(oct_retina_truth(retina, 3, &truth, NULL), OCT_OK);
        for (size_t at = 0; at < 24 * 24; at++) {
            assert_true(truth.surface_px[at] > 20);
            assert_true(truth.surface_px[10 * 24 * 24 + at] < 0.75 * depth_px);
            for (size_t k = 1; k < OCT_N_SURFACES; k++) /* in their order */
                assert_true(truth.surface_px[k * 24 * 24 + at] >
                            truth.surface_px[(k - 1) * 24 * 24 + at] + 0.3);
        }
        oct_retina_truth_finish(&truth);
        oct_retina_destroy(retina);
    }
}

static void the_eye_drifts_jumps_and_goes_on_from_volume_to_volume(void **state)
{
    struct oct_retina_params params = synth_params(256, 240, 240, 4);
    struct oct_retina *retina = synth_retina(&params);
    double last[3] = {0}, longest = 0, sum = 0;
    unsigned n = 0, n_jumps = 0;

    for (uint32_t v = 0; v < 8; v++) {
        struct oct_retina_truth truth;
        assert_int_equal(oct_retina_truth(retina, v, &truth, NULL), OCT_OK);
        for (uint32_t b = 0; b < 240; b++, n++) {
            const double *m = truth.motion_um + (size_t)3 * b;
            double step = hypot(m[0] - last[0], m[1] - last[1]);
            assert_true(fabs(m[0]) <= 100 && fabs(m[1]) <= 100 && fabs(m[2]) < 45);
            assert_true(n == 0 || fabs(m[2] - last[2]) < 3);
            longest = fmax(longest, step);
            n_jumps += step > 2.0;
            sum += n ? step : 0;
            memcpy(last, m, sizeof(last));
        }
        oct_retina_truth_finish(&truth);
    }
    assert_true(sum / n > 0.05 && sum / n < 1.5); /* drift: below the 2.5 um pitch */
    assert_true(longest > 2.5 && longest < 30 && n_jumps >= 5 && n_jumps < 200);
    oct_retina_destroy(retina);
}

static void impossible_parameters_are_refused_by_the_name_of_their_key(void **state)
{
    struct oct_retina_params bad[4];
    static const char *const keys[4] = {"camera.samples", "scan.lines", "scan.line_rate_hz",
                                        "scan.width_um"};
    struct oct_retina *retina;
    struct oct_error err;

    for (int i = 0; i < 4; i++)
        bad[i] = synth_params(256, 8, 8, 1);
    bad[0].n_samples = 3;
    bad[1].n_bscans = 0;
    bad[2].line_rate_hz = 0;
    bad[3].width_um = 1e6;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(oct_retina_create(&retina, &bad[i], &err), OCT_E_CONFIG);
        assert_null(retina);
        assert_non_null(strstr(err.text, keys[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_gives_the_same_bytes_and_another_seed_or_volume_others),
        cmocka_unit_test(neither_threads_nor_the_order_of_rendering_change_a_byte),
        cmocka_unit_test(fewer_bits_scale_the_samples),
        cmocka_unit_test(the_retina_stays_in_the_depth_range_for_any_camera_and_eye),
        cmocka_unit_test(the_eye_drifts_jumps_and_goes_on_from_volume_to_volume),
        cmocka_unit_test(impossible_parameters_are_refused_by_the_name_of_their_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
