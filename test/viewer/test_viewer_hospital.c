/* The day's patients, who is behind a pseudonym, exports, and octctl as a child: hostile answers
 * and hostile children. */
#define _GNU_SOURCE
#include "pipeline/base/clock.h"
#include "test/rig/tap.h"
#include "test/rig/viewer_daemon.h"
#include "test/rig/viewer_stage.h"
#include "viewer/model/buttons.h"
#include "viewer/model/words.h"
#include "viewer/net/errand.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define S OCT_NS_PER_S

struct desk {
    struct oct_view_model model;
    struct oct_view_daemon octd;
};

static void hear(struct desk *k, enum oct_view_wish wish, bool ok, const char *text)
{
    k->octd.answer_ns++;
    oct_scene_hear(&k->model, &k->octd, wish, ok, text);
}

static void desk_init(struct desk *k, const char *pseudonym)
{
    *k = (struct desk){.octd = {.known = true, .reachable = true, .state = "running"}};
    snprintf(k->octd.record.pseudonym, sizeof(k->octd.record.pseudonym), "%s", pseudonym);
    oct_view_model_init(&k->model, "x", true);
    oct_view_model_tick(&k->model, 100 * S);
    k->model.worklist.is_set = true;
    hear(k, OCT_WISH_NONE, true, "");
}

static void act(struct desk *k, enum oct_view_action action)
{
    oct_view_model_apply(&k->model, action, 1);
}

static void must_ask(struct desk *k, enum oct_view_wish wish, const char *text)
{
    char asked[OCT_VIEW_LABEL_BYTES] = "";
    assert_int_equal(oct_view_model_take_wish(&k->model, asked), wish);
    assert_string_equal(asked, text);
}

static void list_comes(struct desk *k, const char *json)
{
    k->model.worklist.is_due = false;
    oct_view_worklist_take(&k->model.worklist, json, strlen(json), "");
}

#define ENTRY(key, name)                                                                           \
    "{\"key\":\"" key "\",\"time\":\"091500\",\"name\":\"" name                                    \
    "\",\"id\":\"7\",\"accession\":\"A-1\",\"readable\":true}"

/* The next patient's list opens, a row is taken, and octd is told in order: what Record waits for
 * is the taken one's label. */
TEST(a_patient_is_taken_behind_what_was_wished_before)
{
    static struct desk k;
    desk_init(&k, "P-before");
    k.model.patient.ask = OCT_ASK_LABEL_ALWAYS;
    act(&k, OCT_ACTION_NEXT_PATIENT);
    assert_true(oct_view_worklist_is_shown(&k.model) && k.model.worklist.is_due);
    list_comes(&k, "[" ENTRY("00ff", "Doe^Jane") "," ENTRY("0100", "Roe^R") "]");
    oct_view_worklist_choose(&k.model, 1);
    assert_false(oct_view_worklist_is_shown(&k.model));
    act(&k, OCT_ACTION_RIGHT_EYE);
    assert_null(oct_view_patient_lacks(&k.model)); /* it will have a pseudonym */
    act(&k, OCT_ACTION_RECORD);
    act(&k, OCT_ACTION_RECORD); /* yes */
    assert_non_null(oct_view_wishes_find(&k.model.wishes, OCT_WISH_RECORD));
    must_ask(&k, OCT_WISH_PSEUDONYM, ""); /* nobody's, should it fail */
    k.octd.record.pseudonym[0] = '\0';
    hear(&k, OCT_WISH_PSEUDONYM, true, "");
    must_ask(&k, OCT_WISH_PATIENT, "0100");
    assert_int_equal(oct_view_model_take_wish(&k.model, (char[OCT_VIEW_LABEL_BYTES]){0}),
                     OCT_WISH_NONE); /* Record waits */
    hear(&k, OCT_WISH_PATIENT, false, "not in the list");
    assert_non_null(strstr(k.model.message, "not taken from the worklist: not in the list"));
    must_ask(&k, OCT_WISH_EYE, "OD");
    hear(&k, OCT_WISH_EYE, true, "OD");
    must_ask(&k, OCT_WISH_NONE, ""); /* nobody is recorded under it */
    oct_view_model_finish(&k.model);
}

