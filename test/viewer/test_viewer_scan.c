/* The scan changed from the window: the list, a line drawn on the picture from above, Average, and
 * what octd refuses. */
#include "pipeline/base/clock.h"
#include "test/rig/tap.h"
#include "test/rig/viewer_daemon.h"
#include "test/rig/viewer_scene.h"
#include "test/rig/viewer_stage.h"
#include "viewer/model/buttons.h"
#include "viewer/model/words.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define S OCT_NS_PER_S
#define DEG (180 / 3.14159265358979323846)

/* An octd with two scans in its list, and a window on it. */
struct desk {
    struct oct_viewer_stage *stage;
    struct oct_view_model *model;
    struct oct_view_daemon octd;
};

static void hear(struct desk *k, enum oct_view_wish wish, bool ok, const char *text)
{
    oct_view_model_tick(k->model, k->model->now_ns + S / 10);
    k->octd.answer_ns = k->model->now_ns;
    oct_scene_hear(k->model, &k->octd, wish, ok, text);
}

static void open_desk(struct desk *k, enum oct_scan_pattern pattern)
{
    *k = (struct desk){.stage = oct_viewer_stage_open()};
    k->model = &k->stage->model;
    k->octd = (struct oct_view_daemon){
        .known = true,
        .reachable = true,
        .state = "running",
        .average_bscans = 1,
        .lateral_um = 25,
        .slow_um = 50,
        .scan = {.pattern = pattern,
                 .n_lines = 120,
                 .n_bscans = 40,
                 .width_um = 3000,
                 .height_um = 2000,
                 .centre_um = {500, -300}},
        .scans = {.has_number = true,
                  .number = 1,
                  .is_listed = true,
                  .running = "Volume",
                  .n = 2,
                  .name = {"Volume", "Star"}},
    };
    k->model->has_control = true;
    hear(k, OCT_WISH_NONE, true, "");
}

static void close_desk(struct desk *k)
{
    oct_viewer_stage_close(k->stage);
}

static void act(struct desk *k, enum oct_view_action action)
{
    oct_view_model_apply(k->model, action, 1);
}

/* octd began it. */
static void scan_is(struct desk *k, const char *name, const struct oct_scan *scan)
{
    k->octd.scans.number++;
    k->octd.scans.is_listed = name != NULL;
    snprintf(k->octd.scans.running, sizeof(k->octd.scans.running), "%s", name ? name : "");
    k->octd.scan = *scan;
}

/* Images from above of so many rows and columns, until one is taken. */
static void see_above(struct desk *k, uint32_t rows, uint32_t columns, const char *acquisition,
                      float value)
{
    struct oct_view_image image = oct_scene_enface(rows, columns);
    snprintf(image.header.acquisition_id, sizeof(image.header.acquisition_id), "%s", acquisition);
    image.header.spacing_um[0] = image.header.spacing_um[1] = 20;
    for (uint32_t b = 0; b < rows; b++)
        oct_scene_enface_fill(&image, b, value);
    for (unsigned turn = 0; turn < 2; turn++) {
        oct_view_overlay_take(k->model, &oct_view_overlay_enface, &image);
        hear(k, OCT_WISH_NONE, true, "");
    }
    image.arrival_ns = k->model->now_ns;
    oct_view_overlay_take(k->model, &oct_view_overlay_enface, &image);
    oct_view_image_finish(&image);
}

static void must_ask(struct desk *k, enum oct_view_wish wish, const char *text)
{
    char asked[OCT_VIEW_LABEL_BYTES] = "";
    assert_int_equal(oct_view_model_take_wish(k->model, asked), wish);
    if (wish != OCT_WISH_NONE)
        assert_string_equal(asked, text);
}

