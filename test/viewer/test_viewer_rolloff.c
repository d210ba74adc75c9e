/* The mirror that octd measures, in the viewer: what is kept of it, its words, and the roll-off in
 * the profile's panel. */
#include "test/rig/tap.h"
#include "test/rig/viewer_scene.h"
#include "test/rig/viewer_stage.h"
#include "viewer/draw/draw.h"
#include "viewer/model/clock.h"
#include "viewer/model/words.h"

#include <SDL.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S OCT_NS_PER_S
#define POINT 0x5cc8ffu
#define MIRROR 0xffe14du
enum { DEPTH = 100 }; /* as oct_scene_layered */

static const struct {
    const char *name;
    double value;
} numbers[] = {
    {"state", 0},         {"depth_px", 70.25},   {"depth_um", 175.6},
    {"peak_db", 56},      {"fwhm_px", 6.125},    {"fwhm_um", 15.3125},
    {"snr_db", 51.26},    {"points", 4},         {"fwhm_tissue_um", 12.25},
    {"db_per_mm", -80},   {"db_per_100px", -20}, {"minus_6db_px", 30},
    {"minus_6db_um", 75},
};
enum { N_NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

static void put(struct oct_view_image *table, const char *name, double value)
{
    struct oct_image_header *h = &table->header;
    for (unsigned i = 0; i < h->n_numbers; i++)
        if (strcmp(h->numbers[i].name, name) == 0)
            h->numbers[i].values[0] = value;
}

/* Four points that fall by 0.2 dB a pixel; the caller finishes the table. */
static struct oct_view_image table_of(uint64_t arrival_ns)
{
    static const float rows[4][2] = {{10, 68}, {30, 64}, {50, 60}, {70.25f, 56}};
    struct oct_image_header h = {.dataset = "analysis/rolloff",
                                 .frame_num = 1,
                                 .acquisition_id = "a",
                                 .type = OCT_SAMPLE_F32,
                                 .rank = 2,
                                 .dims = {4, 2},
                                 .n_labels = 2,
                                 .labels = {"depth_px", "peak_db"},
                                 .n_numbers = N_NUMBERS};
    struct oct_view_image table = {0};
    for (unsigned i = 0; i < N_NUMBERS; i++) {
        snprintf(h.numbers[i].name, sizeof(h.numbers[i].name), "%s", numbers[i].name);
        h.numbers[i].n_values = 1;
        h.numbers[i].values[0] = numbers[i].value;
    }
    assert_int_equal(oct_view_image_set(&table, &h, rows, sizeof(rows), NULL), OCT_OK);
    table.arrival_ns = arrival_ns;
    return table;
}

static void hostile_tables_leave_nothing(void **state)
{
    struct oct_view_rolloff r = {.n = 0};
    struct oct_view_image table = table_of(11 * S);
    float *values = table.values;
    oct_view_rolloff_set(&r, &table);
    assert_true(r.n == 4 && r.state == OCT_MIRROR_FOUND && r.snr_db == 51.26);
    assert_true(fabs(oct_view_rolloff_line(&r, 40.0625) - 62) < 1e-4);

    table.header.dims[0] = OCT_ROLLOFF_MOST_POINTS + 1;
    assert_int_equal(oct_view_overlay_rolloff.check(&table.header, NULL), OCT_E_FORMAT);
    table.header.dims[0] = 4;
    table.header.type = OCT_SAMPLE_U8;
    table.header.frame_num = 20;
    assert_int_equal(oct_view_overlay_rolloff.check(&table.header, NULL), OCT_E_FORMAT);
    oct_view_rolloff_set(&r, &table);
    assert_true(r.n == 4 && r.frame_num == 1);

    table.header.type = OCT_SAMPLE_F32;
    values[0] = -1;
    values[3] = NAN;
    values[4] = 1e30f;
    put(&table, "state", 1e300);
    put(&table, "snr_db", 1e300);
    put(&table, "db_per_100px", NAN);
    oct_view_rolloff_set(&r, &table);
    assert_true(r.n == 1 && r.state == OCT_MIRROR_WEAK && isnan(r.snr_db));
    assert_true(isnan(oct_view_rolloff_line(&r, 5)));
    put(&table, "state", -2);
    oct_view_rolloff_set(&r, &table);
    assert_int_equal(r.state, OCT_MIRROR_WEAK);
    oct_view_image_finish(&table);
}

static void offer(struct oct_viewer_stage *s, struct oct_view_image table)
{
    oct_view_model_offer_rolloff(&s->model, &table);
    oct_view_image_finish(&table);
}

static void words_say_width_and_rolloff(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_phrase lines[2];
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 0);
    offer(s, table_of(11 * S));
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 2);
    assert_string_equal(lines[0].text, "70.2 px: FWHM 6.12 px, 15.31 \u00b5m, SNR 51.3 dB");
    assert_string_equal(lines[1].text, "-80.00 dB/mm, -6 dB at 0.07 mm, 4 points");

    /* Without the camera's wavelengths, and with too few points for a line. */
    struct oct_view_image table = table_of(11 * S);
    static const char *const unknown[] = {"fwhm_um", "fwhm_tissue_um", "db_per_mm", "minus_6db_um"};
    for (int i = 0; i < 4; i++)
        put(&table, unknown[i], NAN);
    oct_view_model_offer_rolloff(&s->model, &table);
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 2);
    assert_string_equal(lines[0].text, "70.2 px: FWHM 6.12 px, SNR 51.3 dB");
    assert_string_equal(lines[1].text, "-20.00 dB/100 px, -6 dB at 30 px, 4 points");
    put(&table, "state", OCT_MIRROR_HARMONIC);
    put(&table, "db_per_100px", NAN);
    oct_view_model_offer_rolloff(&s->model, &table);
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 1);
    assert_non_null(strstr(lines[0].text, "no mirror: "));
    assert_non_null(strstr(lines[0].text, "saturated"));
    oct_view_image_finish(&table);

    /* Not of another acquisition, not over another picture, and not where nobody wants it. */
    snprintf(s->model.rolloff.acquisition_id, sizeof(s->model.rolloff.acquisition_id), "b");
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 0);
    offer(s, table_of(11 * S));
    s->model.shown.header.frame_num++;
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 0);
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 0);
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    s->model.shown.header.frame_num--;
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 2);
    s->model.settings.operators = true;
    oct_view_model_apply(&s->model, OCT_ACTION_ROLLOFF, 1); /* not an operator's */
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 2);
    s->model.settings.operators = false;
    oct_view_model_apply(&s->model, OCT_ACTION_ROLLOFF, 1);
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 0);
    oct_viewer_stage_close(s);
}

