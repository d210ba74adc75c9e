/* Percentiles of floats, with each instruction set, beside a sort. */
#include "kernels/recon/percentile.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 20000 };

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

/* Bounds of the sieves: unknown; around the very values; beside them; so wide that the sieves
 * overflow. */
enum { UNKNOWN, AROUND, BESIDE, WIDE, N_BOUNDS };

static struct oct_percentile_bounds bounds_of(int how, double right)
{
    const float half = (float)fmax(fabs(right) * 0.01, 1e-8), r = (float)right;
    return how == UNKNOWN  ? (struct oct_percentile_bounds){0, 0}
           : how == AROUND ? (struct oct_percentile_bounds){r - half, r + half}
           : how == BESIDE ? (struct oct_percentile_bounds){r + half, r + 2 * half}
                           : (struct oct_percentile_bounds){-1e30f, 1e30f};
}

enum { N_SIEVES = 3, LINE = 64, LONG_LINE = 34 * 64 + 27 };

/* By sieves that are given lines in turn, and by one; both find the same. */
static void find(const struct oct_stages *stages, const float *values, size_t n, size_t n_missing,
                 const double percent[2], const struct oct_percentile_bounds bounds[2],
                 double found[2])
{
    static float spare[2][MOST + OCT_SIFT_SLACK];
    struct oct_sieves sieves[N_SIEVES];
    double found_by_one[2];
    const size_t line = n > LONG_LINE ? LONG_LINE : LINE;
    for (unsigned k = 0; k < N_SIEVES; k++) {
        assert_int_equal(oct_sieves_init(&sieves[k], n, line), OCT_OK);
        oct_sieves_empty(&sieves[k], bounds);
    }
    for (unsigned n_sieves = N_SIEVES; n_sieves > 0; n_sieves = n_sieves > 1 ? 1 : 0) {
        struct oct_percentile_bounds next[2];
        for (size_t d = 0, k = 0; d < n; d += line, k++)
            oct_sieves_add(&sieves[k % n_sieves], stages, values + d, n - d < line ? n - d : line);
        const struct oct_percentile_values all = {
            stages, values, n, n_missing, sieves, n_sieves, {spare[0], spare[1]}};
        oct_percentiles_find(&all, percent, next, n_sieves > 1 ? found : found_by_one);
        for (int i = 0; i < 2; i++)
            assert_true((double)next[i].from < found[i] && found[i] < (double)next[i].to);
        oct_sieves_empty(&sieves[0], bounds);
    }
    assert_memory_equal(found, found_by_one, sizeof(found_by_one));
    for (unsigned k = 0; k < N_SIEVES; k++)
        oct_sieves_finish(&sieves[k]);
}

/* The first n_missing of the values are of missing lines. Whatever the bounds, the percentiles are
 * the same to the last bit. */
