/* What the window says, and of what. No zmq, no SDL. */
#include "pipeline/base/clock.h"
#include "test/rig/tap.h"
#include "test/rig/viewer_daemon.h"
#include "test/rig/viewer_scene.h"
#include "viewer/model/buttons.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <cjson/cJSON.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- status, fields, notices ---- */

#define S OCT_NS_PER_S
#define MS OCT_NS_PER_MS

/* ---- the daemon's words ---- */

TEST(a_status_is_read_and_a_hostile_one_survived)
{
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "null",
                                      "{\"ok\":false}",
                                      "{\"ok\":true}",
                                      "{\"ok\":true,\"state\":5}",
                                      "\xff\xfe",
                                      "{\"ok\":\"yes\",\"state\":\"idle\"}"};
    static const char *const odd[] = {
        "{\"ok\":true,\"state\":\"idle\",\"record\":[],\"scan\":5,\"pixels\":\"x\","
        "\"degraded\":[5,[\"disk\"],null,\"disks\"],\"disk_bytes_free\":-1,\"bscans_dropped\":{"
        "\"a\":\"b\",\"c\":-5}}",
        "{\"ok\":true,\"state\":\"idle\\u0007\",\"scan\":{\"axial_um\":-1,\"lateral_um\":1e300,"
        "\"line_rate_hz\":1e999},\"geometry\":{\"bscans\":1e30},\"record\":{\"file\":5,"
        "\"elapsed_s\":-1,\"eye\":\"a very long eye indeed\"}}"};
    struct oct_view_daemon d = {0};
    assert_int_equal(oct_view_daemon_read(&d, oct_scene_status, strlen(oct_scene_status), NULL),
                     OCT_OK);
    assert_true(d.known && d.record.active && d.log && d.pixels_told);
    assert_true(d.disk_slow && d.record.bscans_waiting == 321);
    assert_string_equal(d.record.file, "c.h5");
    assert_string_equal(d.record.eye, "OD");
    assert_true(d.bscans_dropped == 3 && d.axial_um == 1.25 && isnan(d.slow_um));
    assert_true(d.record.disk_left_s == 1234.5 && !d.record.failed);
    assert_true(d.record.n_lost == 10);
    assert_string_equal(d.record.lost_text, "2 not sent by the camera, 7 disk too slow, 1 a?b");
    assert_string_equal(d.record.lost_why, "disk_slow");
    assert_true(d.has_enface && d.enface_told && d.enface.projection == OCT_PROJECTION_SLAB);
    assert_true(d.enface.slab.first == 0.25 && d.enface.slab.last == 0.5);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct oct_view_daemon before = d;
        assert_int_equal(oct_view_daemon_read(&d, bad[i], strlen(bad[i]), NULL), OCT_E_FORMAT);
        assert_memory_equal(&before, &d, sizeof(d));
    }
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        assert_int_equal(oct_view_daemon_read(&d, odd[i], strlen(odd[i]), NULL), OCT_OK);
        assert_true(isnan(d.axial_um) && isnan(d.lateral_um) && isnan(d.disk_bytes_free));
        assert_false(d.disk_slow);
        assert_true(d.bscans_dropped == 0 && d.record.elapsed_s == 0);
        assert_true(strlen(d.record.eye) < sizeof(d.record.eye));
        assert_false(d.has_enface || d.enface_told);
    }
}

TEST(en_face_settings_are_read_whole_or_not_at_all)
{
    static const struct {
        const char *analysis;
        bool has, told;
    } cases[] = {
        {"[{\"name\":\"enface\",\"projection\":\"max\",\"slab_first\":0,\"slab_last\":1}]", true,
         true},
        {"[{\"name\":\"enface\"}]", true, false},
        {"[{\"name\":\"enface\",\"projection\":\"maximum\",\"slab_first\":0,\"slab_last\":1}]",
         true, false},
        {"[{\"name\":\"enface\",\"projection\":\"max\",\"slab_first\":0.5,\"slab_last\":0.5}]",
         true, false},
        {"[{\"name\":\"enface\",\"projection\":\"max\",\"slab_first\":-1,\"slab_last\":1}]", true,
         false},
        {"[{\"name\":\"enface\",\"projection\":\"max\",\"slab_first\":0,\"slab_last\":1.5}]", true,
         false},
        {"[{\"name\":\"enface\",\"projection\":1,\"slab_first\":0,\"slab_last\":1}]", true, false},
        {"[{\"name\":\"enface\",\"projection\":\"max\",\"slab_first\":\"0\",\"slab_last\":1}]",
         true, false},
        {"[{\"name\":\"quality\"},5,null,[],{\"name\":7},\"enface\"]", false, false},
        {"{\"enface\":{}}", false, false},
        {"[]", false, false},
        {"\"enface\"", false, false},
    };
    char text[512];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oct_view_daemon d = {0};
        int n = snprintf(text, sizeof(text), "{\"ok\":true,\"state\":\"running\",\"analysis\":%s}",
                         cases[i].analysis);
        assert_int_equal(oct_view_daemon_read(&d, text, (size_t)n, NULL), OCT_OK);
        assert_true(d.has_enface == cases[i].has && d.enface_told == cases[i].told);
    }
}

/* Bytes changed, cut and doubled at random: whatever comes out is read or refused. */
TEST(mutated_statuses_are_survived)
{
    size_t n = strlen(oct_scene_status), n_read = 0;
    uint32_t dice = 1;
    for (unsigned round = 0; round < 20000; round++) {
        char *text = malloc(n); /* exactly as long: reading beyond it shows under ASan */
        assert_non_null(text);
        memcpy(text, oct_scene_status, n);
        for (unsigned k = 0; k <= round % 4; k++) {
            dice = dice * 1664525u + 1013904223u;
            size_t at = (dice >> 8) % n;
            dice = dice * 1664525u + 1013904223u;
            text[at] = dice & 1u << 30 ? (char)(dice >> 16) : "\"{}[],:-0e9\\"[(dice >> 16) % 12];
        }
        struct oct_view_daemon d = {0};
        size_t length = round % 3 ? n : (dice >> 8) % n;
        n_read += oct_view_daemon_read(&d, text, length, NULL) == OCT_OK;
        assert_true(memchr(d.record.pseudonym, 0, sizeof(d.record.pseudonym)) != NULL);
        free(text);
    }
    assert_true(n_read > 100);
}

/* The next answer, to no wish. */
static void hear_next(struct oct_view_model *model, struct oct_view_daemon *d)
{
    d->answer_ns++;
    oct_scene_hear(model, d, OCT_WISH_NONE, false, "");
}

#define MODEL_TEST(name)                                                                           \
    TEST_ON(name, struct oct_view_model, model, oct_view_model_init(model, "x", true),             \
            oct_view_model_finish(model))

MODEL_TEST(what_the_header_says_is_the_daemons_word)
{
    struct oct_view_daemon d = {0};
    struct oct_view_phrase p;
    char text[OCT_VIEW_LABEL_BYTES];
    oct_view_model_tick(model, 10 * S);
    oct_view_recording(model, &p);
    assert_non_null(strstr(p.text, "no control endpoint"));
    oct_scene_hear(model, &d, OCT_WISH_NONE, false, "");
    oct_view_recording(model, &p);
    assert_non_null(strstr(p.text, "does not answer"));
    assert_int_equal(oct_view_daemon_read(&d, oct_scene_status, strlen(oct_scene_status), NULL),
                     OCT_OK);
    d.reachable = true;
    d.record.active = false;
    d.record.n_lost = 0;
    hear_next(model, &d);
    oct_view_recording(model, &p);
    assert_string_equal(p.text, "not recording");
    oct_view_model_apply(model, OCT_ACTION_RECORD, 1);
    assert_int_equal(oct_view_model_take_wish(model, text), OCT_WISH_RECORD);
    assert_int_equal(oct_view_model_take_wish(model, text), OCT_WISH_NONE);
    oct_view_recording(model, &p); /* wished is not recorded */
    assert_string_equal(p.text, "asking octd to start recording");
    oct_view_model_apply(model, OCT_ACTION_RECORD, 1);
    assert_int_equal(model->wishes.n, 0); /* an impatient press is no second wish */
    oct_scene_hear(model, &d, OCT_WISH_RECORD, false, "no such folder");
    oct_view_recording(model, &p);
    assert_string_equal(p.text, "NOT DONE: no such folder");
    assert_int_equal(p.tone, OCT_TONE_BAD);
    d.record.active = true;
    d.answer_ns = 2;
    oct_scene_hear(model, &d, OCT_WISH_RECORD, true, "");
    oct_view_recording(model, &p);
    assert_string_equal(p.text, "RECORDING 01:15  volume 1, 17 B-scans safe");
    assert_false(oct_view_waits_to_record(model));
    model->daemon.record.waiting_for_volume = true; /* nothing is in a file yet */
    oct_view_recording(model, &p);
    assert_true(oct_view_waits_to_record(model));
    assert_string_equal(p.text, "WAITING to record the next volume  01:15");
    d.record.volumes_written = 5;
    hear_next(model, &d);
    oct_view_recording(model, &p);
    assert_non_null(strstr(p.text, "volume 3"));
    oct_view_model_apply(model, OCT_ACTION_RECORD, 1);
    assert_int_equal(oct_view_model_take_wish(model, text), OCT_WISH_STOP);
    d.record.active = false;
    d.answer_ns = 4;
    oct_scene_hear(model, &d, OCT_WISH_STOP, true, "");
    oct_view_recording(model, &p);
    assert_string_equal(p.text, "SAVED 2 volumes, the last c.h5");
    d.reachable = false;
    oct_scene_hear(model, &d, OCT_WISH_NONE, false, "");
    oct_view_recording(model, &p);
    assert_int_equal(p.tone, OCT_TONE_BAD);
}

