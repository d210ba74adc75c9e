/* The synthetic eye that moves at every A-line: its bounds, its events, and that the picture shows
 * what the truth says. */
#include "test/rig/tap.h"

#include "test/rig/synth_scene.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define N_LINES 240u
#define N_BSCANS 240u
#define N (N_LINES * N_BSCANS)
#define LINE_S 1e-5
#define N_VOLUMES 4u

/* Four volumes, 2.3 s, of one eye. */
static void trace(enum oct_eye_motion motion, uint64_t seed, double *line_um, double *blink)
{
    struct oct_retina_params params = synth_params(256, N_LINES, N_BSCANS, seed);
    struct oct_retina *retina;

    params.motion = motion;
    retina = synth_retina(&params);
    for (uint32_t v = 0; v < N_VOLUMES; v++) {
        struct oct_retina_truth truth;
        assert_int_equal(oct_retina_truth(retina, v, &truth, NULL), OCT_OK);
        memcpy(line_um + (size_t)3 * N * v, truth.line_um, 3 * N * sizeof(double));
        memcpy(blink + (size_t)N * v, truth.blink, N * sizeof(double));
        oct_retina_truth_finish(&truth);
    }
    oct_retina_destroy(retina);
}

/* Counts the runs of A-lines for which `is` holds, and their shortest and longest in ms. */
struct runs {
    unsigned n;
    double least_ms, most_ms;
};

static struct runs runs_of(const bool *is, size_t n)
{
    struct runs runs = {.least_ms = INFINITY};

    for (size_t i = 0, begin = 0; i < n; i++) {
        if (is[i] && (i == 0 || !is[i - 1]))
            begin = i;
        if (!is[i] || (i + 1 < n && is[i + 1]))
            continue;
        double ms = (double)(i + 1 - begin) * LINE_S * 1e3;
        runs.n++;
        runs.least_ms = fmin(runs.least_ms, ms);
        runs.most_ms = fmax(runs.most_ms, ms);
    }
    return runs;
}

/* Speed along the retina over 1 ms, above which an eye is in a saccade. */
static struct runs saccades(const double *line_um, double um_s)
{
    size_t n = (size_t)N * N_VOLUMES, reach = 50;
    bool *fast = calloc(n, sizeof(bool));
    struct runs runs;

    for (size_t i = reach; i + reach < n; i++) {
        const double *a = line_um + 3 * (i - reach), *b = line_um + 3 * (i + reach);
        fast[i] = hypot(b[0] - a[0], b[1] - a[1]) > um_s * 2 * (double)reach * LINE_S;
    }
    runs = runs_of(fast, n);
    free(fast);
    return runs;
}

struct extent {
    double lateral, axial, step, axial_step;
};

static struct extent extent_of(const double *line_um, size_t n)
{
    struct extent e = {0};

    for (size_t i = 0; i < n; i++) {
        const double *m = line_um + 3 * i;
        e.lateral = fmax(e.lateral, fmax(fabs(m[0]), fabs(m[1])));
        e.axial = fmax(e.axial, fabs(m[2]));
        if (i > 0) {
            e.step = fmax(e.step, hypot(m[0] - m[-3], m[1] - m[-2]));
            e.axial_step = fmax(e.axial_step, fabs(m[2] - m[-1]));
        }
    }
    return e;
}

static void motion_is_bounded_and_goes_on_without_a_break(void **state)
{
    size_t n = (size_t)N * N_VOLUMES;
    double *line_um = malloc(3 * n * sizeof(double)), *blink = malloc(n * sizeof(double));

    trace(OCT_EYE_FIXATION, 3, line_um, blink);
    struct extent e = extent_of(line_um, n);
    assert_true(e.lateral > 15 && e.lateral <= 100 && e.axial > 5 && e.axial <= 40);
    assert_true(e.step < 0.06 && e.axial_step < 0.005);
    for (size_t i = 0; i < n; i++)
        assert_true(blink[i] == 0);
    trace(OCT_EYE_UNSTEADY, 3, line_um, blink);
    e = extent_of(line_um, n);
    assert_true(e.lateral > 50 && e.lateral <= 100 && e.axial > 12 && e.axial <= 40);
    assert_true(e.step < 0.15 && e.axial_step < 0.05);
    free(line_um);
    free(blink);
}

