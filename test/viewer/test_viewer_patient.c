/* The patient step: eye, pseudonym, next patient, what is asked before a recording, wishes in
 * order, the last seconds, Start. No zmq, no SDL. */
#include "pipeline/base/clock.h"
#include "test/rig/tap.h"
#include "test/rig/viewer_daemon.h"
#include "viewer/model/buttons.h"
#include "viewer/model/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S OCT_NS_PER_S

/* An octd that does what it is asked for, at once. */
struct desk {
    struct oct_view_model model;
    struct oct_view_daemon octd;
};

static void hear(struct desk *k, enum oct_view_wish wish, bool ok, const char *text)
{
    k->octd.answer_ns++;
    oct_scene_hear(&k->model, &k->octd, wish, ok, text);
}

static void desk_init(struct desk *k, const char *eye, const char *pseudonym)
{
    *k = (struct desk){.octd = {.known = true, .reachable = true, .state = "running"}};
    snprintf(k->octd.record.eye, sizeof(k->octd.record.eye), "%s", eye);
    snprintf(k->octd.record.pseudonym, sizeof(k->octd.record.pseudonym), "%s", pseudonym);
    oct_view_model_init(&k->model, "x", true);
    oct_view_model_tick(&k->model, 100 * S);
    hear(k, OCT_WISH_NONE, true, "");
}

static void act(struct desk *k, enum oct_view_action action)
{
    oct_view_model_apply(&k->model, action, 1);
}

/* octd is asked for exactly this now. */
static void must_ask(struct desk *k, enum oct_view_wish wish, const char *text)
{
    char asked[OCT_VIEW_LABEL_BYTES] = "";
    assert_int_equal(oct_view_model_take_wish(&k->model, asked), wish);
    if (wish != OCT_WISH_NONE)
        assert_string_equal(asked, text);
}

/* octd is asked, does it and says so. */
static void must_do(struct desk *k, enum oct_view_wish wish, const char *text)
{
    must_ask(k, wish, text);
    if (wish == OCT_WISH_EYE)
        snprintf(k->octd.record.eye, sizeof(k->octd.record.eye), "%s", text);
    if (wish == OCT_WISH_PSEUDONYM)
        snprintf(k->octd.record.pseudonym, sizeof(k->octd.record.pseudonym), "%s", text);
    if (wish == OCT_WISH_RECORD || wish == OCT_WISH_STOP)
        k->octd.record.active = wish == OCT_WISH_RECORD;
    hear(k, wish, true, text);
}

static void finish(struct desk *k)
{
    oct_view_model_finish(&k->model);
}

TEST(what_is_typed_replaces_the_pseudonym_of_before)
{
    static struct desk k;
    desk_init(&k, "OD", "P-1");
    act(&k, OCT_ACTION_PSEUDONYM);
    assert_true(k.model.typing && k.model.patient.selected);
    assert_string_equal(k.model.typed, "P-1");
    oct_view_model_type(&k.model, "Q");
    oct_view_model_type(&k.model, "2");
    oct_view_model_end_typing(&k.model, true);
    must_do(&k, OCT_WISH_PSEUDONYM, "Q2");
    act(&k, OCT_ACTION_PSEUDONYM); /* an arrow, or End, keeps it */
    k.model.patient.selected = false;
    oct_view_model_type(&k.model, "\u00e4");
    oct_view_model_end_typing(&k.model, true);
    must_do(&k, OCT_WISH_PSEUDONYM, "Q2\u00e4");
    act(&k, OCT_ACTION_PSEUDONYM); /* so does a second click */
    act(&k, OCT_ACTION_PSEUDONYM);
    oct_view_model_rub_out(&k.model);
    assert_string_equal(k.model.typed, "Q2");
    assert_true(oct_view_patient_cancel(&k.model));
    assert_false(k.model.typing);
    must_ask(&k, OCT_WISH_NONE, "");
    act(&k, OCT_ACTION_PSEUDONYM); /* rubbing out takes all that is selected */
    oct_view_model_rub_out(&k.model);
    assert_string_equal(k.model.typed, "");
    oct_view_model_end_typing(&k.model, true);
    must_do(&k, OCT_WISH_PSEUDONYM, "");
    act(&k, OCT_ACTION_PSEUDONYM); /* Enter at once asks octd for nothing */
    oct_view_model_end_typing(&k.model, true);
    must_ask(&k, OCT_WISH_NONE, "");
    finish(&k);
}

