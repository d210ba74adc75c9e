/* The part of the model that takes the daemon's status and answers, and makes wishes. */
#include "viewer/model/clock.h"
#include "viewer/model/daemon.h"
#include "viewer/model/model.h"

#include <stdio.h>
#include <string.h>

#define ANSWER_NS (8 * OCT_NS_PER_S)

static void watch(struct oct_view_watch *w, double count, bool first, uint64_t now_ns)
{
    if (!first && count > w->count)
        w->rose_ns = now_ns;
    w->count = count; /* less: the daemon started anew */
}

bool oct_view_model_is_recording(const struct oct_view_model *model)
{
    return model->daemon.record.active || model->asked == OCT_WISH_RECORD ||
           oct_view_wishes_find(&model->wishes, OCT_WISH_RECORD);
}

static bool is_of_enface(enum oct_view_wish wish)
{
    return wish == OCT_WISH_PROJECTION || wish == OCT_WISH_SLAB_FIRST || wish == OCT_WISH_SLAB_LAST;
}

static bool is_of_recording(enum oct_view_wish wish)
{
    return wish == OCT_WISH_RECORD || wish == OCT_WISH_STOP || wish == OCT_WISH_SAVE_LAST;
}

static bool is_of_label(enum oct_view_wish wish)
{
    return wish == OCT_WISH_EYE || wish == OCT_WISH_PSEUDONYM;
}

/* What became of a recording stands in the header. */
static void answer_recording(struct oct_view_model *model, const struct oct_view_answer *answer)
{
    model->answer = *answer;
    model->answer_until_ns = model->now_ns + ANSWER_NS;
}

static void not_recorded(struct oct_view_model *model, const char *why)
{
    struct oct_view_answer answer = {.wish = OCT_WISH_RECORD};

    snprintf(answer.text, sizeof(answer.text), "%s", why);
    answer_recording(model, &answer);
}

/* octd does not answer: whatever waits would come too late, and fails with what was asked. */
static void fail_all(struct oct_view_model *model, enum oct_view_wish asked)
{
    struct oct_view_wishes *w = &model->wishes;
    char names[256];
    size_t used = (size_t)snprintf(names, sizeof(names), "%s", oct_view_wish_name(asked));

    for (unsigned i = 0; i < w->n && used < sizeof(names); i++)
        if (!strstr(names, oct_view_wish_name(w->waiting[i].wish)))
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
                                     oct_view_wish_name(w->waiting[i].wish));
    if (names[0])
        oct_view_model_say(model, "octd does not answer: %s may not be as wished", names);
    if (oct_view_wishes_find(w, OCT_WISH_RECORD))
        not_recorded(model, "no answer from octd");
    oct_view_wishes_drop(w, OCT_WISH_NONE);
}

static void say_refused(struct oct_view_model *model, const struct oct_view_answer *answer)
{
    const char *name = oct_view_wish_name(answer->wish);

    if (model->daemon.record.active &&
        (is_of_label(answer->wish) || answer->wish == OCT_WISH_AVERAGE ||
         answer->wish == OCT_WISH_VOLUMES))
        oct_view_model_say(model, "octd is recording: %s can be changed afterwards", name);
    else
        oct_view_model_say(model, "octd refused%s%s: %s", name[0] ? " " : "", name, answer->text);
    /* A recording with the label of before is of the wrong patient. */
    if (is_of_label(answer->wish) && oct_view_wishes_drop(&model->wishes, OCT_WISH_RECORD) > 0)
        not_recorded(model, "octd did not take the label");
}

