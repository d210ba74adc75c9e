/* Motion contrast of a place, against the independent reference and in scenes that are known. */
#include "analysis/flow/place.h"
#include "kernels/device/workers.h"
#include "pipeline/plan/plan.h"
#include "test/rig/flow_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- running a place ---- */

struct run {
    struct oct_flow_place_setup setup;
    struct oct_flow_optics optics;
    float *values; /* [R][M][D][2] */
    uint64_t lost; /* bit r: repeat r */

    struct oct_flow_bscan bscans[OCT_FLOW_MOST_REPEATS];
    struct oct_flow_place *place;
    struct oct_flow_found found;
};

static void init_run(struct run *run, uint32_t n_lines, uint32_t depth, unsigned n_repeats)
{
    *run = (struct run){.setup = {.n_lines = n_lines,
                                  .depth = depth,
                                  .n_repeats = n_repeats,
                                  .sigma_lines = 1,
                                  .sigma_depth = 3,
                                  .max_bulk = 0.3,
                                  .projection_px = 8}};
    assert_int_equal(oct_flow_optics_init(&run->optics, NULL, NULL, 1.36, false, NULL), OCT_OK);
}

static void find(struct run *run)
{
    const struct oct_flow_bscan *repeats[OCT_FLOW_MOST_REPEATS] = {NULL};
    const size_t n = 2 * (size_t)run->setup.n_lines * run->setup.depth;
    run->setup.optics = &run->optics;
    assert_int_equal(oct_flow_place_create(&run->place, &run->setup, NULL), OCT_OK);
    for (unsigned r = 0; r < run->setup.n_repeats; r++) {
        struct oct_flow_bscan *b = &run->bscans[r];
        assert_int_equal(oct_flow_bscan_init(b, run->setup.n_lines, run->setup.depth, NULL),
                         OCT_OK);
        oct_flow_bscan_put(b, run->values + r * n, run->setup.workers);
        repeats[r] = run->lost >> r & 1 ? NULL : b;
    }
    assert_int_equal(oct_flow_place_find(run->place, repeats, &run->found, NULL), OCT_OK);
}

static void finish(struct run *run)
{
    for (unsigned r = 0; r < run->setup.n_repeats; r++)
        oct_flow_bscan_finish(&run->bscans[r]);
    oct_flow_place_destroy(run->place);
    run->place = NULL;
}

static void run_scene(struct run *run, const struct oct_flow_scene *scene)
{
    init_run(run, scene->n_lines, scene->depth, scene->n_repeats);
    run->values = oct_flow_scene_make(scene);
    find(run);
}

static void close_scene(struct run *run)
{
    finish(run);
    free(run->values);
}

static bool is_near(const char *what, double got, double want, double most)
{
    if (fabs(got - want) <= most)
        return true;
    print_error("%s: %.6f instead of %.6f +- %.6f\n", what, got, want, most);
    return false;
}

static bool is_within(const char *what, double got, double least, double most)
{
    if (got >= least && got <= most)
        return true;
    print_error("%s: %.6f instead of %.6f to %.6f\n", what, got, least, most);
    return false;
}

/* ---- against the reference ---- */

enum { TRUTH_LINES = 96, TRUTH_DEPTH = 320, TRUTH_SAMPLES = 832 };

/* What the reference made its B with: nufft of the spectrometer's wavelengths. */
static struct oct_plan *truth_plan(const char *phantom)
{
    const struct oct_chain chain = {.dc = OCT_DC_BSCAN, .interpolation = OCT_INTERPOLATION_NUFFT};
    struct oct_calibration cal = {.n_kmap = 0};
    struct oct_geometry g;
    struct oct_plan *plan;
    char path[4096];
    const char *top = getenv("OCT_TOP");
    snprintf(path, sizeof(path), "%s/../shared/data/flow/%s/wavelengths.txt", top ? top : ".",
             phantom);
    assert_int_equal(
        oct_calibration_read_table(path, 1, &cal.wavelengths_nm, &cal.n_wavelengths, NULL), OCT_OK);
    assert_int_equal(
        oct_geometry_init(&g, TRUTH_SAMPLES, TRUTH_LINES, 4, 20, 340, OCT_SAMPLE_F32, NULL),
        OCT_OK);
    assert_int_equal(oct_plan_create(&plan, &g, &cal, &chain, NULL), OCT_OK);
    oct_calibration_finish(&cal);
    return plan;
}