/* octd is asked for a way: its pattern, centre, angle, width. */
static struct oct_scan way_asked(struct desk *k, char asked[OCT_VIEW_LABEL_BYTES])
{
    struct oct_scan way = {.n_lines = 120, .n_bscans = 40};
    asked[0] = '\0';
    assert_int_equal(oct_view_model_take_wish(k->model, asked), OCT_WISH_SCAN_KEYS);
    cJSON *keys = cJSON_Parse(asked);
    assert_int_equal(cJSON_GetArraySize(keys), 5);
    const char *pattern = cJSON_GetStringValue(cJSON_GetObjectItem(keys, "pattern"));
    while (strcmp(oct_scan_pattern_names[way.pattern], pattern) != 0)
        way.pattern++;
    way.centre_um[0] = cJSON_GetObjectItem(keys, "centre_x_um")->valuedouble;
    way.centre_um[1] = cJSON_GetObjectItem(keys, "centre_y_um")->valuedouble;
    way.angle_deg = cJSON_GetObjectItem(keys, "angle_deg")->valuedouble;
    way.width_um = cJSON_GetObjectItem(keys, "width_um")->valuedouble;
    cJSON_Delete(keys);
    return way;
}

static void must_be(const struct oct_scan *way, double x, double y, double deg, double um)
{
    assert_true(fabs(way->centre_um[0] - x) < 0.1 && fabs(way->centre_um[1] - y) < 0.1);
    assert_true(fabs(way->angle_deg - deg) < 0.02 && fabs(way->width_um - um) < 0.1);
}

static void mouse(struct desk *k, uint32_t type, double x, double y)
{
    SDL_Event event = {.type = type};
    if (type == SDL_MOUSEMOTION) {
        event.motion.x = (int)lround(x);
        event.motion.y = (int)lround(y);
    } else {
        event.button.button = SDL_BUTTON_LEFT;
        event.button.x = (int)lround(x);
        event.button.y = (int)lround(y);
    }
    oct_view_input_take(&k->stage->input, &event, k->model, k->stage->draw, 1);
}

/* Between shares of the picture from above. */
static void drag(struct desk *k, double x0, double y0, double x1, double y1)
{
    const struct oct_view_rect r = oct_viewer_stage_draw(k->stage)->enface_at;
    assert_true(r.w > 0);
    mouse(k, SDL_MOUSEBUTTONDOWN, r.x + x0 * r.w, r.y + y0 * r.h);
    mouse(k, SDL_MOUSEMOTION, r.x + x1 * r.w, r.y + y1 * r.h);
    oct_viewer_stage_draw(k->stage);
    mouse(k, SDL_MOUSEBUTTONUP, r.x + x1 * r.w, r.y + y1 * r.h);
}

/* ---- places ---- */

/* Shares of the picture are places of the A-lines whose pixels they are, however the scan is moved
 * and turned; and the way back is the same. */
TEST(a_place_on_rows_is_that_of_its_a_line)
{
    static struct desk k;
    open_desk(&k, OCT_SCAN_RASTER);
    k.octd.scan.angle_deg = 30;
    hear(&k, OCT_WISH_NONE, true, "");
    see_above(&k, 40, 120, "a", 30);
    for (uint32_t b = 0; b < 40; b += 13)
        for (uint32_t j = 0; j < 120; j += 17) {
            double um[2], place[2], share[2];
            oct_scan_position(&k.octd.scan, b, j, um);
            assert_true(oct_view_above_um(
                k.model, (const double[2]){(j + 0.5) / 120, (b + 0.5) / 40}, place));
            assert_true(hypot(um[0] - place[0], um[1] - place[1]) < 1e-6);
            assert_true(oct_view_above_share(k.model, um, share));
            assert_true(hypot(share[0] - (j + 0.5) / 120, share[1] - (b + 0.5) / 40) < 1e-9);
        }
    close_desk(&k);
}

/* A gridded one lies as the field, its middle in the middle of the pattern. */
TEST(a_place_on_a_gridded_picture_is_um_from_its_middle)
{
    static struct desk k;
    double um[2], share[2];
    open_desk(&k, OCT_SCAN_RADIAL);
    k.octd.scan.angle_deg = 30;
    hear(&k, OCT_WISH_NONE, true, "");
    see_above(&k, 150, 150, "a", 30); /* of 20 um: 3 mm */
    assert_true(oct_view_above_um(k.model, (const double[2]){0.5, 0.5}, um));
    assert_true(hypot(um[0] - 500, um[1] + 300) < 1e-6);
    assert_true(oct_view_above_um(k.model, (const double[2]){1, 0.25}, um));
    assert_true(hypot(um[0] - 2000, um[1] + 1050) < 1e-6);
    assert_true(oct_view_above_share(k.model, um, share));
    assert_true(hypot(share[0] - 1, share[1] - 0.25) < 1e-9);
    close_desk(&k);
}

