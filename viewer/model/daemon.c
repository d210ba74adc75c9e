/* The part of the model that takes the daemon's status and answers, and makes wishes. */
#include "viewer/model/daemon.h"

#include "numeric/order.h"
#include "pipeline/base/clock.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- wishes ---- */

const struct oct_view_wish_row oct_view_wish_rows[OCT_N_WISHES] = {
    [OCT_WISH_NONE] = {.name = ""},
    [OCT_WISH_RECORD] = {"the recording", "record", "start", NULL},
    [OCT_WISH_STOP] = {"the end of the recording", "record", "stop", NULL},
    [OCT_WISH_START] = {"the start", "start", NULL, NULL},
    [OCT_WISH_SAVE_LAST] = {"the last seconds", "record", "last", NULL},
    [OCT_WISH_VOLUMES] = {"how many volumes are recorded", .key = "record.volumes"},
    [OCT_WISH_AVERAGE] = {"how many B-scans are averaged", .key = "average.bscans"},
    [OCT_WISH_EYE] = {"the eye", .key = "record.eye"},
    [OCT_WISH_PSEUDONYM] = {"the pseudonym", .key = "record.pseudonym"},
    [OCT_WISH_PATIENT] = {.name = "the patient"},
    [OCT_WISH_PROJECTION] = {"", .key = "analysis.enface_projection"},
    [OCT_WISH_SLAB_FIRST] = {"", .key = "analysis.enface_slab_first"},
    [OCT_WISH_SLAB_LAST] = {"", .key = "analysis.enface_slab_last"},
    [OCT_WISH_CALIBRATE] = {"the sharpest dispersion", "calibrate", NULL, NULL},
    [OCT_WISH_ENABLE] = {.name = "what octd computes"},
    [OCT_WISH_DISABLE] = {.name = "what octd computes"},
    [OCT_WISH_FLOW_SLAB] = {"the depths of the angiogram", .key = "flow.slab"},
    [OCT_WISH_SCAN] = {"the scan", "scan", .with = "to"},
    [OCT_WISH_SCAN_KEYS] = {"the line", "scan", .with = "set"},
};

/* Adds a wish. Of two of a kind, one after the other, the later one counts, so that an impatient
 * user fills no queue. False: too many wait; nothing is added. */
static bool add_wish(struct oct_view_wishes *w, enum oct_view_wish wish, const char *text)
{
    const bool is_of_a_key = wish == OCT_WISH_ENABLE || wish == OCT_WISH_DISABLE;
    bool again = w->n > 0 && w->waiting[w->n - 1].wish == wish &&
                 (!is_of_a_key || strcmp(w->waiting[w->n - 1].text, text) == 0);
    if (!again && w->n == OCT_VIEW_MOST_WISHES)
        return false;
    w->n += !again;
    w->waiting[w->n - 1].wish = wish;
    snprintf(w->waiting[w->n - 1].text, sizeof(w->waiting[0].text), "%s", text);
    return true;
}

/* Removes the oldest and returns it; NONE: there is none. */
static enum oct_view_wish take_oldest(struct oct_view_wishes *w, char text[OCT_VIEW_LABEL_BYTES])
{
    if (w->n == 0)
        return OCT_WISH_NONE;
    enum oct_view_wish wish = w->waiting[0].wish;
    memcpy(text, w->waiting[0].text, sizeof(w->waiting[0].text));
    memmove(w->waiting, w->waiting + 1, --w->n * sizeof(w->waiting[0]));
    return wish;
}

const char *oct_view_wishes_find(const struct oct_view_wishes *w, enum oct_view_wish wish)
{
    for (unsigned i = w->n; i > 0; i--)
        if (w->waiting[i - 1].wish == wish)
            return w->waiting[i - 1].text;
    return NULL;
}

unsigned oct_view_wishes_drop(struct oct_view_wishes *w, enum oct_view_wish wish)
{
    unsigned n = w->n;
    w->n = 0;
    for (unsigned i = 0; i < n; i++)
        if (wish != OCT_WISH_NONE && w->waiting[i].wish != wish)
            w->waiting[w->n++] = w->waiting[i];
    return n - w->n;
}

/* ---- wishes of the en face picture ---- */

#define LEAST_HALF 0.005

/* octd says what it has, or (enface_told false) nothing of an en face picture. */
static void take_enface(struct oct_view_enface_wishes *w, const struct oct_view_daemon *daemon)
{
    const struct oct_view_enface_settings *octds = &daemon->enface;
    w->known = daemon->enface_told;
    if (!w->known) {
        w->wants_projection = w->wants_first = w->wants_last = false;
        return;
    }
    w->octds = *octds;
    if (!w->wants_projection)
        w->wanted.projection = octds->projection;
    if (!w->wants_first)
        w->wanted.slab.first = octds->slab.first;
    if (!w->wants_last)
        w->wanted.slab.last = octds->slab.last;
    if (w->wanted.slab.first >= w->wanted.slab.last) { /* somebody else moved it meanwhile */
        w->wanted.slab = octds->slab;
        w->wants_first = w->wants_last = false;
    }
}

static void want_projection(struct oct_view_enface_wishes *w, enum oct_projection projection)
{
    w->wants_projection |= projection != w->wanted.projection;
    w->wanted.projection = projection;
}