TEST(enter_takes_whom_keys_chose_and_nobody_else)
{
    static struct desk k;
    desk_init(&k, "");
    act(&k, OCT_ACTION_PSEUDONYM);
    list_comes(&k, "[" ENTRY("00ff", "Doe^Jane") "," ENTRY("0100", "Roe^R") "]");
    assert_int_equal(k.model.worklist.rows.chosen, 0);
    oct_view_list_move(&k.model.worklist.rows, 1, 10);
    assert_int_equal(k.model.worklist.rows.chosen, 1);
    oct_view_list_move(&k.model.worklist.rows, 5, 10);
    assert_int_equal(k.model.worklist.rows.chosen, 2);
    oct_view_model_type(&k.model, "P"); /* a pseudonym after all */
    assert_int_equal(k.model.worklist.rows.chosen, 0);
    oct_view_model_end_typing(&k.model, true);
    must_ask(&k, OCT_WISH_PSEUDONYM, "P");
    assert_false(oct_view_worklist_is_shown(&k.model));
    oct_view_model_finish(&k.model);
}

TEST(it_is_shown_over_live_pictures_alone)
{
    static struct desk k;
    desk_init(&k, "");
    act(&k, OCT_ACTION_PSEUDONYM);
    assert_true(oct_view_worklist_is_shown(&k.model));
    k.model.hides_names = true;
    assert_false(oct_view_worklist_is_shown(&k.model));
    k.model.hides_names = false;
    assert_true(oct_view_patient_cancel(&k.model));
    assert_false(oct_view_worklist_is_shown(&k.model));
    k.model.patient.ask = OCT_ASK_LABEL_ALWAYS;
    act(&k, OCT_ACTION_RECORD); /* the question has it too */
    assert_true(oct_view_worklist_is_shown(&k.model));
    k.octd.record.active = true; /* somebody else records */
    hear(&k, OCT_WISH_NONE, true, "");
    k.octd.record.active = false;
    hear(&k, OCT_WISH_NONE, true, "");
    assert_false(oct_view_worklist_is_shown(&k.model));
    k.model.worklist.is_set = k.model.worklist.is_due = false;
    act(&k, OCT_ACTION_NEXT_PATIENT);
    assert_false(k.model.worklist.is_open || k.model.worklist.is_due);
    oct_view_model_finish(&k.model);
}

/* Bytes that are no list, names that are none: what is shown is one line, what is not whole cannot
 * be taken. */
TEST(hostile_lists)
{
    static const char *const broken[] = {"", "{}", "[", "7", "nobody\n", "[[[["};
    static struct desk k;
    struct oct_view_worklist *w = &k.model.worklist;
    char *many = malloc(2000 * 256), *at = many;
    desk_init(&k, "");
    for (unsigned i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        act(&k, OCT_ACTION_NEXT_PATIENT);
        list_comes(&k, broken[i]);
        assert_int_equal(w->state, OCT_WORKLIST_FAILED);
        assert_int_equal(w->rows.n, 0);
    }
    list_comes(&k, "[7, null, {}, {\"name\": 7, \"key\": \"--take\", \"readable\": true},"
                   "{\"name\": \"A\\u001b[2J\\nB^C=x\", \"key\": \"0a\", \"readable\": true,"
                   " \"time\": \"\\u0007\"}]");
    assert_int_equal(w->rows.n, 3);
    assert_false(w->all[0].is_readable || w->all[1].is_readable);
    assert_string_equal(w->all[2].name, "A?[2J?B, C");
    assert_string_equal(w->all[2].time, "--:--");
    oct_view_worklist_choose(&k.model, 1);
    oct_view_worklist_choose(&k.model, 3);
    assert_int_equal(k.model.wishes.n, 0); /* nobody was taken */
    at += sprintf(at, "[");
    for (unsigned i = 0; i < 2000; i++)
        at += sprintf(at, "%s" ENTRY("%04x", "%064d"), i ? "," : "", i, (int)i);
    sprintf(at, "]");
    list_comes(&k, many);
    free(many);
    assert_int_equal(w->rows.n, OCT_VIEW_MOST_APPOINTMENTS);
    oct_view_list_scroll(&k.model.worklist.rows, 5000, 12);
    assert_int_equal(w->rows.first, w->rows.n - 12);
    oct_view_list_scroll(&k.model.worklist.rows, -5000, 12);
    assert_int_equal(w->rows.first, 0);
    oct_view_model_finish(&k.model);
}

