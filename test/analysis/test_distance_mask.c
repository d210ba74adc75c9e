/* The signed distance of a binary volume, against the nearest voxel of the other kind. */
#include "analysis/layers/denoise/distance.h"
#include "analysis/layers/denoise/levelset.h"
#include "kernels/device/workers.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAR 1e9 /* a reach beyond all */

static uint32_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

static float *distances(const uint8_t *mask, const uint32_t dims[3], double reach,
                        struct oct_workers *workers)
{
    struct oct_error err = {0};
    float *phi = calloc((size_t)dims[0] * dims[1] * dims[2], sizeof(*phi));
    assert_non_null(phi);
    assert_int_equal(oct_distance_of_mask(mask, dims, reach, workers, phi, &err), OCT_OK);
    return phi;
}

static double nearest_other(const uint8_t *mask, const uint32_t dims[3], uint32_t voxel)
{
    const uint32_t n_j = dims[1], n_d = dims[2], n = dims[0] * n_j * n_d;
    double least = INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        const double b = (double)(i / n_d / n_j) - voxel / n_d / n_j;
        const double j = (double)(i / n_d % n_j) - voxel / n_d % n_j;
        const double d = (double)(i % n_d) - voxel % n_d;
        if (!mask[i] != !mask[voxel])
            least = fmin(least, b * b + j * j + d * d);
    }
    return sqrt(least);
}

static void compare(const uint8_t *mask, const uint32_t dims[3], double reach)
{
    float *phi = distances(mask, dims, reach, NULL);
    for (uint32_t i = 0; i < dims[0] * dims[1] * dims[2]; i++) {
        const double away = fmin(nearest_other(mask, dims, i) - 0.5, reach);
        assert_true(fabs((double)phi[i] - (mask[i] ? -away : away)) < 1e-6 * (1 + away));
    }
    free(phi);
}

/* Scattered voxels of a kind, from one alone to half of all. */
static void it_is_the_distance_to_the_nearest_voxel_of_the_other_kind(void **state)
{
    static const uint32_t sizes[][3] = {{1, 1, 2},   {1, 17, 23}, {17, 1, 23}, {17, 23, 1},
                                        {9, 14, 11}, {20, 3, 8},  {2, 2, 40}};
    uint64_t seed = 3;
    for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (unsigned round = 0; round < 8; round++) {
            uint8_t mask[2048];
            const uint32_t *dims = sizes[s], n = dims[0] * dims[1] * dims[2];
            const uint32_t every = 1U << round;
            assert_true(n <= sizeof(mask));
            for (uint32_t i = 0; i < n; i++)
                mask[i] = next(&seed) % (2 * every) == 0 ? (uint8_t)(1 + next(&seed) % 255) : 0;
            mask[next(&seed) % n] = 7;
            mask[0] = !mask[n - 1]; /* both kinds are there */
            compare(mask, dims, FAR);
            for (uint32_t i = 0; i < n; i++)
                mask[i] = !mask[i];
            compare(mask, dims, FAR);
            compare(mask, dims, 2.25);
        }
}

/* Two balls with a hole in one: any topology. */
static void balls_with_holes_have_their_radii(void **state)
{
    const uint32_t dims[3] = {40, 44, 90};
    const uint32_t n = dims[0] * dims[1] * dims[2];
    uint8_t *mask = calloc(n, 1);
    assert_non_null(mask);
    for (uint32_t i = 0; i < n; i++) {
        const double b = i / dims[2] / dims[1] - 20.0, j = i / dims[2] % dims[1] - 22.0;
        const double d = i % dims[2];
        const double first = sqrt(b * b + j * j + (d - 22) * (d - 22));
        const double second = sqrt(b * b + j * j + (d - 66) * (d - 66));
        mask[i] = (first <= 15 && first > 6) || second <= 15;
    }
    float *phi = distances(mask, dims, 30, NULL);
    const float *middle = phi + (20 * dims[1] + 22) * dims[2];
    assert_true(fabsf(middle[22] - 6.0F) < 0.6F);  /* outside: in the hole */
    assert_true(fabsf(middle[66] + 15.0F) < 0.6F); /* the centre of the second */
    for (uint32_t i = 0; i < n; i++) {
        const double b = i / dims[2] / dims[1] - 20.0, j = i / dims[2] % dims[1] - 22.0;
        const double d = i % dims[2] - 66.0, true_phi = sqrt(b * b + j * j + d * d) - 15;
        if (i % dims[2] > 48 && fabs(true_phi) < 5)
            assert_true(fabs((double)phi[i] - true_phi) < 1);
    }
    free(phi);
    free(mask);
}

/* ---- a noisy ball, denoised ---- */

#define N 72u
#define CENTRE 35.3
#define RADIUS 24.0
#define PI 3.14159265358979323846

static double normal(uint64_t *state)
{
    const double u = (next(state) + 0.5) * 0x1p-31, v = (next(state) + 0.5) * 0x1p-31;
    return sqrt(-2 * log(u)) * cos(2 * PI * v);
}

/* Of the tissue, as a share of the ball's; a voxel at the border counts in part. */
static double volume_of(const float *phi)
{
    double volume = 0;
    for (uint32_t i = 0; i < N * N * N; i++)
        volume += fmin(fmax(0.5 - (double)phi[i], 0), 1);
    return volume / (4.0 / 3 * PI * RADIUS * RADIUS * RADIUS);
}