/* Where the mean signal of the neighbourhood is above the noise, and no edge of a moved repeat is
 * in the window: there the reference wraps round. */
static bool is_judged(const struct oct_flow_found *f, size_t i)
{
    const size_t j = i / TRUTH_DEPTH, d = i % TRUTH_DEPTH;
    double sum = 0;
    if (j < 5 || j >= TRUTH_LINES - 5 || d <= 20 || d >= TRUTH_DEPTH - 30)
        return false;
    for (size_t line = j - 1; line <= j + 1; line++)
        for (size_t at = d - 4; at <= d + 4; at++)
            sum += (double)f->intensity[line * TRUTH_DEPTH + at];
    return sum / 27 > 2 * f->noise;
}

static void judge_maps(const struct run *run, const char *phantom, double most_z)
{
    size_t n;
    float *d = oct_flow_truth(phantom, "d", sizeof(float), &n);
    float *z = oct_flow_truth(phantom, "z_score", sizeof(float), &n);
    double worst_d = 0, worst_z = 0;
    size_t n_judged = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_judged(&run->found, i))
            continue;
        worst_d = fmax(worst_d, fabs((double)(run->found.d[i] - d[i])));
        worst_z = fmax(worst_z, fabs((double)(run->found.z[i] - z[i])));
        n_judged++;
    }
    assert_true(n_judged > n / 4);
    assert_true(is_within("d", worst_d, 0, 0.001));
    assert_true(is_within("z", worst_z, 0, most_z));
    free(d);
    free(z);
}

static void judge_truth(const char *phantom, unsigned n_repeats, double most_z)
{
    struct run run;
    size_t n;
    init_run(&run, TRUTH_LINES, TRUTH_DEPTH, n_repeats);
    run.values = oct_flow_truth(phantom, "B", sizeof(float), &n);
    if (!run.values)
        skip();
    assert_int_equal(n, 2 * (size_t)n_repeats * TRUTH_LINES * TRUTH_DEPTH);
    float *shift = oct_flow_truth(phantom, "shift_px", sizeof(float), &n);
    double *n0 = oct_flow_truth(phantom, "n0", sizeof(double), &n);
    float *variance = oct_flow_truth(phantom, "noise_var", sizeof(float), &n);
    double source[TRUTH_SAMPLES];
    for (unsigned i = 0; i < TRUTH_SAMPLES; i++)
        source[i] = (double)variance[i];
    struct oct_plan *plan = truth_plan(phantom);
    assert_int_equal(oct_flow_optics_init(&run.optics, plan, source, 1.36, false, NULL), OCT_OK);

    find(&run); /* with a noise of its own */
    assert_true(is_near("n0", run.found.noise, *n0, 0.05 * *n0));
    for (unsigned r = 0; r < n_repeats; r++)
        for (unsigned axis = 0; axis < 2; axis++)
            assert_true(
                is_near("shift", run.found.shift[r][axis], (double)shift[2 * r + axis], 0.05));
    assert_false(run.found.moved);
    finish(&run);

    run.setup.noise = *n0;
    find(&run);
    judge_maps(&run, phantom, most_z);
    close_scene(&run);
    oct_plan_destroy(plan);
    free(shift);
    free(n0);
    free(variance);
}

static void is_as_the_reference_at_fixation(void **state)
{
    judge_truth("fixation_r4_10db", 4, 0.05);
    judge_truth("fixation_r2_10db", 2, 0.05);
}

/* The bulk decorrelation of the reference has what wraps round its edges: 0.0807 for 0.0800, which
 * is 1 % of z. */
static void is_as_the_reference_in_motion(void **state)
{
    judge_truth("strong_r4_10db", 4, 0.3);
}

/* ---- still tissue, and noise ---- */

struct moments {
    double mean_d, sd_z, above_3;
};

/* Of depths first .. end - 1. */
static struct moments moments_of(const struct run *run, uint32_t first, uint32_t end)
{
    double n = 0, d = 0, z = 0, z2 = 0, above = 0;
    for (uint32_t j = 0; j < run->setup.n_lines; j++)
        for (uint32_t at = first; at < end; at++) {
            const size_t i = (size_t)j * run->setup.depth + at;
            assert_true(isfinite(run->found.z[i]));
            n++;
            d += (double)run->found.d[i];
            z += (double)run->found.z[i];
            z2 += (double)run->found.z[i] * (double)run->found.z[i];
            above += run->found.z[i] > 3;
        }
    return (struct moments){d / n, sqrt(z2 / n - z * z / n / n), above / n};
}