static void an_unsteady_eye_jumps_and_blinks_for_as_long_as_eyes_do(void **state)
{
    size_t n = (size_t)N * N_VOLUMES;
    double *line_um = malloc(3 * n * sizeof(double)), *blink = malloc(n * sizeof(double));
    bool *closed = malloc(n * sizeof(bool));

    trace(OCT_EYE_UNSTEADY, 2, line_um, blink);
    for (size_t i = 0; i < n; i++)
        closed[i] = blink[i] > 0;
    struct runs blinks = runs_of(closed, n), jumps = saccades(line_um, 1000);
    assert_in_range(blinks.n, 2, 5);
    assert_true(blinks.least_ms > 99 && blinks.most_ms < 301);
    assert_in_range(jumps.n, 5, 20);
    assert_true(jumps.least_ms > 5 && jumps.most_ms < 50);
    trace(OCT_EYE_FIXATION, 2, line_um, blink);
    jumps = saccades(line_um, 700);
    assert_in_range(jumps.n, 2, 9);
    free(line_um);
    free(blink);
    free(closed);
}

/* Amplitude of x at a frequency, over 0.4 s with a Hann window and less its mean. */
static double amplitude_um(const double *line_um, double hz)
{
    size_t n = 40000;
    double mean = 0, re = 0, im = 0;

    for (size_t i = 0; i < n; i++)
        mean += line_um[3 * i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        double hann = 1 - cos(2 * 3.14159265358979 * (double)i / (double)n);
        double angle = 2 * 3.14159265358979 * hz * (double)i * LINE_S;
        re += hann * (line_um[3 * i] - mean) * cos(angle) * 2 / (double)n;
        im += hann * (line_um[3 * i] - mean) * sin(angle) * 2 / (double)n;
    }
    return hypot(re, im);
}

static void tremor_is_a_wave_of_80_hz_below_a_micrometre(void **state)
{
    size_t n = (size_t)N * N_VOLUMES;
    double *line_um = malloc(3 * n * sizeof(double)), *blink = malloc(n * sizeof(double));
    double *quiet = NULL;

    trace(OCT_EYE_FIXATION, 5, line_um, blink);
    for (size_t i = 0; i + 40000 < n && !quiet; i += 5000) { /* a stretch without a saccade */
        struct extent e = extent_of(line_um + 3 * i, 40000);
        quiet = e.step < 0.006 ? line_um + 3 * i : NULL;
    }
    assert_non_null(quiet);
    double at = amplitude_um(quiet, 80), beside = amplitude_um(quiet, 120);
    assert_true(at > 0.15 && at < 1 && beside < 0.05);
    free(line_um);
    free(blink);
}

static void the_same_seed_moves_the_same_way_and_another_does_not(void **state)
{
    size_t n = (size_t)N * N_VOLUMES;
    double *a = malloc(4 * n * sizeof(double)), *b = malloc(4 * n * sizeof(double));

    trace(OCT_EYE_UNSTEADY, 7, a, a + 3 * n);
    trace(OCT_EYE_UNSTEADY, 7, b, b + 3 * n);
    assert_memory_equal(a, b, 4 * n * sizeof(double));
    trace(OCT_EYE_UNSTEADY, 8, b, b + 3 * n);
    assert_true(memcmp(a, b, 4 * n * sizeof(double)) != 0);
    free(a);
    free(b);
}

static void an_eye_at_rest_has_no_motion(void **state)
{
    struct oct_retina_params params = synth_params(256, 8, 4, 1);
    struct oct_retina *retina;
    struct oct_retina_truth truth;

    params.motion = OCT_EYE_NONE;
    retina = synth_retina(&params);
    assert_int_equal(oct_retina_truth(retina, 1, &truth, NULL), OCT_OK);
    for (size_t i = 0; i < 3 * 8 * 4; i++)
        assert_true(truth.line_um[i] == 0 && (i >= 2 * 8 * 4 || truth.line_px[i] == 0));
    oct_retina_truth_finish(&truth);
    oct_retina_destroy(retina);
}

/* ---- the picture ---- */

