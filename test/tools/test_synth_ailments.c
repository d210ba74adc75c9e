/* Synthetic eyes that are not well: drusen, wide vessels and their shadows, blinks, and a fovea in
 * another place. What is not asked for changes nothing. */
#include "test/rig/synth_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 120, V = 80, N = M * V, SAMPLES = 256 };

static struct oct_retina_params field_of(uint64_t seed)
{
    struct oct_retina_params params = synth_params(SAMPLES, M, V, seed);
    params.width_um = params.height_um = 1000; /* too coarse for cones */
    return params;
}

static void truth_of(const struct oct_retina_params *params, uint32_t volume,
                     struct oct_retina_truth *truth, double *axial_um)
{
    struct oct_retina *retina = synth_retina(params);
    assert_int_equal(oct_retina_truth(retina, volume, truth, NULL), OCT_OK);
    *axial_um = oct_retina_facts(retina)->axial_um;
    oct_retina_destroy(retina);
}

static void drusen_lift_the_rpe_off_bruchs_membrane(void **state)
{
    struct oct_retina_params params = field_of(3);
    struct oct_retina_truth without, with;
    double um, most = 0;
    size_t n_lifted = 0;
    truth_of(&params, 0, &without, &um);
    params.n_drusen = 16;
    truth_of(&params, 0, &with, &um);
    for (size_t i = 0; i < N; i++) {
        const double *a = without.surface_px + i, *b = with.surface_px + i;
        const double lift = (a[N * OCT_SURFACE_RPE] - b[N * OCT_SURFACE_RPE]) * um / 1.36;
        const double ilm = (a[N * OCT_SURFACE_ILM] - b[N * OCT_SURFACE_ILM]) * um / 1.36;
        assert_true(lift > -1e-9 && lift < 60 + 1e-9);
        assert_true(fabs(ilm - 0.2 * lift) < 1e-9);
        assert_true(fabs(a[N * OCT_SURFACE_BRUCH] - b[N * OCT_SURFACE_BRUCH]) < 1e-9);
        for (size_t s = 1; s < OCT_N_SURFACES; s++) /* and no layer is turned over */
            assert_true(b[N * s] > b[N * (s - 1)]);
        most = fmax(most, lift);
        n_lifted += lift > 5 ? 1 : 0;
    }
    assert_true(most > 30);
    assert_true(n_lifted > N / 50 && n_lifted < N / 2);
    oct_retina_truth_finish(&without);
    oct_retina_truth_finish(&with);
}

/* The mean square of the fringes of A-line j: of the light that comes back. */
static double light_of(const uint16_t *spectra, uint32_t j)
{
    const uint16_t *line = spectra + (size_t)j * SAMPLES;
    double sum = 0;
    for (int i = 1; i < SAMPLES; i++)
        sum += pow((double)line[i] - (double)line[i - 1], 2);
    return sum;
}

static void wide_vessels_shade_what_lies_below(void **state)
{
    struct oct_retina_params params = field_of(4);
    struct oct_retina_truth without, with;
    struct oct_retina *clear, *shaded;
    uint16_t *a = calloc(M, SAMPLES * sizeof(*a)), *b = calloc(M, SAMPLES * sizeof(*b));
    double um;
    unsigned n = 0;
    assert_true(a && b);
    truth_of(&params, 0, &without, &um);
    clear = synth_retina(&params);
    params.n_shadows = 3;
    truth_of(&params, 0, &with, &um);
    shaded = synth_retina(&params);
    for (size_t bscan = 0; bscan < V; bscan++) { /* each B-scan is crossed by all of them */
        unsigned crossed = 0;
        for (size_t j = 1; j < M; j++) {
            const double *v = with.vessel_um + bscan * M + j;
            crossed += v[0] > 40 && v[-1] <= 40 ? 1 : 0;
        }
        assert_true(crossed >= 2);
    }
    assert_int_equal(oct_retina_render(clear, 0, 40, 1, a, NULL, NULL), OCT_OK);
    assert_int_equal(oct_retina_render(shaded, 0, 40, 1, b, NULL, NULL), OCT_OK);
    double bright = 0, dark = 0;
    for (uint32_t j = 0; j < M; j++) {
        const size_t at = 40 * M + j;
        if (with.vessel_um[at] < 50 || without.vessel_um[at] > 0)
            continue;
        bright += light_of(a, j);
        dark += light_of(b, j);
        n++;
    }
    assert_true(n >= 5 && dark < 0.7 * bright);
    oct_retina_truth_finish(&without);
    oct_retina_truth_finish(&with);
    oct_retina_destroy(clear);
    oct_retina_destroy(shaded);
    free(a);
    free(b);
}

