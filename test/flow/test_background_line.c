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

/* Lines are longer than what is summed at once. */
static void packed_samples_give_the_same_sums(void **state)
{
    enum { LONG = 9002 };
    static const uint16_t formats[] = {OCT_LINES_12P, OCT_LINES_U8};
    static const struct oct_geometry wide = {.n_samples = LONG, .n_lines = M};
    static uint16_t spectra[M * LONG];
    static uint8_t packed[M * LONG * 3 / 2];
    uint8_t valid[M] = {1, 1, 0, 1, 1};
    for (unsigned f = 0; f < 2; f++) {
        struct oct_raw_frame frame = {.spectra = spectra, .line_valid = valid};
        struct oct_background as_u16, as_sent;
        for (size_t i = 0; i < M * LONG; i++)
            spectra[i] = (uint16_t)(i * 40503u >> 7 & (f ? 255 : 4095));
        assert_int_equal(oct_samples_pack(packed, spectra, M * LONG, formats[f]), 0);
        assert_int_equal(oct_background_init(&as_u16, &wide, f ? 8 : 12, NULL), OCT_OK);
        assert_int_equal(oct_background_init(&as_sent, &wide, f ? 8 : 12, NULL), OCT_OK);
        oct_background_add(&as_u16, &frame);
        frame.spectra = (uint16_t *)(void *)packed;
        frame.format = formats[f];
        oct_background_add(&as_sent, &frame);
        assert_true(as_u16.n_saturated > 0);
        assert_int_equal(as_sent.n_saturated, as_u16.n_saturated);
        assert_int_equal(as_sent.n_lines, M - 1);
        assert_memory_equal(as_sent.total, as_u16.total, LONG * sizeof(*as_u16.total));
        oct_background_finish(&as_u16);
        oct_background_finish(&as_sent);
    }
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
        cmocka_unit_test(packed_samples_give_the_same_sums),
        cmocka_unit_test(too_few_lines_are_no_background),
    };
    return cmocka_run_group_tests_name("background lines", tests, NULL, NULL);
}