TEST(names_as_they_are_shown)
{
    static const struct {
        const char *dicom, *shown;
    } cases[] = {{"Doe^Jane", "Doe, Jane"},
                 {"Doe^Jane^Q^Dr", "Doe, Jane Q Dr"},
                 {"Doe", "Doe"},
                 {"=\u5c71\u7530^\u592a\u90ce", "\u5c71\u7530, \u592a\u90ce"},
                 {"Doe^Jane=\u5c71^\u592a", "Doe, Jane"},
                 {"", ""},
                 {"^Jane", "Jane"},
                 {"<b>&amp;%s%n</b>", "<b>&amp;%s%n</b>"}};
    static struct desk k;
    struct oct_view_button b[OCT_VIEW_MOST_BUTTONS];
    char json[256];
    desk_init(&k, "P-7");
    assert_true(oct_view_worklist_wants_name(&k.model));
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(json, sizeof(json), "{\"pseudonym\":\"P-7\",\"name\":\"%s\"}", cases[i].dicom);
        assert_string_equal(
            oct_view_worklist_take_name(&k.model.worklist, NULL, json, strlen(json)), "P-7");
        assert_string_equal(oct_view_patient_name(&k.model), cases[i].shown);
    }
    assert_false(oct_view_worklist_wants_name(&k.model));
    oct_view_worklist_take_name(&k.model.worklist, "P-7", "{\"name\":\"Doe^Jane\"}", 19);
    unsigned n = oct_view_buttons(&k.model, b), field = 0;
    while (field < n && b[field].look != OCT_BUTTON_FIELD)
        field++;
    assert_string_equal(b[field].label, "Doe, Jane (P-7)");
    k.model.hides_names = true;
    assert_string_equal(oct_view_patient_name(&k.model), "");
    k.model.hides_names = false;
    snprintf(k.octd.record.pseudonym, sizeof(k.octd.record.pseudonym), "P-8");
    hear(&k, OCT_WISH_NONE, true, "");
    assert_string_equal(oct_view_patient_name(&k.model), ""); /* not of the one before */
    oct_view_worklist_take_name(&k.model.worklist, "P-8", NULL, 0);
    assert_string_equal(oct_view_patient_name(&k.model), "");
    assert_false(oct_view_worklist_wants_name(&k.model)); /* nobody is known: asked once */
    oct_view_model_finish(&k.model);
}

/* ---- hands ---- */

static void mouse(struct oct_viewer_stage *s, uint32_t type, int x, int y)
{
    SDL_Event event = {.type = type};
    if (type == SDL_MOUSEMOTION) {
        event.motion.x = x;
        event.motion.y = y;
    } else {
        event.button.button = SDL_BUTTON_LEFT;
        event.button.x = x;
        event.button.y = y;
    }
    oct_view_input_take(&s->input, &event, &s->model, s->draw, 1);
}

/* From the middle of a row of the list, by some rows; 0: a tap. */
static void draw_finger(struct oct_viewer_stage *s, int row, int by)
{
    const struct oct_view_layout *l = oct_viewer_stage_draw(s);
    const int x = l->list.x + l->list.w / 2, y = l->list.y + (2 * row + 3) * l->row_height / 2;
    mouse(s, SDL_MOUSEMOTION, x, y);
    mouse(s, SDL_MOUSEBUTTONDOWN, x, y);
    for (int i = 1; i <= abs(by); i++)
        mouse(s, SDL_MOUSEMOTION, x, y + i * (by < 0 ? -1 : 1) * l->row_height);
    mouse(s, SDL_MOUSEBUTTONUP, x, y + by * l->row_height);
}

static void press_key(struct oct_viewer_stage *s, SDL_Keycode key)
{
    SDL_Event event = {.key = {.type = SDL_KEYDOWN, .keysym = {.sym = key}}};
    oct_view_input_take(&s->input, &event, &s->model, s->draw, 1);
}

