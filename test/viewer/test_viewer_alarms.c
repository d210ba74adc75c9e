/* When the viewer raises an alarm, in which words, and when it goes again. No zmq, no SDL. */
#include "test/rig/tap.h"
#include "test/rig/viewer_daemon.h"
#include "test/rig/viewer_scene.h"
#include "viewer/model/clock.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define S OCT_NS_PER_S
#define MS OCT_NS_PER_MS

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

static void a_wrong_driver_is_named_in_plain_words(void **state)
{
    static const char wrong[] = REFUSED("\"source_refused\""), right[] = REFUSED("");
    struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS];
    struct oct_view_phrase notice[2];
    struct oct_view_tally tally = {0};
    struct oct_picture_header header = oct_scene_header(1, "a");
    struct oct_view_model model;
    struct oct_view_daemon d = {0};

    oct_view_model_init(&model, "x", true);
    assert_int_equal(oct_view_daemon_read(&d, wrong, strlen(wrong), NULL), OCT_OK);
    d.reachable = true;
    d.answer_ns = 1;
    oct_view_model_tick(&model, 11 * S);
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    assert_true(oct_view_alarms(&model, alarms) > 0); /* the first stands in the banner */
    assert_string_equal(alarms[0].what.text,
                        "CAMERA: the camera sends lines of 1000 samples, 1024 are expected");
    assert_string_equal(alarms[0].remedy.text, "set camera.samples=1000");
    model.settings.operators = true; /* an operator has no keys of the configuration */
    assert_true(oct_view_alarms(&model, alarms) > 0);
    assert_null(strstr(alarms[0].remedy.text, "camera.samples"));
    model.settings.operators = false;
    assert_int_equal(oct_view_notice(&model, notice), 2);
    assert_null(strstr(notice[1].text, "is it on"));
    oct_view_tally_add(&tally, &header, 11 * S);
    oct_view_model_report(&model, &tally, true);
    oct_view_model_tick(&model, 40 * S); /* no picture for half a minute: that is why */
    assert_true(oct_view_alarms(&model, alarms) > 1 && strstr(alarms[0].what.text, "1000 samples"));
    assert_null(strstr(find(&model, "NO SIGNAL")->remedy.text, "is it on"));
    assert_int_equal(oct_view_daemon_read(&d, right, strlen(right), NULL), OCT_OK);
    d.answer_ns = 2;
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    assert_null(find(&model, "CAMERA:"));
    oct_view_model_finish(&model);
}

static void alarms_say_what_is_wrong_and_go_again(void **state)
{
    struct oct_view_model model;
    struct oct_view_tally tally = {0};
    struct oct_view_daemon d = {0};
    struct oct_view_picture picture = oct_scene_layered(10, 1);

    oct_view_model_init(&model, "x", true);
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
    oct_view_model_tick(&model, 11 * S);
    oct_view_model_report(&model, &tally, true);
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    assert_null(find(&model, "")); /* what was lost before we looked is no news */
    d.lines_missing += 3;
    d.bscans_dropped += 1;
    d.answer_ns = 2;
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    assert_non_null(find(&model, "A-LINES MISSING: 8"));
    assert_non_null(find(&model, "B-SCANS DROPPED: 4"));
    assert_null(find(&model, "DISK TOO SLOW"));
    d.disk_slow = true;
    d.answer_ns = 3;
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    assert_non_null(find(&model, "DISK TOO SLOW: 321 B-scans wait"));
    d.record.bscans_waiting = 0;
    d.answer_ns = 4;
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    assert_non_null(find(&model, "DISK TOO SLOW"));
    assert_null(find(&model, "DISK TOO SLOW:"));
    d.disk_slow = false;
    d.answer_ns = 5;
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    assert_null(find(&model, "DISK TOO SLOW"));
    model.spectrum =
        (struct oct_view_spectrum){.n_saturated = 44, .limit = 4095, .arrival_ns = 11 * S};
    assert_non_null(find(&model, "CAMERA SATURATED: 44 samples of a B-scan at 4095"));
    oct_view_model_tick(&model, 40 * S); /* half a minute later */
    assert_null(find(&model, "MISSING"));
    assert_null(find(&model, "SATURATED"));
    assert_non_null(find(&model, "NO SIGNAL"));
    strcpy(d.state, "idle");
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    d.answer_ns = 5;
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    assert_non_null(find(&model, "octd is idle: press Start"));
    d.reachable = false;
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    oct_view_model_report(&model, &tally, false);
    assert_non_null(find(&model, "OCTD IS GONE"));
    oct_view_picture_finish(&picture);
    oct_view_model_finish(&model);
}