static double value_at(const float *phi, double b, double j, double d)
{
    const uint32_t at = ((uint32_t)b * N + (uint32_t)j) * N + (uint32_t)d;
    const double fb = b - floor(b), fj = j - floor(j), fd = d - floor(d);
    double sum = 0;
    for (unsigned k = 0; k < 8; k++)
        sum += (k & 1 ? fb : 1 - fb) * (k & 2 ? fj : 1 - fj) * (k & 4 ? fd : 1 - fd) *
               (double)phi[at + (k & 1) * N * N + (k >> 1 & 1) * N + (k >> 2)];
    return sum;
}

/* rms of what the surface's radius is off, along rays, nearest crossing. */
static double rms_of(const float *phi)
{
    double squares = 0;
    for (unsigned ray = 0; ray < 4000; ray++) {
        const double z = 1 - (2 * ray + 1) / 4000.0, across = sqrt(1 - z * z);
        const double x = across * cos(ray * 2.399963), y = across * sin(ray * 2.399963);
        double nearest = 8, before = NAN;
        for (double r = RADIUS - 8; r < RADIUS + 8; r += 0.125) {
            const double v = value_at(phi, CENTRE + r * x, CENTRE + r * y, CENTRE + r * z);
            if (before * v <= 0)
                nearest = fmin(nearest, fabs(r - RADIUS - 0.125 * v / (v - before)));
            before = v;
        }
        squares += nearest * nearest;
    }
    return sqrt(squares / 4000);
}

/* Normal noise of one voxel on phi, independent from voxel to voxel, then a binary mask. */
static void a_noisy_ball_keeps_its_volume(void **state)
{
    static const uint32_t dims[3] = {N, N, N};
    uint64_t seed = 5;
    uint8_t *mask = calloc((size_t)N * N * N, 1);
    float *result = calloc((size_t)N * N * N, sizeof(*result));
    assert_true(mask && result);
    for (uint32_t i = 0; i < N * N * N; i++) {
        const double b = i / N / N - CENTRE, j = i / N % N - CENTRE, d = i % N - CENTRE;
        mask[i] = sqrt(b * b + j * j + d * d) - RADIUS + normal(&seed) <= 0;
    }
    float *phi = distances(mask, dims, 8, NULL);
    assert_true(rms_of(phi) > 0.5);
    for (int p = OCT_LEVELSET_PROFILE_LOCAL; p <= OCT_LEVELSET_PROFILE_FULL; p++) {
        struct oct_levelset_setup setup = {.dims = {N, N, N}, .gpus = ""};
        struct oct_levelset_engine *engine = NULL;
        oct_levelset_params_default(&setup.params, (enum oct_levelset_profile)p);
        assert_int_equal(oct_levelset_cpu.create(&engine, &setup, NULL), OCT_OK);
        assert_int_equal(oct_levelset_cpu.denoise(engine, phi, result, NULL, NULL), OCT_OK);
        oct_levelset_cpu.destroy(engine);
        print_message("volume %.4f, rms %.3f\n", volume_of(result), rms_of(result));
        assert_true(fabs(volume_of(result) - 1) < 0.005);
        assert_true(rms_of(result) < 0.35);
    }
    free(phi);
    free(mask);
    free(result);
}

static void threads_change_no_byte(void **state)
{
    const uint32_t dims[3] = {33, 41, 29};
    const uint32_t n = dims[0] * dims[1] * dims[2];
    uint64_t seed = 11;
    uint8_t *mask = calloc(n, 1);
    assert_non_null(mask);
    for (uint32_t i = 0; i < n; i++)
        mask[i] = next(&seed) % 50 == 0;
    float *one = distances(mask, dims, 9, NULL);
    for (unsigned k = 1; k < 4; k++) {
        struct oct_workers *workers = NULL;
        assert_int_equal(oct_workers_create(&workers, k, NULL), OCT_OK);
        float *several = distances(mask, dims, 9, workers);
        assert_memory_equal(one, several, n * sizeof(*one));
        oct_workers_destroy(workers);
        free(several);
    }
    free(one);
    free(mask);
}

static void what_has_no_border_is_refused(void **state)
{
    const uint32_t dims[3] = {3, 4, 5}, empty[3] = {3, 0, 5}, long_one[3] = {1, 1, 16384};
    uint8_t mask[60] = {0};
    float phi[60];
    struct oct_error err = {0};
    assert_int_equal(oct_distance_of_mask(mask, dims, 5, NULL, phi, &err), OCT_E_ARG);
    assert_non_null(strstr(err.text, "all its voxels are 0"));
    memset(mask, 200, sizeof(mask));
    mask[3] = 1; /* set, too */
    assert_int_equal(oct_distance_of_mask(mask, dims, 5, NULL, phi, &err), OCT_E_ARG);
    assert_non_null(strstr(err.text, "all its voxels are set"));
    mask[3] = 0;
    assert_int_equal(oct_distance_of_mask(mask, dims, NAN, NULL, phi, &err), OCT_E_ARG);
    assert_int_equal(oct_distance_of_mask(mask, empty, 5, NULL, phi, &err), OCT_E_ARG);
    assert_int_equal(oct_distance_of_mask(mask, long_one, 5, NULL, phi, &err), OCT_E_ARG);
    assert_int_equal(oct_distance_of_mask(mask, dims, 5, NULL, phi, &err), OCT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_distance_to_the_nearest_voxel_of_the_other_kind),
        cmocka_unit_test(balls_with_holes_have_their_radii),
        cmocka_unit_test(a_noisy_ball_keeps_its_volume),
        cmocka_unit_test(threads_change_no_byte),
        cmocka_unit_test(what_has_no_border_is_refused),
    };
    return cmocka_run_group_tests_name("distance_mask", tests, NULL, NULL);
}