void oct_view_enface_wishes_next(struct oct_view_enface_wishes *w)
{
    want_projection(w, (enum oct_projection)((w->wanted.projection + 1) % OCT_N_PROJECTIONS));
}

/* A ten thousandth of the depth is less than a pixel of most pictures; it is what is sent. */
static double rounded(double share)
{
    return round(share * 1e4) / 1e4;
}

void oct_view_model_move_slab(struct oct_view_model *model, double shift, double grow)
{
    struct oct_view_enface_wishes *w = &model->enface_wishes;
    const struct oct_view_slab *slab = &w->wanted.slab;
    const double half = fmin(fmax((slab->last - slab->first) / 2 + grow, LEAST_HALF), 0.5);
    const double middle = fmin(fmax((slab->first + slab->last) / 2 + shift, half), 1 - half);
    if (!oct_view_model_can_set_enface(model))
        return;
    w->wanted.slab = (struct oct_view_slab){rounded(middle - half), rounded(middle + half)};
    w->wants_first = w->wants_last = true;
    want_projection(w, OCT_PROJECTION_SLAB);
}

/* The next setting to send, its value as text; NONE: nothing is wanted. The slab never comes to lie
 * upside down in between. It stays wanted until it is answered. */
static enum oct_view_wish take_enface_wish(struct oct_view_enface_wishes *w,
                                           char text[OCT_VIEW_LABEL_BYTES])
{
    /* A first share beyond octd's last one would be refused: then the last share goes first. */
    bool last_goes_first = w->wanted.slab.first >= w->octds.slab.last;
    w->sent = w->wanted;
    if (w->wants_projection) {
        snprintf(text, OCT_VIEW_LABEL_BYTES, "%s", oct_view_projection_keys[w->sent.projection]);
        return OCT_WISH_PROJECTION;
    }
    if (w->wants_first && !(w->wants_last && last_goes_first)) {
        snprintf(text, OCT_VIEW_LABEL_BYTES, "%.4f", w->sent.slab.first);
        return OCT_WISH_SLAB_FIRST;
    }
    if (w->wants_last) {
        snprintf(text, OCT_VIEW_LABEL_BYTES, "%.4f", w->sent.slab.last);
        return OCT_WISH_SLAB_LAST;
    }
    return OCT_WISH_NONE;
}

/* octd has it now, or refused it: then nothing is wanted any more. Where a share does not fit the
 * other one, somebody else has moved the slab meanwhile, and the next status says where it lies. */
static void answer_enface(struct oct_view_enface_wishes *w, enum oct_view_wish wish, bool ok)
{
    struct oct_view_slab slab = w->octds.slab;
    if (!ok) {
        w->wants_projection = w->wants_first = w->wants_last = false;
        w->wanted = w->octds;
    } else if (wish == OCT_WISH_PROJECTION) {
        w->octds.projection = w->sent.projection;
        w->wants_projection = w->wanted.projection != w->sent.projection;
    } else if (wish == OCT_WISH_SLAB_FIRST) {
        slab.first = w->sent.slab.first;
        w->wants_first = w->wanted.slab.first != w->sent.slab.first;
    } else {
        slab.last = w->sent.slab.last;
        w->wants_last = w->wanted.slab.last != w->sent.slab.last;
    }
    if (slab.first < slab.last)
        w->octds.slab = slab;
}

/* ---- the disk ---- */

/* Longer than a camera's burst lasts; a daemon that answers late, as in a burst, is asked this
 * often at least. */
#define LOW_NS (5 * OCT_NS_PER_S)
#define LOW_LOOKS 5

void oct_view_disk_hear(struct oct_view_disk *disk, const struct oct_view_daemon *daemon,
                        uint64_t now_ns)
{
    const double least_s = daemon->record.active ? OCT_VIEW_DISK_LOW_S : OCT_VIEW_DISK_OUT_S;
    if (!(daemon->record.disk_left_s < least_s)) {
        *disk = (struct oct_view_disk){0, 0};
        return;
    }
    disk->low_ns = disk->low_ns ? disk->low_ns : now_ns;
    disk->n_low += disk->n_low < UINT_MAX;
}

bool oct_view_disk_is_low(const struct oct_view_disk *disk, uint64_t now_ns)
{
    return disk->low_ns != 0 && disk->n_low >= LOW_LOOKS && now_ns >= disk->low_ns + LOW_NS;
}

/* ---- the line rate ---- */

#define LEAST_S 1.0
#define MOST_S 5.0
#define LEAST_BSCANS 10.0 /* blocks of lines are at most about a B-scan: a tenth of an error */
#define ENOUGH 5u         /* measurements make a median worth the name */
#define LOW 0.8
#define LOW_IN_A_ROW 2u /* one alone may hold a short pause */