MODEL_TEST(eye_and_pseudonym_go_to_the_daemon)
{
    struct oct_view_daemon d = {.known = true, .reachable = true};
    char text[OCT_VIEW_LABEL_BYTES];
    oct_scene_hear(model, &d, OCT_WISH_NONE, false, "");
    oct_view_model_apply(model, OCT_ACTION_EYE, 1);
    assert_int_equal(oct_view_model_take_wish(model, text), OCT_WISH_EYE);
    assert_string_equal(text, "OD");
    strcpy(d.record.eye, "OD");
    oct_scene_hear(model, &d, OCT_WISH_EYE, true, "OD");
    assert_string_equal(model->message, "octd confirms: eye OD");
    oct_view_model_apply(model, OCT_ACTION_PSEUDONYM, 1);
    assert_true(model->typing);
    oct_view_model_type(model, "P-\u00e4");
    oct_view_model_type(model, "\n");
    assert_string_equal(model->typed, "P-\u00e4");
    oct_view_model_rub_out(model);
    oct_view_model_type(model, "17");
    for (int i = 0; i < 500; i++)
        oct_view_model_type(model, "");
    oct_view_model_end_typing(model, true);
    assert_int_equal(oct_view_model_take_wish(model, text), OCT_WISH_PSEUDONYM);
    assert_string_equal(text, "P-17");
    for (int i = 0; i < 20; i++)
        oct_view_model_rub_out(model);
    assert_string_equal(model->typed, "");
}