TEST(what_is_no_map_has_no_places)
{
    static struct desk k;
    double um[2];
    open_desk(&k, OCT_SCAN_RASTER);
    assert_false(oct_view_above_um(k.model, (const double[2]){0, 0}, um)); /* nothing came */
    act(&k, OCT_ACTION_LINE);
    assert_string_equal(k.model->message, "there is no picture from above yet to draw a line on");
    k.octd.scan.height_um = 0; /* unknown */
    hear(&k, OCT_WISH_NONE, true, "");
    see_above(&k, 40, 120, "a", 30);
    assert_false(oct_view_above_um(k.model, (const double[2]){0, 0}, um));
    act(&k, OCT_ACTION_LINE);
    assert_false(k.model->scan.draws);
    assert_non_null(strstr(k.model->message, "is not known (scan.width_um"));
    k.octd.scan.height_um = 2000;
    k.octd.scan.pattern = OCT_SCAN_FILE;
    hear(&k, OCT_WISH_NONE, true, "");
    see_above(&k, 150, 150, "b", 30);
    assert_false(oct_view_above_um(k.model, (const double[2]){0, 0}, um));
    close_desk(&k);
}

/* ---- a line drawn ---- */

TEST(a_line_is_drawn_on_the_picture_from_above)
{
    static struct desk k;
    char asked[OCT_VIEW_LABEL_BYTES];
    open_desk(&k, OCT_SCAN_RASTER);
    see_above(&k, 40, 120, "a", 30);
    k.model->settings.arrangement = OCT_ARRANGEMENT_TWO;
    drag(&k, 0.25, 0.5, 0.75, 0.5); /* without the tool it is nothing */
    must_ask(&k, OCT_WISH_NONE, "");
    k.model->settings.arrangement = OCT_ARRANGEMENT_ALONE;
    act(&k, OCT_ACTION_LINE);
    assert_true(k.model->scan.draws && k.model->settings.arrangement == OCT_ARRANGEMENT_TWO);
    drag(&k, 0.5, 0.5, 0.53, 0.5);
    assert_string_equal(k.model->message, "too short: a line is 0.2 mm long or more");
    must_ask(&k, OCT_WISH_NONE, "");
    drag(&k, 0.25, 0.5, 0.75, 0.5);
    struct oct_scan line = way_asked(&k, asked);
    assert_int_equal(line.pattern, OCT_SCAN_LINE);
    assert_true(fabs(line.centre_um[0] - 500) < 10 && fabs(line.centre_um[1] + 300) < 10);
    assert_true(fabs(line.width_um - 1500) < 20 && line.angle_deg == 0);
    assert_true(k.model->scan.draws); /* another may follow */
    close_desk(&k);
}

/* However it is drawn, the left end of the line is that of its B-scan. */
TEST(a_line_drawn_backwards_mirrors_no_eye)
{
    static struct desk k;
    char asked[2][OCT_VIEW_LABEL_BYTES];
    open_desk(&k, OCT_SCAN_RASTER);
    see_above(&k, 40, 120, "a", 30);
    k.model->scan.draws = true;
    for (int i = 0; i < 2; i++) {
        const double ends[2][2] = {{0.2, 0.8}, {0.6, 0.3}};
        oct_view_scan_draw(k.model, ends[i], ends[1 - i]);
        oct_view_scan_release(k.model);
        struct oct_scan line = way_asked(&k, asked[i]);
        must_be(&line, 500 - 0.1 * 3000, -300 + 0.05 * 2000, atan2(-1000, 1200) * DEG,
                hypot(1000, 1200));
        hear(&k, OCT_WISH_SCAN_KEYS, true, asked[i]);
    }
    assert_string_equal(asked[0], asked[1]);
    close_desk(&k);
}