/* A field of 120 x 60 um at 0.5 x 0.25 um, much finer than the speckle: wherever the moving eye
 * looks, the one at rest has an A-line of the same place. */
#define PITCH_X_UM 0.5
#define PITCH_Y_UM 0.25
#define DEPTH_FIRST 60u
#define N_DEPTH 400u

struct pair {
    struct synth_scene *moving, *rest;
    uint32_t bscan; /* of the moving eye */
    float moving_mean[SYNTH_N_SAMPLES], rest_mean[SYNTH_N_SAMPLES];
    uint32_t first_row; /* of the B-scans of the eye at rest */
};

/* The B-scan in which x moves most, in sight of the eye at rest. */
static uint32_t busiest_bscan(const struct oct_retina_truth *truth)
{
    uint32_t best = 0;
    double most = 0;

    for (uint32_t b = 0; b < N_BSCANS; b++) {
        const double *first = truth->line_um + (size_t)3 * N_LINES * b;
        const double *last = first + (size_t)3 * (N_LINES - 1);
        double y = fmax(fabs(first[1]), fabs(last[1])) / PITCH_Y_UM, x = fabs(last[0] - first[0]);
        if (x > most && y + 1 < b && y + b + 1 < N_BSCANS &&
            truth->blink[(size_t)N_LINES * b] == 0) {
            best = b;
            most = x;
        }
    }
    assert_true(most > 3);
    return best;
}

static void line_of(const struct synth_scene *s, const float *mean, uint32_t at, uint32_t j,
                    double *amplitude)
{
    float line[N_DEPTH];

    synth_reconstruct(s, at, j, mean, DEPTH_FIRST, N_DEPTH, line);
    for (size_t d = 0; d < N_DEPTH; d++)
        amplitude[d] = sqrt((double)line[d]);
}

/* Correlation of moving [d] with rest [d - shift_px]. */
static double similarity(const double *moving, const double *rest, double shift_px)
{
    double n = 0, s[5] = {0};

    for (int d = 40; d < (int)N_DEPTH - 40; d++) {
        double at = d - shift_px, part = at - floor(at);
        int i = (int)floor(at);
        double a = moving[d], b = rest[i] + part * (rest[i + 1] - rest[i]);
        const double sums[5] = {a, b, a * a, b * b, a * b};
        for (int k = 0; k < 5; k++)
            s[k] += sums[k];
        n++;
    }
    return (s[4] - s[0] * s[1] / n) / sqrt((s[2] - s[0] * s[0] / n) * (s[3] - s[1] * s[1] / n));
}

/* Similarity of A-line j of the moving eye with the place (x, y, z) of the eye at rest. */
static double similarity_at(struct pair *p, uint32_t j, double x_um, double y_um, double z_um)
{
    double moving[N_DEPTH], rest[N_DEPTH];
    uint32_t row = (uint32_t)lround(p->bscan + y_um / PITCH_Y_UM) - p->first_row;
    uint32_t column = (uint32_t)lround(j + x_um / PITCH_X_UM);

    line_of(p->moving, p->moving_mean, 0, j, moving);
    line_of(p->rest, p->rest_mean, row, column, rest);
    return similarity(moving, rest, z_um / p->rest->facts->axial_um);
}

/* Renders the B-scan in which the eye moves most, and the rows around it of the eye at rest. */
static void pair_open(struct pair *p)
{
    struct oct_retina_params params = synth_params(SYNTH_N_SAMPLES, N_LINES, N_BSCANS, 3);
    struct oct_retina *retina;
    struct oct_retina_truth truth;

    params.width_um = N_LINES * PITCH_X_UM;
    params.height_um = N_BSCANS * PITCH_Y_UM;
    params.motion = OCT_EYE_UNSTEADY;
    retina = synth_retina(&params);
    assert_int_equal(oct_retina_truth(retina, 0, &truth, NULL), OCT_OK);
    p->bscan = busiest_bscan(&truth);
    p->moving = synth_scene_open(&params, p->bscan, 1);
    const double *first = truth.line_um + (size_t)3 * N_LINES * p->bscan;
    const double *last = first + (size_t)3 * (N_LINES - 1);
    double low = fmin(first[1], last[1]), high = fmax(first[1], last[1]);
    p->first_row = (uint32_t)floor(p->bscan + (low - 4.5) / PITCH_Y_UM);
    params.motion = OCT_EYE_NONE;
    p->rest = synth_scene_open(&params, p->first_row, 40 + (uint32_t)((high - low) / PITCH_Y_UM));
    synth_bscan_mean(p->rest, 0, p->rest_mean);
    synth_bscan_mean(p->moving, 0, p->moving_mean);
    oct_retina_truth_finish(&truth);
    oct_retina_destroy(retina);
}

