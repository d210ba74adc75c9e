/* What the viewer makes of the daemon's words, and what it says. No zmq, no SDL. */
#include "test/rig/tap.h"
#include "test/rig/viewer_daemon.h"
#include "test/rig/viewer_scene.h"
#include "viewer/model/clock.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S OCT_NS_PER_S
#define MS OCT_NS_PER_MS

/* ---- the daemon's words ---- */

static void a_status_is_read_and_a_hostile_one_survived(void **state)
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

static void en_face_settings_are_read_whole_or_not_at_all(void **state)
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
static void mutated_statuses_are_survived(void **state)
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

static void what_the_header_says_is_the_daemons_word(void **state)
{
    struct oct_view_model model;
    struct oct_view_daemon d = {0};
    struct oct_view_phrase p;
    char text[OCT_VIEW_LABEL_BYTES];

    oct_view_model_init(&model, "x", true);
    oct_view_model_tick(&model, 10 * S);
    oct_view_recording(&model, &p);
    assert_non_null(strstr(p.text, "no control endpoint"));
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    oct_view_recording(&model, &p);
    assert_non_null(strstr(p.text, "does not answer"));
    assert_int_equal(oct_view_daemon_read(&d, oct_scene_status, strlen(oct_scene_status), NULL),
                     OCT_OK);
    d.reachable = true;
    d.record.active = false;
    d.record.n_lost = 0;
    d.answer_ns = 1;
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    oct_view_recording(&model, &p);
    assert_string_equal(p.text, "not recording");
    oct_view_model_apply(&model, OCT_ACTION_RECORD, 1);
    assert_int_equal(oct_view_model_take_wish(&model, text), OCT_WISH_RECORD);
    assert_int_equal(oct_view_model_take_wish(&model, text), OCT_WISH_NONE);
    oct_view_recording(&model, &p); /* wished is not recorded */
    assert_string_equal(p.text, "asking octd to start recording");
    oct_view_model_apply(&model, OCT_ACTION_RECORD, 1);
    assert_int_equal(model.wishes.n, 0); /* an impatient press is no second wish */
    oct_scene_hear(&model, &d, OCT_WISH_RECORD, false, "no such folder");
    oct_view_recording(&model, &p);
    assert_string_equal(p.text, "NOT DONE: no such folder");
    assert_int_equal(p.tone, OCT_TONE_BAD);
    d.record.active = true;
    d.answer_ns = 2;
    oct_scene_hear(&model, &d, OCT_WISH_RECORD, true, "");
    oct_view_recording(&model, &p);
    assert_string_equal(p.text, "RECORDING 01:15  volume 1, 17 B-scans safe");
    assert_false(oct_view_waits_to_record(&model));
    model.daemon.record.waiting_for_volume = true; /* nothing is in a file yet */
    oct_view_recording(&model, &p);
    assert_true(oct_view_waits_to_record(&model));
    assert_string_equal(p.text, "WAITING to record the next volume  01:15");
    d.record.volumes_written = 5;
    d.answer_ns = 3;
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    oct_view_recording(&model, &p);
    assert_non_null(strstr(p.text, "volume 3"));
    oct_view_model_apply(&model, OCT_ACTION_RECORD, 1);
    assert_int_equal(oct_view_model_take_wish(&model, text), OCT_WISH_STOP);
    d.record.active = false;
    d.answer_ns = 4;
    oct_scene_hear(&model, &d, OCT_WISH_STOP, true, "");
    oct_view_recording(&model, &p);
    assert_string_equal(p.text, "SAVED 2 volumes, the last c.h5");
    d.reachable = false;
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    oct_view_recording(&model, &p);
    assert_int_equal(p.tone, OCT_TONE_BAD);
    oct_view_model_finish(&model);
}

static void eye_and_pseudonym_go_to_the_daemon(void **state)
{
    struct oct_view_model model;
    struct oct_view_daemon d = {.known = true, .reachable = true};
    char text[OCT_VIEW_LABEL_BYTES];

    oct_view_model_init(&model, "x", true);
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    oct_view_model_apply(&model, OCT_ACTION_EYE, 1);
    assert_int_equal(oct_view_model_take_wish(&model, text), OCT_WISH_EYE);
    assert_string_equal(text, "OD");
    strcpy(d.record.eye, "OD");
    oct_scene_hear(&model, &d, OCT_WISH_EYE, true, "OD");
    assert_string_equal(model.message, "octd confirms: eye OD");
    oct_view_model_apply(&model, OCT_ACTION_PSEUDONYM, 1);
    assert_true(model.typing);
    oct_view_model_type(&model, "P-\u00e4");
    oct_view_model_type(&model, "\n");
    assert_string_equal(model.typed, "P-\u00e4");
    oct_view_model_rub_out(&model);
    oct_view_model_type(&model, "17");
    for (int i = 0; i < 500; i++)
        oct_view_model_type(&model, "");
    oct_view_model_end_typing(&model, true);
    assert_int_equal(oct_view_model_take_wish(&model, text), OCT_WISH_PSEUDONYM);
    assert_string_equal(text, "P-17");
    for (int i = 0; i < 20; i++)
        oct_view_model_rub_out(&model);
    assert_string_equal(model.typed, "");
    oct_view_model_finish(&model);
}

static void letters_are_utf8_in_any_locale(void **state)
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