void oct_view_line_rate_add(struct oct_view_line_rate *r, double acquisitions, double lines,
                            double time_s, double lines_a_bscan)
{
    const double n = lines - r->lines, seconds = time_s - r->time_s;
    double sorted[OCT_VIEW_LINE_RATES] = {0};
    if (!r->runs || acquisitions != r->acquisitions || n < 0 || seconds < 0) {
        memset(r, 0, sizeof(*r));
    } else if (n == 0) {
        r->n_low = 0;
        r->fell = false;
    } else if (seconds < LEAST_S || (n < LEAST_BSCANS * lines_a_bscan && seconds < MOST_S)) {
        return;
    } else {
        r->rate_hz = n / seconds;
        r->n_low = r->usual_hz > 0 && r->rate_hz < LOW * r->usual_hz ? r->n_low + 1 : 0;
        r->fell = r->n_low >= LOW_IN_A_ROW;
        r->recent_hz[r->n_recent++ % OCT_VIEW_LINE_RATES] = r->rate_hz;
        const unsigned n_known =
            r->n_recent < OCT_VIEW_LINE_RATES ? r->n_recent : OCT_VIEW_LINE_RATES;
        memcpy(sorted, r->recent_hz, sizeof(sorted));
        oct_doubles_sort(sorted, n_known);
        r->usual_hz = n_known >= ENOUGH ? sorted[n_known / 2] : 0;
    }
    r->runs = true;
    r->acquisitions = acquisitions;
    r->lines = lines;
    r->time_s = time_s;
}

/* ---- volumes of a recording ---- */

/* Wishes the next of: until it is stopped, 1, 2, 4, 8 volumes. */
static void next_volumes(struct oct_view_model *model)
{
    static const int steps[] = {8, 4, 2, 1, 0};
    const char *waiting = oct_view_wishes_find(&model->wishes, OCT_WISH_VOLUMES);
    const double now = waiting ? strtod(waiting, NULL) : model->daemon.record.volumes;
    char text[16] = "0";
    if (model->has_control && model->daemon.known && isnan(now)) {
        oct_view_model_say(model, "this octd does not count volumes: a recording is stopped");
        return;
    }
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        if (steps[i] > now)
            snprintf(text, sizeof(text), "%d", steps[i]);
    oct_view_model_wish(model, OCT_WISH_VOLUMES, text);
}

void oct_view_volumes_add(const struct oct_view_model *model, bool is_numbered, char *text,
                          size_t n_bytes)
{
    const double n = model->daemon.record.volumes;
    text[0] = '\0';
    if (n > 0 && is_numbered)
        snprintf(text, n_bytes, " of %.0f", n);
    else if (n > 0)
        snprintf(text, n_bytes, "  (%.0f volume%s each)", n, n > 1 ? "s" : "");
}

/* ---- what became of recordings ---- */

/* How long a recording that is whole is called saved. */
#define SAVED_NS (30 * OCT_NS_PER_S)

static void begin_recorded(struct oct_view_recorded *r, const struct oct_view_daemon *counts)
{
    *r = (struct oct_view_recorded){.is_on = true,
                                    .files = counts->record.volumes_written,
                                    .pieces = counts->record.volumes_incomplete};
}

static void end_recorded(struct oct_view_recorded *r, const struct oct_view_daemon *now,
                         bool is_another, uint64_t now_ns)
{
    double files = now->record.volumes_written - r->files;
    double pieces = now->record.volumes_incomplete - r->pieces;
    r->is_on = false;
    r->ended_ns = now_ns;
    r->end_noted = false;
    r->end = is_another           ? OCT_END_CUT_OFF
             : now->record.failed ? OCT_END_FAILED
             : r->stop_was_asked  ? OCT_END_HERE
                                  : OCT_END_ELSEWHERE;
    r->is_counted = !is_another && pieces >= 0 && files >= pieces;
    r->n_whole = r->is_counted ? files - pieces : 0;
    r->n_pieces = r->is_counted ? pieces : 0;
    r->n_lost = is_another ? 0 : now->record.n_lost;
    snprintf(r->file, sizeof(r->file), "%s", now->record.file);
}

/* A status came, `before` is the one before it (known false: none). asked_stop: it answers this
 * window's wish to stop. */
static void take_recording(struct oct_view_recorded *r, const struct oct_view_daemon *before,
                           const struct oct_view_daemon *now, bool asked_stop, uint64_t now_ns)
{
    const bool is_another = before->known && now->pid != before->pid;
    /* Counts fall when octd makes its pipeline anew. */
    const bool goes_on = before->known && !is_another &&
                         now->record.volumes_written >= before->record.volumes_written;
    /* One ended and another began between two looks. */
    const bool again = r->is_on && now->record.active && !is_another &&
                       now->record.elapsed_s + 1 < before->record.elapsed_s;
    r->stop_was_asked |= r->is_on && asked_stop;
    if (r->is_on && (is_another || !now->record.active))
        end_recorded(r, now, is_another, now_ns);
    if (now->record.active && (!r->is_on || again)) {
        begin_recorded(r, goes_on && !again ? before : now);
    } else if (!now->record.active && goes_on && !before->record.active &&
               now->record.volumes_written > before->record.volumes_written) {
        begin_recorded(r, before); /* it was shorter than the time between two looks */
        r->stop_was_asked = asked_stop;
        end_recorded(r, now, false, now_ns);
    }
}

static const char *plural(double n)
{
    return n == 1 ? "" : "s";
}