static const struct oct_flow_scene still = {
    .n_lines = 96, .depth = 256, .n_repeats = 4, .top = 64, .snr = 10, .noise = 1, .turns = true};

/* From 10 dB on the least deviation, 0.02, is above that of the noise. */
static void still_tissue_has_a_deviation_of_one(void **state)
{
    static const double snr_db[] = {0, 5, 10, 20}, least_sd[] = {0.8, 0.8, 0.5, 0};
    for (unsigned i = 0; i < 4; i++)
        for (unsigned repeats = 2; repeats <= 4; repeats += 2) {
            struct oct_flow_scene scene = still;
            struct run run;
            scene.snr = pow(10, snr_db[i] / 10);
            scene.n_repeats = repeats;
            scene.seed = 10 * i + repeats;
            run_scene(&run, &scene);
            const struct moments m = moments_of(&run, 80, 256);
            assert_true(is_near("mean d", m.mean_d, 0, i > 0 ? 0.01 : 0.1));
            assert_true(is_within("sd of z", m.sd_z, least_sd[i], 1.15));
            assert_true(is_within("above 3", m.above_3, 0, 0.02));
            assert_true(is_near("n0", run.found.noise, 1, 0.05));
            if (i > 0)
                assert_true(is_near("SNR", run.found.snr_db, snr_db[i], 0.7));
            close_scene(&run);
        }
}

/* The mean of |B|^2 of the darkest block of depths, by all lines and repeats. */
static double darkest_of(const float *values, const struct oct_flow_scene *s)
{
    double least = INFINITY;
    for (uint32_t first = 0; first < s->depth; first += OCT_FLOW_BLOCK) {
        double sum = 0;
        for (size_t line = 0; line < (size_t)s->n_repeats * s->n_lines; line++)
            for (uint32_t d = 2 * first; d < 2 * (first + OCT_FLOW_BLOCK); d++)
                sum += pow((double)values[line * 2 * s->depth + d], 2);
        least = fmin(least, sum / (s->n_repeats * s->n_lines * OCT_FLOW_BLOCK));
    }
    return least;
}

/* Of five dark blocks of few lines the darkest is so by chance: n0 is that of all of them. */
static void noise_is_of_all_dark_depths(void **state)
{
    enum { N_SEEDS = 24 };
    struct oct_flow_scene scene = {
        .n_lines = 24, .depth = 160, .n_repeats = 2, .top = 80, .snr = 10, .noise = 1};
    double n0 = 0, darkest = 0;
    for (scene.seed = 1; scene.seed <= N_SEEDS; scene.seed++) {
        struct run run;
        run_scene(&run, &scene);
        n0 += run.found.noise / N_SEEDS;
        darkest += darkest_of(run.values, &scene) / N_SEEDS;
        close_scene(&run);
    }
    print_message("# n0 %.3f, the darkest block %.3f\n", n0, darkest);
    assert_true(is_near("n0", n0, 1, 0.02));
    assert_true(is_within("the darkest", darkest, 0, 0.96));
}

static void noise_is_no_flow(void **state)
{
    struct oct_flow_scene scene = still;
    struct run run;
    scene.top = 1000;
    run_scene(&run, &scene);
    assert_true(is_within("above 3", moments_of(&run, 0, 256).above_3, 0, 0.015));
    assert_true(is_near("tissue", run.found.tissue, 0, 1e-3));
    assert_false(run.found.moved);
    close_scene(&run);
}

/* ---- flow ---- */

static const struct oct_flow_scene vessel = {.n_lines = 96,
                                             .depth = 256,
                                             .n_repeats = 4,
                                             .top = 64,
                                             .snr = 10,
                                             .noise = 1,
                                             .turns = true,
                                             .box = {40, 12, 120, 20},
                                             .seed = 7};

/* Means in the middle of the box, and the share of z above 3. */
static void look_at_box(const struct run *run, const uint32_t *box, double *d, double *found)
{
    double n = 0;
    *d = *found = 0;
    for (uint32_t j = box[0] + 3; j < box[0] + box[1] - 3; j++)
        for (uint32_t at = box[2] + 6; at < box[2] + box[3] - 6; at++, n++) {
            const size_t i = (size_t)j * run->setup.depth + at;
            *d += (double)run->found.d[i];
            *found += run->found.projected[i] > 3;
        }
    *d /= n;
    *found /= n;
}

