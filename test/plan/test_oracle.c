/* The oracle's sums in two against the same sums as the contract writes them. */
#include "test/rig/engine_scene.h"
#include "test/rig/oracle.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>

#define MOST_SAMPLES 2049
#define LINES 9 /* more than go side by side, the last ones fewer */

static void fill_inputs(size_t n, double *wavelengths, uint16_t *spectra, uint8_t *valid)
{
    uint64_t random = 7;
    for (size_t i = 0; i < n; i++)
        wavelengths[i] = 800 + 0.05 * (double)i;
    for (size_t i = 0; i < LINES * n; i++)
        spectra[i] = (uint16_t)(oct_random_uniform(&random) * 65535);
    for (size_t j = 0; j < LINES; j++)
        valid[j] = j != 4;
}

static void check_same(struct oct_oracle_setup setup)
{
    const size_t n = setup.n_samples, n_pixels = LINES * oct_oracle_depth(&setup);
    double *wavelengths = malloc(n * sizeof(double));
    uint16_t *spectra = malloc(LINES * n * sizeof(uint16_t));
    uint8_t valid[LINES];
    double *split = malloc(n_pixels * sizeof(double)), *word = malloc(n_pixels * sizeof(double));
    double largest = 0, off = 0;
    assert_true(wavelengths && spectra && split && word);
    fill_inputs(n, wavelengths, spectra, valid);
    setup.wavelengths_nm = wavelengths;
    setup.n_wavelengths = n;
    assert_true(oct_oracle_intensity(&setup, spectra, valid, split));
    setup.by_word = true;
    assert_true(oct_oracle_intensity(&setup, spectra, valid, word));
    for (size_t i = 0; i < n_pixels; i++) {
        largest = fmax(largest, sqrt(word[i]));
        off = fmax(off, fabs(sqrt(split[i]) - sqrt(word[i])));
    }
    print_message("# %zu samples, %zu .. %zu: off by %.1e of the largest\n", n, setup.crop_first,
                  setup.crop_last, off / largest);
    assert_true(largest > 0 && off < 1e-11 * largest);
    free(wavelengths);
    free(spectra);
    free(split);
    free(word);
}

TEST(sums_in_two_are_the_sums)
{
    static const struct oct_oracle_setup setups[] = {
        {.n_samples = 832, .crop_last = 40},
        {.n_samples = 2048, .crop_first = 2015, .crop_last = 2048, .dc = OCT_ORACLE_DC_NONE},
        {.n_samples = 101, .crop_first = 37, .crop_last = 38, .cubic = true},
        {.n_samples = 4, .crop_last = 200, .coefficient = {[2] = 3, [3] = -2}},
        {.n_samples = MOST_SAMPLES, .crop_last = 3},
    };
    for (size_t i = 0; i < sizeof(setups) / sizeof(setups[0]); i++) {
        struct oct_oracle_setup setup = setups[i];
        setup.n_lines = LINES;
        check_same(setup);
    }
}