bool oct_view_recorded_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const struct oct_view_recorded *r = &model->recorded;
    const bool is_amiss = r->n_lost > 0 || r->end == OCT_END_FAILED || r->end == OCT_END_CUT_OFF;
    char saved[64] = "", lost[64] = "";
    size_t used = 0;
    if (r->is_on || r->ended_ns == 0 ||
        (is_amiss ? r->end_noted : model->now_ns >= r->ended_ns + SAVED_NS))
        return false;
    phrase->tone = is_amiss || r->n_pieces > 0 || r->n_whole == 0 ? OCT_TONE_WARN : OCT_TONE_GOOD;
    if (r->n_whole > 0)
        used =
            (size_t)snprintf(saved, sizeof(saved), "%.0f volume%s", r->n_whole, plural(r->n_whole));
    if (r->n_pieces > 0 && used < sizeof(saved)) /* "3 volumes and 1 piece" */
        snprintf(saved + used, sizeof(saved) - used, "%s%.0f piece%s%s", used ? " and " : "",
                 r->n_pieces, plural(r->n_pieces), used ? "" : " of a volume");
    if (r->n_lost > 0)
        snprintf(lost, sizeof(lost), ", %.0f B-scan%s NOT RECORDED", r->n_lost, plural(r->n_lost));
    const char *how = r->end == OCT_END_ELSEWHERE && r->is_counted &&
                              model->daemon.record.volumes != r->n_whole + r->n_pieces
                          ? " (stopped elsewhere)"
                          : "";
    if (!r->is_counted)
        snprintf(phrase->text, sizeof(phrase->text), "%s", "the recording ended");
    else if (!saved[0])
        snprintf(phrase->text, sizeof(phrase->text), "stopped, no volume was saved%s%s", lost, how);
    else
        snprintf(phrase->text, sizeof(phrase->text), "SAVED %s%s%s, the last %s", saved, lost, how,
                 r->file);
    return true;
}

struct oct_view_news oct_view_recorded_news(const struct oct_view_model *model)
{
    const struct oct_view_recorded *r = &model->recorded;
    const struct oct_view_daemon *d = &model->daemon;
    struct oct_view_news news = {
        .n_lost = d->record.active && d->record.n_lost > r->n_noted ? d->record.n_lost : 0,
        .failed = d->record.failed && !r->end_noted,
        .was_cut_off = r->ended_ns > 0 && r->end == OCT_END_CUT_OFF && !r->is_on && !r->end_noted,
    };
    news.any = news.n_lost > 0 || news.failed || news.was_cut_off;
    return news;
}

void oct_view_recorded_note(struct oct_view_model *model)
{
    struct oct_view_recorded *r = &model->recorded;
    const struct oct_view_news news = oct_view_recorded_news(model);
    struct oct_view_phrase phrase;
    const bool has_end = oct_view_recorded_text(model, &phrase);
    if (news.n_lost > 0)
        oct_view_model_say(model, "noted: %.0f B-scan%s of this recording are not recorded",
                           news.n_lost, plural(news.n_lost));
    else if (news.any)
        oct_view_model_say(model, "noted: the recording ended before its time");
    else if (has_end)
        oct_view_model_say(model, "noted: %s", phrase.text);
    else if (model->exported.state == OCT_EXPORT_FAILED)
        oct_view_model_say(model, "noted: %s was not exported", model->exported.path);
    else
        oct_view_model_say(model, "there is nothing to take note of");
    model->exported.is_noted |= model->exported.state == OCT_EXPORT_FAILED;
    r->n_noted = news.n_lost > 0 ? news.n_lost : r->n_noted;
    r->end_noted |= news.failed || has_end;
    if (has_end)
        r->ended_ns = 0;
}

/* ---- the last seconds ---- */

#define TOLD_NS (8 * OCT_NS_PER_S)

/* Asks octd for them, or says why not. */
static void save_last(struct oct_view_model *model)
{
    const struct oct_view_daemon *d = &model->daemon;
    if (d->reachable && d->last.bscans_most == 0)
        oct_view_model_say(model, "octd keeps no last seconds%s",
                           model->settings.operators ? "" : " (record.last_s)");
    else if (d->reachable && (d->last.saving || model->asked == OCT_WISH_SAVE_LAST))
        oct_view_model_say(model, "the last seconds are being saved already");
    else
        oct_view_model_wish(model, OCT_WISH_SAVE_LAST, "");
}

/* What became of them; no failure is GOOD, where nothing is missing. */
static void say_last(double length_s, const struct oct_view_daemon *d,
                     struct oct_view_phrase *phrase)
{
    const double s = round(fmin(length_s, 9999)), lost = d->last.n_lost;
    const enum oct_view_tone tone = lost == 0 ? OCT_TONE_GOOD : OCT_TONE_WARN;
    if (d->last.saving)
        oct_view_phrase_set(phrase, d->last.error[0] ? OCT_TONE_BAD : tone,
                            "SAVING the last %.0f s", s);
    else if (d->last.error[0])
        oct_view_phrase_set(phrase, OCT_TONE_BAD, "NOT SAVED: %s", d->last.error);
    else if (lost > 0)
        oct_view_phrase_set(phrase, tone, "SAVED the last %.0f s, %.0f B-scan%s missing: %s", s,
                            lost, lost > 1 ? "s" : "", d->last.file);
    else
        oct_view_phrase_set(phrase, tone, "SAVED the last %.0f s: %s", s, d->last.file);
}

/* octd's newest status, before it replaces model->daemon: what became of it is told, whoever asked
 * for it. */