/* A line has no picture from above: that of before stays, with its places, and the line lies on it
 * where it was drawn. */
TEST(the_picture_from_above_stays_while_a_line_runs)
{
    static struct desk k;
    char asked[OCT_VIEW_LABEL_BYTES];
    struct oct_view_phrase title;
    open_desk(&k, OCT_SCAN_RASTER);
    see_above(&k, 40, 120, "a", 30);
    k.model->settings.arrangement = OCT_ARRANGEMENT_TWO;
    const double before = oct_view_model_enface_proportion(k.model);
    const double from[2] = {0.2, 0.8}, to[2] = {0.6, 0.3};
    k.model->scan.draws = true;
    oct_view_scan_draw(k.model, from, to);
    oct_view_scan_release(k.model);
    struct oct_scan line = way_asked(&k, asked);
    scan_is(&k, NULL, &line);
    k.octd.lateral_um = 10;
    k.octd.slow_um = NAN;
    hear(&k, OCT_WISH_SCAN_KEYS, true, asked);
    assert_true(oct_view_scan_is_placed(k.model));
    see_above(&k, 40, 120, "b", 55);
    assert_true(oct_view_enface_row(&k.model->enface, 3)[5] == 30);
    assert_true(oct_view_model_enface_proportion(k.model) == before);
    k.model->scan.draws = false;
    oct_view_enface_text(k.model, &title);
    assert_string_equal(title.text, "en face, before this scan");
    const struct oct_view_rect r = oct_viewer_stage_draw(k.stage)->enface_at;
    unsigned n_lit = 0, n = 0;
    for (double t = 0.1; t < 0.9; t += 0.01, n++) {
        const double x = r.x + (from[0] + t * (to[0] - from[0])) * r.w;
        const double y = r.y + (from[1] + t * (to[1] - from[1])) * r.h;
        const struct oct_view_rect at = {(int)x - 1, (int)y - 1, 3, 3};
        for (int i = 0; i < 9; i++) {
            const uint32_t rgb = oct_viewer_stage_pixel(k.stage, at.x + i % 3, at.y + i / 3);
            if ((rgb >> 8 & 0xff) > (rgb >> 16 & 0xff) + 20) { /* greener than greys are */
                n_lit++;
                break;
            }
        }
    }
    assert_true(n_lit > 0.95 * n);
    act(&k, OCT_ACTION_LINE); /* back */
    must_ask(&k, OCT_WISH_SCAN, "Volume");
    close_desk(&k);
}

/* Images of the next scan wait for the status that says which it is: places of one scan are not
 * read as those of another. */
TEST(an_image_waits_for_its_scan)
{
    static struct desk k;
    struct oct_view_image image = oct_scene_enface(150, 150);
    open_desk(&k, OCT_SCAN_RASTER);
    see_above(&k, 40, 120, "a", 30);
    snprintf(image.header.acquisition_id, sizeof(image.header.acquisition_id), "b");
    image.header.spacing_um[1] = 20;
    oct_view_model_tick(k.model, k.model->now_ns + S);
    oct_view_overlay_take(k.model, &oct_view_overlay_enface, &image);
    assert_int_equal(k.model->enface.n_rows, 40);
    struct oct_scan star = k.octd.scan;
    star.pattern = OCT_SCAN_RADIAL;
    scan_is(&k, "Star", &star);
    k.octd.pending = true;
    hear(&k, OCT_WISH_NONE, true, "");
    oct_view_overlay_take(k.model, &oct_view_overlay_enface, &image);
    assert_int_equal(k.model->enface.n_rows, 40);
    assert_false(oct_view_model_enface_is_gridded(k.model)); /* it is still that of the rows */
    k.octd.pending = false;
    hear(&k, OCT_WISH_NONE, true, "");
    oct_view_overlay_take(k.model, &oct_view_overlay_enface, &image);
    assert_int_equal(k.model->enface.n_rows, 150);
    assert_true(oct_view_model_enface_is_gridded(k.model));
    oct_view_image_finish(&image);
    close_desk(&k);
}