static void list_of_forty(struct oct_viewer_stage *s)
{
    char json[40 * 160], *at = json;
    at += sprintf(at, "[");
    for (int i = 0; i < 40; i++)
        at += sprintf(at, "%s" ENTRY("%04x", "Doe%d^Jane"), i ? "," : "", i, i);
    sprintf(at, "]");
    oct_view_model_apply(&s->model, OCT_ACTION_NEXT_PATIENT, 1);
    oct_view_worklist_take(&s->model.worklist, json, strlen(json), "");
}

/* Nothing of the window moves for the list; its rows are as high as a button, all of them whole,
 * and a tap takes the one below it, however far it was scrolled. */
TEST(the_list_is_for_hands)
{
    static const int sizes[][2] = {{1280, 800}, {1920, 1080}, {3840, 2160}};
    char key[OCT_VIEW_LABEL_BYTES];
    for (unsigned z = 0; z < 3; z++) {
        struct oct_viewer_stage *s = oct_viewer_stage_open_at(sizes[z], NULL);
        struct oct_view_worklist *w = &s->model.worklist;
        oct_draw_set_text(s->draw, 12, oct_view_layout_usual_dpi(sizes[z][1]));
        s->model.has_control = s->model.daemon.known = s->model.daemon.reachable = true;
        w->is_set = true;
        const struct oct_view_layout before = *oct_viewer_stage_draw(s);
        list_of_forty(s);
        const struct oct_view_layout *l = oct_viewer_stage_draw(s);
        const struct oct_view_rect r = l->list;
        assert_memory_equal(&before.bscan, &l->bscan, sizeof(l->bscan));
        assert_memory_equal(before.button, l->button, sizeof(l->button));
        assert_true(l->row_height >= 44 && l->n_rows >= 8 && r.w > l->area.w / 4);
        assert_true(r.x >= l->area.x && r.x + r.w <= l->area.x + l->area.w);
        assert_true(r.y >= l->area.y && r.y + r.h <= l->area.y + l->area.h);
        draw_finger(s, 6, -5);
        assert_int_equal(w->rows.first, 5);
        assert_int_equal(s->model.wishes.n, 0); /* a finger that scrolls takes nobody */
        draw_finger(s, 2, 0);
        assert_int_equal(oct_view_model_take_wish(&s->model, key), OCT_WISH_PATIENT);
        assert_string_equal(key, "0007");
        oct_scene_hear(&s->model, &s->model.daemon, OCT_WISH_PATIENT, false, "");
        list_of_forty(s);
        press_key(s, SDLK_RETURN); /* nobody was chosen */
        assert_true(oct_view_worklist_is_shown(&s->model));
        oct_viewer_stage_draw(s);
        press_key(s, SDLK_PAGEDOWN);
        assert_int_equal(w->rows.first, l->n_rows < 40 - l->n_rows ? l->n_rows : 40 - l->n_rows);
        press_key(s, SDLK_DOWN);
        press_key(s, SDLK_DOWN);
        assert_int_equal(w->rows.chosen, w->rows.first + 2);
        press_key(s, SDLK_RETURN);
        oct_view_wishes_drop(&s->model.wishes, OCT_WISH_START);
        assert_int_equal(oct_view_model_take_wish(&s->model, key), OCT_WISH_PATIENT);
        assert_int_equal(strtol(key, NULL, 16), w->rows.chosen ? w->rows.chosen - 1 : 0);
        oct_viewer_stage_close(s);
    }
}

/* ---- exports ---- */

static void play(struct desk *k, const char *path)
{
    struct oct_view_file file = {
        .n_bscans = 4, .n_lines = 8, .depth = 8, .n_valid = 4, .eye = "OD"};
    snprintf(file.path, sizeof(file.path), "%s", path);
    snprintf(file.name, sizeof(file.name), "%s", strrchr(path, '/') + 1);
    oct_view_playback_open(&k->model, path, 0, false);
    oct_view_playback_opened(&k->model, &file);
}

static void says(const struct desk *k, const char *words)
{
    struct oct_view_phrase phrase = {.text = ""};
    oct_view_export_text(&k->model, &phrase);
    assert_string_equal(phrase.text, words);
}