static void take_last(struct oct_view_model *model, const struct oct_view_daemon *daemon)
{
    const struct oct_view_daemon *before = &model->daemon;
    struct oct_view_save_last *s = &model->save_last;
    struct oct_view_phrase phrase;
    if (!before->known || daemon->answer_ns == before->answer_ns)
        return;
    if (strcmp(before->record.path, daemon->record.path) != 0)
        s->is_newest = false;
    const bool another = strcmp(before->last.path, daemon->last.path) != 0;
    if (another || (daemon->last.saving && !before->last.saving))
        s->length_s = before->last.length_s;
    if (daemon->last.saving || (!another && !before->last.saving))
        return;
    s->until_ns = model->now_ns + TOLD_NS;
    s->is_newest = daemon->last.path[0] && !daemon->last.error[0];
    if (daemon->record.active) { /* the header tells of that */
        say_last(s->length_s, daemon, &phrase);
        oct_view_model_say(model, "%s", phrase.text);
    }
}

bool oct_view_save_last_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const struct oct_view_daemon *d = &model->daemon;
    bool tells = d->reachable && (d->last.saving || model->now_ns < model->save_last.until_ns);
    if (tells)
        say_last(model->save_last.length_s, d, phrase);
    return tells;
}

/* ---- the patient ---- */

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

/* The pseudonym of somebody whom octctl is taking from the worklist: nobody knows it yet. */
static const char of_worklist[] = "\u2026";

/* The eye or the pseudonym that octd will have when it has done what was asked; in playback the
 * file's. */
static const char *to_come(const struct oct_view_model *model, enum oct_view_wish wish)
{
    const struct oct_view_wishes *w = &model->wishes;
    const bool may_be_taken = wish == OCT_WISH_PSEUDONYM && !model->playback.active;
    for (unsigned i = model->playback.active ? 0 : w->n; i > 0; i--)
        if (w->waiting[i - 1].wish == wish)
            return w->waiting[i - 1].text;
        else if (may_be_taken && w->waiting[i - 1].wish == OCT_WISH_PATIENT)
            return of_worklist;
    if (!model->playback.active && model->asked == wish)
        return model->asked_text;
    if (may_be_taken && model->asked == OCT_WISH_PATIENT)
        return of_worklist;
    return wish == OCT_WISH_EYE ? oct_view_patient_eye(model) : oct_view_patient_pseudonym(model);
}

const char *oct_view_patient_lacks(const struct oct_view_model *model)
{
    const bool has_eye = to_come(model, OCT_WISH_EYE)[0] != '\0';
    const bool has_pseudonym = to_come(model, OCT_WISH_PSEUDONYM)[0] != '\0';
    return has_eye && has_pseudonym ? NULL
           : has_eye                ? "a pseudonym"
           : has_pseudonym          ? "an eye"
                                    : "a label";
}

/* ---- recording ---- */

static enum oct_view_question question_of(const struct oct_view_model *model)
{
    const struct oct_view_patient *p = &model->patient;
    const bool asks = p->ask == OCT_ASK_LABEL_ALWAYS ||
                      (p->ask == OCT_ASK_LABEL_OPERATOR && model->settings.operators);
    const bool is_old = p->said_ns == 0 || model->now_ns > p->said_ns + LABEL_AGES_NS;
    if (!asks || !model->has_control || !model->daemon.reachable || p->accepted)
        return OCT_ASKS_NOTHING;
    if (oct_view_patient_lacks(model))
        return OCT_ASKS_LABEL;
    return is_old ? OCT_ASKS_SAME : OCT_ASKS_NOTHING;
}

/* Starts a recording, or asks first; ends it. */
static void record(struct oct_view_model *model)
{
    struct oct_view_patient *p = &model->patient;
    if (model->daemon.record.active) {
        oct_view_model_wish(model, OCT_WISH_STOP, "");
        return;
    }
    if (oct_view_model_is_recording(model))
        return; /* asked for already: a second press of an impatient user is no stop */
    if (model->playback.active) {
        oct_view_model_say(model, "this is a recording: back to live pictures (V), then record");
        return;
    }
    const enum oct_view_question question = question_of(model);
    if (question != OCT_ASKS_NOTHING && p->asks == OCT_ASKS_NOTHING) {
        p->asks = question;
        if (!to_come(model, OCT_WISH_PSEUDONYM)[0])
            oct_view_worklist_open(model);
        return;
    }
    model->worklist.is_open = false;
    p->accepted = p->accepted || question == OCT_ASKS_LABEL;
    if (question == OCT_ASKS_SAME)
        p->said_ns = model->now_ns;
    p->asks = OCT_ASKS_NOTHING;
    oct_view_model_wish(model, OCT_WISH_RECORD, "");
}

void oct_view_patient_question(const struct oct_view_model *model, char *text, size_t n_bytes)
{
    const char *lacks = oct_view_patient_lacks(model), *name = oct_view_patient_name(model);
    const char *who = name[0] ? name : oct_view_patient_pseudonym(model);
    if (model->patient.asks == OCT_ASKS_NOTHING || model->playback.active)
        snprintf(text, n_bytes, "%s", "");
    else if (lacks)
        snprintf(text, n_bytes, "Record without %s?", lacks);
    else if (model->patient.asks == OCT_ASKS_SAME)
        snprintf(text, n_bytes, "Is it still %s %s?", oct_view_patient_eye(model), who);
    else
        snprintf(text, n_bytes, "Record?");
}

/* ---- the label ---- */