static void say_granted(struct oct_view_model *model, const struct oct_view_answer *answer)
{
    const char *text = answer->text;
    char volumes[64];

    switch (answer->wish) {
    case OCT_WISH_EYE:
        oct_view_model_say(model, "octd confirms: eye %s", text[0] ? text : "not said");
        break;
    case OCT_WISH_PSEUDONYM:
        oct_view_model_say(model, "octd confirms: pseudonym %s", text[0] ? text : "not said");
        break;
    case OCT_WISH_AVERAGE:
        oct_view_model_say(model, "octd averages the last %s B-scans", text);
        break;
    case OCT_WISH_VOLUMES:
        oct_view_volumes_text(text, volumes, sizeof(volumes));
        oct_view_model_say(model, "octd confirms: a recording has %s", volumes);
        break;
    case OCT_WISH_START:
        oct_view_model_say(model, "octd receives from now on");
        break;
    case OCT_WISH_ENABLE:
        oct_view_model_say(model, "octd confirms: %s = yes", text);
        break;
    default: /* what was set stands in the window */
        break;
    }
}

static void hear_answer(struct oct_view_model *model, const struct oct_view_answer *answer)
{
    model->asked = OCT_WISH_NONE;
    if (is_of_enface(answer->wish))
        oct_view_enface_wishes_answer(&model->enface_wishes, answer->wish, answer->ok);
    model->sharpening.waits &= answer->ok || answer->wish != OCT_WISH_CALIBRATE;
    if (is_of_recording(answer->wish))
        answer_recording(model, answer);
    if (answer->wish == OCT_WISH_STOP && answer->ok) /* the status follows */
        model->recorded.stop_was_asked |= model->recorded.is_on;
    else if (answer->wish == OCT_WISH_STOP)
        model->recorded.stop_was_asked = false;
    if (answer->unanswered)
        fail_all(model, answer->wish);
    else if (answer->ok)
        say_granted(model, answer);
    else if (!is_of_recording(answer->wish))
        say_refused(model, answer);
}

void oct_view_model_hear(struct oct_view_model *model, const struct oct_view_daemon *daemon,
                         const struct oct_view_answer *answer)
{
    bool first = !model->daemon.known;
    const struct oct_view_enface_wishes before = model->enface_wishes;

    if (daemon->known && daemon->answer_ns != model->daemon.answer_ns) {
        watch(&model->missing, daemon->lines_missing, first, model->now_ns);
        watch(&model->dropped, daemon->bscans_dropped, first, model->now_ns);
        oct_view_disk_hear(&model->disk, daemon, model->now_ns);
        oct_view_line_rate_add(&model->line_rate, daemon->acquisitions,
                               daemon->lines_received + daemon->lines_missing, daemon->uptime_s,
                               daemon->lines);
        oct_view_recorded_hear(
            &model->recorded, &model->daemon, daemon,
            (answer->wish == OCT_WISH_STOP ? answer->ok : model->asked == OCT_WISH_STOP),
            model->now_ns);
        struct oct_view_contrast *contrast =
            model->playback.active ? &model->playback.live_contrast : &model->contrast;
        if (daemon->pixels_told)
            contrast->log = daemon->log;
        oct_view_enface_wishes_hear(&model->enface_wishes,
                                    daemon->enface_told ? &daemon->enface : NULL);
    }
    model->has_control = true;
    if (daemon->known) {
        oct_view_patient_hear(model, daemon);
        oct_view_save_last_hear(model, daemon);
        model->daemon = *daemon;
    } else {
        model->daemon.reachable = false;
    }
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
        oct_view_model_say(model, "%s",
                           model->settings.operators
                               ? "this window shows pictures only: call for help"
                               : "no control endpoint: start octview with --control ENDPOINT");
        return;
    }
    if (!oct_view_wishes_add(&model->wishes, wish, text))
        oct_view_model_say(model, "octd has not answered yet");
}

enum oct_view_wish oct_view_model_take_wish(struct oct_view_model *model,
                                            char text[OCT_VIEW_LABEL_BYTES])
{
    if (model->asked != OCT_WISH_NONE)
        return OCT_WISH_NONE;
    /* While a slab's key is held, some answer is always to come: other wishes go first. */
    model->asked = oct_view_wishes_take(&model->wishes, text);
    if (model->asked == OCT_WISH_NONE)
        model->asked =
            oct_view_enface_wishes_take(&model->enface_wishes, text, OCT_VIEW_LABEL_BYTES);
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
