/* Cells above the synthetic retina are where its truth says. */
#include "test/rig/tap.h"

#include "test/rig/synth_scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UM_A_LINE 2.5
#define FIRST SYNTH_FIRST_BSCAN
#define N_RENDERED SYNTH_N_RENDERED

static struct oct_retina_params params_of(enum oct_eye_motion motion)
{
    struct oct_retina_params params =
        synth_params(SYNTH_N_SAMPLES, SYNTH_N_LINES, SYNTH_N_BSCANS, 5);
    params.motion = motion;
    params.cells = (struct oct_cell_paths_setup){
        .n_cells = 24, .radius = 12, .slowest = 20, .fastest = 60, .n_frames = 3, .seed = 5};
    return params;
}

/* The mean intensity from 17 to 7 um above the ILM. */
static double brightness(const struct synth_scene *s, uint32_t bscan, uint32_t j, const float *mean)
{
    float values[16];
    const double ilm = synth_surface(s, OCT_SURFACE_ILM, bscan, j), um = s->facts->axial_um;
    const uint32_t first = (uint32_t)lround(ilm - 17 / um), n = (uint32_t)lround(10 / um);
    double sum = 0;
    assert_in_range(n, 1, 16);
    synth_reconstruct(s, bscan, j, mean, first, n, values);
    for (uint32_t i = 0; i < n; i++)
        sum += (double)values[i];
    return sum / n;
}

/* Where along its B-scan the cell is, by what is brighter than half; the width there. */
static void find_cell(const struct synth_scene *s, uint32_t bscan, double at, double reach,
                      double *centre, double *width)
{
    float mean[SYNTH_N_SAMPLES];
    double values[64], most = 0, sum = 0, n = 0;
    const uint32_t first = (uint32_t)(at - reach), n_lines = (uint32_t)(2 * reach) + 2;
    assert_in_range(n_lines, 1, 64);
    synth_bscan_mean(s, bscan, mean);
    for (uint32_t j = 0; j < n_lines; j++) {
        values[j] = sqrt(brightness(s, bscan, first + j, mean));
        most = fmax(most, values[j]);
    }
    for (uint32_t j = 0; j < n_lines; j++)
        if (values[j] > most / 2) {
            sum += first + j;
            n++;
        }
    *centre = sum / n;
    *width = n;
}

static void compare(enum oct_eye_motion motion)
{
    const struct oct_retina_params params = params_of(motion);
    struct synth_scene *s = synth_scene_open(&params, FIRST, N_RENDERED);
    const struct oct_retina_cells *cells = &s->truth.cells;
    unsigned n_compared = 0;
    for (size_t i = 0; i < cells->n; i++) {
        const double x = cells->px[2 * i], y = cells->px[2 * i + 1];
        const double radius = cells->radius_um[i] / UM_A_LINE;
        double centre, width;
        if (y < FIRST || lround(y) >= FIRST + N_RENDERED || x < 14 || x > SYNTH_N_LINES - 15)
            continue;
        find_cell(s, (uint32_t)lround(y) - FIRST, x, 2.5 * radius, &centre, &width);
        if (fabs(centre - x) > 1 || fabs(width - 2 * radius) > 2.5)
            fail_msg("motion %s: a cell %.1f wide at %.2f, not %.1f at %.2f",
                     oct_eye_motion_names[motion], width, centre, 2 * radius, x);
        const double time = (y + x / SYNTH_N_LINES) * SYNTH_N_LINES / params.line_rate_hz;
        assert_true(fabs(cells->time_s[i] - time) < 1e-3);
        n_compared++;
    }
    assert_in_range(n_compared, 2, 24);
    synth_scene_close(s);
}

static void cells_are_seen_where_the_truth_says(void **state)
{
    compare(OCT_EYE_NONE);
    compare(OCT_EYE_BSCANS);
}

static void cells_move_from_volume_to_volume(void **state)
{
    const struct oct_retina_params params = params_of(OCT_EYE_NONE);
    struct oct_retina *retina = synth_retina(&params);
    struct oct_retina_truth a, b;
    unsigned n_same = 0;
    assert_int_equal(oct_retina_truth(retina, 0, &a, NULL), OCT_OK);
    assert_int_equal(oct_retina_truth(retina, 1, &b, NULL), OCT_OK);
    for (size_t i = 0; i < a.cells.n; i++)
        for (size_t k = 0; k < b.cells.n; k++)
            if (a.cells.track[i] == b.cells.track[k]) {
                const double step = fabs(b.cells.um[2 * k] - a.cells.um[2 * i]);
                const double volumes = (b.cells.time_s[k] - a.cells.time_s[i]) *
                                       params.line_rate_hz / SYNTH_N_LINES / SYNTH_N_BSCANS;
                assert_true(step / volumes > 19.9 && step / volumes < 60.1);
                n_same++;
            }
    assert_in_range(n_same, 10, 24);
    oct_retina_truth_finish(&a);
    oct_retina_truth_finish(&b);
    oct_retina_destroy(retina);
}

static void without_cells_there_is_no_truth_of_any(void **state)
{
    struct oct_retina_params params = params_of(OCT_EYE_NONE);
    struct oct_retina *retina;
    struct oct_retina_truth truth;
    struct oct_error err = {.text = ""};
    params.cells.n_cells = 0;
    retina = synth_retina(&params);
    assert_int_equal(oct_retina_truth(retina, 0, &truth, &err), OCT_OK);
    assert_int_equal(truth.cells.n, 0);
    oct_retina_truth_finish(&truth);
    oct_retina_destroy(retina);
    params.cells.n_cells = 4000;
    assert_int_equal(oct_retina_create(&retina, &params, &err), OCT_E_ARG);
    assert_null(retina);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_are_seen_where_the_truth_says),
        cmocka_unit_test(cells_move_from_volume_to_volume),
        cmocka_unit_test(without_cells_there_is_no_truth_of_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