/* In playback it is the file's that changes. */
static bool may_change(struct oct_view_model *model)
{
    const bool records =
        !model->playback.active && model->daemon.reachable && model->daemon.record.active;
    if (records)
        oct_view_model_say(model, "octd is recording: the label stays. Stop first, or correct it "
                                  "afterwards");
    return !records;
}

static void wish_label(struct oct_view_model *model, enum oct_view_wish wish, const char *text)
{
    if (model->has_control && model->daemon.reachable && strcmp(to_come(model, wish), text) == 0)
        return;
    model->patient.accepted = false;
    oct_view_model_wish(model, wish, text);
}

static void set_label(struct oct_view_model *model, enum oct_view_wish wish, const char *text)
{
    const struct oct_volume_label_change change = {.eye = wish == OCT_WISH_EYE ? text : NULL,
                                                   .pseudonym =
                                                       wish == OCT_WISH_PSEUDONYM ? text : NULL};
    if (model->playback.active)
        oct_view_playback_relabel(model, &change);
    else if (may_change(model))
        wish_label(model, wish, text);
    model->worklist.is_open &= wish != OCT_WISH_PSEUDONYM || !text[0];
}

/* Live pictures without eye and pseudonym, and who may be next. */
static void next_patient(struct oct_view_model *model)
{
    if (!may_change(model))
        return;
    if (model->playback.active)
        oct_view_playback_end(model);
    if (model->frozen)
        oct_view_model_set_frozen(model, false);
    model->typing = false;
    if (oct_view_scan_is_placed(model)) /* on the eye of before */
        oct_view_scan_back(model);
    model->patient.asks = OCT_ASKS_NOTHING;
    model->patient.accepted = false;
    wish_label(model, OCT_WISH_EYE, "");
    wish_label(model, OCT_WISH_PSEUDONYM, "");
    model->worklist.is_open = false; /* it is asked for anew */
    oct_view_worklist_open(model);
}

/* octd's newest status, before it replaces model->daemon. */
static void take_label(struct oct_view_model *model, const struct oct_view_daemon *daemon)
{
    const struct oct_view_daemon *before = &model->daemon;
    struct oct_view_patient *p = &model->patient;
    if (p->known && (strcmp(before->record.eye, daemon->record.eye) != 0 ||
                     strcmp(before->record.pseudonym, daemon->record.pseudonym) != 0)) {
        p->said_ns = model->now_ns;
        p->accepted = false;
    }
    p->known = true;
    if (daemon->record.active) { /* somebody else began it */
        p->asks = OCT_ASKS_NOTHING;
        model->worklist.is_open = false;
    }
}

bool oct_view_patient_cancel(struct oct_view_model *model)
{
    const bool had = model->typing || model->patient.asks != OCT_ASKS_NOTHING ||
                     oct_view_worklist_is_shown(model);
    model->worklist.is_open = false;
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

/* Begins to type the pseudonym. */
static void begin_typing(struct oct_view_model *model)
{
    if (!model->playback.active && !model->has_control) {
        oct_view_model_wish(model, OCT_WISH_NONE, "");
        return;
    }
    if (!may_change(model))
        return;
    if (model->typing) { /* a second click keeps what is there */
        model->patient.selected = false;
        return;
    }
    const char *now = to_come(model, OCT_WISH_PSEUDONYM);
    model->typing = true;
    snprintf(model->patient.file, sizeof(model->patient.file), "%s", file_of(model));
    model->patient.selected = now[0] != '\0';
    snprintf(model->typed, sizeof(model->typed), "%s", now);
    if (!model->playback.active && !oct_view_worklist_is_shown(model))
        oct_view_worklist_open(model);
}

void oct_view_model_type(struct oct_view_model *model, const char *text)
{
    size_t n = model->patient.selected ? 0 : strlen(model->typed);
    /* Text that does not fit is left out whole, so that no letter is cut. */
    if (!model->typing || !text[0] || n + strlen(text) >= sizeof(model->typed) ||
        !oct_view_letters_are(text))
        return;
    model->patient.selected = false;
    model->worklist.rows.chosen = 0;
    snprintf(model->typed + n, sizeof(model->typed) - n, "%s", text);
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
    const bool is_untouched = model->patient.selected;
    model->typing = model->patient.selected = false;
    if (is_untouched)
        return;
    if (keep && strcmp(model->patient.file, file_of(model)) != 0)
        oct_view_model_say(model, "not taken over: it was typed for another recording");
    else if (keep)
        set_label(model, OCT_WISH_PSEUDONYM, model->typed);
}

/* ---- what the user asks for ---- */

bool oct_view_daemon_apply(struct oct_view_model *model, enum oct_view_action action)
{
    const struct oct_view_daemon *d = &model->daemon;
    const char *eye = to_come(model, OCT_WISH_EYE);
    switch (action) {
    case OCT_ACTION_START:
        if (d->reachable && strcmp(d->state, "idle") != 0 && strcmp(d->state, "error") != 0)
            oct_view_model_say(model, "octd receives already");
        else
            oct_view_model_wish(model, OCT_WISH_START, "");
        return true;
    case OCT_ACTION_RECORD:
        record(model);
        return true;
    case OCT_ACTION_VOLUMES:
        next_volumes(model);
        return true;
    case OCT_ACTION_SAVE_LAST:
        save_last(model);
        return true;
    case OCT_ACTION_EYE:
        set_label(model, OCT_WISH_EYE, !eye[0] ? "OD" : strcmp(eye, "OD") == 0 ? "OS" : "");
        return true;
    case OCT_ACTION_RIGHT_EYE:
    case OCT_ACTION_LEFT_EYE:
        set_label(model, OCT_WISH_EYE, action == OCT_ACTION_RIGHT_EYE ? "OD" : "OS");
        return true;
    case OCT_ACTION_PSEUDONYM:
        begin_typing(model);
        return true;
    case OCT_ACTION_NEXT_PATIENT:
        next_patient(model);
        return true;
    default:
        return false;
    }
}

/* ---- what the daemon says and answers ---- */

#define ANSWER_NS (8 * OCT_NS_PER_S)

bool oct_view_model_is_recording(const struct oct_view_model *model)
{
    return model->daemon.record.active || model->asked == OCT_WISH_RECORD ||
           oct_view_wishes_find(&model->wishes, OCT_WISH_RECORD);
}

static bool is_of_recording(enum oct_view_wish wish)
{
    return wish == OCT_WISH_RECORD || wish == OCT_WISH_STOP || wish == OCT_WISH_SAVE_LAST;
}

static bool is_of_label(enum oct_view_wish wish)
{
    return wish == OCT_WISH_EYE || wish == OCT_WISH_PSEUDONYM || wish == OCT_WISH_PATIENT;
}

/* What became of a recording stands in the header. */
static void answer_recording(struct oct_view_model *model, const struct oct_view_answer *answer)
{
    model->answer = *answer;
    model->answer_until_ns = model->now_ns + ANSWER_NS;
}

/* octd does not answer: whatever waits would come too late, and fails with what was asked. */
static void fail_all(struct oct_view_model *model, enum oct_view_wish asked)
{
    struct oct_view_wishes *w = &model->wishes;
    char names[256];
    size_t used = (size_t)snprintf(names, sizeof(names), "%s", oct_view_wish_rows[asked].name);
    for (unsigned i = 0; i < w->n && used < sizeof(names); i++)
        if (!strstr(names, oct_view_wish_rows[w->waiting[i].wish].name))
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
                                     oct_view_wish_rows[w->waiting[i].wish].name);
    if (names[0])
        oct_view_model_say(model, "octd does not answer: %s may not be as wished", names);
    if (oct_view_wishes_find(w, OCT_WISH_RECORD))
        answer_recording(model, &(struct oct_view_answer){.wish = OCT_WISH_RECORD,
                                                          .text = "no answer from octd"});
    oct_view_wishes_drop(w, OCT_WISH_NONE);
}