TEST(letters_are_utf8_in_any_locale)
{
    static const struct {
        const char *text, *clean;
    } cases[] = {
        {"", ""},
        {"P-\u00e9\u00b5\u015f\u0416\u20ac\U0001f441",
         "P-\u00e9\u00b5\u015f\u0416\u20ac\U0001f441"},
        {"a\nb\x7f\x1b", "a?b??"},
        {"caf\xe9 x", "caf? x"},             /* Latin-1 */
        {"\xc2\x85 C1", "?? C1"},            /* a control character of two bytes */
        {"\xc0\xaf \xed\xa0\x80", "?? ???"}, /* overlong, a surrogate */
        {"\xf4\x90\x80\x80", "????"},        /* beyond Unicode */
        {"cut \xe2\x82", "cut "},            /* by a buffer's end */
        {"cut \xc3", "cut "},
        {"\xe2\x28\xa1", "?(?"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[64];
        snprintf(text, sizeof(text), "%s", cases[i].text);
        assert_true(oct_view_letters_are(text) == (strcmp(text, cases[i].clean) == 0));
        oct_view_letters_clean(text);
        assert_string_equal(text, cases[i].clean);
        assert_true(oct_view_letters_are(text));
    }
    char *before = getenv("LC_ALL") ? strdup(getenv("LC_ALL")) : NULL;
    static const char *const locales[] = {"C", "POSIX", "", "xx_YY.nonsense", "C.UTF-8"};
    for (size_t i = 0; i < sizeof(locales) / sizeof(locales[0]); i++) {
        setenv("LC_ALL", locales[i], 1);
        oct_view_letters_set_locale();
        assert_true(setlocale(LC_CTYPE, "") && !strcmp(nl_langinfo(CODESET), "UTF-8"));
        setlocale(LC_CTYPE, "C");
    }
    if (before)
        setenv("LC_ALL", before, 1);
    else
        unsetenv("LC_ALL");
    free(before);
}

/* ---- en face and quality ---- */

static void expect_title(const struct oct_view_model *model, enum oct_view_tone tone,
                         const char *text)
{
    struct oct_view_phrase p;
    oct_view_enface_text(model, &p);
    assert_string_equal(p.text, text);
    assert_int_equal(p.tone, tone);
}

/* Ten B-scans a second until then. */
static void go_live(struct oct_view_model *model, struct oct_view_tally *tally, uint64_t until_ns)
{
    struct oct_picture_header header = oct_scene_header(tally->last_frame_num + 1, "a");
    for (uint64_t now_ns = model->now_ns; now_ns <= until_ns; now_ns += 100 * MS) {
        oct_view_tally_add(tally, &header, now_ns);
        header.frame_num++;
    }
    oct_view_model_tick(model, until_ns);
    oct_view_model_report(model, tally, true);
}

MODEL_TEST(the_en_face_panel_says_what_it_shows_or_why_nothing)
{
    struct oct_view_tally tally = {0};
    struct oct_view_picture picture = oct_scene_layered(10, 1);
    struct oct_view_image image = oct_scene_enface(4, 6);
    struct oct_view_daemon d = {.known = true, .reachable = true, .answer_ns = 1};
    oct_view_model_tick(model, 10 * S);
    expect_title(model, OCT_TONE_DIM, "en face");
    oct_view_model_offer(model, &picture);
    go_live(model, &tally, 11 * S);
    expect_title(model, OCT_TONE_DIM, "en face"); /* it may still come */
    go_live(model, &tally, 14 * S);
    expect_title(model, OCT_TONE_DIM, "no en face from this octd");
    /* An octd that says so is believed at once, and so is a picture that comes. */
    model->first_picture_ns = 14 * S;
    expect_title(model, OCT_TONE_DIM, "en face");
    oct_view_model_hear(model, &d, &(struct oct_view_answer){0});
    expect_title(model, OCT_TONE_DIM, "no en face from this octd");
    image.arrival_ns = 14 * S;
    oct_view_overlay_take(model, &oct_view_overlay_enface, &image);
    expect_title(model, OCT_TONE_PLAIN, "en face");
    d.has_enface = d.enface_told = true;
    d.enface = (struct oct_view_enface_settings){OCT_PROJECTION_MAX, {0.4, 0.6}};
    d.answer_ns++;
    oct_view_model_hear(model, &d, &(struct oct_view_answer){0});
    expect_title(model, OCT_TONE_PLAIN, "en face, maximum");
    /* One that stands still while B-scans come is not shown as if it were live. */
    go_live(model, &tally, 16 * S);
    expect_title(model, OCT_TONE_PLAIN, "en face, maximum");
    go_live(model, &tally, 26 * S);
    expect_title(model, OCT_TONE_WARN, "en face, maximum: none came for 12 s");
    image.arrival_ns = 26 * S;
    oct_view_overlay_take(model, &oct_view_overlay_enface, &image);
    expect_title(model, OCT_TONE_PLAIN, "en face, maximum");
    oct_view_model_tick(model, 60 * S); /* when nothing comes, the banner says so */
    expect_title(model, OCT_TONE_PLAIN, "en face, maximum");
    oct_view_image_finish(&image);
    oct_view_picture_finish(&picture);
}

TEST(the_quality_in_numbers_is_octds)
{
    struct oct_view_archive *archive = oct_view_archive_create(1 << 20);
    struct oct_view_image row = oct_scene_quality();
    struct oct_view_tally tally = {0};
    struct oct_view_model model;
    struct oct_view_phrase p;
    assert_non_null(archive);
    oct_view_model_init(&model, "x", true);
    model.archive = archive;
    oct_view_model_report(&model, &tally, true);
    oct_view_quality_text(&model, &p);
    assert_string_equal(p.text, "SNR ---  sharpness ---");
    oct_scene_quality_put(&row, "snr_db", 20);
    oct_scene_quality_put(&row, "snr_smooth_db", 31.25);
    oct_scene_quality_put(&row, "sharpness", 2);
    oct_scene_quality_put(&row, "sharpness_smooth", 5.125);
    oct_scene_quality_put(&row, "blinks", 2);
    oct_scene_quality_put(&row, "motions", 17);
    oct_view_archive_add_quality(archive, &row);
    oct_view_model_report(&model, &tally, true);
    oct_view_quality_text(&model, &p);
    assert_string_equal(p.text, "SNR 31.2 dB  sharpness  5.1  blinks 2  motions 17");
    oct_view_image_finish(&row);
    oct_view_model_finish(&model);
    oct_view_archive_destroy(archive);
}

static struct oct_view_image cone_row(double um, double per_mm2, double strength)
{
    static const char *const labels[] = {"spacing_px", "spacing_um", "rows_um", "cells_per_mm2",
                                         "strength"};
    struct oct_image_header header = {.dataset = "analysis/cones",
                                      .acquisition_id = "a",
                                      .type = OCT_SAMPLE_F32,
                                      .rank = 1,
                                      .dims = {5},
                                      .n_labels = 5};
    const float values[] = {8, (float)um, 3, (float)per_mm2, (float)strength};
    struct oct_view_image row = {0};
    for (unsigned i = 0; i < 5; i++)
        snprintf(header.labels[i], sizeof(header.labels[i]), "%s", labels[i]);
    assert_int_equal(oct_view_image_set(&row, &header, values, sizeof(values), NULL), OCT_OK);
    return row;
}

static void expect_cones(struct oct_view_model *model, double um, double per_mm2, double strength,
                         const char *text)
{
    struct oct_view_image row = cone_row(um, per_mm2, strength);
    struct oct_view_phrase p;
    oct_view_cones_set(oct_view_overlay_state(model, &oct_view_overlay_cones), &row);
    oct_view_cones_text(model, &p);
    assert_string_equal(p.text, text);
    oct_view_image_finish(&row);
}

TEST(the_cone_spacing_is_octds_where_the_scale_is_known)
{
    struct oct_view_model model;
    struct oct_view_picture picture = oct_scene_layered(10, 1);
    struct oct_view_phrase p;
    const struct oct_view_cones *cones = oct_view_overlay_state(&model, &oct_view_overlay_cones);
    oct_view_model_init(&model, "x", true);
    oct_view_model_offer(&model, &picture);
    snprintf(model.shown.header.acquisition_id, sizeof(model.shown.header.acquisition_id), "a");
    model.daemon.lateral_um = model.daemon.slow_um = 1;
    oct_view_cones_text(&model, &p);
    assert_string_equal(p.text, ""); /* octd says nothing of cones */
    expect_cones(&model, 4.21, 65149, 0.1416, "cones 4.2 um 65,100/mm2 (0.14)");
    expect_cones(&model, 30, 1283, 0.06, "cones 30.0 um 1,280/mm2 (0.06)");
    model.enface.volume = cones->volume + 1; /* that is being scanned */
    expect_cones(&model, 30, 1283, 0.06, "cones 30.0 um 1,280/mm2 (0.06)");
    model.enface.volume = cones->volume + 4;
    expect_cones(&model, 30, 1283, 0.06, "cones 30.0 um 1,280/mm2 (0.06), 4 volumes ago");
    model.enface.volume = cones->volume;
    expect_cones(&model, 1, 1.1547e6, 1, "cones 1.0 um 1,150,000/mm2 (1.00)");
    expect_cones(&model, NAN, NAN, NAN, "cones: no ring");
    expect_cones(&model, 4.2, -1, 0.1, "cones: no ring");
    expect_cones(&model, 4.2, INFINITY, 0.1, "cones: no ring");
    model.daemon.slow_um = NAN;
    expect_cones(&model, 4.21, 65149, 0.1416, "");
    model.daemon.slow_um = 1;
    snprintf(model.shown.header.acquisition_id, sizeof(model.shown.header.acquisition_id), "b");
    expect_cones(&model, 4.21, 65149, 0.1416, ""); /* of another acquisition */
    oct_view_picture_finish(&picture);
    oct_view_model_finish(&model);
}

TEST(a_row_of_cones_that_is_none_changes_nothing)
{
    struct oct_view_cones cones = {.known = false};
    struct oct_view_image row = cone_row(4, 70000, 0.1);
    row.header.n_labels = 4;
    assert_int_equal(oct_view_overlay_cones.check(&row.header, NULL), OCT_E_FORMAT);
    oct_view_cones_set(&cones, &row);
    assert_false(cones.known);
    row.header.n_labels = 5;
    row.header.type = OCT_SAMPLE_U8;
    oct_view_cones_set(&cones, &row);
    assert_false(cones.known);
    row.header.type = OCT_SAMPLE_F32;
    oct_view_cones_set(&cones, &row);
    assert_true(cones.known && cones.has_ring && cones.spacing_um == 4);
    oct_view_image_finish(&row);
}

static void must_wish(struct oct_view_model *m, enum oct_view_wish wish, const char *key)
{
    char text[OCT_VIEW_LABEL_BYTES] = "";
    assert_int_equal(oct_view_model_take_wish(m, text), wish);
    assert_string_equal(text, key);
    if (wish != OCT_WISH_NONE)
        oct_scene_hear(m, &m->daemon, wish, true, text);
}

/* The label of the button More. */
static const char *more_label(const struct oct_view_model *m)
{
    static struct oct_view_button b[OCT_VIEW_MOST_BUTTONS];
    const unsigned n = oct_view_buttons(m, b);
    for (unsigned i = 0; i < n; i++)
        if (b[i].action == OCT_ACTION_MORE)
            return b[i].look == OCT_BUTTON_OFF ? "off" : b[i].label;
    return "none";
}

/* One button begins cells in octd, a mirror in their place, and ends both; of what octd has. */
TEST(more_begins_and_ends_cells_and_a_mirror)
{
    static const char rest[] =
        "{\"ok\":true,\"state\":\"running\",\"analysis\":[{\"name\":\"cells\",\"at_rest\":true},"
        "{\"name\":\"rolloff\",\"at_rest\":true}]}";
    struct oct_view_model m;
    struct oct_view_daemon d = {.reachable = true, .answer_ns = 1};
    oct_view_model_init(&m, "x", true);
    oct_view_model_tick(&m, 1000 * OCT_NS_PER_S);
    assert_int_equal(oct_view_daemon_read(&d, rest, strlen(rest), NULL), OCT_OK);
    oct_scene_hear(&m, &d, OCT_WISH_NONE, false, "");
    m.settings.cells = m.settings.rolloff = true; /* drawn, where octd computes them */
    assert_string_equal(more_label(&m), "More");
    oct_view_model_apply(&m, OCT_ACTION_MORE, 1);
    must_wish(&m, OCT_WISH_ENABLE, "cells.enabled");
    assert_string_equal(more_label(&m), "Cells");
    oct_view_model_apply(&m, OCT_ACTION_MORE, 1);
    must_wish(&m, OCT_WISH_DISABLE, "cells.enabled");
    must_wish(&m, OCT_WISH_ENABLE, "rolloff.enabled");
    assert_string_equal(more_label(&m), "Roll-off");
    assert_int_equal(m.settings.arrangement, OCT_ARRANGEMENT_FOUR);
    oct_view_model_apply(&m, OCT_ACTION_MORE, 1);
    must_wish(&m, OCT_WISH_DISABLE, "rolloff.enabled");
    must_wish(&m, OCT_WISH_NONE, "");
    assert_string_equal(more_label(&m), "More");
    m.daemon.record.active = true; /* octd takes no keys */
    oct_view_model_apply(&m, OCT_ACTION_MORE, 1);
    must_wish(&m, OCT_WISH_NONE, "");
    m.daemon.record.active = false;
    m.settings.operators = true;
    assert_string_equal(more_label(&m), "none");
    m.settings.operators = false;
    strcpy(m.daemon.analysis[0].name, "quality"); /* cells are not run */
    oct_view_model_apply(&m, OCT_ACTION_MORE, 1);
    must_wish(&m, OCT_WISH_ENABLE, "rolloff.enabled");
    strcpy(m.daemon.analysis[1].name, "enface");
    assert_string_equal(more_label(&m), "off");
    oct_view_model_apply(&m, OCT_ACTION_MORE, 1);
    must_wish(&m, OCT_WISH_NONE, "");
    oct_view_model_finish(&m);
}

/* A key of what octd does not compute says so and offers it; pressed again, octd is asked. */
TEST(a_key_offers_the_setting_that_it_needs)
{
    static const struct {
        enum oct_view_action action;
        const char *none, *key;
    } cases[] = {
        {OCT_ACTION_CELLS, "octd follows no cells: C again sets cells.enabled = yes",
         "cells.enabled"},
        {OCT_ACTION_ROLLOFF, "octd measures no mirror: Z again sets rolloff.enabled = yes",
         "rolloff.enabled"},
    };
    static const char rest[] =
        "{\"ok\":true,\"state\":\"running\",\"analysis\":[{\"name\":\"cells\",\"at_rest\":true},"
        "{\"name\":\"surfaces\",\"at_rest\":true},{\"name\":\"rolloff\",\"at_rest\":true}]}";
    char text[OCT_VIEW_LABEL_BYTES];
    struct oct_view_model m;
    struct oct_view_daemon d = {.reachable = true, .answer_ns = 1};
    oct_view_model_init(&m, "x", true);
    oct_view_model_tick(&m, 1000 * OCT_NS_PER_S);
    assert_int_equal(oct_view_daemon_read(&d, rest, strlen(rest), NULL), OCT_OK);
    oct_scene_hear(&m, &d, OCT_WISH_NONE, false, "");
    for (int i = 0; i < 2; i++) {
        oct_view_model_apply(&m, cases[i].action, 1);
        assert_string_equal(m.message, cases[i].none);
        assert_int_equal(oct_view_model_take_wish(&m, text), OCT_WISH_NONE);
        oct_view_model_apply(&m, cases[i].action, 1);
        assert_int_equal(oct_view_model_take_wish(&m, text), OCT_WISH_ENABLE);
        assert_string_equal(text, cases[i].key);
        oct_scene_hear(&m, &d, OCT_WISH_ENABLE, true, text);
        assert_non_null(strstr(m.message, "octd confirms: "));
        oct_view_model_apply(&m, cases[i].action, 1); /* the offer is used up */
        assert_string_equal(m.message, cases[i].none);
        oct_view_model_tick(&m, m.now_ns + 60 * OCT_NS_PER_S); /* and ends */
        oct_view_model_apply(&m, cases[i].action, 1);
        assert_string_equal(m.message, cases[i].none);
        assert_int_equal(oct_view_model_take_wish(&m, text), OCT_WISH_NONE);
    }
    assert_true(m.settings.cells && m.settings.rolloff);
    for (int i = 0; i < 3; i++) /* it computes them: a key draws them or does not */
        d.analysis[i].at_rest = false;
    d.answer_ns++;
    oct_scene_hear(&m, &d, OCT_WISH_NONE, false, "");
    oct_view_model_apply(&m, OCT_ACTION_CELLS, 1);
    assert_string_equal(m.message, "cells are not drawn");
    oct_view_model_apply(&m, OCT_ACTION_CELLS, 1);
    assert_string_equal(m.message, "cells that octd follows: none now");
    oct_view_model_apply(&m, OCT_ACTION_ROLLOFF, 2);
    oct_view_model_apply(&m, OCT_ACTION_ROLLOFF, 1);
    assert_non_null(strstr(m.message, "in the profile, which L shows"));
    oct_view_model_apply(&m, OCT_ACTION_CELLS, 1);
    m.cells.n = 12; /* their tables come meanwhile */
    oct_view_model_apply(&m, OCT_ACTION_CELLS, 1);
    assert_string_equal(m.message, "cells that octd follows");
    strcpy(d.analysis[0].error, "no room");
    d.analysis[0].failing = true;
    d.answer_ns++;
    oct_scene_hear(&m, &d, OCT_WISH_NONE, false, "");
    oct_view_model_apply(&m, OCT_ACTION_CELLS, 1);
    assert_string_equal(m.message, "cells are not drawn");
    oct_view_model_apply(&m, OCT_ACTION_CELLS, 1);
    assert_string_equal(m.message, "octd cannot compute cells: no room");
    d.n_analyses = 1; /* one that runs cells alone */
    d.answer_ns++;
    oct_scene_hear(&m, &d, OCT_WISH_NONE, false, "");
    oct_view_model_apply(&m, OCT_ACTION_LAYERS, 1);
    assert_string_equal(m.message, "octd finds no layers: analysis.run lacks surfaces");
    oct_view_model_apply(&m, OCT_ACTION_LAYERS, 1);
    assert_int_equal(oct_view_model_take_wish(&m, text), OCT_WISH_NONE);
    oct_view_model_finish(&m);
}

/* Layers: one press begins octd's search, the second draws all borders, the third ends both. */
TEST(a_press_begins_and_ends_the_search_for_layers)
{
    static const char rows[] = "{\"ok\":true,\"state\":\"running\",\"analysis\":[{\"name\":"
                               "\"surfaces\",\"at_rest\":true}]}";
    char text[OCT_VIEW_LABEL_BYTES];
    struct oct_view_phrase p;
    struct oct_view_model m;
    struct oct_view_daemon d = {.reachable = true, .answer_ns = 1};
    oct_view_model_init(&m, "x", true);
    oct_view_model_tick(&m, 1000 * OCT_NS_PER_S);
    assert_int_equal(oct_view_daemon_read(&d, rows, strlen(rows), NULL), OCT_OK);
    for (int from_off = 0; from_off < 2; from_off++) {
        m.settings.layers = !from_off; /* drawn, though octd rests */
        m.settings.all_layers = false;
        d.analysis[0].at_rest = true;
        d.answer_ns++;
        oct_scene_hear(&m, &d, OCT_WISH_NONE, false, "");
        oct_view_layers_text(&m, &p);
        assert_string_equal(p.text, "");
        oct_view_model_apply(&m, OCT_ACTION_LAYERS, 1);
        assert_int_equal(oct_view_model_take_wish(&m, text), OCT_WISH_ENABLE);
        assert_string_equal(text, "surfaces.enabled");
        assert_true(m.settings.layers && !m.settings.all_layers);
        d.analysis[0].at_rest = false;
        d.answer_ns++;
        oct_scene_hear(&m, &d, OCT_WISH_ENABLE, true, text);
        assert_string_equal(m.message, "octd confirms: surfaces.enabled = yes");
        oct_view_model_apply(&m, OCT_ACTION_LAYERS, 1);
        assert_true(m.settings.layers && m.settings.all_layers);
        assert_int_equal(oct_view_model_take_wish(&m, text), OCT_WISH_NONE);
        oct_view_model_apply(&m, OCT_ACTION_LAYERS, 1);
        assert_false(m.settings.layers || m.settings.all_layers);
        assert_int_equal(oct_view_model_take_wish(&m, text), OCT_WISH_DISABLE);
        assert_string_equal(text, "surfaces.enabled");
        oct_scene_hear(&m, &d, OCT_WISH_DISABLE, true, text);
        assert_string_equal(m.message, "octd confirms: surfaces.enabled = no");
    }

    /* Two presses before octd says anything; and none of octd's keys while it records. */
    d.analysis[0].at_rest = true;
    d.answer_ns++;
    oct_scene_hear(&m, &d, OCT_WISH_NONE, false, "");
    oct_view_model_apply(&m, OCT_ACTION_LAYERS, 1);
    oct_view_model_apply(&m, OCT_ACTION_LAYERS, 1);
    assert_true(m.settings.all_layers);
    assert_int_equal(oct_view_model_take_wish(&m, text), OCT_WISH_ENABLE);
    oct_scene_hear(&m, &d, OCT_WISH_ENABLE, true, text);
    assert_int_equal(oct_view_model_take_wish(&m, text), OCT_WISH_NONE);
    for (unsigned press = 0; press < 6; press++) {
        d.record.active = true;
        d.analysis[0].at_rest = press > 2;
        d.answer_ns++;
        oct_scene_hear(&m, &d, OCT_WISH_NONE, false, "");
        oct_view_model_apply(&m, OCT_ACTION_LAYERS, 1);
        assert_int_equal(oct_view_model_take_wish(&m, text), OCT_WISH_NONE);
    }
    oct_view_model_finish(&m);
}

/* ---- alarms ---- */

static const struct oct_view_alarm *find(const struct oct_view_model *model, const char *words)
{
    static struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS];
    unsigned n = oct_view_alarms(model, alarms);
    for (unsigned i = 0; i < n; i++)
        if (strstr(alarms[i].what.text, words)) {
            assert_true(strlen(alarms[i].remedy.text) > 5);
            return &alarms[i];
        }
    return NULL;
}