static void check(const struct oct_stages *stages, size_t n, size_t n_missing, int kind)
{
    static float values[MOST], sorted[MOST];
    static const double percents[][2] = {{0, 100}, {30, 99.8}, {50, 50.01}, {99, 1}};

    fill(values, n, kind);
    for (size_t i = 0; i < n_missing; i++)
        values[i] = kind == 1 ? 0.0f : -120.0f;
    memcpy(sorted, values, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), by_value);
    for (size_t k = 0; k < sizeof(percents) / sizeof(percents[0]); k++) {
        double first[2] = {0}, found[2], right[2];
        for (int how = 0; how < N_BOUNDS; how++) {
            struct oct_percentile_bounds bounds[2];
            for (int i = 0; i < 2; i++) {
                right[i] = sorted_percentile(sorted + n_missing, n - n_missing, percents[k][i]);
                bounds[i] = bounds_of(how, right[i]);
            }
            find(stages, values, n, n_missing, percents[k], bounds, found);
            if (how == 0)
                memcpy(first, found, sizeof(first));
            assert_memory_equal(found, first, sizeof(first));
        }
        for (int i = 0; i < 2; i++)
            assert_true(fabs(found[i] - right[i]) <= fmax(fabs(right[i]), 1e-8) * ldexp(1, -18));
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

/* B-scans that drift: the sieves of each are those of the one before, and nearly all that is found
 * was between their bounds, without being many. */
static void bounds_follow_what_is_found(void **state)
{
    enum { N = MOST, N_BSCANS = 200 };
    static float values[N], spare[2][N + OCT_SIFT_SLACK];
    static const double percent[2] = {30, 99.8};
    const struct oct_stages *stages = oct_stages_select("auto");
    struct oct_percentile_bounds bounds[2] = {{0}};
    struct oct_sieves sieves;
    unsigned n_hits[2] = {0};
    assert_int_equal(oct_sieves_init(&sieves, N, LINE), OCT_OK);
    fill(values, N, 0);
    for (int b = 0; b < N_BSCANS; b++) {
        const struct oct_percentile_values all = {
            stages, values, N, 0, &sieves, 1, {spare[0], spare[1]}};
        double found[2];
        oct_sieves_empty(&sieves, bounds);
        for (size_t d = 0; d < N; d += LINE)
            oct_sieves_add(&sieves, stages, values + d, N - d < LINE ? N - d : LINE);
        oct_percentiles_find(&all, percent, bounds, found);
        for (int i = 0; i < 2; i++)
            n_hits[i] += !sieves.of[i].full && (double)sieves.of[i].bounds.from <= found[i] &&
                         found[i] < (double)sieves.of[i].bounds.to;
        for (size_t d = 0; d < N; d++)
            values[d] += 0.05f * (float)sin(b / 10.0);
    }
    oct_sieves_finish(&sieves);
    for (int i = 0; i < 2; i++)
        if (n_hits[i] < N_BSCANS * 95 / 100)
            fail_msg("%u of %d found at once", n_hits[i], N_BSCANS);
}

/* With bounds at values, between them and beyond all; what lies behind the slack stays as it
 * was. */
static void check_sift(const struct oct_stages *stages, size_t n, float from, float to)
{
    static float values[MOST], kept[MOST + OCT_SIFT_SLACK + 1];
    size_t below = 3, n_below = 3, n_right = 0;
    fill(values, n, 0);
    kept[n + OCT_SIFT_SLACK] = 42;
    size_t n_kept = stages->sift(kept, values, n, from, to, &below);
    for (size_t i = 0; i < n; i++) {
        n_below += values[i] < from;
        if (values[i] >= from && values[i] < to) {
            assert_true(n_right < n_kept);
            assert_memory_equal(&kept[n_right++], &values[i], sizeof(float));
        }
    }
    assert_int_equal(n_kept, n_right);
    assert_int_equal(below, n_below);
    assert_true(kept[n + OCT_SIFT_SLACK] == 42);
}

static void values_between_bounds_are_kept_in_their_order(void **state)
{
    static const char *const sets[] = {"plain", "avx2", "avx512"};
    static const float bounds[][2] = {
        {-2, 3}, {2, 2.2f}, {-INFINITY, 0}, {0, INFINITY}, {-INFINITY, INFINITY}, {7, 7}, {3, -2}};
    for (size_t s = 0; s < sizeof(sets) / sizeof(sets[0]); s++) {
        const struct oct_stages *stages = oct_stages_select(sets[s]);
        for (size_t b = 0; stages && b < sizeof(bounds) / sizeof(bounds[0]); b++) {
            for (size_t n = 1; n < 100; n++)
                check_sift(stages, n, bounds[b][0], bounds[b][1]);
            check_sift(stages, MOST, bounds[b][0], bounds[b][1]);
        }
        float values[200]; /* a bound that is a value belongs to what it begins */
        fill(values, 200, 0);
        if (stages) {
            check_sift(stages, 200, values[7], values[7] + 1);
            check_sift(stages, 200, values[7] - 1, values[7]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_those_of_the_sorted_values),
        cmocka_unit_test(bounds_follow_what_is_found),
        cmocka_unit_test(values_between_bounds_are_kept_in_their_order)};
    return cmocka_run_group_tests_name("percentile", tests, NULL, NULL);
}