static void blinks_leave_whole_bscans_dark(void **state)
{
    static const enum oct_eye_motion motions[] = {OCT_EYE_BSCANS, OCT_EYE_NONE, OCT_EYE_FIXATION};
    for (unsigned k = 0; k < 3; k++) {
        struct oct_retina_params params = field_of(5);
        struct oct_retina_truth truth;
        uint16_t *two = calloc(2 * M, SAMPLES * sizeof(*two));
        double um;
        unsigned n_blinks = 0, first = 0;
        params.motion = motions[k];
        params.n_blinks = 3;
        truth_of(&params, 1, &truth, &um);
        assert_true(two && truth.blink);
        for (unsigned b = 0; b < V; b++) {
            const double *row = truth.blink + (size_t)b * M;
            for (unsigned j = 1; j < M; j++)
                assert_true(row[j] == row[0]);
            if (row[0] > 0 && (b == 0 || row[-M] == 0)) {
                n_blinks++;
                first = b;
            }
        }
        assert_int_equal(n_blinks, 3);
        assert_true(first > 0);
        struct oct_retina *retina = synth_retina(&params);
        assert_int_equal(oct_retina_render(retina, 0, 0, 1, two, NULL, NULL), OCT_OK);
        /* Another volume, whose blinks lie elsewhere, leaves nothing behind. */
        assert_int_equal(oct_retina_render(retina, 1, first - 1, 2, two, NULL, NULL), OCT_OK);
        double open = 0, closed = 0;
        for (uint32_t j = 0; j < M; j++) {
            open += light_of(two, j);
            closed += light_of(two, M + j);
        }
        assert_true(closed < 0.5 * open);
        oct_retina_destroy(retina);
        oct_retina_truth_finish(&truth);
        free(two);
    }
}

static void the_pit_is_where_it_was_asked_for(void **state)
{
    struct oct_retina_params params = field_of(6);
    struct oct_retina_truth truth;
    double um, least = INFINITY;
    size_t at = 0;
    params.motion = OCT_EYE_NONE;
    params.width_um = params.height_um = 1500;
    params.has_fovea = true;
    params.fovea[0] = 0.7;
    params.fovea[1] = 0.3;
    truth_of(&params, 0, &truth, &um);
    for (size_t i = 0; i < N; i++) {
        const double d = truth.surface_px[N * OCT_SURFACE_RPE + i] - truth.surface_px[i];
        if (d < least) {
            least = d;
            at = i;
        }
    }
    assert_true(fabs((double)(at % M) - 0.7 * M) < 6 && fabs((double)(at / M) - 0.3 * V) < 4);
    oct_retina_truth_finish(&truth);
}

static void what_is_not_modelled_is_refused(void **state)
{
    struct oct_retina_params params = field_of(1);
    struct oct_retina *retina;
    struct oct_error err = {0};
    params.n_drusen = OCT_RETINA_MOST_DRUSEN + 1;
    assert_int_equal(oct_retina_create(&retina, &params, &err), OCT_E_CONFIG);
    assert_non_null(strstr(err.text, "65 drusen"));
    params.n_drusen = 0;
    params.n_blinks = OCT_RETINA_MOST_BLINKS + 1;
    assert_int_equal(oct_retina_create(&retina, &params, &err), OCT_E_CONFIG);
    params.n_blinks = 0;
    params.has_fovea = true;
    params.fovea[0] = NAN;
    assert_int_equal(oct_retina_create(&retina, &params, &err), OCT_E_CONFIG);
    assert_null(retina);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drusen_lift_the_rpe_off_bruchs_membrane),
        cmocka_unit_test(wide_vessels_shade_what_lies_below),
        cmocka_unit_test(blinks_leave_whole_bscans_dark),
        cmocka_unit_test(the_pit_is_where_it_was_asked_for),
        cmocka_unit_test(what_is_not_modelled_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