static void the_picture_moves_as_the_truth_says(void **state)
{
    struct pair p;
    double sum[4] = {0};
    unsigned n = 0;

    pair_open(&p);
    for (uint32_t j = 0; j < N_LINES; j += 6) {
        const double *m = p.moving->truth.line_um + 3 * ((size_t)N_LINES * p.bscan + j);
        double column = j + m[0] / PITCH_X_UM;
        if (column < 10 || column > N_LINES - 10)
            continue;
        sum[0] += similarity_at(&p, j, m[0], m[1], m[2]);
        sum[1] += similarity_at(&p, j, m[0] + (m[0] > 0 ? -4 : 4), m[1], m[2]);
        sum[2] += similarity_at(&p, j, m[0], m[1] + (m[1] > 0 ? -4 : 4), m[2]);
        sum[3] += similarity_at(&p, j, m[0], m[1], m[2] + 3);
        n++;
    }
    assert_true(n >= 10);
    if (sum[0] < 0.98 * n || sum[1] > 0.96 * n || sum[2] > 0.96 * n || sum[3] > 0.9 * n)
        fail_msg("similarity at the truth %.3f; beside it in x %.3f, y %.3f, z %.3f (%u A-lines)",
                 sum[0] / n, sum[1] / n, sum[2] / n, sum[3] / n, n);
    synth_scene_close(p.rest);
    synth_scene_close(p.moving);
}

static void a_closed_lid_leaves_noise_alone(void **state)
{
    struct oct_retina_params params = synth_params(SYNTH_N_SAMPLES, N_LINES, N_BSCANS, 3);
    struct oct_retina *retina;
    struct oct_retina_truth truth;
    double power[2] = {0}, n[2] = {0}, amplitude[N_DEPTH];
    float mean[SYNTH_N_SAMPLES];

    params.motion = OCT_EYE_UNSTEADY;
    params.seed = 2;
    retina = synth_retina(&params);
    assert_int_equal(oct_retina_truth(retina, 0, &truth, NULL), OCT_OK);
    uint32_t b = 0;
    while (b + 1 < N_BSCANS &&
           truth.blink[(size_t)b * N_LINES] == truth.blink[(b + 1) * N_LINES - 1])
        b++;
    assert_true(b + 1 < N_BSCANS); /* the lid closes in this one */
    struct synth_scene *s = synth_scene_open(&params, b, 1);
    synth_bscan_mean(s, 0, mean);
    for (uint32_t j = 0; j < N_LINES; j++) {
        int closed = truth.blink[(size_t)b * N_LINES + j] > 0;
        line_of(s, mean, 0, j, amplitude);
        for (size_t d = 0; d < N_DEPTH; d++)
            power[closed] += amplitude[d] * amplitude[d];
        n[closed]++;
    }
    assert_true(n[0] > 0 && n[1] > 0);
    assert_true(power[0] / n[0] > 50 * power[1] / n[1]);
    synth_scene_close(s);
    oct_retina_truth_finish(&truth);
    oct_retina_destroy(retina);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(motion_is_bounded_and_goes_on_without_a_break),
        cmocka_unit_test(an_unsteady_eye_jumps_and_blinks_for_as_long_as_eyes_do),
        cmocka_unit_test(tremor_is_a_wave_of_80_hz_below_a_micrometre),
        cmocka_unit_test(the_same_seed_moves_the_same_way_and_another_does_not),
        cmocka_unit_test(an_eye_at_rest_has_no_motion),
        cmocka_unit_test(the_picture_moves_as_the_truth_says),
        cmocka_unit_test(a_closed_lid_leaves_noise_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
