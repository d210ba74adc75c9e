#include "viewer/model/daemon.h"

#include "viewer/model/clock.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <stdio.h>
#include <string.h>

/* How long a recording that is whole is called saved. */
#define SAVED_NS (30 * OCT_NS_PER_S)

static void begin(struct oct_view_recorded *r, const struct oct_view_daemon *counts)
{
    *r = (struct oct_view_recorded){.is_on = true,
                                    .files = counts->record.volumes_written,
                                    .pieces = counts->record.volumes_incomplete};
}

static void end(struct oct_view_recorded *r, const struct oct_view_daemon *now, bool is_another,
                uint64_t now_ns)
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

void oct_view_recorded_hear(struct oct_view_recorded *r, const struct oct_view_daemon *before,
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
        end(r, now, is_another, now_ns);
    if (now->record.active && (!r->is_on || again)) {
        begin(r, goes_on && !again ? before : now);
    } else if (!now->record.active && goes_on && !before->record.active &&
               now->record.volumes_written > before->record.volumes_written) {
        begin(r, before); /* it was shorter than the time between two looks */
        r->stop_was_asked = asked_stop;
        end(r, now, false, now_ns);
    }
}

/* ---- words ---- */

static const char *plural(double n)
{
    return n == 1 ? "" : "s";
}

/* "3 volumes and 1 piece" */
static void saved_text(const struct oct_view_recorded *r, char *text, size_t n_bytes)
{
    size_t used = 0;

    text[0] = '\0';
    if (r->n_whole > 0)
        used = (size_t)snprintf(text, n_bytes, "%.0f volume%s", r->n_whole, plural(r->n_whole));
    if (r->n_pieces > 0 && used < n_bytes)
        snprintf(text + used, n_bytes - used, "%s%.0f piece%s%s", used ? " and " : "", r->n_pieces,
                 plural(r->n_pieces), used ? "" : " of a volume");
}

bool oct_view_recorded_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const struct oct_view_recorded *r = &model->recorded;
    const bool is_amiss = r->n_lost > 0 || r->end == OCT_END_FAILED || r->end == OCT_END_CUT_OFF;
    char saved[64], lost[64] = "";

    if (r->is_on || r->ended_ns == 0 ||
        (is_amiss ? r->end_noted : model->now_ns >= r->ended_ns + SAVED_NS))
        return false;
    phrase->tone = is_amiss || r->n_pieces > 0 || r->n_whole == 0 ? OCT_TONE_WARN : OCT_TONE_GOOD;
    saved_text(r, saved, sizeof(saved));
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

double oct_view_recorded_lost(const struct oct_view_model *model)
{
    const struct oct_view_daemon *d = &model->daemon;

    return d->record.active && d->record.n_lost > model->recorded.n_noted ? d->record.n_lost : 0;
}

bool oct_view_recorded_failed(const struct oct_view_model *model)
{
    return model->daemon.record.failed && !model->recorded.end_noted;
}

bool oct_view_recorded_was_cut_off(const struct oct_view_model *model)
{
    const struct oct_view_recorded *r = &model->recorded;

    return r->ended_ns > 0 && r->end == OCT_END_CUT_OFF && !r->is_on && !r->end_noted;
}

bool oct_view_recorded_has_news(const struct oct_view_model *model)
{
    return oct_view_recorded_lost(model) > 0 || oct_view_recorded_failed(model) ||
           oct_view_recorded_was_cut_off(model);
}

void oct_view_recorded_note(struct oct_view_model *model)
{
    struct oct_view_recorded *r = &model->recorded;
    double lost = oct_view_recorded_lost(model);
    struct oct_view_phrase phrase;
    const bool has_end = oct_view_recorded_text(model, &phrase);
    const bool failed = oct_view_recorded_failed(model);

    if (lost > 0)
        oct_view_model_say(model, "noted: %.0f B-scan%s of this recording are not recorded", lost,
                           plural(lost));
    else if (failed || oct_view_recorded_was_cut_off(model))
        oct_view_model_say(model, "noted: the recording ended before its time");
    else if (has_end)
        oct_view_model_say(model, "noted: %s", phrase.text);
    else
        oct_view_model_say(model, "there is nothing to take note of");
    r->n_noted = lost > 0 ? lost : r->n_noted;
    r->end_noted |= failed || has_end;
    if (has_end)
        r->ended_ns = 0;
}