TEST(wishes_wait_for_one_another_in_order)
{
    static struct desk k;
    desk_init(&k, "OD", "P-1");
    act(&k, OCT_ACTION_NEXT_PATIENT);
    must_ask(&k, OCT_WISH_EYE, "");
    must_ask(&k, OCT_WISH_NONE, ""); /* one at a time */
    act(&k, OCT_ACTION_LEFT_EYE);
    act(&k, OCT_ACTION_RIGHT_EYE); /* the later one counts */
    act(&k, OCT_ACTION_RECORD);
    assert_string_equal(k.model.message, "");
    k.octd.record.eye[0] = '\0';
    hear(&k, OCT_WISH_EYE, true, "");
    must_do(&k, OCT_WISH_PSEUDONYM, "");
    must_do(&k, OCT_WISH_EYE, "OD");
    act(&k, OCT_ACTION_RECORD); /* an impatient second press */
    must_do(&k, OCT_WISH_RECORD, "");
    must_ask(&k, OCT_WISH_NONE, "");
    assert_true(k.model.daemon.record.active);
    finish(&k);
}

TEST(an_octd_that_does_not_answer_fails_all_with_one_line)
{
    static struct desk k;
    const struct oct_view_answer none = {
        .wish = OCT_WISH_EYE, .unanswered = true, .text = "no answer from octd"};
    struct oct_view_phrase p;
    desk_init(&k, "OD", "P-1");
    act(&k, OCT_ACTION_NEXT_PATIENT);
    act(&k, OCT_ACTION_RECORD);
    must_ask(&k, OCT_WISH_EYE, "");
    k.octd.reachable = false;
    oct_view_model_hear(&k.model, &k.octd, &none);
    assert_string_equal(k.model.message,
                        "octd does not answer: the eye, the pseudonym, the recording "
                        "may not be as wished");
    must_ask(&k, OCT_WISH_NONE, "");
    assert_false(oct_view_model_is_recording(&k.model));
    k.octd.reachable = true;
    hear(&k, OCT_WISH_NONE, true, "");
    oct_view_recording(&k.model, &p);
    assert_string_equal(p.text, "NOT DONE: no answer from octd");
    finish(&k);
}

TEST(nothing_is_recorded_under_a_label_that_was_refused)
{
    static struct desk k;
    struct oct_view_phrase p;
    desk_init(&k, "OD", "P-1");
    act(&k, OCT_ACTION_LEFT_EYE);
    act(&k, OCT_ACTION_RECORD);
    must_ask(&k, OCT_WISH_EYE, "OS");
    hear(&k, OCT_WISH_EYE, false, "not today");
    must_ask(&k, OCT_WISH_NONE, "");
    assert_string_equal(k.model.message, "octd refused the eye: not today");
    oct_view_recording(&k.model, &p);
    assert_string_equal(p.text, "NOT DONE: octd did not take the label");
    finish(&k);
}

TEST(while_octd_records_the_label_stays_in_an_operators_words)
{
    static const enum oct_view_action changes[] = {OCT_ACTION_EYE, OCT_ACTION_RIGHT_EYE,
                                                   OCT_ACTION_PSEUDONYM, OCT_ACTION_NEXT_PATIENT};
    static struct desk k;
    desk_init(&k, "OS", "P-1");
    k.octd.record.active = true;
    hear(&k, OCT_WISH_NONE, true, "");
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        k.model.message[0] = '\0';
        act(&k, changes[i]);
        assert_non_null(strstr(k.model.message, "octd is recording: the label stays"));
        assert_false(k.model.typing);
        must_ask(&k, OCT_WISH_NONE, "");
    }
    k.octd.record.active = false; /* octd itself says so where a recording began meanwhile */
    hear(&k, OCT_WISH_NONE, true, "");
    act(&k, OCT_ACTION_RIGHT_EYE);
    must_ask(&k, OCT_WISH_EYE, "OD");
    k.octd.record.active = true;
    hear(&k, OCT_WISH_EYE, false, "set record.eye: a file is open");
    assert_string_equal(k.model.message, "octd is recording: the eye can be changed afterwards");
    finish(&k);
}

