/* Percentiles of floats, with each instruction set, beside a sort. */
#include "kernels/recon/percentile.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 5000 };

static int by_value(const void *a, const void *b)
{
    const float *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double sorted_percentile(const float *sorted, size_t n, double percent)
{
    double rank = percent / 100 * (double)(n - 1);
    size_t r = (size_t)rank;
    double next = (double)sorted[r + 1 < n ? r + 1 : r];
    return (double)sorted[r] + (next - (double)sorted[r]) * (rank - (double)r);
}

/* Kind 0: dB around zero; 1: powers over many orders; 2: all alike; 3: two values far apart;
 * 4: a few bins, full. */
static void fill(float *values, size_t n, int kind)
{
    uint32_t seed = (uint32_t)(n + 77);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        double u = ((double)(seed >> 8) + 0.5) / (1 << 24);
        values[i] = kind == 0   ? (float)(10 * log10(-log(u)))
                    : kind == 1 ? (float)pow(10, 16 * u - 8)
                    : kind == 2 ? -120.0f
                    : kind == 4 ? (float)(100 + 5 * u)
                    : u < 0.4   ? -120.0f
                                : 1e9f;
    }
}

/* The first n_missing of the values are of missing lines. */
static void check(const struct oct_stages *stages, size_t n, size_t n_missing, int kind)
{
    static float values[MOST], sorted[MOST], picked[MOST + OCT_PICK_SLACK];
    static uint32_t counts[OCT_HISTOGRAM_BINS], refined[OCT_HISTOGRAM_BINS];
    static const double percents[][2] = {{0, 100}, {30, 99.8}, {50, 50.01}, {99, 1}};
    const struct oct_percentile_values all = {stages, values,  n,     n_missing,
                                              counts, refined, picked};

    fill(values, n, kind);
    for (size_t i = 0; i < n_missing; i++)
        values[i] = kind == 1 ? 0.0f : -120.0f;
    memcpy(sorted, values, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), by_value);
    memset(counts, 0, sizeof(counts));
    stages->histogram(counts, values, n / 3); /* in pieces, as workers do */
    stages->histogram(counts, values + n / 3, n - n / 3);
    for (size_t k = 0; k < sizeof(percents) / sizeof(percents[0]); k++) {
        double found[2];
        oct_percentiles_find(&all, percents[k][0], percents[k][1], &found[0], &found[1]);
        for (int i = 0; i < 2; i++) {
            double right = sorted_percentile(sorted + n_missing, n - n_missing, percents[k][i]);
            double scale = fmax(fabs(right), 1e-8);
            assert_true(fabs(found[i] - right) <= scale * ldexp(1, -18));
        }
    }
}

static void percentiles_are_those_of_the_sorted_values(void **state)
{
    static const char *const sets[] = {"plain", "avx2", "avx512"};
    static const size_t lengths[] = {1, 2, 7, 16, 63, 64, 65, 1000, MOST};
    for (size_t s = 0; s < sizeof(sets) / sizeof(sets[0]); s++) {
        const struct oct_stages *stages = oct_stages_select(sets[s]);
        for (size_t i = 0; stages && i < sizeof(lengths) / sizeof(lengths[0]); i++)
            for (int kind = 0; kind < 5; kind++)
                for (size_t part = 0; part < 4; part++) /* the last: all but one are missing */
                    check(stages, lengths[i], part < 3 ? lengths[i] * part / 4 : lengths[i] - 1,
                          kind);
    }
}

/* All bins that hold a value; what lies behind the slack stays as it was. */
static void check_pick(const struct oct_stages *stages, size_t n, int kind)
{
    static float values[MOST], picked[MOST + OCT_PICK_SLACK + 1];
    fill(values, n, kind);
    for (size_t b = 0; b < n; b += 1 + n / 64) {
        uint32_t bin = oct_histogram_key(values[b]) >> OCT_HISTOGRAM_SHIFT;
        picked[n + OCT_PICK_SLACK] = 42;
        size_t n_picked = stages->pick(picked, values, n, bin), n_right = 0;
        for (size_t i = 0; i < n; i++)
            if (oct_histogram_key(values[i]) >> OCT_HISTOGRAM_SHIFT == bin) {
                assert_true(n_right < n_picked);
                assert_memory_equal(&picked[n_right++], &values[i], sizeof(float));
            }
        assert_int_equal(n_picked, n_right);
        assert_true(picked[n + OCT_PICK_SLACK] == 42);
    }
}

static void values_of_a_bin_are_picked_in_their_order(void **state)
{
    static const char *const sets[] = {"plain", "avx2", "avx512"};
    for (size_t s = 0; s < sizeof(sets) / sizeof(sets[0]); s++) {
        const struct oct_stages *stages = oct_stages_select(sets[s]);
        for (int kind = 0; stages && kind < 5; kind++) {
            for (size_t n = 1; n < 100; n++)
                check_pick(stages, n, kind);
            check_pick(stages, MOST, kind);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(percentiles_are_those_of_the_sorted_values),
                                       cmocka_unit_test(values_of_a_bin_are_picked_in_their_order)};
    return cmocka_run_group_tests_name("percentile", tests, NULL, NULL);
}
