/* Doppler: against the independent reference, and in scenes whose speed is known. */
#include "analysis/flow/velocity.h"
#include "kernels/device/workers.h"
#include "test/rig/flow_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 96, D = 320 };

static struct oct_flow_velocity *make(struct oct_flow_velocity_setup setup)
{
    struct oct_flow_velocity *velocity;
    setup.n_lines = setup.n_lines ? setup.n_lines : M;
    setup.depth = D;
    setup.line_repeats = setup.line_repeats ? setup.line_repeats : 1;
    assert_int_equal(oct_flow_velocity_create(&velocity, &setup, NULL), OCT_OK);
    return velocity;
}

static void put(struct oct_flow_bscan *b, uint32_t n_lines, const float *values)
{
    assert_int_equal(oct_flow_bscan_init(b, n_lines, D, NULL), OCT_OK);
    oct_flow_bscan_put(b, values, NULL);
}

static bool is_within(const char *what, double got, double least, double most)
{
    if (got >= least && got <= most)
        return true;
    print_error("%s: %.6f instead of %.6f to %.6f\n", what, got, least, most);
    return false;
}

/* Nothing is masked, so that all voxels compare. */
static void is_as_the_reference(void **state)
{
    size_t n;
    float *values = oct_flow_truth("fixation_r4_10db", "B", sizeof(float), &n);
    if (!values)
        skip();
    float *want = oct_flow_truth("fixation_r4_10db", "velocity_mm_s", sizeof(float), &n);
    uint8_t *still = oct_flow_truth("fixation_r4_10db", "static", 1, &n);
    double *n0 = oct_flow_truth("fixation_r4_10db", "n0", sizeof(double), &n);
    struct oct_flow_velocity *velocity =
        make((struct oct_flow_velocity_setup){.sigma_lines = 2, .sigma_depth = 3, .noise = *n0});
    float *v = malloc(sizeof(float) * M * D);
    assert_non_null(v);
    const double per_rad = -25600 / (2 * 7.48945 * 1.36) * 1e-3;
    for (unsigned r = 0; r < 4; r++) {
        struct oct_flow_bscan b;
        double sum = 0, worst = 0, n_seen = 0;
        put(&b, M, values + 2 * (size_t)r * M * D);
        oct_flow_velocity_lines(velocity, &b, per_rad, v);
        for (size_t i = 0; i < (M - 1) * D; i++) {
            if (!still[i + D] || isnan(v[i]))
                continue;
            const double error = fabs((double)(v[i] - want[r * (M - 1) * D + i]));
            sum += error;
            worst = fmax(worst, error);
            n_seen++;
        }
        for (size_t i = (M - 1) * D; i < M * D; i++)
            assert_true(isnan(v[i]));
        assert_true(is_within("voxels", n_seen, 8000, M * D));
        assert_true(is_within("mean error", sum / n_seen, 0, 0.001));
        assert_true(is_within("error", worst, 0, 0.01));
        oct_flow_bscan_finish(&b);
    }
    oct_flow_velocity_destroy(velocity);
    free(values);
    free(want);
    free(still);
    free(n0);
    free(v);
}

/* ---- scenes ---- */

/* Lines of one point, all alike but for phases: `bulk` a line, and `own` more in the box. */
static void make_moving(float *values, uint32_t n_lines, double bulk, double own)
{
    const struct oct_flow_scene scene = {
        .n_lines = 1, .depth = D, .n_repeats = 1, .top = 40, .snr = 100, .noise = 1, .seed = 3};
    float *line = oct_flow_scene_make(&scene);
    for (uint32_t j = 0; j < n_lines; j++)
        for (uint32_t d = 0; d < D; d++) {
            const double phase = j * (bulk + (d >= 100 && d < 160 ? own : 0));
            float *to = values + 2 * ((size_t)j * D + d);
            to[0] = line[2 * d] * (float)cos(phase) - line[2 * d + 1] * (float)sin(phase);
            to[1] = line[2 * d] * (float)sin(phase) + line[2 * d + 1] * (float)cos(phase);
        }
    free(line);
}

static double mean_of(const float *v, uint32_t first, uint32_t end)
{
    double sum = 0;
    for (uint32_t d = first; d < end; d++)
        sum += (double)v[d];
    return sum / (end - first);
}

