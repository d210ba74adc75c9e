#include "viewer/model/daemon.h"

#include "viewer/model/clock.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <stdio.h>
#include <string.h>

/* A label that nobody said for so long may be of the patient before. */
#define LABEL_AGES_NS (4 * 3600 * OCT_NS_PER_S)

const char *oct_view_patient_eye(const struct oct_view_model *model)
{
    return model->playback.active ? model->playback.file.eye : model->daemon.record.eye;
}

const char *oct_view_patient_pseudonym(const struct oct_view_model *model)
{
    return model->playback.active ? model->playback.file.pseudonym : model->daemon.record.pseudonym;
}

/* What octd will have when it has done what was asked. */
static const char *to_come(const struct oct_view_model *model, enum oct_view_wish wish,
                           const char *now)
{
    const char *waiting = oct_view_wishes_find(&model->wishes, wish);

    return waiting ? waiting : model->asked == wish ? model->asked_text : now;
}

const char *oct_view_patient_lacks(const struct oct_view_model *model)
{
    const struct oct_view_daemon *d = &model->daemon;
    bool has_eye = to_come(model, OCT_WISH_EYE, d->record.eye)[0] != '\0';
    bool has_pseudonym = to_come(model, OCT_WISH_PSEUDONYM, d->record.pseudonym)[0] != '\0';

    return has_eye && has_pseudonym ? NULL
           : has_eye                ? "a pseudonym"
           : has_pseudonym          ? "an eye"
                                    : "a label";
}

/* ---- recording ---- */

static bool is_old(const struct oct_view_model *model)
{
    const struct oct_view_patient *p = &model->patient;

    return p->said_ns == 0 || model->now_ns > p->said_ns + LABEL_AGES_NS;
}

static enum oct_view_question question_of(const struct oct_view_model *model)
{
    const struct oct_view_patient *p = &model->patient;
    bool asks = p->ask == OCT_ASK_LABEL_ALWAYS ||
                (p->ask == OCT_ASK_LABEL_OPERATOR && model->settings.operators);

    if (!asks || !model->has_control || !model->daemon.reachable || p->accepted)
        return OCT_ASKS_NOTHING;
    if (oct_view_patient_lacks(model))
        return OCT_ASKS_LABEL;
    return is_old(model) ? OCT_ASKS_SAME : OCT_ASKS_NOTHING;
}

static void begin(struct oct_view_model *model)
{
    struct oct_view_patient *p = &model->patient;
    enum oct_view_question question = question_of(model);

    if (question != OCT_ASKS_NOTHING && p->asks == OCT_ASKS_NOTHING) {
        p->asks = question;
        return;
    }
    p->accepted = p->accepted || question == OCT_ASKS_LABEL;
    if (question == OCT_ASKS_SAME)
        p->said_ns = model->now_ns;
    p->asks = OCT_ASKS_NOTHING;
    oct_view_model_wish(model, OCT_WISH_RECORD, "");
}

void oct_view_patient_record(struct oct_view_model *model)
{
    if (model->daemon.record.active)
        oct_view_model_wish(model, OCT_WISH_STOP, "");
    else if (oct_view_model_is_recording(model))
        return; /* asked for already: a second press of an impatient user is no stop */
    else if (model->playback.active)
        oct_view_model_say(model, "this is a recording: back to live pictures (V), then record");
    else
        begin(model);
}

void oct_view_patient_question(const struct oct_view_model *model, char *text, size_t n_bytes)
{
    const char *lacks = oct_view_patient_lacks(model);

    if (model->patient.asks == OCT_ASKS_NOTHING || model->playback.active)
        snprintf(text, n_bytes, "%s", "");
    else if (lacks)
        snprintf(text, n_bytes, "Record without %s?", lacks);
    else if (model->patient.asks == OCT_ASKS_SAME)
        snprintf(text, n_bytes, "Is it still %s %s?", oct_view_patient_eye(model),
                 oct_view_patient_pseudonym(model));
    else
        snprintf(text, n_bytes, "Record?");
}

/* ---- the label ---- */

static bool may_change(struct oct_view_model *model)
{
    bool records =
        !model->playback.active && model->daemon.reachable && model->daemon.record.active;

    if (records)
        oct_view_model_say(model, "octd is recording: the label stays. Stop first, or correct it "
                                  "afterwards");
    return !records;
}

static void wish_label(struct oct_view_model *model, enum oct_view_wish wish, const char *text)
{
    const char *now =
        wish == OCT_WISH_EYE ? model->daemon.record.eye : model->daemon.record.pseudonym;

    if (model->has_control && model->daemon.reachable &&
        strcmp(to_come(model, wish, now), text) == 0)
        return;
    model->patient.accepted = false;
    oct_view_model_wish(model, wish, text);
}

