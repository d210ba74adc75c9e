/* Registration of the B-scans of a volume onto each other, on a scene known between the pixels. */
#include "test/rig/tap.h"

#include "analysis/align/prepare.h"
#include "analysis/align/volume.h"
#include "test/rig/waves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HEIGHT 72u
#define WIDTH 96u
#define N 40u

/* What B-scan b shows. */
enum kind { SCENE, OTHER_SCENE, NOISE, HALF_NOISE, CONSTANT };

struct volume {
    struct oct_waves waves, other;
    double dy[N], dx[N]; /* the shift that undoes the motion */
    enum kind kind[N];
    double noise;
    uint32_t missing; /* A-lines without data at the head of each B-scan */
    unsigned n_reads;
};

/* A walk, with a jump of 9 px at B-scan 20. */
static void volume_init(struct volume *v, double noise)
{
    memset(v, 0, sizeof(*v));
    oct_waves_init(&v->waves, 11, 5, 70);
    oct_waves_init(&v->other, 12, 5, 70);
    v->noise = noise;
    for (unsigned b = 0; b < N; b++) {
        v->dy[b] = 3.0 * sin(0.31 * b) + (b >= 20 ? 5.3 : 0);
        v->dx[b] = 2.0 * sin(0.23 * b + 1) - 2.0 * sin(1) - 0.15 * b + (b >= 20 ? 9.1 : 0);
    }
}

static enum oct_err read_bscan(void *context, uint32_t b, struct oct_picture *picture,
                               struct oct_error *err)
{
    struct volume *v = context;
    uint64_t random = 1000 + b;
    const struct oct_waves *waves = v->kind[b] == OTHER_SCENE ? &v->other : &v->waves;

    v->n_reads++;
    *picture = oct_waves_picture(waves, HEIGHT, WIDTH, v->dy[b], v->dx[b], v->noise, &random);
    for (uint32_t i = 0; i < HEIGHT * WIDTH; i++)
        if (v->kind[b] == NOISE || (v->kind[b] == HALF_NOISE && i < 24 * WIDTH))
            picture->pixels[i] = 0.02F * (float)((i * 2654435761u >> 8) % 101);
        else if (v->kind[b] == CONSTANT)
            picture->pixels[i] = 4;
    if (!v->missing)
        return OCT_OK;
    picture->valid = malloc((size_t)HEIGHT * WIDTH);
    for (uint32_t i = 0; i < HEIGHT * WIDTH; i++) {
        picture->valid[i] = i >= v->missing * WIDTH;
        if (!picture->valid[i])
            picture->pixels[i] = NAN;
    }
    (void)err;
    return OCT_OK;
}

static enum oct_err run(struct volume *v, const struct oct_volume_setup *more,
                        struct oct_volume_shift *shifts, const char **running,
                        struct oct_error *err)
{
    struct oct_volume_setup setup = *more;
    const struct oct_volume_source source = {.context = v, .n_bscans = N, .read = read_bscan};

    setup.height = HEIGHT;
    setup.width = WIDTH;
    setup.backend = "cpu";
    return oct_volume_register(&setup, &source, shifts, running, err);
}

static void find(struct volume *v, const struct oct_volume_setup *more,
                 struct oct_volume_shift shifts[N], const char **running)
{
    struct oct_error err;

    if (run(v, more, shifts, running, &err))
        fail_msg("%s", err.text);
}

static void expect_shift(const struct volume *v, const struct oct_volume_shift *shifts, unsigned b,
                         double bound)
{
    double dy = shifts[b].dy - (v->dy[b] - v->dy[0]), dx = shifts[b].dx - (v->dx[b] - v->dx[0]);

    if (!(fabs(dy) < bound && fabs(dx) < bound))
        fail_msg("B-scan %u is off by %.3f, %.3f px", b, dy, dx);
}

static const struct oct_volume_setup both_axes = {.lateral = true};

static void drift_and_jumps_are_undone_without_wandering_off(void **state)
{
    struct volume v;
    struct oct_volume_shift shifts[N];
    const char *running;

    volume_init(&v, 0.1);
    find(&v, &both_axes, shifts, &running);
    assert_string_equal(running, "cpu");
    for (unsigned b = 0; b < N; b++) {
        assert_int_equal(shifts[b].fate, OCT_VOLUME_USED);
        expect_shift(&v, shifts, b, 0.1);
        assert_true(b == 0 ? isnan(shifts[b].score) : shifts[b].score > 0.8);
    }
}

static void noise_above_the_contrast_leaves_fractions(void **state)
{
    struct volume v;
    struct oct_volume_shift shifts[N];

    volume_init(&v, 1.5);
    find(&v, &both_axes, shifts, NULL);
    for (unsigned b = 0; b < N; b++)
        expect_shift(&v, shifts, b, 0.5);
}

static void a_blink_loses_nothing_of_the_drift(void **state)
{
    struct volume v;
    struct oct_volume_shift shifts[N];

    volume_init(&v, 0.1);
    for (unsigned b = 10; b < 17; b++)
        v.kind[b] = b == 12 ? CONSTANT : NOISE;
    find(&v, &both_axes, shifts, NULL);
    for (unsigned b = 0; b < N; b++) {
        bool blank = b >= 10 && b < 17;
        assert_int_equal(shifts[b].fate, blank ? OCT_VOLUME_BLANK : OCT_VOLUME_USED);
        if (blank)
            assert_true(isnan(shifts[b].dy) && isnan(shifts[b].dx) && isnan(shifts[b].score));
        else
            expect_shift(&v, shifts, b, 0.1);
    }
}