#define STATUS(running, state, reason)                                                             \
    "{\"running\":" running ",\"waiting\":2,\"instances\":[{\"uid\":\"1.2\"},{\"uid\":\"1.3\","    \
    "\"state\":\"" state "\",\"reason\":\"" reason "\"}]}"

static void status(struct desk *k, const char *json)
{
    assert_true(oct_view_export_wants_status(&k->model));
    oct_view_export_take_status(&k->model, json, strlen(json));
    assert_false(oct_view_export_wants_status(&k->model));
    oct_view_model_tick(&k->model, k->model.now_ns + 4 * S);
}

static bool alarms(const struct desk *k, const char *words)
{
    struct oct_view_alarm alarm[OCT_VIEW_MAX_ALARMS];
    bool is_there = false;
    for (unsigned n = oct_view_alarms(&k->model, alarm); n > 0; n--)
        is_there |= strstr(alarm[n - 1].what.text, words) != NULL;
    return is_there;
}

TEST(an_export_from_the_press_to_the_archive)
{
    static struct desk k;
    struct oct_view_export *e = &k.model.exported;
    desk_init(&k, "P-7");
    e->has_archive = e->is_real = true;
    snprintf(e->archive, sizeof(e->archive), "PACS");
    act(&k, OCT_ACTION_EXPORT); /* live: nothing to export */
    assert_int_equal(e->state, OCT_EXPORT_NONE);
    play(&k, "/r.d/eye.h5");
    says(&k, "");
    act(&k, OCT_ACTION_EXPORT);
    assert_int_equal(e->state, OCT_EXPORT_DUE);
    assert_string_equal(e->written, "/r.d/eye.dcm");
    e->state = OCT_EXPORT_RUNS;
    says(&k, "EXPORTING, with name");
    act(&k, OCT_ACTION_EXPORT); /* an impatient second press */
    assert_int_equal(e->state, OCT_EXPORT_RUNS);
    oct_view_export_take(&k.model, NULL, 0, "/a/b/c.dcm: no room");
    says(&k, "NOT EXPORTED; Export tries again");
    assert_true(alarms(&k, "NOT EXPORTED: c.dcm: no room"));
    act(&k, OCT_ACTION_ACKNOWLEDGE);
    assert_false(alarms(&k, "NOT EXPORTED"));
    act(&k, OCT_ACTION_EXPORT);
    assert_int_equal(e->state, OCT_EXPORT_DUE);
    oct_view_export_take(&k.model, "[{\"uid\":\"1.3\",\"state\":\"waiting\"}]", 33, "");
    says(&k, "queued for the archive, with name");
    status(&k, STATUS("false", "waiting", ""));
    says(&k, "queued for the archive, with name; 2 wait; NOBODY SENDS");
    assert_true(alarms(&k, "NOBODY SENDS"));
    status(&k, STATUS("true", "waiting", "refused"));
    says(&k, "WAITS for the archive, with name; 2 wait; it is tried again");
    assert_true(alarms(&k, "NOT ARCHIVED YET: refused"));
    status(&k, "garbage");
    assert_int_equal(e->state, OCT_EXPORT_WAITS);
    oct_view_playback_end(&k.model); /* it goes on without a look at the file */
    status(&k, STATUS("true", "stored", ""));
    assert_string_equal(k.model.message, "");
    play(&k, "/r.d/eye.h5");
    says(&k, "ARCHIVED, with name; PACS says so");
    assert_false(alarms(&k, "ARCHIVE") || oct_view_export_wants_status(&k.model));
    play(&k, "/r.d/other.h5");
    says(&k, "");
    oct_view_model_finish(&k.model);
}

#define PART(uid, state) "{\"uid\":\"" uid "\",\"state\":\"" state "\",\"reason\":\"away\"}"
#define EXAM(a, b, c) "[" PART("1.1", a) "," PART("1.2", b) "," PART("1.3", c) "]"
#define QUEUE(list) "{\"running\":true,\"waiting\":2,\"instances\":" list "}"