TEST(a_recording_without_a_label_asks_once)
{
    static struct desk k;
    char text[128];
    desk_init(&k, "", "");
    act(&k, OCT_ACTION_RECORD); /* the lab profile asks nothing */
    must_do(&k, OCT_WISH_RECORD, "");
    act(&k, OCT_ACTION_RECORD);
    must_do(&k, OCT_WISH_STOP, "");
    k.model.settings.operators = true;
    act(&k, OCT_ACTION_RECORD);
    must_ask(&k, OCT_WISH_NONE, "");
    oct_view_patient_question(&k.model, text, sizeof(text));
    assert_string_equal(text, "Record without a label?");
    assert_true(oct_view_patient_cancel(&k.model));
    must_ask(&k, OCT_WISH_NONE, "");
    act(&k, OCT_ACTION_RECORD);
    act(&k, OCT_ACTION_RECORD);
    must_do(&k, OCT_WISH_RECORD, "");
    act(&k, OCT_ACTION_RECORD);
    must_do(&k, OCT_WISH_STOP, "");
    act(&k, OCT_ACTION_RECORD); /* once for a patient */
    must_do(&k, OCT_WISH_RECORD, "");
    act(&k, OCT_ACTION_RECORD);
    must_do(&k, OCT_WISH_STOP, "");
    act(&k, OCT_ACTION_RIGHT_EYE);
    must_do(&k, OCT_WISH_EYE, "OD");
    act(&k, OCT_ACTION_RECORD); /* another label, another question */
    oct_view_patient_question(&k.model, text, sizeof(text));
    assert_string_equal(text, "Record without a pseudonym?");
    act(&k, OCT_ACTION_PSEUDONYM);
    oct_view_model_type(&k.model, "P-9");
    oct_view_model_end_typing(&k.model, true);
    oct_view_patient_question(&k.model, text, sizeof(text));
    assert_string_equal(text, "Record?");
    act(&k, OCT_ACTION_RECORD);
    must_do(&k, OCT_WISH_PSEUDONYM, "P-9");
    must_do(&k, OCT_WISH_RECORD, "");
    k.model.patient.ask = OCT_ASK_LABEL_NEVER;
    act(&k, OCT_ACTION_RECORD);
    must_do(&k, OCT_WISH_STOP, "");
    act(&k, OCT_ACTION_NEXT_PATIENT);
    must_do(&k, OCT_WISH_EYE, "");
    must_do(&k, OCT_WISH_PSEUDONYM, "");
    act(&k, OCT_ACTION_RECORD);
    must_do(&k, OCT_WISH_RECORD, "");
    k.model.patient.ask = OCT_ASK_LABEL_ALWAYS;
    k.model.settings.operators = false;
    act(&k, OCT_ACTION_RECORD);
    must_do(&k, OCT_WISH_STOP, "");
    act(&k, OCT_ACTION_RECORD);
    must_ask(&k, OCT_WISH_NONE, "");
    assert_int_equal(k.model.patient.asks, OCT_ASKS_LABEL);
    finish(&k);
}

/* The label of yesterday is whole, and of another patient. */
TEST(a_label_that_nobody_said_lately_asks_once)
{
    static struct desk k;
    char text[128];
    desk_init(&k, "OD", "P-1");
    k.model.settings.operators = true;
    act(&k, OCT_ACTION_RECORD); /* it was there before this window */
    must_ask(&k, OCT_WISH_NONE, "");
    oct_view_patient_question(&k.model, text, sizeof(text));
    assert_string_equal(text, "Is it still OD P-1?");
    act(&k, OCT_ACTION_RECORD);
    must_do(&k, OCT_WISH_RECORD, "");
    act(&k, OCT_ACTION_RECORD);
    must_do(&k, OCT_WISH_STOP, "");
    act(&k, OCT_ACTION_RECORD);
    must_do(&k, OCT_WISH_RECORD, "");
    act(&k, OCT_ACTION_RECORD);
    must_do(&k, OCT_WISH_STOP, "");
    oct_view_model_tick(&k.model, 100 * S + 5 * 3600 * S);
    act(&k, OCT_ACTION_RECORD);
    must_ask(&k, OCT_WISH_NONE, "");
    assert_int_equal(k.model.patient.asks, OCT_ASKS_SAME);
    oct_view_patient_cancel(&k.model);
    act(&k, OCT_ACTION_LEFT_EYE);
    must_do(&k, OCT_WISH_EYE, "OS");
    act(&k, OCT_ACTION_RECORD); /* somebody says it now */
    must_do(&k, OCT_WISH_RECORD, "");
    finish(&k);
}