/* ---- the list ---- */

static void tap_row(struct desk *k, unsigned row)
{
    const struct oct_view_layout *l = oct_viewer_stage_draw(k->stage);
    assert_true(l->list.w > 0 && row < l->n_rows);
    assert_true(l->row_height >= 44);
    const double y = l->list.y + (row + 1.5) * l->row_height;
    mouse(k, SDL_MOUSEBUTTONDOWN, l->list.x + l->list.w / 2., y);
    mouse(k, SDL_MOUSEBUTTONUP, l->list.x + l->list.w / 2., y);
}

static const struct oct_view_button *scan_button(struct desk *k)
{
    static struct oct_view_button b[OCT_VIEW_MOST_BUTTONS];
    for (unsigned i = oct_view_buttons(k->model, b); i > 0; i--)
        if (b[i - 1].action == OCT_ACTION_SCAN)
            return &b[i - 1];
    return NULL;
}

TEST(a_scan_is_chosen_from_the_sites_list)
{
    static struct desk k;
    open_desk(&k, OCT_SCAN_RASTER);
    for (int operators = 0; operators < 2; operators++) {
        k.model->settings.operators = operators;
        assert_true(scan_button(&k) && scan_button(&k)->look == OCT_BUTTON_PLAIN);
    }
    act(&k, OCT_ACTION_SCAN);
    assert_int_equal(scan_button(&k)->look, OCT_BUTTON_ON);
    assert_true(oct_view_scans_row_runs(k.model, 0) && !oct_view_scans_row_runs(k.model, 1));
    tap_row(&k, 1);
    assert_false(oct_view_scans_are_shown(k.model));
    must_ask(&k, OCT_WISH_SCAN, "Star");
    assert_string_equal(oct_view_wish_rows[OCT_WISH_SCAN].with, "to");
    assert_true(oct_view_scan_changes(k.model));
    hear(&k, OCT_WISH_NONE, true, "");
    assert_true(oct_view_scans_row_runs(k.model, 0)); /* as octd says, not as was wished */
    struct oct_scan star = k.octd.scan;
    star.pattern = OCT_SCAN_RADIAL;
    scan_is(&k, "Star", &star);
    hear(&k, OCT_WISH_SCAN, true, "Star");
    assert_string_equal(k.model->message, "octd confirms: the scan Star");
    assert_true(oct_view_scans_row_runs(k.model, 1));
    act(&k, OCT_ACTION_SCAN);
    tap_row(&k, 1);
    assert_string_equal(k.model->message, "Star runs already");
    must_ask(&k, OCT_WISH_NONE, "");
    close_desk(&k);
}

/* Its button says which runs; in the lab cells and mirrors need its place. */
TEST(the_scans_button_says_what_runs)
{
    static struct desk k;
    open_desk(&k, OCT_SCAN_RASTER);
    assert_string_equal(scan_button(&k)->label, "Scan Volume");
    struct oct_scan line = {.pattern = OCT_SCAN_LINE};
    scan_is(&k, NULL, &line);
    hear(&k, OCT_WISH_NONE, true, "");
    assert_string_equal(scan_button(&k)->label, "Scan line");
    assert_int_equal(scan_button(&k)->look, OCT_BUTTON_ON);
    k.octd.n_analyses = 1;
    snprintf(k.octd.analysis[0].name, sizeof(k.octd.analysis[0].name), "cells");
    hear(&k, OCT_WISH_NONE, true, "");
    assert_null(scan_button(&k));
    k.model->settings.operators = true;
    assert_non_null(scan_button(&k));
    close_desk(&k);
}

TEST(without_a_list_there_is_no_button)
{
    static struct desk k;
    open_desk(&k, OCT_SCAN_RASTER);
    k.octd.scans.n = 0;
    hear(&k, OCT_WISH_NONE, true, "");
    assert_null(scan_button(&k));
    act(&k, OCT_ACTION_SCAN);
    assert_string_equal(k.model->message, "octd has no list of scans (scan.choices)");
    assert_false(oct_view_scans_are_shown(k.model));
    act(&k, OCT_ACTION_AVERAGE); /* as ever */
    must_ask(&k, OCT_WISH_AVERAGE, "8");
    close_desk(&k);
}