static void the_open_part_of_a_half_closed_lid_is_registered(void **state)
{
    struct volume v;
    struct oct_volume_shift shifts[N];

    volume_init(&v, 0.1);
    v.kind[7] = HALF_NOISE;
    v.missing = 3;
    find(&v, &both_axes, shifts, NULL);
    for (unsigned b = 0; b < N; b++) {
        assert_int_equal(shifts[b].fate, OCT_VOLUME_USED);
        expect_shift(&v, shifts, b, 0.15);
    }
}

static void what_does_not_fit_is_left_out_and_a_new_place_goes_on_from_the_last_shift(void **state)
{
    struct volume v;
    struct oct_volume_shift shifts[N];
    uint8_t skip[N] = {[4] = 1};
    const struct oct_volume_setup setup = {.lateral = true, .skip = skip, .min_score = 0.5};

    volume_init(&v, 0.1);
    v.kind[8] = OTHER_SCENE;
    for (unsigned b = 25; b < N; b++)
        v.kind[b] = OTHER_SCENE;
    find(&v, &setup, shifts, NULL);
    assert_int_equal(shifts[4].fate, OCT_VOLUME_SKIPPED);
    assert_int_equal(shifts[8].fate, OCT_VOLUME_NO_FIT);
    assert_true(isnan(shifts[8].dy) && shifts[8].score < 0.5);
    assert_int_equal(shifts[25].fate, OCT_VOLUME_NEW);
    assert_true(shifts[25].dy == shifts[24].dy && shifts[25].dx == shifts[24].dx);
    for (unsigned b = 0; b < 25; b++)
        if (b != 4 && b != 8)
            expect_shift(&v, shifts, b, 0.1);
    for (unsigned b = 26; b < N; b++) { /* from then on relative to the new place */
        assert_int_equal(shifts[b].fate, OCT_VOLUME_USED);
        assert_true(fabs(shifts[b].dy - shifts[25].dy - (v.dy[b] - v.dy[25])) < 0.1);
        assert_true(fabs(shifts[b].dx - shifts[25].dx - (v.dx[b] - v.dx[25])) < 0.1);
    }
}

static void without_lateral_only_the_depth_is_shifted(void **state)
{
    struct volume v;
    struct oct_volume_shift shifts[N];
    const struct oct_volume_setup axial = {.max_dx = 20};

    volume_init(&v, 0.1);
    memset(v.dy, 0, sizeof(v.dy));
    find(&v, &axial, shifts, NULL);
    for (unsigned b = 0; b < N; b++) {
        assert_true(shifts[b].dy == 0);
        expect_shift(&v, shifts, b, 0.1);
    }
}

static void volumes_that_cannot_be_registered_are_refused(void **state)
{
    struct volume v;
    struct oct_volume_shift shifts[N];
    struct oct_error err;

    volume_init(&v, 0);
    for (unsigned b = 0; b < N; b++)
        v.kind[b] = CONSTANT;
    assert_int_equal(run(&v, &both_axes, shifts, NULL, &err), OCT_E_ARG);
    assert_non_null(strstr(err.text, "fewer than two"));
}

/* ---- what B-scans are registered by ---- */

/* Pictures of 50 x 61 that bins of 4 do not divide, uneven light and an offset in them. */
static void the_background_is_found_on_bins_too(void **state)
{
    struct oct_picture p[2];
    struct oct_error err;
    double most = 0, sum = 0;

    for (unsigned k = 0; k < 2; k++) {
        assert_int_equal(oct_picture_init(&p[k], 50, 61, true, &err), OCT_OK);
        for (uint32_t i = 0; i < 50 * 61; i++) {
            const double x = i % 61, y = i / 61;
            p[k].valid[i] = (i / 61 < 30 || i / 61 > 36) && i % 19 != 3;
            p[k].pixels[i] =
                p[k].valid[i]
                    ? (float)(5e4 + x * x + 900 * sin(0.05 * y) + 400 * sin(i * 2.1) * sin(i * i))
                    : NAN;
        }
    }
    assert_int_equal(oct_picture_flatten(&p[0], OCT_ALIGN_BACKGROUND_PX, &err), OCT_OK);
    assert_int_equal(oct_align_prepare(&p[1], &err), OCT_OK);
    for (uint32_t i = 0; i < 50 * 61; i++) {
        most = fmax(most, fabs((double)(p[0].pixels[i] - p[1].pixels[i])));
        sum += fabs((double)p[0].pixels[i]) / (50 * 61);
        assert_true(p[1].valid[i] || p[1].pixels[i] == 0);
    }
    print_message("within %.3g, %.3g in the mean\n", most, sum);
    assert_true(most < 0.15 * sum);
    oct_picture_finish(&p[0]);
    oct_picture_finish(&p[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drift_and_jumps_are_undone_without_wandering_off),
        cmocka_unit_test(noise_above_the_contrast_leaves_fractions),
        cmocka_unit_test(a_blink_loses_nothing_of_the_drift),
        cmocka_unit_test(the_open_part_of_a_half_closed_lid_is_registered),
        cmocka_unit_test(what_does_not_fit_is_left_out_and_a_new_place_goes_on_from_the_last_shift),
        cmocka_unit_test(without_lateral_only_the_depth_is_shifted),
        cmocka_unit_test(volumes_that_cannot_be_registered_are_refused),
        cmocka_unit_test(the_background_is_found_on_bins_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