/* B-scans, picture from above and page: an exam has arrived once all of them have. */
TEST(an_exam_has_arrived_once_all_of_it_has)
{
    static const char *const no_exams[] = {
        "[" PART("1.1", "waiting") ",7]", "[{\"uid\":\"\"}]", "[{}]",
        "[{\"uid\":\"1\"},{\"uid\":\"2\"},{\"uid\":\"3\"},{\"uid\":\"4\"},{\"uid\":\"5\"}]"};
    static struct desk k;
    struct oct_view_export *e = &k.model.exported;
    desk_init(&k, "P-7");
    e->has_archive = true;
    play(&k, "/r.d/eye.h5");
    for (unsigned i = 0; i < sizeof(no_exams) / sizeof(no_exams[0]); i++) {
        act(&k, OCT_ACTION_EXPORT);
        oct_view_export_take(&k.model, no_exams[i], strlen(no_exams[i]), "");
        assert_int_equal(e->state, OCT_EXPORT_FAILED);
    }
    act(&k, OCT_ACTION_EXPORT);
    const char *made = EXAM("waiting", "sent", "waiting");
    oct_view_export_take(&k.model, made, strlen(made), "");
    assert_int_equal(e->n, 3);
    status(&k, QUEUE(EXAM("sent", "stored", "waiting")));
    says(&k, "WAITS for the archive, masked; it is tried again");
    status(&k, QUEUE(EXAM("sent", "stored", "sent")));
    assert_int_equal(e->state, OCT_EXPORT_ARRIVED);
    act(&k, OCT_ACTION_EXPORT);
    oct_view_export_take(&k.model, made, strlen(made), "");
    status(&k, QUEUE("[" PART("1.1", "sent") "," PART("1.2", "sent") "]"));
    assert_true(alarms(&k, "it was taken out of the queue"));
    oct_view_model_finish(&k.model);
}

TEST(a_page_of_a_recording)
{
    static struct desk k;
    struct oct_view_report_page *r = &k.model.report_page;
    desk_init(&k, "P-7");
    act(&k, OCT_ACTION_REPORT); /* live: of nothing */
    assert_false(r->is_due);
    play(&k, "/r.d/eye.h5");
    act(&k, OCT_ACTION_REPORT);
    assert_true(r->is_due);
    assert_string_equal(r->path, "/r.d/eye.h5");
    assert_string_equal(r->written, "/r.d/eye-report.pdf");
    r->is_due = false;
    r->runs = true;
    play(&k, "/r.d/other.h5");
    act(&k, OCT_ACTION_REPORT); /* one at a time */
    assert_false(r->is_due);
    oct_view_report_page_take(&k.model, "{}", NULL);
    assert_string_equal(k.model.message, "report, masked: eye-report.pdf");
    act(&k, OCT_ACTION_REPORT);
    assert_string_equal(r->written, "/r.d/other-report.pdf");
    oct_view_report_page_take(&k.model, NULL, "/r.d/other-report.pdf: it is there already");
    assert_string_equal(k.model.message, "no report: other-report.pdf: it is there already");
    oct_view_model_finish(&k.model);
}

TEST(a_file_where_there_is_no_archive)
{
    static struct desk k;
    struct oct_view_export *e = &k.model.exported;
    desk_init(&k, "P-7");
    play(&k, "/r.d/eye");
    k.model.playback.file.eye[0] = '\0';
    act(&k, OCT_ACTION_EXPORT); /* DICOM has an eye */
    assert_true(e->state == OCT_EXPORT_FAILED && alarms(&k, "which one it is, OD or OS"));
    k.model.playback.file.eye[0] = 'O';
    act(&k, OCT_ACTION_EXPORT);
    assert_string_equal(e->written, "/r.d/eye.dcm");
    oct_view_export_take(&k.model, "[]", 2, "");
    assert_int_equal(e->state, OCT_EXPORT_FAILED);
    act(&k, OCT_ACTION_EXPORT);
    oct_view_export_take(&k.model, "[{\"file\":\"x\"}]", 14, "");
    says(&k, "EXPORTED, masked: eye.dcm");
    act(&k, OCT_ACTION_EXPORT); /* once */
    assert_int_equal(e->state, OCT_EXPORT_WRITTEN);
    snprintf(k.model.playback.file.what, sizeof(k.model.playback.file.what), "layers");
    snprintf(k.model.playback.file.path, sizeof(k.model.playback.file.path), "/r.d/l.h5");
    act(&k, OCT_ACTION_EXPORT); /* no recording */
    assert_string_equal(e->path, "/r.d/eye");
    oct_view_model_finish(&k.model);
}