/* ---- drawn ---- */

static bool has_colour(const struct oct_viewer_stage *s, int x, int y, uint32_t rgb)
{
    uint32_t pixel;
    memcpy(&pixel, (const uint8_t *)s->surface->pixels + y * s->surface->pitch + 4 * x,
           sizeof(pixel));
    return (pixel & 0xffffff) == rgb;
}

/* How many pixels of a colour the panel has in columns first .. last, and their mean row. */
static unsigned count(const struct oct_viewer_stage *s, int first, int last, uint32_t rgb,
                      double *row)
{
    const struct oct_view_rect panel = oct_draw_layout(s->draw)->profile;
    unsigned n = 0;
    double sum = 0;
    for (int y = panel.y; y < panel.y + panel.h; y++)
        for (int x = first; x <= last; x++)
            if (has_colour(s, x, y, rgb)) {
                n++;
                sum += y;
            }
    *row = n ? sum / n : NAN;
    return n;
}

/* The column of a depth, as the profile's curve has it. */
static int column_of(const struct oct_viewer_stage *s, double depth_px)
{
    const struct oct_view_layout *l = oct_draw_layout(s->draw);
    const int left = 4 * l->text_px, width = l->profile.w - left - l->margin;
    return l->profile.x + left + (int)((depth_px + 0.5) / DEPTH * width);
}

static unsigned count_all(const struct oct_viewer_stage *s, uint32_t rgb)
{
    double row;
    return count(s, column_of(s, 0), column_of(s, DEPTH - 2), rgb, &row);
}

static void draw(struct oct_viewer_stage *s)
{
    s->model.message[0] = '\0';
    assert_int_equal(oct_draw_frame(s->draw, &s->model, NULL), OCT_OK);
}

static void points_and_line_lie_in_the_profile(void **state)
{
    static const double depths[] = {10, 30, 50};
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    double row, mirror, rows[3];
    s->model.settings.arrangement = OCT_ARRANGEMENT_FOUR;
    draw(s);
    assert_int_equal(count_all(s, POINT), 0);
    offer(s, table_of(11 * S));
    draw(s);
    for (int i = 0; i < 3; i++) {
        const int x = column_of(s, depths[i]);
        assert_true(count(s, x - 2, x + 2, POINT, &rows[i]) >= 9);
        assert_int_equal(count(s, x - 30, x - 12, POINT, &row), 0);
        assert_true(i == 0 || rows[i] > rows[i - 1] + 2); /* deeper is lower */
    }
    /* The newest lies over its point; as far below the third as that is below the second. */
    const int x = column_of(s, 70.25);
    assert_true(count(s, x - 2, x + 2, MIRROR, &mirror) >= 9);
    assert_true(fabs(mirror - rows[2] - (rows[2] - rows[1])) < 2);
    oct_view_model_apply(&s->model, OCT_ACTION_ROLLOFF, 1);
    draw(s);
    assert_int_equal(count_all(s, POINT), 0);
    oct_viewer_stage_close(s);
}

/* Peaks far above the published limits, in dB and in counts^2, do not leave the panel. */
static void peaks_beyond_the_limits_have_room(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_image table = table_of(11 * S);
    s->model.settings.arrangement = OCT_ARRANGEMENT_FOUR;
    for (int i = 0; i < 4; i++)
        ((float *)table.values)[2 * i + 1] += 60;
    put(&table, "peak_db", 116);
    oct_view_model_offer_rolloff(&s->model, &table);
    for (int log = 0; log < 2; log++) {
        s->model.contrast.log = log;
        draw(s);
        const struct oct_view_layout *l = oct_draw_layout(s->draw);
        const int x = column_of(s, 10);
        double row;
        assert_true(count(s, x - 2, x + 2, POINT, &row) >= 4);
        assert_true(row > l->profile.y && row < l->profile.y + l->profile.h / 2.0);
    }
    oct_view_image_finish(&table);
    oct_viewer_stage_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_tables_leave_nothing),
        cmocka_unit_test(words_say_width_and_rolloff),
        cmocka_unit_test(points_and_line_lie_in_the_profile),
        cmocka_unit_test(peaks_beyond_the_limits_have_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