void oct_view_patient_set_eye(struct oct_view_model *model, const char *eye)
{
    if (model->playback.active)
        oct_view_playback_set_eye(model, eye);
    else if (may_change(model))
        wish_label(model, OCT_WISH_EYE, eye);
}

void oct_view_patient_next_eye(struct oct_view_model *model)
{
    const char *eye = oct_view_patient_eye(model);

    if (!model->playback.active)
        eye = to_come(model, OCT_WISH_EYE, eye);
    oct_view_patient_set_eye(model, !eye[0] ? "OD" : strcmp(eye, "OD") == 0 ? "OS" : "");
}

void oct_view_patient_next(struct oct_view_model *model)
{
    if (!may_change(model))
        return;
    if (model->playback.active)
        oct_view_playback_end(model);
    if (model->frozen)
        oct_view_model_set_frozen(model, false);
    model->typing = false;
    model->patient.asks = OCT_ASKS_NOTHING;
    model->patient.accepted = false;
    wish_label(model, OCT_WISH_EYE, "");
    wish_label(model, OCT_WISH_PSEUDONYM, "");
}

void oct_view_patient_hear(struct oct_view_model *model, const struct oct_view_daemon *daemon)
{
    const struct oct_view_daemon *before = &model->daemon;
    struct oct_view_patient *p = &model->patient;

    if (p->known && (strcmp(before->record.eye, daemon->record.eye) != 0 ||
                     strcmp(before->record.pseudonym, daemon->record.pseudonym) != 0)) {
        p->said_ns = model->now_ns;
        p->accepted = false;
    }
    p->known = true;
    if (daemon->record.active)
        p->asks = OCT_ASKS_NOTHING; /* somebody else began it */
}

bool oct_view_patient_cancel(struct oct_view_model *model)
{
    bool had = model->typing || model->patient.asks != OCT_ASKS_NOTHING;

    if (model->typing)
        oct_view_model_end_typing(model, false);
    else
        model->patient.asks = OCT_ASKS_NOTHING;
    return had;
}

/* ---- typing ---- */

/* The name of the file in playback; "": there is none. */
static const char *file_of(const struct oct_view_model *model)
{
    return model->playback.active ? model->playback.file.name : "";
}

void oct_view_patient_type(struct oct_view_model *model)
{
    if (!model->playback.active && !model->has_control) {
        oct_view_model_wish(model, OCT_WISH_NONE, "");
        return;
    }
    if (!model->playback.active && !may_change(model))
        return;
    if (model->typing) { /* a second click keeps what is there */
        model->patient.selected = false;
        return;
    }
    const char *now = oct_view_patient_pseudonym(model);
    if (!model->playback.active)
        now = to_come(model, OCT_WISH_PSEUDONYM, now);
    model->typing = true;
    snprintf(model->patient.file, sizeof(model->patient.file), "%s", file_of(model));
    model->patient.selected = now[0] != '\0';
    snprintf(model->typed, sizeof(model->typed), "%s", now);
}

void oct_view_model_type(struct oct_view_model *model, const char *text)
{
    size_t n = model->patient.selected ? 0 : strlen(model->typed);

    /* Text that does not fit is left out whole, so that no letter is cut. */
    if (!model->typing || !text[0] || n + strlen(text) >= sizeof(model->typed) ||
        !oct_view_letters_are(text))
        return;
    model->patient.selected = false;
    snprintf(model->typed + n, sizeof(model->typed) - n, "%s", text);
}

void oct_view_model_keep_typed(struct oct_view_model *model)
{
    model->patient.selected = false;
}

void oct_view_model_rub_out(struct oct_view_model *model)
{
    size_t n = model->patient.selected ? 0 : strlen(model->typed);

    model->patient.selected = false;
    /* Removes a UTF-8 letter: its following bytes, then its first. */
    while (n > 0 && ((unsigned char)model->typed[n - 1] & 0xc0) == 0x80)
        n--;
    model->typed[n > 0 ? n - 1 : 0] = '\0';
}

void oct_view_model_end_typing(struct oct_view_model *model, bool keep)
{
    model->typing = model->patient.selected = false;
    if (!keep)
        return;
    if (strcmp(model->patient.file, file_of(model)) != 0) {
        oct_view_model_say(model, "not taken over: it was typed for another recording");
    } else if (model->playback.active) {
        oct_view_playback_set_pseudonym(model, model->typed);
    } else if (may_change(model)) {
        wish_label(model, OCT_WISH_PSEUDONYM, model->typed);
    }
}