/* As octd says it (daemon/status.c); `degraded` is what counts, so the words go with it. */
#define REFUSED(degraded)                                                                          \
    "{\"ok\":true,\"state\":\"running\",\"degraded\":[" degraded "],\"source\":{\"fault\":{"       \
    "\"reason\":\"samples\",\"messages\":40,\"text\":\"40 messages refused: 1000 samples a line "  \
    "come, camera.samples is 1024\",\"cure\":\"set camera.samples=1000\",\"plain\":\"the camera "  \
    "sends lines of 1000 samples, 1024 are expected\"}}}"

MODEL_TEST(a_wrong_driver_is_named_in_plain_words)
{
    static const char wrong[] = REFUSED("\"source_refused\""), right[] = REFUSED("");
    struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS];
    struct oct_view_phrase notice[2];
    struct oct_view_tally tally = {0};
    struct oct_picture_header header = oct_scene_header(1, "a");
    struct oct_view_daemon d = {0};
    assert_int_equal(oct_view_daemon_read(&d, wrong, strlen(wrong), NULL), OCT_OK);
    d.reachable = true;
    d.answer_ns = 1;
    oct_view_model_tick(model, 11 * S);
    oct_scene_hear(model, &d, OCT_WISH_NONE, false, "");
    assert_true(oct_view_alarms(model, alarms) > 0); /* the first stands in the banner */
    assert_string_equal(alarms[0].what.text,
                        "CAMERA: the camera sends lines of 1000 samples, 1024 are expected");
    assert_string_equal(alarms[0].remedy.text, "set camera.samples=1000");
    model->settings.operators = true; /* an operator has no keys of the configuration */
    assert_true(oct_view_alarms(model, alarms) > 0);
    assert_null(strstr(alarms[0].remedy.text, "camera.samples"));
    model->settings.operators = false;
    assert_int_equal(oct_view_notice(model, notice), 2);
    assert_null(strstr(notice[1].text, "is it on"));
    oct_view_tally_add(&tally, &header, 11 * S);
    oct_view_model_report(model, &tally, true);
    oct_view_model_tick(model, 40 * S); /* no picture for half a minute: that is why */
    assert_true(oct_view_alarms(model, alarms) > 1 && strstr(alarms[0].what.text, "1000 samples"));
    assert_null(strstr(find(model, "NO SIGNAL")->remedy.text, "is it on"));
    assert_int_equal(oct_view_daemon_read(&d, right, strlen(right), NULL), OCT_OK);
    hear_next(model, &d);
    assert_null(find(model, "CAMERA:"));
}

