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

/* ---- loops of each instruction set ---- */

static const struct oct_flow_kernels *kernels_of(const char *set)
{
    static const struct oct_flow_kernels *const sets[OCT_N_SIMD + 1] = {
        OCT_SIMD_ALL(oct_flow_kernels_table)};
    return sets[oct_simd_choose(set)];
}

static const char *const set_names[] = {"plain", "avx2", "avx512"};
enum { N_SETS = 3 };

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void the_median_is_in_the_middle(void **state)
{
    enum { MOST = 515 };
    float rad[MOST + 64], sorted[MOST];
    uint64_t seed = 1;
    (void)state;
    for (uint32_t n = 1; n <= MOST; n += n < 20 ? 1 : 33)
        for (unsigned kind = 0; kind < 4 * N_SETS; kind++) {
            const struct oct_flow_kernels *k = kernels_of(set_names[kind / 4]);
            for (uint32_t i = 0; i < n; i++) { /* spread, near, in few places, and in one */
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                const float at = (float)(seed >> 40) / (float)(1 << 23) - 1;
                rad[i] = kind % 4 == 0   ? at * 3.14159F
                         : kind % 4 == 1 ? 0.3F + at * 1e-3F
                         : kind % 4 == 2 ? roundf(3 * at)
                                         : -0.7F;
            }
            memcpy(sorted, rad, n * sizeof(*rad));
            qsort(sorted, n, sizeof(*sorted), by_value);
            const double want = 0.5 * (double)(sorted[(n - 1) / 2] + sorted[n / 2]);
            if (k)
                assert_true(
                    is_within("median", (double)k->median_angle(rad, n), want - 1e-6, want + 1e-6));
        }
}

/* By few taps, which registers hold, and by many. */
static void rows_are_smoothed(void **state)
{
    enum { MOST = 100, MARGIN = OCT_FLOW_MARGIN };
    static const unsigned n_taps[] = {1, 2, 10, 15, 16, 17, OCT_FLOW_MOST_RADIUS + 1};
    static float from[MOST + 3 * MARGIN], to[MOST + 2 * MARGIN];
    float taps[OCT_FLOW_MOST_RADIUS + 1];
    (void)state;
    for (unsigned t = 0; t <= OCT_FLOW_MOST_RADIUS; t++)
        taps[t] = 1 / (float)(t + 2);
    for (uint32_t i = 0; i < MOST + 3 * MARGIN; i++)
        from[i] = sinf((float)(i * i));
    for (unsigned i = 0; i < N_SETS * sizeof(n_taps) / sizeof(*n_taps); i++) {
        const struct oct_flow_kernels *k = kernels_of(set_names[i % N_SETS]);
        const int most = (int)n_taps[i / N_SETS];
        for (uint32_t n = 1; k && n <= MOST; n += n % 31 == 1 ? 30 : 1) {
            k->smooth(from + MARGIN, taps, (unsigned)most, n, to);
            for (uint32_t d = 0; d < n; d++) {
                const float *at = from + MARGIN + d;
                double sum = (double)taps[0] * (double)at[0];
                for (int t = 1; t < most; t++)
                    sum += (double)taps[t] * ((double)at[-t] + (double)at[t]);
                assert_true(is_within("smooth", (double)to[d], sum - 1e-5, sum + 1e-5));
            }
        }
    }
}

/* Two points of three A-lines, of which the window sees the first at the depths below 20 alone. */
static void what_is_near_is_summed(void **state)
{
    enum { STEP = 96, N = 70 };
    static const float taps[] = {0.6F, 0.2F};
    static float rows[2][3][STEP], a[3][2][STEP], b[3][2][STEP];
    (void)state;
    for (uint32_t d = 0; d < N; d++) {
        const float angle = d < 20 ? 0.19F : d < 40 ? 0.21F : d < 60 ? -0.21F : 3;
        for (unsigned i = 0; i < 3; i++) {
            rows[0][i][d] = cosf(angle) * (i == 1 ? 2 : 1);
            rows[1][i][d] = sinf(angle) * (i == 1 ? 2 : 1);
            a[i][0][d] = a[i][1][d] = (float)(i + 1);
            b[i][0][d] = 1;
            b[i][1][d] = -1;
        }
    }
    for (unsigned set = 0; set < N_SETS; set++) {
        const struct oct_flow_kernels *k = kernels_of(set_names[set]);
        const struct oct_flow_around window = {{rows[0][1], rows[1][1], rows[0][1]}, STEP, taps, 2};
        float sum[2], v[N];
        if (!k)
            continue;
        k->sum_near(&window, (struct oct_flow_line){a[0][0], a[0][1]},
                    (struct oct_flow_line){b[0][0], b[0][1]}, sizeof(a[0]) / sizeof(float), 3, N,
                    sum); /* (1 + i) conj (1 - i) = 2 i, by 1 + 2 + 3, at 20 depths */
        assert_true(is_within("re", (double)sum[0], 0, 0));
        assert_true(is_within("im", (double)sum[1], 240, 240));
        k->speed(&window, 1, 0.5F, 10, N, v); /* of light that falls as the cosine */
        for (uint32_t d = 0; d < N; d++)
            if (d < 60)
                assert_true(is_within("v", fabs((double)v[d]), d < 20 ? 1.8999 : 2.0999,
                                      d < 20 ? 1.9001 : 2.1001));
            else
                assert_true(isnan(v[d]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_median_is_in_the_middle),
        cmocka_unit_test(rows_are_smoothed),
        cmocka_unit_test(what_is_near_is_summed),
        cmocka_unit_test(is_as_the_reference),
        cmocka_unit_test(deeper_is_positive_and_bulk_is_none),
        cmocka_unit_test(lines_of_a_point_are_summed),
        cmocka_unit_test(repeats_are_registered_and_summed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