static void say_refused(struct oct_view_model *model, const struct oct_view_answer *answer)
{
    const char *name = oct_view_wish_rows[answer->wish].name;
    if (answer->wish == OCT_WISH_PATIENT) /* octctl's word, not octd's */
        oct_view_model_say(model, "not taken from the worklist: %s", answer->text);
    else if (model->daemon.record.active &&
             (is_of_label(answer->wish) || answer->wish == OCT_WISH_AVERAGE ||
              answer->wish == OCT_WISH_VOLUMES))
        oct_view_model_say(model, "octd is recording: %s can be changed afterwards", name);
    else
        oct_view_model_say(model, "octd refused%s%s: %s", name[0] ? " " : "", name, answer->text);
    /* A recording with the label of before is of the wrong patient. */
    if (is_of_label(answer->wish) && oct_view_wishes_drop(&model->wishes, OCT_WISH_RECORD) > 0)
        answer_recording(model, &(struct oct_view_answer){.wish = OCT_WISH_RECORD,
                                                          .text = "octd did not take the label"});
}

static void say_granted(struct oct_view_model *model, const struct oct_view_answer *answer)
{
    const char *text = answer->text;
    const double n = strtod(text, NULL);
    switch (answer->wish) {
    case OCT_WISH_EYE:
    case OCT_WISH_PSEUDONYM:
    case OCT_WISH_PATIENT:
        oct_view_model_say(model, "octd confirms: %s %s",
                           answer->wish == OCT_WISH_EYE ? "eye" : "pseudonym",
                           text[0] ? text : "not said");
        break;
    case OCT_WISH_AVERAGE:
        oct_view_model_say(model, "octd averages the last %s B-scans", text);
        break;
    case OCT_WISH_VOLUMES:
        if (n > 0)
            oct_view_model_say(model, "octd confirms: a recording has %.0f volume%s", n,
                               n > 1 ? "s" : "");
        else
            oct_view_model_say(model, "octd confirms: a recording has volumes until it is stopped");
        break;
    case OCT_WISH_START:
        oct_view_model_say(model, "octd receives from now on");
        break;
    case OCT_WISH_ENABLE:
        oct_view_model_say(model, "octd confirms: %s = yes", text);
        break;
    case OCT_WISH_DISABLE:
        oct_view_model_say(model, "octd confirms: %s = no", text);
        break;
    case OCT_WISH_SCAN:
        oct_view_model_say(model, "octd confirms: the scan %s", text[0] ? text : "of before");
        break;
    case OCT_WISH_SCAN_KEYS:
        oct_view_model_say(model, "octd confirms: the %s",
                           strstr(text, "\"line\"") ? "line" : "scan of before");
        break;
    default: /* what was set stands in the window */
        break;
    }
}