TEST(what_octd_refuses_is_said_in_its_words)
{
    static struct desk k;
    open_desk(&k, OCT_SCAN_RASTER);
    act(&k, OCT_ACTION_SCAN);
    tap_row(&k, 1);
    must_ask(&k, OCT_WISH_SCAN, "Star");
    hear(&k, OCT_WISH_SCAN, false, "no driver follows");
    assert_string_equal(k.model->message, "octd refused the scan: no driver follows");
    assert_true(oct_view_scans_row_runs(k.model, 0) && !oct_view_scan_changes(k.model));
    close_desk(&k);
}

/* Neither the change itself nor the time until the first picture is a fault; a driver that does not
 * follow is. */
TEST(a_change_of_the_scan_is_no_alarm)
{
    static struct desk k;
    struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS];
    struct oct_view_phrase words;
    open_desk(&k, OCT_SCAN_RASTER);
    k.model->connected = true;
    k.model->tally.n_received = 9;
    k.model->tally.last_arrival_ns = k.model->now_ns;
    act(&k, OCT_ACTION_SCAN);
    tap_row(&k, 1);
    must_ask(&k, OCT_WISH_SCAN, "Star");
    snprintf(k.octd.state, sizeof(k.octd.state), "idle");
    oct_view_model_tick(k.model, k.model->now_ns + 12 * S);
    hear(&k, OCT_WISH_NONE, true, "");
    assert_int_equal(oct_view_alarms(k.model, alarms), 0);
    assert_int_equal(oct_view_show(k.model), OCT_SHOW_CHANGING);
    assert_int_equal(oct_view_situation(k.model), OCT_SITUATION_LIVE);
    oct_view_calm_text(k.model, &words);
    assert_string_equal(words.text, "another scan begins: pictures follow");
    struct oct_scan star = k.octd.scan;
    star.pattern = OCT_SCAN_RADIAL;
    scan_is(&k, "Star", &star);
    snprintf(k.octd.state, sizeof(k.octd.state), "running");
    hear(&k, OCT_WISH_SCAN, true, "Star");
    oct_view_model_tick(k.model, k.model->now_ns + 4 * S);
    assert_int_equal(oct_view_alarms(k.model, alarms), 0);
    oct_view_model_tick(k.model, k.model->now_ns + 2 * S);
    assert_int_equal(oct_view_alarms(k.model, alarms), 1);
    assert_non_null(strstr(alarms[0].what.text, "NO SIGNAL"));
    close_desk(&k);
}

/* octd closes the file and begins the next: no end of the recording, and no moment in which Stop is
 * Record. One that does not go on ends. */
TEST(a_recording_goes_on_over_a_change)
{
    for (int goes_on = 0; goes_on < 2; goes_on++) {
        static struct desk k;
        struct oct_view_phrase words;
        open_desk(&k, OCT_SCAN_RASTER);
        k.octd.record.active = true;
        k.octd.record.elapsed_s = 20;
        k.octd.record.bscans_in_file = k.octd.record.volumes_written = 3;
        hear(&k, OCT_WISH_NONE, true, "");
        act(&k, OCT_ACTION_SCAN);
        tap_row(&k, 1);
        must_ask(&k, OCT_WISH_SCAN, "Star");
        memset(&k.octd.record, 0, sizeof(k.octd.record));
        k.octd.pending = true;
        snprintf(k.octd.state, sizeof(k.octd.state), "idle");
        hear(&k, OCT_WISH_NONE, true, "");
        assert_int_equal(oct_view_situation(k.model), OCT_SITUATION_RECORDING);
        oct_view_recording(k.model, &words);
        assert_non_null(strstr(words.text, "RECORDING 00:20"));
        struct oct_scan star = k.octd.scan;
        star.pattern = OCT_SCAN_RADIAL;
        scan_is(&k, "Star", &star);
        k.octd.pending = false;
        k.octd.record.active = goes_on;
        snprintf(k.octd.state, sizeof(k.octd.state), goes_on ? "recording" : "running");
        hear(&k, OCT_WISH_SCAN, true, "Star");
        oct_view_recording(k.model, &words);
        assert_non_null(strstr(words.text, goes_on ? "RECORDING 00:00  volume 1" : "stopped"));
        assert_int_equal(k.model->recorded.is_on, goes_on);
        close_desk(&k);
    }
}

