/* The most similar patches of a band, against a sort of the whole band. */
#include "analysis/layers/denoise/patch_search.h"
#include "kernels/device/workers.h"
#include "test/rig/tap.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct band {
    uint32_t dims[3], n;
    float *phi;
    uint32_t *voxels;
    bool is_exact; /* D has no rounding: equals are equal in any order of summation */
};

static double noise(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53 - 0.5;
}

/* About a sine sheet whose height every A-line changes by noise, phi a plain height. */
static void open_band(struct band *band, uint32_t n_b, uint32_t n_j, uint32_t n_d, double amount)
{
    uint64_t state = 7;
    const size_t n = (size_t)n_b * n_j * n_d;
    *band = (struct band){.dims = {n_b, n_j, n_d}};
    band->phi = calloc(n, sizeof(*band->phi));
    band->voxels = calloc(n, sizeof(*band->voxels));
    assert_non_null(band->phi);
    assert_non_null(band->voxels);
    for (uint32_t line = 0; line < n_b * n_j; line++) {
        const double height =
            n_d / 2.0 + 2 * sin(line / n_j * 0.2) * cos(line % n_j * 0.15) + amount * noise(&state);
        for (uint32_t d = 0; d < n_d; d++) {
            const double phi = height - d;
            band->phi[(size_t)line * n_d + d] = (float)phi;
            if (fabs(phi) <= 2.5)
                band->voxels[band->n++] = line * n_d + d;
        }
    }
}

static void close_band(struct band *band)
{
    free(band->phi);
    free(band->voxels);
}

/* ---- the reference ---- */

static double at(const struct band *band, int b, int j, int d)
{
    const int last[3] = {(int)band->dims[0] - 1, (int)band->dims[1] - 1, (int)band->dims[2] - 1};
    b = b < 0 ? 0 : b > last[0] ? last[0] : b;
    j = j < 0 ? 0 : j > last[1] ? last[1] : j;
    d = d < 0 ? 0 : d > last[2] ? last[2] : d;
    return (double)band->phi[((size_t)b * band->dims[1] + (size_t)j) * band->dims[2] + (size_t)d];
}