TEST(in_playback_the_label_is_the_files)
{
    static struct desk k;
    struct oct_view_playback *p = &k.model.playback;
    desk_init(&k, "OD", "P-1");
    p->active = true;
    snprintf(p->file.name, sizeof(p->file.name), "a.h5");
    snprintf(p->file.eye, sizeof(p->file.eye), "OS");
    assert_string_equal(oct_view_patient_eye(&k.model), "OS");
    act(&k, OCT_ACTION_RIGHT_EYE);
    assert_true(p->relabel.has_eye && !p->relabel.has_pseudonym);
    assert_string_equal(p->relabel.eye, "OD");
    act(&k, OCT_ACTION_PSEUDONYM);
    oct_view_model_type(&k.model, "P-2");
    oct_view_model_end_typing(&k.model, true);
    assert_true(p->relabel.has_pseudonym);
    assert_string_equal(p->relabel.pseudonym, "P-2");
    must_ask(&k, OCT_WISH_NONE, ""); /* octd keeps its own */
    /* What was typed for one recording is not written into another. */
    p->relabel.has_pseudonym = false;
    act(&k, OCT_ACTION_PSEUDONYM);
    oct_view_model_type(&k.model, "P-3");
    snprintf(p->file.name, sizeof(p->file.name), "b.h5");
    oct_view_model_end_typing(&k.model, true);
    assert_false(p->relabel.has_pseudonym);
    assert_non_null(strstr(k.model.message, "another recording"));
    act(&k, OCT_ACTION_RECORD);
    must_ask(&k, OCT_WISH_NONE, "");
    act(&k, OCT_ACTION_NEXT_PATIENT); /* live, without a label */
    assert_false(p->active);
    must_do(&k, OCT_WISH_EYE, "");
    must_do(&k, OCT_WISH_PSEUDONYM, "");
    finish(&k);
}

/* octd's answer comes before the status that shows the end. */
TEST(a_stop_from_here_was_not_elsewhere)
{
    static struct desk k;
    struct oct_view_phrase p;
    desk_init(&k, "OD", "P-1");
    k.octd.record.active = true;
    hear(&k, OCT_WISH_NONE, true, "");
    act(&k, OCT_ACTION_RECORD);
    must_ask(&k, OCT_WISH_STOP, "");
    oct_scene_hear(&k.model, &k.octd, OCT_WISH_STOP, true, "");
    k.octd.record.active = false;
    k.octd.record.volumes_written = 2;
    hear(&k, OCT_WISH_NONE, true, "");
    oct_view_recording(&k.model, &p);
    assert_non_null(strstr(p.text, "SAVED 2 volumes"));
    assert_null(strstr(p.text, "elsewhere"));
    finish(&k);
}