static void what_is_renewed_is_found_by_every_method(void **state)
{
    /* Rayleigh amplitudes that know nothing of one another: 1 - pi / 4. */
    /* cdv: what the modulus of few samples leaves. */
    static const double d_of[] = {1, 0.52, 0.2146, 0.2146}, about[] = {0.1, 0.1, 0.05, 0.05};
    for (unsigned method = 0; method < 4; method++) {
        struct run run;
        double d, found;
        init_run(&run, vessel.n_lines, vessel.depth, vessel.n_repeats);
        run.values = oct_flow_scene_make(&vessel);
        run.setup.method = (enum oct_flow_method)method;
        run.optics.turns[0] = 0.3;
        run.optics.turns[1] = 0.7;
        find(&run);
        look_at_box(&run, vessel.box, &d, &found);
        assert_true(is_near("d", d, d_of[method], about[method]));
        if (method <= OCT_FLOW_CDV)
            assert_true(is_within("found", found, 0.95, 1));
        close_scene(&run);
    }
}

/* All repeats drift; what leaves the picture is NaN, and what is still stays still. */
static void motion_of_whole_pixels_is_undone(void **state)
{
    struct oct_flow_scene scene = vessel;
    struct run run;
    double d, found;
    scene.lines_shift = 1;
    scene.depth_shift = 5;
    run_scene(&run, &scene);
    for (unsigned r = 0; r < 4; r++) {
        assert_true(is_near("lines", run.found.shift[r][0], r, 0.3));
        assert_true(is_near("depth", run.found.shift[r][1], 5.0 * r, 0.15));
    }
    look_at_box(&run, vessel.box, &d, &found);
    assert_true(is_near("d", d, 1, 0.15));
    assert_true(is_within("found", found, 0.95, 1));
    assert_true(is_near("bulk", run.found.bulk, 0, 0.02));
    assert_true(isnan(run.found.z[100])); /* line 0 has no neighbour that came from above */
    assert_true(isnan(run.found.z[50 * 256 + 4]));
    assert_true(isfinite(run.found.z[50 * 256 + 5]));
    close_scene(&run);
}

/* The shadow's phase jitters. */
static void tails_are_projected_off(void **state)
{
    struct oct_flow_scene scene = vessel;
    double tail[2] = {0, 0}, flow[2];
    scene.snr = 100;
    scene.tail = 0.7;
    scene.box[2] = 190;
    for (unsigned k = 0; k < 2; k++) {
        struct run run;
        double d;
        init_run(&run, scene.n_lines, scene.depth, scene.n_repeats);
        run.values = oct_flow_scene_make(&scene);
        run.setup.projection = k == 1 ? 0.35 : 0;
        find(&run);
        look_at_box(&run, scene.box, &d, &flow[k]);
        for (uint32_t j = 43; j < 49; j++)
            for (uint32_t at = 226; at < 256; at++)
                tail[k] += run.found.projected[j * 256 + at] > 3;
        close_scene(&run);
    }
    assert_true(is_within("tails without it", tail[0] / 180, 0.3, 1));
    assert_true(is_within("share that stays", tail[1] / tail[0], 0, 0.5));
    assert_true(is_within("flow that stays", flow[1] / flow[0], 0.97, 1));
}

/* ---- what does not come ---- */

static void a_blink_has_moved(void **state)
{
    for (unsigned dark = 0; dark < 4; dark++) {
        struct oct_flow_scene scene = still;
        struct run run;
        const size_t n = 2 * (size_t)still.n_lines * still.depth;
        init_run(&run, still.n_lines, still.depth, still.n_repeats);
        run.values = oct_flow_scene_make(&still);
        scene.top = 1000;
        scene.seed = 9;
        float *noise = oct_flow_scene_make(&scene);
        memcpy(run.values + dark * n, noise, n * sizeof(float));
        find(&run);
        assert_true(run.found.moved);
        close_scene(&run);
        free(noise);
    }
}