/* Counts of the whole session, and of the recording before, are no loss of this one. */
static void a_loss_is_told_by_the_recordings_own_account_and_ends_with_it(void **state)
{
    struct oct_view_model model;
    struct oct_view_daemon d = {0};
    const struct oct_view_alarm *alarm;
    struct oct_view_phrase p;

    oct_view_model_init(&model, "x", true);
    assert_int_equal(oct_view_daemon_read(&d, oct_scene_status, strlen(oct_scene_status), NULL),
                     OCT_OK);
    d.reachable = true;
    d.disk_slow = false;
    for (uint64_t second = 10; second < 60; second += 5) { /* as long as the recording lasts */
        oct_view_model_tick(&model, second * S);
        d.answer_ns = second;
        oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
        alarm = find(&model, "NOT RECORDED: 10 B-scans (2 not sent by the camera, 7 disk "
                             "too slow, 1 a?b)");
        assert_true(alarm && alarm->what.tone == OCT_TONE_BAD);
        assert_non_null(strstr(alarm->remedy.text, "faster disk"));
    }
    d.record.active = false;
    d.record.volumes_written += 2;
    d.answer_ns++;
    oct_scene_hear(&model, &d, OCT_WISH_STOP, true, "");
    assert_null(find(&model, "NOT RECORDED"));
    oct_view_recording(&model, &p);
    assert_string_equal(p.text, "SAVED 2 volumes, 10 B-scans NOT RECORDED, the last c.h5");
    assert_int_equal(p.tone, OCT_TONE_WARN);
    d.record.active = true; /* another one: its account begins at nothing */
    d.record.n_lost = 0;
    d.answer_ns++;
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    assert_null(find(&model, "NOT RECORDED"));
    d.record.active = false; /* it ended by itself: that must not be missed */
    d.record.failed = true;
    d.record.n_lost = 3;
    strcpy(d.last_error, "No space left on device");
    d.answer_ns++;
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    oct_view_model_tick(&model, 600 * S);
    alarm = find(&model, "RECORDING FAILED: 3 B-scans NOT RECORDED");
    assert_true(alarm && strstr(alarm->remedy.text, "No space"));
    oct_view_model_finish(&model);
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
static void the_disk_lasts_as_long_as_the_daemon_says(void **state)
{
    struct oct_view_model model;
    struct oct_view_tally tally = {0};
    struct oct_view_daemon d = {0};
    struct oct_view_picture picture = oct_scene_layered(10, 1);

    oct_view_model_init(&model, "x", true);
    assert_int_equal(oct_view_daemon_read(&d, oct_scene_status, strlen(oct_scene_status), NULL),
                     OCT_OK);
    d.reachable = true;
    d.disk_bytes_free = 62e9;
    for (uint64_t i = 0; i < 100; i++) { /* a burst: 1,000 B-scans/s of 1 MB */
        picture.header.frame_num = i;
        oct_view_tally_add(&tally, &picture.header, 10 * S + i * MS);
    }
    oct_view_model_report(&model, &tally, true);
    for (uint64_t second = 10; second < 40; second++) {
        oct_view_model_tick(&model, second * S);
        d.answer_ns = second;
        d.record.disk_left_s = second == 20 || second == 21 ? 30 : 5400; /* for two seconds */
        oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
        assert_null(find(&model, "DISK LOW"));
    }
    assert_true(says(&model, "disk 62 GB, 1.5 h", OCT_TONE_PLAIN));
    for (uint64_t second = 40; second < 50; second++) {
        oct_view_model_tick(&model, second * S);
        d.answer_ns = second;
        d.record.disk_left_s = 290 - (double)(second - 40);
        oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    }
    assert_int_equal(find(&model, "DISK LOW: room for 04:41")->what.tone, OCT_TONE_WARN);
    d.record.active = false; /* none goes on: five minutes are enough to begin one */
    d.answer_ns++;
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    assert_null(find(&model, "DISK LOW"));
    d.record.disk_left_s = 30;
    for (uint64_t second = 50; second < 60; second++) {
        oct_view_model_tick(&model, second * S);
        d.answer_ns = second;
        oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    }
    assert_int_equal(find(&model, "DISK LOW: room for 00:30")->what.tone, OCT_TONE_BAD);
    d.record.disk_left_s = NAN; /* nothing is to be recorded */
    d.answer_ns++;
    oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
    assert_null(find(&model, "DISK LOW"));
    assert_true(says(&model, "disk 62 GB, time unknown", OCT_TONE_PLAIN));
    oct_view_picture_finish(&picture);
    oct_view_model_finish(&model);
}

/* A burst shortens the time that the disk lasts while it goes on, and keeps octd from answering. */
static void no_burst_of_the_camera_is_a_full_disk(void **state)
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

static void a_fallen_line_rate_is_an_alarm_and_a_wrong_one_is_told(void **state)
{
    struct oct_view_model model;
    struct oct_view_tally tally = {0};
    struct oct_view_daemon d = {0};
    struct oct_view_picture picture = oct_scene_layered(10, 1);

    oct_view_model_init(&model, "x", true);
    assert_int_equal(oct_view_daemon_read(&d, oct_scene_status, strlen(oct_scene_status), NULL),
                     OCT_OK);
    assert_true(d.uptime_s == 50 && d.lines_received == 1000 && d.acquisitions == 1);
    assert_true(d.lines == 120 && d.set_line_rate_hz == 50000);
    d.reachable = true;
    oct_view_tally_add(&tally, &picture.header, 10 * S);
    oct_view_model_offer(&model, &picture);
    for (uint64_t second = 0; second < 20; second++) {
        double rate_hz = second < 14 ? 30000 : 20000;
        d.answer_ns++;
        oct_view_tally_add(&tally, &picture.header, (10 + second) * S);
        oct_view_tally_add(&tally, &picture.header, (10 + second) * S + 100 * MS);
        oct_view_model_tick(&model, (10 + second) * S + 200 * MS);
        oct_view_model_report(&model, &tally, true);
        oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
        if (second == 14)
            assert_true(says(&model, " 30.0 kHz lines", OCT_TONE_PLAIN));
        assert_true((find(&model, "LINE RATE FELL to 20.0 kHz, it was 30.0") != NULL) ==
                    (second >= 16));
        /* Missing lines are the camera's too: they have an alarm of their own. */
        d.lines_received += rate_hz / 4;
        d.lines_missing += rate_hz * 3 / 4;
        d.uptime_s += 1;
    }
    assert_true(says(&model, " 20.0 kHz lines, set 50.0", OCT_TONE_WARN));
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
        oct_scene_hear(&model, &d, OCT_WISH_NONE, false, "");
        bool set = strcmp(from[i], "config") == 0;
        assert_int_equal(says(&model, " 20.0 kHz lines, set 50.0", OCT_TONE_WARN), set);
        assert_int_equal(says(&model, " 20.0 kHz lines", OCT_TONE_PLAIN), !set);
    }
    oct_view_picture_finish(&picture);
    oct_view_model_finish(&model);
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

static void every_word_of_degraded_is_told(void **state)
{
    struct oct_view_model model;
    struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS];

    oct_view_model_init(&model, "x", true);
    oct_view_model_tick(&model, 11 * S);
    hear_degraded(&model, "", ROW("cells", "0", "null", "false"));
    assert_int_equal(oct_view_alarms(&model, alarms), 0);
    hear_degraded(&model, "\"engine\",\"keys\",\"source\"", "");
    assert_int_equal(oct_view_alarms(&model, alarms), 2);
    assert_non_null(find(&model, "THE GPU HAS FAILED"));
    assert_non_null(find(&model, "KEYS CANNOT BE READ"));

    /* Words that this octview does not know, and what is none. */
    hear_degraded(
        &model, "\"moon\\nphase\",7,null,\"\",\"a very long word that nobody has thought of\"", "");
    assert_int_equal(oct_view_alarms(&model, alarms), 2);
    assert_string_equal(find(&model, "moon")->what.text, "OCTD SAYS: degraded: moon?phase");
    assert_non_null(find(&model, "degraded: a very long word"));
    hear_degraded(&model, "\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\",\"j\"", "");
    assert_int_equal(oct_view_alarms(&model, alarms), OCT_VIEW_MOST_TROUBLES);

    /* Which analysis is late now, by how much and why, whatever it skipped before. */
    hear_degraded(&model, "\"analysis_late\"",
                  ROW("surfaces", "0.25", "41.4", "true") "," ROW(
                      "cells", "0.08", "9", "false") "," ROW("average", "0.031", "null", "true"));
    assert_int_equal(oct_view_alarms(&model, alarms), 1);
    assert_string_equal(
        alarms[0].what.text,
        "AN ANALYSIS CANNOT FOLLOW: surfaces skips 25 % of the B-scans (41 ms each), "
        "average skips 3 % of the B-scans");
    assert_int_equal(alarms[0].what.tone, OCT_TONE_WARN);
    hear_degraded(&model, "\"analysis_late\"", ROW("x", "-1", "1e999", "true"));
    assert_non_null(find(&model, "AN ANALYSIS CANNOT FOLLOW"));
    hear_degraded(&model, "\"analysis\"",
                  "{\"name\":\"cones\",\"failing\":true,\"error\":\"no room\"}");
    assert_non_null(find(&model, "AN ANALYSIS FAILS: cones: no room"));
    model.settings.operators = true; /* no keys of the configuration */
    hear_degraded(&model, "\"analysis_late\"", ROW("surfaces", "0.5", "9", "true"));
    assert_null(strstr(find(&model, "surfaces")->remedy.text, "analysis.run"));
    oct_view_model_finish(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_of_degraded_is_told),
        cmocka_unit_test(a_loss_is_told_by_the_recordings_own_account_and_ends_with_it),
        cmocka_unit_test(no_burst_of_the_camera_is_a_full_disk),
        cmocka_unit_test(the_disk_lasts_as_long_as_the_daemon_says),
        cmocka_unit_test(a_wrong_driver_is_named_in_plain_words),
        cmocka_unit_test(alarms_say_what_is_wrong_and_go_again),
        cmocka_unit_test(a_fallen_line_rate_is_an_alarm_and_a_wrong_one_is_told),
    };
    return cmocka_run_group_tests_name("viewer alarms", tests, NULL, NULL);
}