TEST(the_last_seconds_are_saved_and_it_is_told)
{
    static struct desk k;
    struct oct_view_phrase phrase;
    desk_init(&k, "OD", "P-1");
    act(&k, OCT_ACTION_SAVE_LAST);
    assert_string_equal(k.model.message, "octd keeps no last seconds (record.last_s)");
    k.octd.last.bscans_most = 1000;
    k.octd.last.length_s = 19.8;
    hear(&k, OCT_WISH_NONE, true, "");
    assert_false(oct_view_save_last_text(&k.model, &phrase));
    act(&k, OCT_ACTION_SAVE_LAST);
    must_ask(&k, OCT_WISH_SAVE_LAST, "");
    k.octd.last.saving = true;
    snprintf(k.octd.last.path, sizeof(k.octd.last.path), "/r/last.h5");
    snprintf(k.octd.last.file, sizeof(k.octd.last.file), "last.h5");
    hear(&k, OCT_WISH_SAVE_LAST, true, "");
    assert_true(oct_view_save_last_text(&k.model, &phrase));
    assert_string_equal(phrase.text, "SAVING the last 20 s");
    k.octd.last.saving = false;
    hear(&k, OCT_WISH_NONE, true, "");
    assert_true(oct_view_save_last_text(&k.model, &phrase) && phrase.tone == OCT_TONE_GOOD);
    assert_string_equal(phrase.text, "SAVED the last 20 s: last.h5");
    assert_true(k.model.save_last.is_newest);
    act(&k, OCT_ACTION_PLAYBACK);
    assert_string_equal(k.model.playback.request.path, "/r/last.h5");
    act(&k, OCT_ACTION_PLAYBACK);
    oct_view_model_tick(&k.model, 109 * S);
    assert_false(oct_view_save_last_text(&k.model, &phrase));
    k.octd.last.saving = true; /* a second one, which fails */
    hear(&k, OCT_WISH_NONE, true, "");
    k.octd.last.saving = false;
    snprintf(k.octd.last.error, sizeof(k.octd.last.error), "the disk is full");
    hear(&k, OCT_WISH_NONE, true, "");
    assert_true(oct_view_save_last_text(&k.model, &phrase) && phrase.tone == OCT_TONE_BAD);
    assert_string_equal(phrase.text, "NOT SAVED: the disk is full");
    k.octd.last.error[0] = '\0'; /* and one beside a recording */
    k.octd.last.n_lost = 3;
    k.octd.last.saving = k.octd.record.active = true;
    hear(&k, OCT_WISH_NONE, true, "");
    k.octd.last.saving = false;
    hear(&k, OCT_WISH_NONE, true, "");
    assert_string_equal(k.model.message, "SAVED the last 20 s, 3 B-scans missing: last.h5");
    finish(&k);
}

TEST(start_starts_an_idle_octd)
{
    static struct desk k;
    desk_init(&k, "OD", "P-1");
    act(&k, OCT_ACTION_START);
    assert_string_equal(k.model.message, "octd receives already");
    must_ask(&k, OCT_WISH_NONE, "");
    snprintf(k.octd.state, sizeof(k.octd.state), "idle");
    hear(&k, OCT_WISH_NONE, true, "");
    act(&k, OCT_ACTION_START);
    must_ask(&k, OCT_WISH_START, "");
    hear(&k, OCT_WISH_START, false, "the k map is of another camera");
    assert_string_equal(k.model.message, "octd refused the start: the k map is of another camera");
    act(&k, OCT_ACTION_START);
    must_ask(&k, OCT_WISH_START, "");
    hear(&k, OCT_WISH_START, true, "");
    assert_string_equal(k.model.message, "octd receives from now on");
    finish(&k);
}

TEST(octd_is_asked_for_an_average_where_it_makes_none)
{
    static struct desk k;
    char text[64];
    desk_init(&k, "OD", "P-1");
    k.octd.average_bscans = 1;
    hear(&k, OCT_WISH_NONE, true, "");
    act(&k, OCT_ACTION_AVERAGE);
    assert_true(k.model.settings.average);
    assert_true(oct_view_average_text(&k.model, text, sizeof(text)));
    assert_string_equal(text, "AVERAGE: octd is asked for it");
    must_ask(&k, OCT_WISH_AVERAGE, "8");
    k.octd.average_bscans = 8;
    hear(&k, OCT_WISH_AVERAGE, true, "8");
    assert_string_equal(k.model.message, "octd averages the last 8 B-scans");
    static const char *const next[] = {"16", "32", "2", "4", "8"};
    for (size_t i = 0; i < sizeof(next) / sizeof(next[0]); i++) {
        act(&k, OCT_ACTION_AVERAGE_OF);
        must_ask(&k, OCT_WISH_AVERAGE, next[i]);
        k.octd.average_bscans = strtod(next[i], NULL);
        hear(&k, OCT_WISH_AVERAGE, true, next[i]);
    }
    act(&k, OCT_ACTION_AVERAGE); /* each B-scan; octd's stays, for whoever else looks */
    must_ask(&k, OCT_WISH_NONE, "");
    act(&k, OCT_ACTION_AVERAGE);
    must_ask(&k, OCT_WISH_NONE, "");
    k.octd.average_bscans = 1;
    k.octd.record.active = true;
    hear(&k, OCT_WISH_NONE, true, "");
    act(&k, OCT_ACTION_AVERAGE_OF);
    must_ask(&k, OCT_WISH_NONE, "");
    assert_non_null(strstr(k.model.message, "octd is recording"));
    finish(&k);
}