MODEL_TEST(alarms_say_what_is_wrong_and_go_again)
{
    struct oct_view_tally tally = {0};
    struct oct_view_daemon d = {0};
    struct oct_view_picture picture = oct_scene_layered(10, 1);
    assert_int_equal(oct_view_daemon_read(&d, oct_scene_status, strlen(oct_scene_status), NULL),
                     OCT_OK);
    d.reachable = true;
    d.answer_ns = 1;
    d.record.disk_left_s = 1e5;
    d.record.n_lost = 0;
    d.disk_slow = false;
    for (uint64_t i = 0; i < 100; i++) {
        picture.header.frame_num = i;
        oct_view_tally_add(&tally, &picture.header, 10 * S + i * 10 * MS);
    }
    oct_view_model_tick(model, 11 * S);
    oct_view_model_report(model, &tally, true);
    oct_scene_hear(model, &d, OCT_WISH_NONE, false, "");
    assert_null(find(model, "")); /* what was lost before we looked is no news */
    d.lines_missing += 3;
    d.bscans_dropped += 1;
    hear_next(model, &d);
    assert_non_null(find(model, "A-LINES MISSING: 8"));
    assert_non_null(find(model, "B-SCANS DROPPED: 4"));
    assert_null(find(model, "DISK TOO SLOW"));
    d.disk_slow = true;
    hear_next(model, &d);
    assert_non_null(find(model, "DISK TOO SLOW: 321 B-scans wait"));
    d.record.bscans_waiting = 0;
    hear_next(model, &d);
    assert_non_null(find(model, "DISK TOO SLOW"));
    assert_null(find(model, "DISK TOO SLOW:"));
    d.disk_slow = false;
    hear_next(model, &d);
    assert_null(find(model, "DISK TOO SLOW"));
    model->spectrum =
        (struct oct_view_spectrum){.n_saturated = 44, .limit = 4095, .arrival_ns = 11 * S};
    assert_non_null(find(model, "CAMERA SATURATED: 44 samples of a B-scan at 4095"));
    oct_view_model_tick(model, 40 * S); /* half a minute later */
    assert_null(find(model, "MISSING"));
    assert_null(find(model, "SATURATED"));
    assert_non_null(find(model, "NO SIGNAL"));
    strcpy(d.state, "idle");
    oct_scene_hear(model, &d, OCT_WISH_NONE, false, "");
    hear_next(model, &d);
    assert_non_null(find(model, "octd is idle: press Start"));
    d.reachable = false;
    oct_scene_hear(model, &d, OCT_WISH_NONE, false, "");
    oct_view_model_report(model, &tally, false);
    assert_non_null(find(model, "OCTD IS GONE"));
    oct_view_picture_finish(&picture);
}

/* Counts of the whole session, and of the recording before, are no loss of this one. */
MODEL_TEST(a_loss_is_told_by_the_recordings_own_account_and_ends_with_it)
{
    struct oct_view_daemon d = {0};
    const struct oct_view_alarm *alarm;
    struct oct_view_phrase p;
    assert_int_equal(oct_view_daemon_read(&d, oct_scene_status, strlen(oct_scene_status), NULL),
                     OCT_OK);
    d.reachable = true;
    d.disk_slow = false;
    for (uint64_t second = 10; second < 60; second += 5) { /* as long as the recording lasts */
        oct_view_model_tick(model, second * S);
        hear_next(model, &d);
        alarm = find(model, "NOT RECORDED: 10 B-scans (2 not sent by the camera, 7 disk "
                            "too slow, 1 a?b)");
        assert_true(alarm && alarm->what.tone == OCT_TONE_BAD);
        assert_non_null(strstr(alarm->remedy.text, "faster disk"));
    }
    d.record.active = false;
    d.record.volumes_written += 2;
    d.answer_ns++;
    oct_scene_hear(model, &d, OCT_WISH_STOP, true, "");
    assert_null(find(model, "NOT RECORDED"));
    oct_view_recording(model, &p);
    assert_string_equal(p.text, "SAVED 2 volumes, 10 B-scans NOT RECORDED, the last c.h5");
    assert_int_equal(p.tone, OCT_TONE_WARN);
    d.record.active = true; /* another one: its account begins at nothing */
    d.record.n_lost = 0;
    hear_next(model, &d);
    assert_null(find(model, "NOT RECORDED"));
    d.record.active = false; /* it ended by itself: that must not be missed */
    d.record.failed = true;
    d.record.n_lost = 3;
    strcpy(d.last_error, "No space left on device");
    hear_next(model, &d);
    oct_view_model_tick(model, 600 * S);
    alarm = find(model, "RECORDING FAILED: 3 B-scans NOT RECORDED");
    assert_true(alarm && strstr(alarm->remedy.text, "No space"));
}

static bool says(const struct oct_view_model *model, const char *words, enum oct_view_tone tone)
{
    struct oct_view_field fields[OCT_VIEW_MOST_FIELDS];
    unsigned n = oct_view_details(model, fields);
    for (unsigned i = 0; i < n; i++)
        if (strstr(fields[i].phrase.text, words))
            return fields[i].phrase.tone == tone;
    return false;
}

/* By the daemon's word, not by the B-scans that came during the last second. */
MODEL_TEST(the_disk_lasts_as_long_as_the_daemon_says)
{
    struct oct_view_tally tally = {0};
    struct oct_view_daemon d = {0};
    struct oct_view_picture picture = oct_scene_layered(10, 1);
    assert_int_equal(oct_view_daemon_read(&d, oct_scene_status, strlen(oct_scene_status), NULL),
                     OCT_OK);
    d.reachable = true;
    d.disk_bytes_free = 62e9;
    for (uint64_t i = 0; i < 100; i++) { /* a burst: 1,000 B-scans/s of 1 MB */
        picture.header.frame_num = i;
        oct_view_tally_add(&tally, &picture.header, 10 * S + i * MS);
    }
    oct_view_model_report(model, &tally, true);
    for (uint64_t second = 10; second < 40; second++) {
        oct_view_model_tick(model, second * S);
        d.answer_ns = second;
        d.record.disk_left_s = second == 20 || second == 21 ? 30 : 5400; /* for two seconds */
        oct_scene_hear(model, &d, OCT_WISH_NONE, false, "");
        assert_null(find(model, "DISK LOW"));
    }
    assert_true(says(model, "disk 62 GB, 1.5 h", OCT_TONE_PLAIN));
    for (uint64_t second = 40; second < 50; second++) {
        oct_view_model_tick(model, second * S);
        d.answer_ns = second;
        d.record.disk_left_s = 290 - (double)(second - 40);
        oct_scene_hear(model, &d, OCT_WISH_NONE, false, "");
    }
    assert_int_equal(find(model, "DISK LOW: room for 04:41")->what.tone, OCT_TONE_WARN);
    d.record.active = false; /* none goes on: five minutes are enough to begin one */
    hear_next(model, &d);
    assert_null(find(model, "DISK LOW"));
    d.record.disk_left_s = 30;
    for (uint64_t second = 50; second < 60; second++) {
        oct_view_model_tick(model, second * S);
        hear_next(model, &d);
    }
    assert_int_equal(find(model, "DISK LOW: room for 00:30")->what.tone, OCT_TONE_BAD);
    d.record.disk_left_s = NAN; /* nothing is to be recorded */
    hear_next(model, &d);
    assert_null(find(model, "DISK LOW"));
    assert_true(says(model, "disk 62 GB, time unknown", OCT_TONE_PLAIN));
    oct_view_picture_finish(&picture);
}