static double difference(const struct band *band, uint32_t x, uint32_t y, int patch)
{
    const uint32_t n_d = band->dims[2], n_j = band->dims[1];
    const int h = patch / 2;
    double sum = 0;
    for (int b = -h; b <= h; b++)
        for (int j = -h; j <= h; j++)
            for (int d = -h; d <= h; d++) {
                const double u = at(band, (int)(x / n_d / n_j) + b, (int)(x / n_d % n_j) + j,
                                    (int)(x % n_d) + d);
                const double v = at(band, (int)(y / n_d / n_j) + b, (int)(y / n_d % n_j) + j,
                                    (int)(y % n_d) + d);
                sum += (u - v) * (u - v);
            }
    return sum;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The kept ones have the D that they claim, ascend, are different and no other is nearer. */
static void check_query(const struct band *band, uint32_t query, unsigned patch, unsigned most,
                        const uint32_t *number, const float *distance)
{
    const unsigned kept = most < band->n - 1 ? most : band->n - 1;
    double *all = calloc(band->n, sizeof(*all)), *sorted = calloc(band->n, sizeof(*sorted));
    bool *seen = calloc(band->n, sizeof(*seen));
    unsigned n = 0;
    assert_true(all && sorted && seen);
    for (uint32_t i = 0; i < band->n; i++) {
        all[i] = difference(band, band->voxels[query], band->voxels[i], (int)patch);
        if (i != query)
            sorted[n++] = all[i];
    }
    qsort(sorted, n, sizeof(*sorted), compare);
    for (unsigned i = 0; i < kept; i++) {
        assert_true(number[i] < band->n && number[i] != query && !seen[number[i]]);
        seen[number[i]] = true;
        if (all[number[i]] > FLT_MAX)
            assert_true(isinf(distance[i]));
        else
            assert_true(fabs((double)distance[i] - all[number[i]]) <= 1e-6 * all[number[i]]);
        assert_true(fabs(all[number[i]] - sorted[i]) <= 1e-12 * sorted[i]);
        if (band->is_exact && i > 0 && all[number[i]] == all[number[i - 1]])
            assert_true(number[i] > number[i - 1]);
    }
    for (unsigned i = kept; i < most; i++)
        assert_true(number[i] == UINT32_MAX && isinf(distance[i]));
    free(all);
    free(sorted);
    free(seen);
}

static void search(const struct band *band, unsigned patch, unsigned most,
                   struct oct_workers *workers, uint32_t **number, float **distance)
{
    const struct oct_patch_search_setup setup = {
        .phi = band->phi,
        .dims = band->dims,
        .voxels = band->voxels,
        .n = band->n,
        .patch = patch,
        .most = most,
        .workers = workers,
    };
    uint64_t n_patches = 0;
    *number = calloc((size_t)band->n * most, sizeof(**number));
    *distance = calloc((size_t)band->n * most, sizeof(**distance));
    assert_true(*number && *distance);
    must(oct_patch_search(&setup, *number, *distance, &n_patches, &failure));
    assert_true(n_patches == (uint64_t)band->n * (band->n - 1));
}

static void check_band(const struct band *band, unsigned patch, unsigned most, unsigned step)
{
    uint32_t *number;
    float *distance;
    search(band, patch, most, NULL, &number, &distance);
    for (uint32_t i = 0; i < band->n; i += step)
        check_query(band, i, patch, most, number + (size_t)i * most, distance + (size_t)i * most);
    const size_t last = band->n - 1;
    check_query(band, (uint32_t)last, patch, most, number + last * most, distance + last * most);
    free(number);
    free(distance);
}

/* ---- tests ---- */

TEST(the_nearest_of_a_noisy_sheet_are_those_of_a_sort)
{
    static const double amounts[] = {0.5, 2, 6};
    for (unsigned i = 0; i < 3; i++) {
        struct band band;
        open_band(&band, 40, 37, 24, amounts[i]);
        assert_true(band.n > 6000);
        check_band(&band, 5, 96, 193);
        check_band(&band, 3, 24, 193);
        check_band(&band, 7, 33, 397);
        close_band(&band);
    }
}

TEST(of_equals_the_first_are_taken)
{
    struct band band;
    open_band(&band, 30, 30, 16, 0);
    for (uint32_t i = 0; i < 30 * 30 * 16; i++) /* a level surface: whole sheets are alike */
        band.phi[i] = 7.75f - (float)(i % 16);
    band.n = 0;
    for (uint32_t i = 0; i < 30 * 30 * 16; i++)
        if (fabsf(band.phi[i]) <= 2.5f)
            band.voxels[band.n++] = i;
    band.is_exact = true;
    check_band(&band, 5, 96, 11);
    close_band(&band);
}

TEST(a_small_band_is_kept_whole)
{
    for (uint32_t n = 1; n < 40; n += 7) {
        struct band band;
        open_band(&band, 5, 5, 12, 1);
        band.n = n;
        check_band(&band, 5, 96, 1);
        check_band(&band, 3, 5, 1);
        close_band(&band);
    }
}

TEST(threads_change_no_byte)
{
    struct band band;
    struct oct_workers *workers = NULL;
    uint32_t *one, *several;
    float *a, *b;
    open_band(&band, 50, 40, 24, 2);
    search(&band, 5, 96, NULL, &one, &a);
    for (unsigned n = 1; n < 4; n++) {
        assert_int_equal(oct_workers_create(&workers, n, NULL), OCT_OK);
        search(&band, 5, 96, workers, &several, &b);
        assert_memory_equal(one, several, (size_t)band.n * 96 * sizeof(*one));
        assert_memory_equal(a, b, (size_t)band.n * 96 * sizeof(*a));
        oct_workers_destroy(workers);
        free(several);
        free(b);
    }
    free(one);
    free(a);
    close_band(&band);
}

TEST(far_values_are_kept_apart)
{
    struct band band;
    open_band(&band, 30, 30, 20, 3);
    for (uint32_t i = 0; i < 30 * 30 * 20; i++) /* beyond the band phi may be anything finite */
        if (fabsf(band.phi[i]) > 2.5f)
            band.phi[i] *= i % 97 == 0 ? 1e20f : i % 13 == 0 ? 1000 : 1;
    check_band(&band, 5, 96, 37);
    close_band(&band);
}

TEST(what_cannot_be_is_refused)
{
    const uint32_t dims[3] = {8, 8, 8};
    struct oct_patch_search_setup setup = {.dims = dims, .n = 4, .patch = 4, .most = 24};
    must_fail(oct_patch_search(&setup, NULL, NULL, NULL, &failure), OCT_E_ARG, "patches of 4");
    setup.patch = 5;
    setup.most = 513;
    must_fail(oct_patch_search(&setup, NULL, NULL, NULL, &failure), OCT_E_ARG, "513");
    setup.most = 96;
    setup.n = OCT_PATCH_SEARCH_MOST_VOXELS + 1;
    must_fail(oct_patch_search(&setup, NULL, NULL, NULL, &failure), OCT_E_NO_MEMORY, "GB");
    setup.n = 0;
    must(oct_patch_search(&setup, NULL, NULL, NULL, &failure));
}