static void the_en_face_panel_says_what_it_shows_or_why_nothing(void **state)
{
    struct oct_view_model model;
    struct oct_view_tally tally = {0};
    struct oct_view_picture picture = oct_scene_layered(10, 1);
    struct oct_view_image image = oct_scene_enface(4, 6);
    struct oct_view_daemon d = {.known = true, .reachable = true, .answer_ns = 1};

    oct_view_model_init(&model, "x", true);
    oct_view_model_tick(&model, 10 * S);
    expect_title(&model, OCT_TONE_DIM, "en face");
    oct_view_model_offer(&model, &picture);
    go_live(&model, &tally, 11 * S);
    expect_title(&model, OCT_TONE_DIM, "en face"); /* it may still come */
    go_live(&model, &tally, 14 * S);
    expect_title(&model, OCT_TONE_DIM, "no en face from this octd");
    /* An octd that says so is believed at once, and so is a picture that comes. */
    model.first_picture_ns = 14 * S;
    expect_title(&model, OCT_TONE_DIM, "en face");
    oct_view_model_hear(&model, &d, &(struct oct_view_answer){0});
    expect_title(&model, OCT_TONE_DIM, "no en face from this octd");
    image.arrival_ns = 14 * S;
    oct_view_model_offer_enface(&model, &image);
    expect_title(&model, OCT_TONE_PLAIN, "en face");
    d.has_enface = d.enface_told = true;
    d.enface = (struct oct_view_enface_settings){OCT_PROJECTION_MAX, {0.4, 0.6}};
    d.answer_ns++;
    oct_view_model_hear(&model, &d, &(struct oct_view_answer){0});
    expect_title(&model, OCT_TONE_PLAIN, "en face, maximum");
    /* One that stands still while B-scans come is not shown as if it were live. */
    go_live(&model, &tally, 16 * S);
    expect_title(&model, OCT_TONE_PLAIN, "en face, maximum");
    go_live(&model, &tally, 26 * S);
    expect_title(&model, OCT_TONE_WARN, "en face, maximum: none came for 12 s");
    image.arrival_ns = 26 * S;
    oct_view_model_offer_enface(&model, &image);
    expect_title(&model, OCT_TONE_PLAIN, "en face, maximum");
    oct_view_model_tick(&model, 60 * S); /* when nothing comes, the banner says so */
    expect_title(&model, OCT_TONE_PLAIN, "en face, maximum");
    oct_view_image_finish(&image);
    oct_view_picture_finish(&picture);
    oct_view_model_finish(&model);
}

static void the_quality_in_numbers_is_octds(void **state)
{
    struct oct_view_archive *archive = oct_view_archive_create(1 << 20);
    struct oct_view_image row = oct_scene_quality();
    struct oct_view_tally tally = {0};
    struct oct_view_model model;
    struct oct_view_phrase p;

    assert_non_null(archive);
    oct_view_model_init(&model, "x", true);
    oct_view_model_attach(&model, archive);
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

    oct_view_cones_set(&model->cones, &row);
    oct_view_cones_text(model, &p);
    assert_string_equal(p.text, text);
    oct_view_image_finish(&row);
}

static void the_cone_spacing_is_octds_where_the_scale_is_known(void **state)
{
    struct oct_view_model model;
    struct oct_view_picture picture = oct_scene_layered(10, 1);
    struct oct_view_phrase p;

    oct_view_model_init(&model, "x", true);
    oct_view_model_offer(&model, &picture);
    snprintf(model.shown.header.acquisition_id, sizeof(model.shown.header.acquisition_id), "a");
    model.daemon.lateral_um = model.daemon.slow_um = 1;
    oct_view_cones_text(&model, &p);
    assert_string_equal(p.text, ""); /* octd says nothing of cones */
    expect_cones(&model, 4.21, 65149, 0.1416, "cones 4.2 um 65,100/mm2 (0.14)");
    expect_cones(&model, 30, 1283, 0.06, "cones 30.0 um 1,280/mm2 (0.06)");
    model.enface.volume = model.cones.volume + 1; /* that is being scanned */
    expect_cones(&model, 30, 1283, 0.06, "cones 30.0 um 1,280/mm2 (0.06)");
    model.enface.volume = model.cones.volume + 4;
    expect_cones(&model, 30, 1283, 0.06, "cones 30.0 um 1,280/mm2 (0.06), 4 volumes ago");
    model.enface.volume = model.cones.volume;
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

static void a_row_of_cones_that_is_none_changes_nothing(void **state)
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

/* A key of what octd does not compute says so and offers it; pressed again, octd is asked. */
static void a_key_offers_the_setting_that_it_needs(void **state)
{
    static const struct {
        enum oct_view_action action;
        const char *none, *key;
    } cases[] = {
        {OCT_ACTION_CELLS, "octd follows no cells: C again sets cells.enabled = yes",
         "cells.enabled"},
        {OCT_ACTION_LAYERS, "octd finds no layers: I again sets surfaces.enabled = yes",
         "surfaces.enabled"},
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
    m.settings.layers = false;
    for (int i = 0; i < 3; i++) {
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
    assert_true(m.settings.cells && m.settings.layers && m.settings.rolloff);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_offers_the_setting_that_it_needs),
        cmocka_unit_test(a_status_is_read_and_a_hostile_one_survived),
        cmocka_unit_test(en_face_settings_are_read_whole_or_not_at_all),
        cmocka_unit_test(mutated_statuses_are_survived),
        cmocka_unit_test(what_the_header_says_is_the_daemons_word),
        cmocka_unit_test(eye_and_pseudonym_go_to_the_daemon),
        cmocka_unit_test(letters_are_utf8_in_any_locale),
        cmocka_unit_test(the_en_face_panel_says_what_it_shows_or_why_nothing),
        cmocka_unit_test(the_quality_in_numbers_is_octds),
        cmocka_unit_test(the_cone_spacing_is_octds_where_the_scale_is_known),
        cmocka_unit_test(a_row_of_cones_that_is_none_changes_nothing),
    };
    return cmocka_run_group_tests_name("viewer words", tests, NULL, NULL);
}