/* A burst shortens the time that the disk lasts while it goes on, and keeps octd from answering. */
TEST(no_burst_of_the_camera_is_a_full_disk)
{
    static const uint64_t late_ms[] = {0, 6000, 12000}; /* two answers in twelve seconds */
    struct oct_view_disk disk = {0, 0};
    struct oct_view_daemon d = {.record = {.active = true}};
    for (unsigned burst = 0; burst < 20; burst++) {
        const uint64_t begin_ns = (uint64_t)(burst + 1) * 60 * S;
        d.record.disk_left_s = 100;
        for (uint64_t ms = 0; ms < 4900; ms += 100) { /* 49 answers, less than five seconds */
            oct_view_disk_hear(&disk, &d, begin_ns + ms * MS);
            assert_false(oct_view_disk_is_low(&disk, begin_ns + ms * MS));
        }
        d.record.disk_left_s = 5000;
        oct_view_disk_hear(&disk, &d, begin_ns + 5 * S);
        assert_false(oct_view_disk_is_low(&disk, begin_ns + 30 * S));
    }
    d.record.disk_left_s = 100;
    for (size_t i = 0; i < sizeof(late_ms) / sizeof(late_ms[0]); i++)
        oct_view_disk_hear(&disk, &d, 3600 * S + late_ms[i] * MS);
    assert_false(oct_view_disk_is_low(&disk, 3613 * S));
    for (unsigned i = 0; i < 3; i++) /* and on: it is short indeed */
        oct_view_disk_hear(&disk, &d, 3614 * S);
    assert_true(oct_view_disk_is_low(&disk, 3614 * S));
}

MODEL_TEST(a_fallen_line_rate_is_an_alarm_and_a_wrong_one_is_told)
{
    struct oct_view_tally tally = {0};
    struct oct_view_daemon d = {0};
    struct oct_view_picture picture = oct_scene_layered(10, 1);
    assert_int_equal(oct_view_daemon_read(&d, oct_scene_status, strlen(oct_scene_status), NULL),
                     OCT_OK);
    assert_true(d.uptime_s == 50 && d.lines_received == 1000 && d.acquisitions == 1);
    assert_true(d.lines == 120 && d.set_line_rate_hz == 50000);
    d.reachable = true;
    oct_view_tally_add(&tally, &picture.header, 10 * S);
    oct_view_model_offer(model, &picture);
    for (uint64_t second = 0; second < 20; second++) {
        double rate_hz = second < 14 ? 30000 : 20000;
        d.answer_ns++;
        oct_view_tally_add(&tally, &picture.header, (10 + second) * S);
        oct_view_tally_add(&tally, &picture.header, (10 + second) * S + 100 * MS);
        oct_view_model_tick(model, (10 + second) * S + 200 * MS);
        oct_view_model_report(model, &tally, true);
        oct_scene_hear(model, &d, OCT_WISH_NONE, false, "");
        if (second == 14)
            assert_true(says(model, " 30.0 kHz lines", OCT_TONE_PLAIN));
        assert_true((find(model, "LINE RATE FELL to 20.0 kHz, it was 30.0") != NULL) ==
                    (second >= 16));
        /* Missing lines are the camera's too: they have an alarm of their own. */
        d.lines_received += rate_hz / 4;
        d.lines_missing += rate_hz * 3 / 4;
        d.uptime_s += 1;
    }
    assert_true(says(model, " 20.0 kHz lines, set 50.0", OCT_TONE_WARN));
    /* What nobody configured is octd's word on the same camera, and some seconds behind it. */
    static const char *const from[] = {"camera", "default", "config", "", "config"};
    for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text),
                 "{\"ok\":true,\"state\":\"running\",\"scan\":{\"line_rate_hz\":50000,"
                 "\"line_rate_from\":\"%s\"}}",
                 from[i]);
        struct oct_view_daemon other = d;
        assert_int_equal(oct_view_daemon_read(&other, text, strlen(text), NULL), OCT_OK);
        d.set_line_rate_hz = other.set_line_rate_hz;
        oct_scene_hear(model, &d, OCT_WISH_NONE, false, "");
        bool set = strcmp(from[i], "config") == 0;
        assert_int_equal(says(model, " 20.0 kHz lines, set 50.0", OCT_TONE_WARN), set);
        assert_int_equal(says(model, " 20.0 kHz lines", OCT_TONE_PLAIN), !set);
    }
    oct_view_picture_finish(&picture);
}

/* A status with these words of `degraded`, and these rows of the analyses. */
static void hear_degraded(struct oct_view_model *model, const char *words, const char *rows)
{
    struct oct_view_daemon d = {.reachable = true, .answer_ns = model->daemon.answer_ns + 1};
    char json[4096];
    snprintf(json, sizeof(json),
             "{\"ok\":true,\"state\":\"running\",\"degraded\":[%s],\"analysis\":[%s]}", words,
             rows);
    assert_int_equal(oct_view_daemon_read(&d, json, strlen(json), NULL), OCT_OK);
    oct_scene_hear(model, &d, OCT_WISH_NONE, false, "");
}

#define ROW(name, share, ms, late)                                                                 \
    "{\"name\":\"" name "\",\"seen\":1000,\"skipped\":{\"late\":500},\"late_share\":" share        \
    ",\"bscan_ms\":" ms ",\"late\":" late "}"

MODEL_TEST(every_word_of_degraded_is_told)
{
    struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS];
    oct_view_model_tick(model, 11 * S);
    hear_degraded(model, "", ROW("cells", "0", "null", "false"));
    assert_int_equal(oct_view_alarms(model, alarms), 0);
    hear_degraded(model, "\"engine\",\"keys\",\"source\"", "");
    assert_int_equal(oct_view_alarms(model, alarms), 2);
    assert_non_null(find(model, "THE GPU HAS FAILED"));
    assert_non_null(find(model, "KEYS CANNOT BE READ"));

    /* Words that this octview does not know, and what is none. */
    hear_degraded(
        model, "\"moon\\nphase\",7,null,\"\",\"a very long word that nobody has thought of\"", "");
    assert_int_equal(oct_view_alarms(model, alarms), 2);
    assert_string_equal(find(model, "moon")->what.text, "OCTD SAYS: degraded: moon?phase");
    assert_non_null(find(model, "degraded: a very long word"));
    hear_degraded(model, "\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\",\"j\"", "");
    assert_int_equal(oct_view_alarms(model, alarms), OCT_VIEW_MOST_TROUBLES);

    /* Which analysis is late now, by how much and why, whatever it skipped before. */
    hear_degraded(model, "\"analysis_late\"",
                  ROW("surfaces", "0.25", "41.4", "true") "," ROW(
                      "cells", "0.08", "9", "false") "," ROW("average", "0.031", "null", "true"));
    assert_int_equal(oct_view_alarms(model, alarms), 1);
    assert_string_equal(
        alarms[0].what.text,
        "AN ANALYSIS CANNOT FOLLOW: surfaces skips 25 % of the B-scans (41 ms each), "
        "average skips 3 % of the B-scans");
    assert_int_equal(alarms[0].what.tone, OCT_TONE_WARN);
    hear_degraded(model, "\"analysis_late\"", ROW("x", "-1", "1e999", "true"));
    assert_non_null(find(model, "AN ANALYSIS CANNOT FOLLOW"));
    hear_degraded(model, "\"analysis\"",
                  "{\"name\":\"cones\",\"failing\":true,\"error\":\"no room\"}");
    assert_non_null(find(model, "AN ANALYSIS FAILS: cones: no room"));
    model->settings.operators = true; /* no keys of the configuration */
    hear_degraded(model, "\"analysis_late\"", ROW("surfaces", "0.5", "9", "true"));
    assert_null(strstr(find(model, "surfaces")->remedy.text, "analysis.run"));
}

/* ---- what was recorded ---- */

struct scene {
    struct oct_view_model model;
    struct oct_view_daemon d;
};

static void open_scene(struct scene *s)
{
    *s = (struct scene){.d = {.known = true,
                              .reachable = true,
                              .pid = 7,
                              .state = "running",
                              .disk_bytes_free = NAN,
                              .record = {.disk_left_s = NAN,
                                         .volumes = NAN,
                                         .volumes_written = 3,
                                         .volumes_incomplete = 1,
                                         .file = "c.h5"}}};
    oct_view_model_init(&s->model, "x", true);
    oct_view_model_tick(&s->model, 10 * S);
}

/* octd says how it is half a second later. */
static void hear(struct scene *s, enum oct_view_wish answered)
{
    s->d.answer_ns++;
    oct_view_model_tick(&s->model, s->model.now_ns + S / 2);
    oct_scene_hear(&s->model, &s->d, answered, true, "");
}

static void go_on(struct scene *s, double files, double pieces, double elapsed_s)
{
    s->d.record.active = true;
    s->d.record.elapsed_s = elapsed_s;
    s->d.record.volumes_written += files;
    s->d.record.volumes_incomplete += pieces;
    hear(s, OCT_WISH_NONE);
}

static void stop(struct scene *s, double files, double pieces, enum oct_view_wish answered)
{
    s->d.record.active = false;
    s->d.record.elapsed_s = 0;
    s->d.record.volumes_written += files;
    s->d.record.volumes_incomplete += pieces;
    hear(s, answered);
}

static const char *header(const struct scene *s)
{
    static struct oct_view_phrase p;
    oct_view_recording(&s->model, &p);
    return p.text;
}

