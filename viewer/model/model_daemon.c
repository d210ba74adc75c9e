/* The part of the model that takes the daemon's status and answers, and makes wishes. */
#include "viewer/model/model_daemon.h"
#include "viewer/model/clock.h"
#include "viewer/model/letters.h"

#include <stdio.h>
#include <string.h>

#define ANSWER_NS (8 * OCT_NS_PER_S)

static void watch(struct oct_view_watch *w, double count, bool first, uint64_t now_ns)
{
    if (!first && count > w->count)
        w->rose_ns = now_ns;
    w->count = count; /* less: the daemon started anew */
}

/* Notes since when the time is short: a burst of the camera shortens it for a moment only. */
static void watch_disk(struct oct_view_model *model, const struct oct_view_daemon *daemon)
{
    double least_s = daemon->record.active ? OCT_VIEW_DISK_LOW_S : OCT_VIEW_DISK_OUT_S;

    if (!(daemon->record.disk_left_s < least_s))
        model->disk_low_ns = 0;
    else if (model->disk_low_ns == 0)
        model->disk_low_ns = model->now_ns;
}

bool oct_view_model_is_recording(const struct oct_view_model *model)
{
    return model->daemon.record.active || model->asked == OCT_WISH_RECORD ||
           model->wish == OCT_WISH_RECORD;
}

static bool is_of_enface(enum oct_view_wish wish)
{
    return wish == OCT_WISH_PROJECTION || wish == OCT_WISH_SLAB_FIRST || wish == OCT_WISH_SLAB_LAST;
}

static void hear_answer(struct oct_view_model *model, const struct oct_view_answer *answer)
{
    model->asked = OCT_WISH_NONE;
    if (is_of_enface(answer->wish))
        oct_view_enface_wishes_answer(&model->enface_wishes, answer->wish, answer->ok);
    if (answer->wish == OCT_WISH_RECORD || answer->wish == OCT_WISH_STOP) {
        model->answer = *answer;
        model->answer_until_ns = model->now_ns + ANSWER_NS;
    } else if (!answer->ok) {
        oct_view_model_say(model, "octd refused: %s", answer->text);
        model->sharpening.waits &= answer->wish != OCT_WISH_CALIBRATE;
    } else if (!is_of_enface(answer->wish) &&
               answer->wish != OCT_WISH_CALIBRATE) { /* the panel's title shows those */
        oct_view_model_say(model, "octd confirms: %s %s",
                           answer->wish == OCT_WISH_EYE ? "eye" : "pseudonym",
                           answer->text[0] ? answer->text : "not said");
    }
}

void oct_view_model_hear(struct oct_view_model *model, const struct oct_view_daemon *daemon,
                         const struct oct_view_answer *answer)
{
    bool first = !model->daemon.known;
    const struct oct_view_enface_wishes before = model->enface_wishes;

    if (daemon->known && daemon->answer_ns != model->daemon.answer_ns) {
        watch(&model->missing, daemon->lines_missing, first, model->now_ns);
        watch(&model->dropped, daemon->bscans_dropped, first, model->now_ns);
        watch_disk(model, daemon);
        oct_view_line_rate_add(&model->line_rate, daemon->acquisitions,
                               daemon->lines_received + daemon->lines_missing, daemon->uptime_s,
                               daemon->lines);
        if (daemon->record.active && (first || !model->daemon.record.active))
            model->volumes_before = daemon->record.volumes_written;
        struct oct_view_contrast *contrast =
            model->playback.active ? &model->playback.live_contrast : &model->contrast;
        if (daemon->pixels_told)
            contrast->log = daemon->log;
        oct_view_enface_wishes_hear(&model->enface_wishes,
                                    daemon->enface_told ? &daemon->enface : NULL);
    }
    model->has_control = true;
    if (daemon->known)
        model->daemon = *daemon;
    else
        model->daemon.reachable = false;
    if (answer->wish != OCT_WISH_NONE)
        hear_answer(model, answer);
    oct_view_sharpened_hear(model);
    if (before.known && model->enface_wishes.known &&
        before.octds.projection != model->enface_wishes.octds.projection)
        oct_view_enface_forget(&model->enface);
}

void oct_view_model_wish(struct oct_view_model *model, enum oct_view_wish wish, const char *text)
{
    if (!model->has_control) {
        oct_view_model_say(model, "no control endpoint: start octview with --control ENDPOINT");
        return;
    }
    /* While a slab's key is held, some answer is always to come: other wishes wait for it. */
    if (model->asked != OCT_WISH_NONE && !is_of_enface(model->asked)) {
        oct_view_model_say(model, "octd has not answered yet");
        return;
    }
    model->wish = wish;
    snprintf(model->wish_text, sizeof(model->wish_text), "%s", text);
}

enum oct_view_wish oct_view_model_take_wish(struct oct_view_model *model,
                                            char text[OCT_VIEW_LABEL_BYTES])
{
    if (model->asked != OCT_WISH_NONE)
        return OCT_WISH_NONE;
    if (model->wish != OCT_WISH_NONE) {
        memcpy(text, model->wish_text, OCT_VIEW_LABEL_BYTES);
        model->asked = model->wish;
        model->wish = OCT_WISH_NONE;
    } else {
        model->asked =
            oct_view_enface_wishes_take(&model->enface_wishes, text, OCT_VIEW_LABEL_BYTES);
    }
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

void oct_view_model_next_eye(struct oct_view_model *model)
{
    const char *eye = model->daemon.record.eye;

    oct_view_model_wish(model, OCT_WISH_EYE, !eye[0] ? "OD" : strcmp(eye, "OD") == 0 ? "OS" : "");
}

/* ---- typing ---- */

void oct_view_model_type(struct oct_view_model *model, const char *text)
{
    size_t n = strlen(model->typed);

    /* Text that does not fit is left out whole, so that no letter is cut. */
    if (!model->typing || n + strlen(text) >= sizeof(model->typed) || !oct_view_letters_are(text))
        return;
    snprintf(model->typed + n, sizeof(model->typed) - n, "%s", text);
}

void oct_view_model_rub_out(struct oct_view_model *model)
{
    size_t n = strlen(model->typed);

    /* Removes a UTF-8 letter: its following bytes, then its first. */
    while (n > 0 && ((unsigned char)model->typed[n - 1] & 0xc0) == 0x80)
        n--;
    model->typed[n > 0 ? n - 1 : 0] = '\0';
}

void oct_view_model_end_typing(struct oct_view_model *model, bool keep)
{
    model->typing = false;
    if (keep)
        oct_view_model_wish(model, OCT_WISH_PSEUDONYM, model->typed);
}
