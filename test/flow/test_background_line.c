/* The mean spectrum of a few B-scans: exact, of the lines that came; saturation is counted. */
#include "pipeline/flow/background.h"
#include "test/rig/tap.h"

#include <string.h>

enum { N = 33, M = 5 };

static const struct oct_geometry geometry = {.n_samples = N, .n_lines = M};

static void the_mean_is_of_the_lines_that_came_and_saturation_is_counted(void **state)
{
    struct oct_background b;
    uint16_t spectra[M * N];
    uint8_t valid[M];
    double sum[N] = {0}, n_lines = 0;
    uint64_t n_saturated = 0, n_bscans = 0;
    assert_int_equal(oct_background_init(&b, &geometry, 12, NULL), OCT_OK);
    assert_true(oct_background_at(&b, 0) == 0);
    for (unsigned v = 0; v < 200; v++) {
        bool any = false;
        for (unsigned j = 0; j < M; j++) {
            valid[j] = (v + j) % 4 != 0 && v % 50 != 49;
            for (unsigned i = 0; i < N; i++) {
                const uint16_t sample = (uint16_t)(4090 + (v * 7 + j * 3 + i) % 8);
                spectra[j * N + i] = sample;
                sum[i] += valid[j] ? sample : 0;
                n_saturated += valid[j] && sample >= 4095;
            }
            n_lines += valid[j];
            any = any || valid[j];
        }
        n_bscans += any;
        struct oct_raw_frame frame = {.spectra = spectra, .line_valid = valid};
        oct_background_add(&b, &frame);
    }
    assert_int_equal(b.n_bscans, n_bscans);
    assert_true((double)b.n_lines == n_lines);
    assert_int_equal(b.n_saturated, n_saturated);
    for (uint32_t i = 0; i < N; i++)
        assert_true(oct_background_at(&b, i) == sum[i] / n_lines);
    oct_background_finish(&b);
}

static void samples_of_sixteen_bits_saturate_at_their_largest(void **state)
{
    struct oct_background b;
    uint16_t spectra[M * N];
    uint8_t valid[M];
    memset(spectra, 0xff, sizeof(spectra));
    memset(valid, 1, sizeof(valid));
    spectra[N] = 65534;
    struct oct_raw_frame frame = {.spectra = spectra, .line_valid = valid};
    assert_int_equal(oct_background_init(&b, &geometry, 16, NULL), OCT_OK);
    oct_background_add(&b, &frame);
    assert_int_equal(b.n_saturated, M * N - 1);
    oct_background_finish(&b);
}

static void too_few_lines_are_no_background(void **state)
{
    struct oct_background b = {.n_lines = OCT_BACKGROUND_LEAST_LINES - 1};
    struct oct_error err;
    assert_int_equal(oct_background_check(&b, &err), OCT_E_STATE);
    assert_non_null(strstr(err.text, "15 A-lines"));
    b.n_lines++;
    assert_int_equal(oct_background_check(&b, &err), OCT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_is_of_the_lines_that_came_and_saturation_is_counted),
        cmocka_unit_test(samples_of_sixteen_bits_saturate_at_their_largest),
        cmocka_unit_test(too_few_lines_are_no_background),
    };
    return cmocka_run_group_tests_name("background lines", tests, NULL, NULL);
}