static bool alarms(const struct scene *s, const char *words)
{
    struct oct_view_alarm list[OCT_VIEW_MAX_ALARMS];
    unsigned n = oct_view_alarms(&s->model, list);
    for (unsigned i = 0; i < n; i++)
        if (strstr(list[i].what.text, words))
            return true;
    return false;
}

TEST(volumes_and_pieces_are_told_apart_whoever_stopped)
{
    struct scene s;
    open_scene(&s);
    hear(&s, OCT_WISH_NONE);
    go_on(&s, 0, 0, 1);
    go_on(&s, 2, 0, 5);
    stop(&s, 1, 1, OCT_WISH_STOP);
    assert_string_equal(header(&s), "SAVED 2 volumes and 1 piece, the last c.h5");
    oct_view_model_tick(&s.model, s.model.now_ns + 60 * S);
    assert_string_equal(header(&s), "not recording");
    go_on(&s, 0, 0, 1);
    stop(&s, 1, 1, OCT_WISH_STOP);
    assert_string_equal(header(&s), "SAVED 1 piece of a volume, the last c.h5");
    go_on(&s, 0, 0, 1);
    stop(&s, 0, 0, OCT_WISH_STOP);
    assert_string_equal(header(&s), "stopped, no volume was saved");
    go_on(&s, 0, 0, 1);
    stop(&s, 4, 0, OCT_WISH_NONE); /* nobody asked here */
    assert_string_equal(header(&s), "SAVED 4 volumes (stopped elsewhere), the last c.h5");
    s.d.record.volumes = 4; /* and that many were ordered */
    go_on(&s, 0, 0, 1);
    stop(&s, 4, 0, OCT_WISH_NONE);
    assert_string_equal(header(&s), "SAVED 4 volumes, the last c.h5");
    oct_view_model_finish(&s.model);
}

TEST(none_is_missed_between_two_looks)
{
    struct scene s;
    open_scene(&s);
    hear(&s, OCT_WISH_NONE);
    s.d.record.volumes = 1;
    stop(&s, 1, 0, OCT_WISH_NONE); /* it began and ended within half a second */
    assert_string_equal(header(&s), "SAVED 1 volume, the last c.h5");
    go_on(&s, 0, 0, 10);
    go_on(&s, 3, 0, 20);
    go_on(&s, 1, 0, 0.1); /* that one ended, and this is another */
    s.d.record.volumes = 2;
    stop(&s, 2, 0, OCT_WISH_NONE);
    assert_string_equal(header(&s), "SAVED 2 volumes, the last c.h5");
    oct_view_model_finish(&s.model);
}

/* Opened in its middle, octview counts what came since. */
TEST(one_that_ran_before_octview_is_counted_from_there)
{
    struct scene s;
    open_scene(&s);
    go_on(&s, 0, 0, 100);
    go_on(&s, 1, 0, 105);
    stop(&s, 1, 1, OCT_WISH_STOP);
    assert_string_equal(header(&s), "SAVED 1 volume and 1 piece, the last c.h5");
    oct_view_model_finish(&s.model);
}

TEST(what_is_not_recorded_stays_until_its_end_or_until_noted)
{
    struct scene s;
    open_scene(&s);
    hear(&s, OCT_WISH_NONE);
    go_on(&s, 0, 0, 1);
    s.d.record.n_lost = 7;
    strcpy(s.d.record.lost_text, "7 disk too slow");
    for (unsigned i = 0; i < 200; i++) {
        go_on(&s, 0, 0, 2 + i);
        assert_true(alarms(&s, "NOT RECORDED: 7 B-scans (7 disk too slow)"));
    }
    oct_view_model_apply(&s.model, OCT_ACTION_ACKNOWLEDGE, 1);
    assert_non_null(strstr(s.model.message, "7 B-scans"));
    assert_null(strstr(s.model.message, "nothing"));
    go_on(&s, 0, 0, 300);
    assert_false(alarms(&s, "NOT RECORDED"));
    assert_non_null(strstr(header(&s), ", 7 NOT RECORDED")); /* it stays in sight */
    s.d.record.n_lost = 9;                                   /* more than were noted */
    go_on(&s, 0, 0, 301);
    assert_true(alarms(&s, "NOT RECORDED: 9 B-scans"));
    stop(&s, 1, 0, OCT_WISH_STOP);
    assert_false(alarms(&s, "NOT RECORDED")); /* it ended with that recording */
    assert_string_equal(header(&s), "SAVED 1 volume, 9 B-scans NOT RECORDED, the last c.h5");
    oct_view_model_tick(&s.model, s.model.now_ns + 600 * S);
    assert_non_null(strstr(header(&s), "9 B-scans NOT RECORDED"));
    oct_view_model_apply(&s.model, OCT_ACTION_ACKNOWLEDGE, 1);
    assert_string_equal(header(&s), "not recording");
    oct_view_model_apply(&s.model, OCT_ACTION_ACKNOWLEDGE, 1);
    assert_string_equal(s.model.message, "there is nothing to take note of");
    s.d.record.n_lost = 0; /* the next one has its own account, of which nothing is noted */
    go_on(&s, 0, 0, 1);
    s.d.record.n_lost = 2;
    go_on(&s, 0, 0, 2);
    assert_true(alarms(&s, "NOT RECORDED: 2 B-scans"));
    oct_view_model_finish(&s.model);
}

TEST(a_failure_stays_until_noted_or_until_the_next_begins)
{
    struct scene s;
    open_scene(&s);
    hear(&s, OCT_WISH_NONE);
    go_on(&s, 0, 0, 1);
    s.d.record.failed = true;
    strcpy(s.d.last_error, "no space left");
    s.d.record.n_lost = 3;
    stop(&s, 1, 1, OCT_WISH_NONE);
    oct_view_model_tick(&s.model, s.model.now_ns + 600 * S);
    assert_true(alarms(&s, "RECORDING FAILED: 3 B-scans NOT RECORDED"));
    oct_view_model_apply(&s.model, OCT_ACTION_ACKNOWLEDGE, 1);
    assert_false(alarms(&s, "RECORDING FAILED"));
    hear(&s, OCT_WISH_NONE);
    assert_false(alarms(&s, "RECORDING FAILED"));
    s.d.record.failed = false;
    s.d.record.n_lost = 0;
    go_on(&s, 0, 0, 1);
    s.d.record.failed = true;
    stop(&s, 0, 0, OCT_WISH_NONE);
    assert_true(alarms(&s, "RECORDING FAILED"));
    oct_view_model_finish(&s.model);
}

TEST(octd_may_go_and_come_back_while_it_records)
{
    struct scene s;
    open_scene(&s);
    hear(&s, OCT_WISH_NONE);
    go_on(&s, 1, 0, 10);
    s.d.reachable = false;
    hear(&s, OCT_WISH_NONE);
    assert_true(alarms(&s, "OCTD IS GONE, AND IT WAS RECORDING"));
    assert_string_equal(header(&s), "RECORDING? octd does not answer");
    assert_true(oct_view_model_is_recording(&s.model)); /* Escape does not quit */
    s.d = (struct oct_view_daemon){.known = true,
                                   .reachable = true,
                                   .pid = 8,
                                   .answer_ns = 99,
                                   .state = "idle",
                                   .record.disk_left_s = NAN};
    hear(&s, OCT_WISH_NONE);
    assert_true(alarms(&s, "THE RECORDING WAS CUT OFF"));
    assert_string_equal(header(&s), "the recording ended");
    oct_view_model_apply(&s.model, OCT_ACTION_ACKNOWLEDGE, 1);
    assert_false(alarms(&s, "THE RECORDING WAS CUT OFF"));
    assert_string_equal(header(&s), "not recording");
    s.d.reachable = false; /* it did not record: nothing was cut off */
    hear(&s, OCT_WISH_NONE);
    assert_true(alarms(&s, "OCTD IS GONE: no pictures"));
    s.d.reachable = true;
    s.d.pid = 9;
    hear(&s, OCT_WISH_NONE);
    assert_false(alarms(&s, "THE RECORDING WAS CUT OFF"));
    oct_view_model_finish(&s.model);
}

/* ---- captions ---- */

struct caption_scene {
    struct oct_view_model model;
    struct oct_view_caption caption;
};

static struct caption_scene *caption_open_scene(void)
{
    struct caption_scene *s = calloc(1, sizeof(*s));
    struct oct_view_picture picture = oct_scene_layered(30, 4); /* 120 A-lines of 100 pixels */
    assert_non_null(s);
    oct_view_model_init(&s->model, "x", true);
    picture.header.volume = 3;
    picture.header.bscan = 7;
    snprintf(picture.header.acquisition_id, sizeof(picture.header.acquisition_id), "a-1");
    oct_view_model_offer(&s->model, &picture);
    oct_view_picture_finish(&picture);
    snprintf(s->model.daemon.record.eye, sizeof(s->model.daemon.record.eye), "OD");
    snprintf(s->model.daemon.record.pseudonym, sizeof(s->model.daemon.record.pseudonym), "P/7");
    return s;
}