static void take_answer(struct oct_view_model *model, const struct oct_view_answer *answer)
{
    const enum oct_view_wish wish = answer->wish;
    model->asked = OCT_WISH_NONE;
    if (wish >= OCT_WISH_PROJECTION && wish <= OCT_WISH_SLAB_LAST)
        answer_enface(&model->enface_wishes, wish, answer->ok);
    model->sharpening.waits &= answer->ok || wish != OCT_WISH_CALIBRATE;
    oct_view_scan_answered(model, answer);
    if (is_of_recording(wish))
        answer_recording(model, answer);
    if (wish == OCT_WISH_STOP && answer->ok) /* the status follows */
        model->recorded.stop_was_asked |= model->recorded.is_on;
    else if (wish == OCT_WISH_STOP)
        model->recorded.stop_was_asked = false;
    if (answer->unanswered)
        fail_all(model, wish);
    else if (answer->ok)
        say_granted(model, answer);
    else if (!is_of_recording(wish))
        say_refused(model, answer);
}

static void watch_count(struct oct_view_watch *w, double count, bool first, uint64_t now_ns)
{
    if (!first && count > w->count)
        w->rose_ns = now_ns;
    w->count = count; /* less: the daemon started anew */
}

/* A status that was not heard yet, before it replaces model->daemon. */
static void take_status(struct oct_view_model *model, const struct oct_view_daemon *daemon,
                        bool asked_stop)
{
    const bool first = !model->daemon.known;
    watch_count(&model->missing, daemon->lines_missing, first, model->now_ns);
    watch_count(&model->dropped, daemon->bscans_dropped, first, model->now_ns);
    oct_view_disk_hear(&model->disk, daemon, model->now_ns);
    oct_view_line_rate_add(&model->line_rate, daemon->acquisitions,
                           daemon->lines_received + daemon->lines_missing, daemon->uptime_s,
                           daemon->lines);
    take_recording(&model->recorded, &model->daemon, daemon, asked_stop, model->now_ns);
    if (daemon->pixels_told && model->playback.active)
        model->playback.live_contrast.log = daemon->log;
    else if (daemon->pixels_told)
        model->contrast.log = daemon->log;
    take_enface(&model->enface_wishes, daemon);
}

void oct_view_model_hear(struct oct_view_model *model, const struct oct_view_daemon *daemon,
                         const struct oct_view_answer *answer)
{
    const struct oct_view_enface_wishes before = model->enface_wishes;
    const bool is_new = daemon->known && daemon->answer_ns != model->daemon.answer_ns;
    char slab[sizeof(model->daemon.flow.slab)];
    struct oct_view_daemon held;
    if (oct_view_scan_holds_recording(model, daemon)) {
        held = *daemon;
        held.record = model->daemon.record;
        daemon = &held;
    }
    memcpy(slab, model->daemon.flow.slab, sizeof(slab));
    if (is_new)
        take_status(model, daemon,
                    answer->wish == OCT_WISH_STOP ? answer->ok : model->asked == OCT_WISH_STOP);
    model->has_control = true;
    if (daemon->known) {
        take_label(model, daemon);
        take_last(model, daemon);
        model->daemon = *daemon;
        if (is_new)
            oct_view_scan_hear(model);
    } else {
        model->daemon.reachable = false;
    }
    if (answer->wish != OCT_WISH_NONE)
        take_answer(model, answer);
    oct_view_sharpened_hear(model);
    model->angiogram.enface.forget |= strcmp(slab, model->daemon.flow.slab) != 0;
    if (before.known && model->enface_wishes.known &&
        before.octds.projection != model->enface_wishes.octds.projection)
        model->enface.forget = true;
}

void oct_view_model_wish(struct oct_view_model *model, enum oct_view_wish wish, const char *text)
{
    if (!model->has_control)
        oct_view_model_say(model, "%s",
                           model->settings.operators
                               ? "this window shows pictures only: call for help"
                               : "no control endpoint: start octview with --control ENDPOINT");
    else if (!add_wish(&model->wishes, wish, text))
        oct_view_model_say(model, "octd has not answered yet");
}

enum oct_view_wish oct_view_model_take_wish(struct oct_view_model *model,
                                            char text[OCT_VIEW_LABEL_BYTES])
{
    if (model->asked != OCT_WISH_NONE)
        return OCT_WISH_NONE;
    /* While a slab's key is held, some answer is always to come: other wishes go first. */
    model->asked = take_oldest(&model->wishes, text);
    if (model->asked == OCT_WISH_NONE)
        model->asked = take_enface_wish(&model->enface_wishes, text);
    if (model->asked != OCT_WISH_NONE)
        memcpy(model->asked_text, text, OCT_VIEW_LABEL_BYTES);
    return model->asked;
}

bool oct_view_model_can_set_enface(struct oct_view_model *model)
{
    if (!model->has_control)
        oct_view_model_wish(model, OCT_WISH_NONE, "");
    else if (!model->enface_wishes.known)
        oct_view_model_say(model, "%s",
                           !model->daemon.known        ? "octd has not answered yet"
                           : !model->daemon.has_enface ? "no en face from this octd"
                                                       : "this octd's en face cannot be set");
    return model->has_control && model->enface_wishes.known;
}