/* Wavelengths that rise: what moves deeper turns backward. Bulk motion is none. */
static void deeper_is_positive_and_bulk_is_none(void **state)
{
    struct oct_flow_optics optics = {.rad_um = -2 * 7.5 * 1.36};
    const double tau = 1e-5, per_rad = oct_flow_mm_s_per_rad(&optics, tau);
    float *values = malloc(2 * sizeof(float) * M * D), *v = malloc(sizeof(float) * M * D);
    struct oct_flow_bscan b;
    assert_true(is_within("mm/s per rad", per_rad, -4.9020, -4.9019));
    make_moving(values, M, 1.1, 2 / per_rad); /* 2 mm/s deeper */
    put(&b, M, values);
    struct oct_flow_velocity *velocity =
        make((struct oct_flow_velocity_setup){.sigma_lines = 1, .sigma_depth = 3});
    oct_flow_velocity_lines(velocity, &b, per_rad, v);
    for (uint32_t j = 0; j + 1 < M; j++) {
        assert_true(is_within("in the box", mean_of(v + j * D, 115, 145), 1.98, 2.02));
        assert_true(is_within("beside it", mean_of(v + j * D, 180, 300), -0.005, 0.005));
    }
    assert_true(isnan(v[10 * D + 20])); /* no tissue */
    optics.rad_um = NAN;
    assert_true(is_within("rad", oct_flow_mm_s_per_rad(&optics, tau), -1, -1));
    oct_flow_velocity_destroy(velocity);
    oct_flow_bscan_finish(&b);
    free(values);
    free(v);
}

/* Eight A-lines a point: between points the phase jumps, which says nothing. */
static void lines_of_a_point_are_summed(void **state)
{
    float *values = malloc(2 * sizeof(float) * M * D), *v = malloc(sizeof(float) * M * D);
    struct oct_flow_bscan b;
    for (uint32_t point = 0; point < M / 8; point++)
        make_moving(values + 2 * (size_t)point * 8 * D, 8, 0.3 * point, 0.4);
    put(&b, M, values);
    struct oct_flow_velocity *velocity = make(
        (struct oct_flow_velocity_setup){.sigma_lines = 1, .sigma_depth = 3, .line_repeats = 8});
    oct_flow_velocity_lines(velocity, &b, 1, v);
    for (uint32_t point = 0; point < M / 8; point++) {
        assert_true(is_within("in the box", mean_of(v + point * D, 115, 145), 0.395, 0.405));
        assert_true(is_within("beside it", mean_of(v + point * D, 180, 300), -0.005, 0.005));
    }
    oct_flow_velocity_destroy(velocity);
    oct_flow_bscan_finish(&b);
    free(values);
    free(v);
}

/* Between B-scans that drift: each pair has its bulk phase, results lie where the first does. */
static void repeats_are_registered_and_summed(void **state)
{
    enum { R = 3 };
    const struct oct_flow_scene scene = {.n_lines = M,
                                         .depth = D,
                                         .n_repeats = R,
                                         .top = 40,
                                         .snr = 30,
                                         .noise = 1,
                                         .depth_shift = 4,
                                         .turns = true,
                                         .seed = 5};
    float *values = oct_flow_scene_make(&scene), *v = malloc(sizeof(float) * M * D);
    struct oct_flow_bscan bscans[R];
    const struct oct_flow_bscan *repeats[R];
    struct oct_workers *workers;
    for (unsigned r = 0; r < R; r++) {
        for (uint32_t j = 0; j < M; j++) /* what lies at 100 to 160 in the first turns by 0.6 */
            for (uint32_t d = 100 - 4 * r; d < 160 - 4 * r; d++) {
                float *at = values + 2 * (((size_t)r * M + j) * D + d);
                const float re = at[0], im = at[1];
                at[0] = re * cosf(0.6F * (float)r) - im * sinf(0.6F * (float)r);
                at[1] = re * sinf(0.6F * (float)r) + im * cosf(0.6F * (float)r);
            }
        put(&bscans[r], M, values + 2 * (size_t)r * M * D);
        repeats[r] = &bscans[r];
    }
    assert_int_equal(oct_workers_create(&workers, 2, NULL), OCT_OK);
    float *again = malloc(sizeof(float) * M * D);
    for (unsigned k = 0; k < 2; k++) {
        struct oct_flow_velocity *velocity = make((struct oct_flow_velocity_setup){
            .sigma_lines = 1, .sigma_depth = 3, .workers = k ? workers : NULL});
        assert_int_equal(oct_flow_velocity_bscans(velocity, repeats, R, 1, k ? again : v, NULL),
                         OCT_OK);
        oct_flow_velocity_destroy(velocity);
    }
    assert_memory_equal(v, again, sizeof(float) * M * D);
    double box = 0, beside = 0;
    for (uint32_t j = 0; j < M; j++) {
        box += mean_of(v + (size_t)j * D, 115, 145) / M;
        beside += mean_of(v + (size_t)j * D, 180, 300) / M;
    }
    assert_true(is_within("in the box", box, 0.57, 0.63));
    assert_true(is_within("beside it", beside, -0.02, 0.02));
    oct_workers_destroy(workers);
    for (unsigned r = 0; r < R; r++)
        oct_flow_bscan_finish(&bscans[r]);
    free(values);
    free(again);
    free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_as_the_reference),
        cmocka_unit_test(deeper_is_positive_and_bulk_is_none),
        cmocka_unit_test(lines_of_a_point_are_summed),
        cmocka_unit_test(repeats_are_registered_and_summed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
