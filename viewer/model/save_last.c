#include "viewer/model/daemon.h"

#include "viewer/model/clock.h"
#include "viewer/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TOLD_NS (8 * OCT_NS_PER_S)

void oct_view_save_last(struct oct_view_model *model)
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

static bool words(double length_s, const struct oct_view_daemon *d, char *text, size_t n_bytes)
{
    const double s = round(fmin(length_s, 9999)), lost = d->last.n_lost;

    if (d->last.saving)
        snprintf(text, n_bytes, "SAVING the last %.0f s", s);
    else if (d->last.error[0])
        snprintf(text, n_bytes, "NOT SAVED: %s", d->last.error);
    else if (lost > 0)
        snprintf(text, n_bytes, "SAVED the last %.0f s, %.0f B-scan%s missing: %s", s, lost,
                 lost > 1 ? "s" : "", d->last.file);
    else
        snprintf(text, n_bytes, "SAVED the last %.0f s: %s", s, d->last.file);
    return !d->last.error[0] && lost == 0;
}

void oct_view_save_last_hear(struct oct_view_model *model, const struct oct_view_daemon *daemon)
{
    const struct oct_view_daemon *before = &model->daemon;
    struct oct_view_save_last *s = &model->save_last;
    char text[384];

    if (!before->known || daemon->answer_ns == before->answer_ns)
        return;
    if (strcmp(before->record.path, daemon->record.path) != 0)
        s->is_newest = false;
    const bool another = strcmp(before->last.path, daemon->last.path) != 0;
    const bool ended = !daemon->last.saving && (another || before->last.saving);
    if (another || (daemon->last.saving && !before->last.saving))
        s->length_s = before->last.length_s;
    if (!ended)
        return;
    s->until_ns = model->now_ns + TOLD_NS;
    s->is_newest = daemon->last.path[0] && !daemon->last.error[0];
    if (daemon->record.active) { /* the header tells of that */
        words(s->length_s, daemon, text, sizeof(text));
        oct_view_model_say(model, "%s", text);
    }
}

bool oct_view_save_last_text(const struct oct_view_model *model, char *text, size_t n_bytes,
                             bool *is_good)
{
    const struct oct_view_daemon *d = &model->daemon;
    bool tells = d->reachable && (d->last.saving || model->now_ns < model->save_last.until_ns);

    if (tells)
        *is_good = words(model->save_last.length_s, d, text, n_bytes);
    return tells;
}