static void close_scene(struct caption_scene *s)
{
    oct_view_model_finish(&s->model);
    free(s);
}

static cJSON *read_json(const struct caption_scene *s)
{
    cJSON *json = cJSON_Parse(s->caption.json);
    assert_non_null(json);
    return json;
}

static double number(const cJSON *json, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static const char *string(const cJSON *json, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));
    assert_non_null(text);
    return text;
}

TEST(a_name_is_safe_as_a_part_of_a_path)
{
    static const struct {
        const char *text, *name;
    } cases[] = {
        {"", "x"},
        {"P-7r_1.b", "x-P-7r_1.b"},
        {"../../etc/passwd", "x-.._.._etc_passwd"},
        {"a b\tc\nd\"'$`*?|<>:\\;&~", "x-a_b_c_d______________"},
        {"M\u00fcller-\u6f22\U0001F600", "x-M\u00fcller-\u6f22\U0001F600"},
        {"a\u202eb\u200bc\u00a0d\xc2\x85"
         "e\ufefff",
         "x-a_b_c_d_e_f"},
        {"a\xff\xc0\xafz\xe2\x82", "x-a___z__"},
        {"\xed\xa0\x80", "x-___"}, /* a surrogate */
    };
    char name[OCT_VIEW_NAME_WORDS_BYTES];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(name, sizeof(name), "x");
        oct_view_caption_name_add(name, sizeof(name), cases[i].text);
        assert_string_equal(name, cases[i].name);
    }
    /* Every byte that a path cannot have is gone, whatever the text is. */
    for (unsigned c = 1; c < 256; c++) {
        char text[2] = {(char)c, 0};
        snprintf(name, sizeof(name), "x");
        oct_view_caption_name_add(name, sizeof(name), text);
        assert_int_equal(strlen(name), 3);
        assert_true(strchr("/ \\\n\"", name[2]) == NULL && (unsigned char)name[2] < 128);
    }
}

TEST(a_name_is_cut_between_letters)
{
    char name[10] = "x";
    oct_view_caption_name_add(name, sizeof(name), "abcdef\u00fc\u00fc");
    assert_string_equal(name, "x-abcdef"); /* the next letter has two bytes */
    oct_view_caption_name_add(name, sizeof(name), "g");
    assert_string_equal(name, "x-abcdef");
}

TEST(the_pseudonym_is_where_it_was_asked_for)
{
    struct caption_scene *s = caption_open_scene();
    oct_view_caption_make(&s->caption, &s->model, false, "window");
    assert_string_equal(s->caption.name, "-OD");
    assert_null(strstr(s->caption.json, "P/7"));
    assert_null(strstr(s->caption.json, "pseudonym"));
    assert_null(strstr(s->caption.line, "P/7"));
    oct_view_caption_make(&s->caption, &s->model, true, "window");
    assert_string_equal(s->caption.name, "-OD-P_7");
    assert_non_null(strstr(s->caption.line, "; OD; P/7"));
    cJSON *json = read_json(s);
    assert_string_equal(string(json, "pseudonym"), "P/7");
    cJSON_Delete(json);
    s->model.daemon.record.eye[0] = '\0';
    oct_view_caption_make(&s->caption, &s->model, true, "window");
    assert_string_equal(s->caption.name, "-P_7");
    close_scene(s);
}

TEST(it_says_what_is_shown)
{
    struct caption_scene *s = caption_open_scene();
    cJSON *json, *item;
    s->model.daemon.lateral_um = 5;
    s->model.daemon.axial_um = 2;
    oct_view_model_set_caliper(&s->model, (struct oct_view_point){10, 20},
                               (struct oct_view_point){10, 70});
    assert_true(oct_view_model_add_caliper(&s->model, (struct oct_view_point){10, 20},
                                           (struct oct_view_point){50, 20}));
    oct_view_model_mark(&s->model, (struct oct_view_point){60, 31});
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    oct_view_caption_make(&s->caption, &s->model, false, "picture");
    json = read_json(s);
    assert_string_equal(string(json, "shows"), "picture");
    assert_string_equal(string(json, "state"), "frozen");
    assert_string_equal(string(json, "acquisition"), "a-1");
    assert_string_equal(string(json, "eye"), "OD");
    assert_string_equal(string(json, "unit"), "dB");
    assert_true(number(json, "volume") == 3 && number(json, "bscan") == 7);
    assert_true(number(json, "n_lines") == 120 && number(json, "depth") == 100);
    item = cJSON_GetObjectItem(json, "spacing_um");
    assert_true(number(item, "line") == 5 && number(item, "depth") == 2);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(item, "bscan"))); /* not known */
    item = cJSON_GetObjectItem(json, "contrast");
    assert_true(number(item, "black") == s->model.contrast.lo &&
                number(item, "white") == s->model.contrast.hi);
    assert_string_equal(string(item, "range"), "published");
    item = cJSON_GetObjectItem(json, "calipers");
    assert_int_equal(cJSON_GetArraySize(item), 2);
    assert_true(number(cJSON_GetArrayItem(item, 0), "um") == 100);
    assert_true(number(cJSON_GetArrayItem(item, 1), "um") == 200);
    assert_true(number(cJSON_GetArrayItem(item, 1), "number") == 2);
    assert_true(number(cJSON_GetObjectItem(json, "mark"), "value") == 70); /* the layer */
    cJSON_Delete(json);
    assert_string_equal(
        s->caption.line,
        "B-scan 7 of volume 3, acquisition a-1, frozen; OD; 5 x 2 \u00b5m a pixel; black 10, "
        "white 70 dB, gamma 1; 1: 100.0 \u00b5m (across 0.0, deep 100.0); 2: 200.0 \u00b5m "
        "(across 200.0, deep 0.0)");
    close_scene(s);
}

TEST(there_need_be_no_picture)
{
    struct caption_scene *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    oct_view_model_init(&s->model, "x", true);
    oct_view_caption_make(&s->caption, &s->model, true, "window");
    assert_string_equal(s->caption.name, "");
    cJSON *json = read_json(s);
    assert_string_equal(string(json, "state"), "waiting");
    cJSON_Delete(json);
    close_scene(s);
}

TEST(playback_speaks_of_its_file)
{
    struct caption_scene *s = caption_open_scene();
    struct oct_view_file *file = &s->model.playback.file;
    s->model.playback.active = true;
    s->model.playback.read.bscan = 12;
    file->n_bscans = 40;
    file->axial_um = 3;
    file->lateral_um = file->slow_um = NAN;
    snprintf(file->name, sizeof(file->name), "20261123T101112123Z_1.h5");
    snprintf(file->eye, sizeof(file->eye), "OS");
    snprintf(file->pseudonym, sizeof(file->pseudonym), "Q");
    oct_view_caption_make(&s->caption, &s->model, true, "picture");
    assert_string_equal(s->caption.name, "-OS-Q"); /* not those of the recordings to come */
    assert_non_null(
        strstr(s->caption.line, "B-scan 12 of 40 of 20261123T101112123Z_1.h5, playback"));
    cJSON *json = read_json(s);
    assert_string_equal(string(json, "file"), "20261123T101112123Z_1.h5");
    assert_null(cJSON_GetObjectItem(json, "acquisition"));
    assert_true(number(json, "bscan") == 12);
    assert_true(number(cJSON_GetObjectItem(json, "spacing_um"), "depth") == 3);
    cJSON_Delete(json);
    close_scene(s);
}

/* The longest of everything still is one text. */
TEST(the_longest_fits)
{
    struct caption_scene *s = caption_open_scene();
    struct oct_picture_header *h = &s->model.shown.header;
    memset(h->acquisition_id, 1, sizeof(h->acquisition_id) - 1); /* six letters each in JSON */
    memset(s->model.daemon.record.pseudonym, 1, OCT_VIEW_LABEL_BYTES - 1);
    s->model.daemon.lateral_um = s->model.daemon.axial_um = s->model.daemon.slow_um = 1 / 3.0;
    h->time_ns = h->frame_num = h->volume = UINT64_MAX;
    for (unsigned i = 0; i < OCT_VIEW_MOST_CALIPERS; i++)
        assert_true(oct_view_model_add_caliper(&s->model, (struct oct_view_point){1 / 3.0, 2 / 3.0},
                                               (struct oct_view_point){100 / 3.0, 200 / 3.0}));
    oct_view_model_mark(&s->model, (struct oct_view_point){1 / 3.0, 2 / 3.0});
    oct_view_caption_make(&s->caption, &s->model, true, "picture");
    cJSON *json = read_json(s);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "calipers")), 9);
    assert_int_equal(strlen(string(json, "pseudonym")), OCT_VIEW_LABEL_BYTES - 1);
    cJSON_Delete(json);
    assert_non_null(strstr(s->caption.line, "; 9: "));
    close_scene(s);
}
