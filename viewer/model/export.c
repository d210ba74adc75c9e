#include "viewer/model/export.h"

#include "pipeline/base/clock.h"
#include "viewer/model/model.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LOOK_NS (3 * OCT_NS_PER_S)

/* "Masked by default, unmasked by the site's setting": said whenever an export is spoken of. */
static const char *identity_words(const struct oct_view_export *e)
{
    return e->is_real ? "with name" : "masked";
}

static bool is_of_playback(const struct oct_view_model *model)
{
    return model->playback.active && strcmp(model->exported.path, model->playback.file.path) == 0;
}

bool oct_view_export_runs(const struct oct_view_model *model)
{
    const enum oct_view_export_state state = model->exported.state;
    return state == OCT_EXPORT_DUE || state == OCT_EXPORT_RUNS;
}

void oct_view_export_begin(struct oct_view_model *model)
{
    struct oct_view_export *e = &model->exported;
    const struct oct_view_file *file = &model->playback.file;
    const char *dot = strrchr(file->name, '.');
    const size_t n = strlen(file->path) - (dot ? strlen(dot) : 0);
    if (file->what[0]) {
        oct_view_model_say(model, "%s is no recording: octctl export writes it", file->name);
    } else if (oct_view_export_runs(model)) {
        oct_view_model_say(model, "a recording is being exported already");
    } else if (is_of_playback(model) && e->state == OCT_EXPORT_WRITTEN) {
        oct_view_model_say(model, "it is exported already");
    } else {
        e->state = file->eye[0] ? OCT_EXPORT_DUE : OCT_EXPORT_FAILED;
        snprintf(e->path, sizeof(e->path), "%s", file->path);
        snprintf(e->written, sizeof(e->written), "%.*s.dcm", (int)n, file->path);
        snprintf(e->why, sizeof(e->why), "%s",
                 file->eye[0] ? "" : "an exam is of an eye: say which one it is, OD or OS");
        e->n = 0;
        e->is_noted = false;
    }
}

/* "/folder/file: why" without the folder. */
static const char *without_folder(const char *why)
{
    const char *slash = why, *colon = strstr(why, ": ");
    for (const char *at = why; why[0] == '/' && colon && at < colon; at++)
        slash = *at == '/' ? at + 1 : slash;
    return slash;
}

/* ---- a page of it ---- */

void oct_view_report_page_begin(struct oct_view_model *model)
{
    struct oct_view_report_page *r = &model->report_page;
    const struct oct_view_file *file = &model->playback.file;
    const char *dot = strrchr(file->name, '.');
    const size_t n = strlen(file->path) - (dot ? strlen(dot) : 0);
    if (file->what[0]) {
        oct_view_model_say(model, "%s is no recording: there is no report of it", file->name);
    } else if (r->is_due || r->runs) {
        oct_view_model_say(model, "a report is being made already");
    } else {
        r->is_due = true;
        snprintf(r->path, sizeof(r->path), "%s", file->path);
        snprintf(r->written, sizeof(r->written), "%.*s-report.pdf", (int)n, file->path);
        oct_view_model_say(model, "the report is being made, %s", identity_words(&model->exported));
    }
}

void oct_view_report_page_take(struct oct_view_model *model, const char *json, const char *why)
{
    struct oct_view_report_page *r = &model->report_page;
    const char *slash = strrchr(r->written, '/');
    r->runs = false;
    if (json)
        oct_view_model_say(model, "report, %s: %s", identity_words(&model->exported),
                           slash ? slash + 1 : r->written);
    else
        oct_view_model_say(model, "no report: %s", without_folder(why));
}

/* ---- what octctl says ---- */

static const char *text_of(const cJSON *instance, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(instance, key));
    return text ? text : "";
}

/* Takes what is said of the exam's instances, in the words of archive exam and archive status. One
 * is "sent" or "stored" once it has arrived; the exam has arrived once all have. False: one of them
 * is not in the queue. */
static bool take_instances(struct oct_view_model *model, const cJSON *list)
{
    struct oct_view_export *e = &model->exported;
    unsigned n_arrived = 0;
    e->why[0] = '\0';
    for (unsigned i = 0; i < e->n; i++) {
        const cJSON *one = list ? list->child : NULL;
        while (one && strcmp(text_of(one, "uid"), e->uid[i]) != 0)
            one = one->next;
        if (!one)
            return false;
        const char *state = text_of(one, "state");
        const bool has_arrived = state[0] && strcmp(state, "waiting") != 0;
        n_arrived += has_arrived;
        if (!has_arrived && !e->why[0])
            snprintf(e->why, sizeof(e->why), "%s", text_of(one, "reason"));
    }
    oct_view_letters_clean(e->why);
    e->state = n_arrived < e->n ? OCT_EXPORT_WAITS : OCT_EXPORT_ARRIVED;
    e->look_ns = model->now_ns + LOOK_NS;
    if (e->state == OCT_EXPORT_ARRIVED && !is_of_playback(model))
        oct_view_model_say(model, "archived, %s: %s says so", identity_words(e), e->archive);
    return true;
}

