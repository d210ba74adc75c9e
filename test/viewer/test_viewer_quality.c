/* octd's rows of the quality in the viewer: numbers and timeline. No zmq, no SDL. */
#include "test/rig/tap.h"
#include "test/rig/viewer_scene.h"
#include "viewer/model/clock.h"
#include "viewer/model/model.h"

#include <math.h>
#include <stdlib.h>

#define S OCT_NS_PER_S
#define MS OCT_NS_PER_MS

static void blinks_and_motion_stand_on_the_timeline(void **state)
{
    struct oct_view_quality *q = calloc(1, sizeof(*q));
    struct oct_view_image row = oct_scene_quality();

    assert_non_null(q);
    for (uint64_t i = 0; i < 100; i++) { /* one in each bin of 20 ms */
        bool motion = i == 50, blink = i >= 70 && i < 75;
        row.arrival_ns = 10 * S + i * 20 * MS;
        oct_scene_quality_put(&row, "snr_db", blink ? 3 : 30 + (double)i / 100);
        oct_scene_quality_put(&row, "sharpness", 5);
        oct_scene_quality_put(&row, "snr_smooth_db", 31.5);
        oct_scene_quality_put(&row, "sharpness_smooth", 4.5);
        oct_scene_quality_put(&row, "level_db", 29);
        oct_scene_quality_put(&row, "blink", blink);
        oct_scene_quality_put(&row, "motion", motion);
        oct_scene_quality_put(&row, "missing", i == 90);
        oct_scene_quality_put(&row, "blinks", i >= 70);
        oct_scene_quality_put(&row, "motions", i >= 50);
        oct_view_quality_add(q, &row);
        assert_int_equal(q->marks, motion    ? OCT_MARK_MOTION
                                   : blink   ? OCT_MARK_BLINK
                                   : i == 90 ? OCT_MARK_MISSING
                                             : 0);
    }
    assert_true(q->known && q->snr_db == 31.5 && q->sharpness == 4.5 && q->level_db == 29);
    assert_int_equal(q->n_blinks, 1);
    assert_int_equal(q->n_motions, 1);
    const struct oct_view_moment *m = oct_view_quality_moment(q, 500 + 50);
    assert_non_null(m);
    assert_int_equal(m->marks, OCT_MARK_MOTION);
    assert_true(fabs((double)m->snr_db - 30.5) < 1e-5 && m->sharpness == 5);
    assert_int_equal(oct_view_quality_moment(q, 500 + 72)->marks, OCT_MARK_BLINK);
    assert_null(oct_view_quality_moment(q, 500 + 100));
    assert_null(oct_view_quality_moment(q, 500 + 50 - OCT_VIEW_TIMELINE)); /* ten seconds before */
    oct_view_image_finish(&row);
    free(q);
}

static void a_moment_shows_the_worst_of_its_rows(void **state)
{
    static const struct {
        double snr_db, blink, motion;
    } rows[] = {{30, 0, 0}, {12, 1, 0}, {NAN, 0, 1}, {40, 0, 0}};
    struct oct_view_quality *q = calloc(1, sizeof(*q));
    struct oct_view_image row = oct_scene_quality();

    assert_non_null(q);
    row.arrival_ns = 10 * S;
    oct_scene_quality_put(&row, "snr_db", NAN); /* none of it has one yet */
    oct_view_quality_add(q, &row);
    assert_true(isnan(oct_view_quality_moment(q, 500)->snr_db));
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        oct_scene_quality_put(&row, "snr_db", rows[i].snr_db);
        oct_scene_quality_put(&row, "sharpness", 8 - i);
        oct_scene_quality_put(&row, "blink", rows[i].blink);
        oct_scene_quality_put(&row, "motion", rows[i].motion);
        row.arrival_ns += MS;
        oct_view_quality_add(q, &row);
    }
    const struct oct_view_moment *m = oct_view_quality_moment(q, 500);
    assert_true(m->snr_db == 12 && m->sharpness == 0);
    assert_int_equal(m->marks, OCT_MARK_BLINK | OCT_MARK_MOTION);
    /* Ten seconds on the ring is used again. */
    row.arrival_ns += 10 * S;
    oct_view_quality_add(q, &row);
    assert_null(oct_view_quality_moment(q, 500));
    assert_int_equal(oct_view_quality_moment(q, 1000)->marks, 0);
    assert_true(oct_view_quality_moment(q, 1000)->snr_db == 40);
    oct_view_image_finish(&row);
    free(q);
}

static void the_quality_of_hostile_rows_is_finite(void **state)
{
    static const double wild[] = {NAN, INFINITY, -INFINITY, 3e38, -3e38, 1e-40, -1};
    struct oct_view_quality *q = calloc(1, sizeof(*q));
    struct oct_view_image row = oct_scene_quality();

    assert_non_null(q);
    for (unsigned k = 0; k < 700; k++) {
        float *value = row.values;
        for (unsigned i = 0; i < row.header.n_labels; i++)
            value[i] = (float)wild[(k + i * (1 + k / 100)) % 7];
        row.arrival_ns = k * 7 * MS;
        oct_view_quality_add(q, &row);
        assert_true(isfinite(q->snr_db) && isfinite(q->sharpness) && isfinite(q->level_db));
        assert_true(q->n_blinks <= 1000000000 && q->n_motions <= 1000000000);
        const struct oct_view_moment *m = oct_view_quality_moment(q, k * 7 / 20);
        assert_non_null(m);
        assert_false(isinf(m->snr_db) || isinf(m->sharpness));
    }
    /* A row that lacks labels leaves the numbers before. */
    oct_scene_quality_put(&row, "level_db", 25);
    oct_view_quality_add(q, &row);
    for (unsigned i = 0; i < row.header.n_labels; i++)
        row.header.labels[i][0] = 'X';
    oct_view_quality_add(q, &row);
    assert_true(q->level_db == 25 && q->marks == 0);
    /* What is no such row changes nothing. */
    struct oct_view_quality before = *q;
    struct oct_error err = {0};
    row.header.n_labels = 0;
    assert_int_equal(oct_view_quality_check(&row.header, &err), OCT_E_FORMAT);
    assert_true(err.text[0] != '\0');
    oct_view_quality_add(q, &row);
    row.header.n_labels = row.header.dims[0];
    row.header.type = OCT_SAMPLE_U8;
    oct_view_quality_add(q, &row);
    row.header.type = OCT_SAMPLE_F32;
    row.header.rank = 2;
    row.header.dims[1] = row.header.dims[0];
    row.header.dims[0] = 2;
    oct_view_quality_add(q, &row);
    row.header.dims[0] = 0; /* a good one, without a row */
    assert_int_equal(oct_view_quality_check(&row.header, NULL), OCT_OK);
    oct_view_quality_add(q, &row);
    assert_memory_equal(q, &before, sizeof(before));
    row.header.dims[0] = 1;
    oct_scene_quality_put(&row, "Xlink", 1);
    row.header.labels[3][0] = 'b';
    oct_view_quality_add(q, &row);
    assert_int_equal(q->marks, OCT_MARK_BLINK);
    oct_view_image_finish(&row);
    free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blinks_and_motion_stand_on_the_timeline),
        cmocka_unit_test(a_moment_shows_the_worst_of_its_rows),
        cmocka_unit_test(the_quality_of_hostile_rows_is_finite),
    };
    return cmocka_run_group_tests_name("viewer quality", tests, NULL, NULL);
}