/* ---- Average ---- */

/* octd grants the line that Average asks for, and Average: that line. */
static struct oct_scan begin_average(struct desk *k)
{
    char asked[OCT_VIEW_LABEL_BYTES];
    act(k, OCT_ACTION_AVERAGE);
    const struct oct_scan line = way_asked(k, asked);
    scan_is(k, NULL, &line);
    hear(k, OCT_WISH_SCAN_KEYS, true, asked);
    must_ask(k, OCT_WISH_AVERAGE, "8");
    k->octd.average_bscans = 8;
    hear(k, OCT_WISH_AVERAGE, true, "8");
    return line;
}

/* The line lies where the B-scan's A-lines do. */
TEST(average_holds_the_place_of_the_shown_bscan)
{
    static const enum oct_scan_pattern patterns[] = {OCT_SCAN_RASTER, OCT_SCAN_RASTER_BOTH,
                                                     OCT_SCAN_RADIAL};
    for (unsigned i = 0; i < 3; i++) {
        static struct desk k;
        double is[2], wanted[2];
        open_desk(&k, patterns[i]);
        k.octd.scan.angle_deg = -20;
        hear(&k, OCT_WISH_NONE, true, "");
        k.model->shown.header.bscan = 31;
        const struct oct_scan before = k.octd.scan, line = begin_average(&k);
        for (uint32_t j = 0; j < 120; j += 119) {
            oct_scan_position(&line, 0, j, is);
            oct_scan_position(&before, 31, j, wanted);
            assert_true(hypot(is[0] - wanted[0], is[1] - wanted[1]) < 0.5);
        }
        assert_true(k.model->settings.average && oct_view_scan_is_placed(k.model));
        oct_view_model_tick(k.model, k.model->now_ns + 6 * S);
        act(&k, OCT_ACTION_AVERAGE);
        must_ask(&k, OCT_WISH_SCAN, "Volume");
        assert_false(k.model->settings.average);
        close_desk(&k);
    }
}

/* A scan that somebody set by its keys is set so again. */
TEST(average_goes_back_to_a_scan_without_a_name)
{
    static struct desk k;
    char asked[OCT_VIEW_LABEL_BYTES];
    open_desk(&k, OCT_SCAN_RASTER_BOTH);
    k.octd.scan.angle_deg = 15;
    const struct oct_scan before = k.octd.scan;
    k.octd.scans.is_listed = false;
    hear(&k, OCT_WISH_NONE, true, "");
    begin_average(&k);
    oct_view_model_tick(k.model, k.model->now_ns + 6 * S);
    act(&k, OCT_ACTION_AVERAGE);
    struct oct_scan back = way_asked(&k, asked);
    assert_int_equal(back.pattern, OCT_SCAN_RASTER_BOTH);
    must_be(&back, before.centre_um[0], before.centre_um[1], 15, before.width_um);
    close_desk(&k);
}

/* A line that was drawn is no affair of Average's. */
TEST(average_leaves_a_drawn_line_where_it_is)
{
    static struct desk k;
    open_desk(&k, OCT_SCAN_RASTER);
    struct oct_scan line = {
        .pattern = OCT_SCAN_LINE, .n_lines = 120, .n_bscans = 40, .width_um = 900};
    scan_is(&k, NULL, &line);
    hear(&k, OCT_WISH_NONE, true, "");
    oct_view_model_tick(k.model, k.model->now_ns + 6 * S);
    act(&k, OCT_ACTION_AVERAGE);
    must_ask(&k, OCT_WISH_AVERAGE, "8");
    hear(&k, OCT_WISH_AVERAGE, true, "8");
    act(&k, OCT_ACTION_AVERAGE);
    must_ask(&k, OCT_WISH_NONE, "");
    close_desk(&k);
}