/* False: the list names none, or one that is no instance. */
static bool take_uids(struct oct_view_export *e, const cJSON *list)
{
    const cJSON *one;
    e->n = 0;
    cJSON_ArrayForEach(one, list)
    {
        const char *uid = text_of(one, "uid");
        if (!uid[0] || strlen(uid) >= sizeof(e->uid[0]) || e->n == OCT_VIEW_EXAM_PARTS)
            return false;
        snprintf(e->uid[e->n++], sizeof(e->uid[0]), "%s", uid);
    }
    return e->n > 0;
}

void oct_view_export_take(struct oct_view_model *model, const char *json, size_t n_bytes,
                          const char *why)
{
    struct oct_view_export *e = &model->exported;
    cJSON *list = json ? cJSON_ParseWithLength(json, n_bytes) : NULL;
    if (json && cJSON_GetArraySize(list) > 0 && !e->has_archive) {
        e->state = OCT_EXPORT_WRITTEN;
    } else if (json && take_uids(e, list)) {
        e->n_waiting = e->n;
        e->nobody_sends = false;
        take_instances(model, list);
        e->look_ns = model->now_ns; /* how many wait, and whether anybody sends */
    } else {
        e->state = OCT_EXPORT_FAILED;
        snprintf(e->why, sizeof(e->why), "%s",
                 json ? "octctl's answer says nothing of it" : without_folder(why));
        if (!is_of_playback(model))
            oct_view_model_say(model, "NOT EXPORTED: %s", e->why);
    }
    cJSON_Delete(list);
}

void oct_view_export_take_status(struct oct_view_model *model, const char *json, size_t n_bytes)
{
    struct oct_view_export *e = &model->exported;
    cJSON *all = json ? cJSON_ParseWithLength(json, n_bytes) : NULL;
    const double n = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(all, "waiting"));
    e->look_ns = model->now_ns + LOOK_NS;
    if (!all || e->state != OCT_EXPORT_WAITS) {
        cJSON_Delete(all);
        return;
    }
    e->n_waiting = n >= 0 ? (unsigned)fmin(n, 1e6) : 0;
    e->nobody_sends = !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(all, "running"));
    if (!take_instances(model, cJSON_GetObjectItemCaseSensitive(all, "instances"))) {
        e->state = OCT_EXPORT_FAILED;
        snprintf(e->why, sizeof(e->why), "it was taken out of the queue");
    }
    cJSON_Delete(all);
}

bool oct_view_export_wants_status(const struct oct_view_model *model)
{
    return model->exported.state == OCT_EXPORT_WAITS && model->now_ns >= model->exported.look_ns;
}

/* ---- words ---- */

static void waiting_text(const struct oct_view_export *e, struct oct_view_phrase *phrase)
{
    char others[32] = "";
    if (e->n_waiting > e->n)
        snprintf(others, sizeof(others), "; %u wait", e->n_waiting);
    oct_view_phrase_set(
        phrase, e->nobody_sends || e->why[0] ? OCT_TONE_WARN : OCT_TONE_PLAIN, "%s, %s%s%s",
        e->why[0] ? "WAITS for the archive" : "queued for the archive", identity_words(e), others,
        e->nobody_sends ? "; NOBODY SENDS"
        : e->why[0]     ? "; it is tried again"
                        : "");
}

bool oct_view_export_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const struct oct_view_export *e = &model->exported;
    const char *slash = strrchr(e->written, '/');
    if (!is_of_playback(model))
        return false;
    switch (e->state) {
    case OCT_EXPORT_DUE:
    case OCT_EXPORT_RUNS:
        oct_view_phrase_set(phrase, OCT_TONE_WARN, "EXPORTING, %s", identity_words(e));
        return true;
    case OCT_EXPORT_WAITS:
        waiting_text(e, phrase);
        return true;
    case OCT_EXPORT_ARRIVED:
        oct_view_phrase_set(phrase, OCT_TONE_GOOD, "ARCHIVED, %s; %s says so", identity_words(e),
                            e->archive);
        return true;
    case OCT_EXPORT_WRITTEN:
        oct_view_phrase_set(phrase, OCT_TONE_GOOD, "EXPORTED, %s: %.300s", identity_words(e),
                            slash ? slash + 1 : e->written);
        return true;
    case OCT_EXPORT_FAILED:
        oct_view_phrase_set(phrase, OCT_TONE_BAD, "NOT EXPORTED; Export tries again");
        return true;
    default:
        return false;
    }
}