static void lines_that_are_lost_are_nan(void **state)
{
    struct run run;
    init_run(&run, still.n_lines, still.depth, still.n_repeats);
    run.values = oct_flow_scene_make(&still);
    const size_t line = 2 * (size_t)still.depth, bscan = line * still.n_lines;
    for (unsigned r = 0; r < 4; r++)
        memset(run.values + r * bscan + 30 * line, 0, line * sizeof(float));
    memset(run.values + 2 * bscan + 50 * line, 0, line * sizeof(float));
    run.values[bscan + 70 * line + 100] = NAN; /* no light makes that */
    find(&run);
    for (uint32_t j = 0; j < still.n_lines; j++)
        for (uint32_t d = 0; d < still.depth; d++) {
            const size_t i = (size_t)j * still.depth + d;
            assert_int_equal(isnan(run.found.d[i]), j == 30);
            assert_int_equal(isnan(run.found.z[i]), j == 30);
            assert_int_equal(isnan(run.found.intensity[i]), j == 30);
        }
    double above = 0;
    for (uint32_t j = 20; j < 80; j++)
        for (uint32_t d = 80; d < 256; d++)
            above += run.found.z[(size_t)j * still.depth + d] > 3;
    assert_true(is_within("above 3", above / (60 * 176), 0, 0.02));
    close_scene(&run);
}

static void a_repeat_that_is_lost_leaves_fewer_pairs(void **state)
{
    struct run run;
    struct oct_flow_scene scene = vessel;
    double d, found;
    scene.snr = 3;
    init_run(&run, vessel.n_lines, vessel.depth, vessel.n_repeats);
    run.values = oct_flow_scene_make(&scene);
    run.lost = 1 << 3;
    find(&run);
    assert_int_equal(run.found.n_pairs, 2);
    assert_true(isnan(run.found.shift[3][0]) && !run.found.moved);
    look_at_box(&run, vessel.box, &d, &found);
    assert_true(is_near("d", d, 1, 0.15));
    assert_true(is_within("sd of z", moments_of(&run, 150, 256).sd_z, 0.8, 1.15));
    finish(&run);
    run.lost = 1 << 1 | 1 << 3; /* no neighbours are left */
    find(&run);
    assert_int_equal(run.found.n_pairs, 0);
    assert_true(isnan(run.found.d[5000]) && isnan(run.found.z[5000]));
    finish(&run);
    run.lost = 15;
    find(&run);
    assert_true(isnan(run.found.d[5000]) && isnan(run.found.intensity[5000]));
    close_scene(&run);
}

static void identical_repeats_are_noticed(void **state)
{
    struct run run;
    init_run(&run, still.n_lines, still.depth, 2);
    run.values = oct_flow_scene_make(&still);
    find(&run);
    assert_false(run.found.identical);
    finish(&run);
    const size_t n = 2 * (size_t)still.n_lines * still.depth;
    memcpy(run.values + n, run.values, n * sizeof(float));
    find(&run);
    assert_true(run.found.identical);
    close_scene(&run);
}

/* ---- threads ---- */

static void any_number_of_threads_makes_the_same_bytes(void **state)
{
    for (unsigned method = 0; method < 4; method++) {
        struct run alone, many;
        struct oct_workers *workers;
        assert_int_equal(oct_workers_create(&workers, 3, NULL), OCT_OK);
        init_run(&alone, vessel.n_lines, vessel.depth, vessel.n_repeats);
        alone.values = oct_flow_scene_make(&vessel);
        alone.setup.projection = 0.35;
        alone.setup.method = (enum oct_flow_method)method;
        many = alone;
        many.setup.workers = workers;
        find(&alone);
        find(&many);
        const size_t bytes = (size_t)vessel.n_lines * vessel.depth * sizeof(float);
        assert_memory_equal(alone.found.d, many.found.d, bytes);
        assert_memory_equal(alone.found.z, many.found.z, bytes);
        assert_memory_equal(alone.found.projected, many.found.projected, bytes);
        assert_memory_equal(alone.found.intensity, many.found.intensity, bytes);
        finish(&many);
        close_scene(&alone);
        oct_workers_destroy(workers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_as_the_reference_at_fixation),
        cmocka_unit_test(is_as_the_reference_in_motion),
        cmocka_unit_test(still_tissue_has_a_deviation_of_one),
        cmocka_unit_test(noise_is_of_all_dark_depths),
        cmocka_unit_test(noise_is_no_flow),
        cmocka_unit_test(what_is_renewed_is_found_by_every_method),
        cmocka_unit_test(motion_of_whole_pixels_is_undone),
        cmocka_unit_test(tails_are_projected_off),
        cmocka_unit_test(a_blink_has_moved),
        cmocka_unit_test(lines_that_are_lost_are_nan),
        cmocka_unit_test(a_repeat_that_is_lost_leaves_fewer_pairs),
        cmocka_unit_test(identical_repeats_are_noticed),
        cmocka_unit_test(any_number_of_threads_makes_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