/* Refused, Average is off and nothing else is asked for. Of a lost answer the status says what
 * became of it, and Average leads back from there. */
TEST(average_without_its_line_is_off)
{
    static struct desk k;
    char asked[OCT_VIEW_LABEL_BYTES];
    open_desk(&k, OCT_SCAN_RASTER);
    act(&k, OCT_ACTION_AVERAGE);
    way_asked(&k, asked);
    hear(&k, OCT_WISH_SCAN_KEYS, false, "the mirrors are hot");
    assert_string_equal(k.model->message, "octd refused the line: the mirrors are hot");
    assert_false(k.model->settings.average);
    must_ask(&k, OCT_WISH_NONE, "");

    act(&k, OCT_ACTION_AVERAGE);
    struct oct_scan line = way_asked(&k, asked);
    oct_view_model_hear(k.model, &k.octd,
                        &(struct oct_view_answer){.wish = OCT_WISH_SCAN_KEYS, .unanswered = true});
    assert_false(k.model->settings.average);
    must_ask(&k, OCT_WISH_NONE, "");
    scan_is(&k, NULL, &line); /* it was done all the same */
    hear(&k, OCT_WISH_NONE, true, "");
    oct_view_model_tick(k.model, k.model->now_ns + 6 * S);
    act(&k, OCT_ACTION_AVERAGE);
    must_ask(&k, OCT_WISH_AVERAGE, "8");
    hear(&k, OCT_WISH_AVERAGE, true, "8");
    act(&k, OCT_ACTION_AVERAGE);
    must_ask(&k, OCT_WISH_SCAN, "Volume");
    close_desk(&k);
}

TEST(while_it_records_average_moves_no_scan)
{
    static struct desk k;
    open_desk(&k, OCT_SCAN_RASTER);
    k.octd.record.active = true;
    k.octd.average_bscans = 8;
    hear(&k, OCT_WISH_NONE, true, "");
    act(&k, OCT_ACTION_AVERAGE);
    must_ask(&k, OCT_WISH_NONE, "");
    assert_true(k.model->settings.average);
    close_desk(&k);
}

/* The next patient's eye begins with the scan of the list, not with a line on the eye before. */
TEST(the_next_patient_has_the_scan_of_before)
{
    static struct desk k;
    open_desk(&k, OCT_SCAN_RASTER);
    struct oct_scan line = {
        .pattern = OCT_SCAN_LINE, .n_lines = 120, .n_bscans = 40, .width_um = 900};
    scan_is(&k, NULL, &line);
    hear(&k, OCT_WISH_NONE, true, "");
    act(&k, OCT_ACTION_NEXT_PATIENT);
    must_ask(&k, OCT_WISH_SCAN, "Volume");
    close_desk(&k);
}

/* ---- octd's words ---- */

TEST(the_status_says_which_scans_there_are)
{
    static const char json[] =
        "{\"ok\":true,\"state\":\"running\",\"geometry\":{\"lines\":120,\"bscans\":40},\"scan\":{"
        "\"pattern\":\"line\",\"width_um\":900,\"centre_x_um\":-120.5,\"centre_y_um\":-300,"
        "\"angle_deg\":-12,\"number\":7,\"choice\":null,\"choices\":[\"Volume\",\"\",7,\"Star\","
        "\"0123456789012345678901234567890123456789012345678901234567890123\",\"a\\nb\"]}}";
    struct oct_view_daemon d = {0};
    assert_int_equal(oct_view_daemon_read(&d, json, strlen(json), NULL), OCT_OK);
    assert_true(d.scans.has_number && d.scans.number == 7 && !d.scans.is_listed);
    assert_int_equal(d.scans.n, 2);
    assert_string_equal(d.scans.name[1], "Star");
    assert_true(d.scan.centre_um[0] == -120.5 && d.scan.centre_um[1] == -300);
    assert_true(d.scan.angle_deg == -12);
}