/* ---- octctl as a child ---- */

/* An octctl of PATH: a script. */
static void be_octctl(const char *script)
{
    char *here = realpath(".", NULL), path[4200];
    FILE *file = fopen("octctl", "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    fclose(file);
    assert_int_equal(chmod("octctl", 0700), 0);
    snprintf(path, sizeof(path), "%s:/usr/bin:/bin", here);
    setenv("PATH", path, 1);
    free(here);
}

static void run_errand(struct oct_view_errand *e, const char *script, double most_s)
{
    static const char *const words[] = {"octctl", "worklist", "--json", NULL};
    be_octctl(script);
    oct_view_errand_begin(e, words, most_s);
    for (unsigned i = 0; i < 3000 && !oct_view_errand_look(e); i++)
        poll(NULL, 0, 10);
    assert_false(e->runs || oct_view_errand_look(e));
}

TEST(what_octctl_prints_and_how_it_ends)
{
    static const struct {
        const char *script, *text, *why;
    } cases[] = {
        {"echo \"[$1 $2]\"; echo a warning >&2", "[worklist --json]\n", NULL},
        {"exit 0", NULL, NULL},
        {"echo 'octctl worklist: 1.2.3.4:104: refused' >&2; exit 1", NULL, "1.2.3.4:104: refused"},
        {"printf 'octctl worklist: a\\033[2Jb\\nmore' >&2; exit 2", NULL, "a?[2Jb"},
        {"exit 3", NULL, "octctl ended with 3 and gave no reason"},
        {"kill -9 $$", NULL, "octctl was ended by signal 9"},
        {"yes", NULL, "octctl said more than can be true"},
        {"yes >&2", NULL, "octctl had no answer in time"},
        {"trap '' TERM; sleep 60", NULL, "octctl had no answer in time"},
        {"exec >&- 2>&-; sleep 60", NULL, "octctl had no answer in time"},
    };
    struct oct_view_errand e = {.runs = false};
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        run_errand(&e, cases[i].script, i < 7 ? 30 : 0.3);
        assert_int_equal(e.ok, cases[i].why == NULL);
        if (cases[i].why)
            assert_string_equal(e.why, cases[i].why);
        else if (cases[i].text)
            assert_string_equal(e.text, cases[i].text);
    }
    oct_view_errand_end_all(&e, 1);
    setenv("PATH", "/nowhere", 1);
    oct_view_errand_begin(&e, (const char *const[]){"octctl", NULL}, 1);
    assert_true(oct_view_errand_look(&e) && !e.ok);
    assert_non_null(strstr(e.why, "octctl cannot be started: No such file"));
    oct_view_errand_end_all(&e, 1);
}

/* Nothing of it is left, whatever it does; what it made itself neither. */
TEST(the_end_of_the_window_ends_octctl)
{
    static const char *const scripts[] = {"sleep 60 & echo $$; wait",
                                          "trap '' TERM; echo $$; sleep 60; sleep 60"};
    for (unsigned i = 0; i < 2; i++) {
        struct oct_view_errand e[2] = {{.runs = false}};
        be_octctl(scripts[i]);
        oct_view_errand_begin(&e[1], (const char *const[]){"octctl", NULL}, 60);
        while (!oct_view_errand_look(&e[1]) && e[1].n_bytes == 0)
            poll(NULL, 0, 10);
        const pid_t pid = (pid_t)strtol(e[1].text, NULL, 10);
        const uint64_t began_ns = oct_clock_ns();
        assert_true(pid > 1 && kill(pid, 0) == 0);
        oct_view_errand_end_all(e, 2);
        assert_true(oct_clock_ns() - began_ns < 30 * S);
        for (unsigned k = 0; k < 1000 && kill(-pid, 0) == 0; k++)
            poll(NULL, 0, 10);
        assert_true(kill(-pid, 0) != 0 && errno == ESRCH);
    }
}
