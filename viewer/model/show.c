#include "viewer/model/words.h"

#include "viewer/model/clock.h"
#include "viewer/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum oct_view_show oct_view_show_of_stream(const struct oct_view_model *model)
{
    const struct oct_view_daemon *d = &model->daemon;
    enum oct_view_state state = oct_view_model_state(model);
    bool is_silent = model->has_control && d->known && !d->reachable;
    bool is_unknown = !model->has_control || !d->known;

    if (!model->connected && (is_silent || (is_unknown && state == OCT_SIGNAL_STALLED)))
        return OCT_SHOW_GONE;
    switch (state) {
    case OCT_SIGNAL_LIVE:
        return OCT_SHOW_LIVE;
    case OCT_SIGNAL_STALLED:
        return OCT_SHOW_NO_SIGNAL;
    case OCT_SIGNAL_WAITING:
        break;
    }
    return OCT_SHOW_WAITING;
}

enum oct_view_show oct_view_show(const struct oct_view_model *model)
{
    if (model->playback.active)
        return OCT_SHOW_PLAYBACK;
    if (!model->has_picture)
        return OCT_SHOW_WAITING;
    if (model->frozen)
        return OCT_SHOW_FROZEN;
    enum oct_view_show show = oct_view_show_of_stream(model);
    return show == OCT_SHOW_LIVE && model->average.arrival_ns > 0 ? OCT_SHOW_AVERAGED : show;
}

const char *oct_view_show_name(enum oct_view_show show)
{
    static const char *const names[OCT_N_SHOWS] = {
        [OCT_SHOW_WAITING] = "waiting",     [OCT_SHOW_LIVE] = "live",
        [OCT_SHOW_AVERAGED] = "averaged",   [OCT_SHOW_FROZEN] = "frozen",
        [OCT_SHOW_NO_SIGNAL] = "no signal", [OCT_SHOW_GONE] = "octd gone",
        [OCT_SHOW_PLAYBACK] = "playback",
    };

    return names[show];
}

/* ---- the veil ---- */

/* What became of the stream under a picture that is held: the user may want to go on, and would
 * find nothing. */
static void tell_stream(const struct oct_view_model *model, struct oct_view_veil *veil)
{
    const enum oct_view_show stream = oct_view_show_of_stream(model);
    size_t used = strlen(veil->more);

    if (stream == OCT_SHOW_NO_SIGNAL || stream == OCT_SHOW_GONE)
        snprintf(veil->more + used, sizeof(veil->more) - used, "%s%s", used ? ", " : "",
                 stream == OCT_SHOW_GONE ? "OCTD IS GONE" : "NO SIGNAL");
}

static void tell_frozen(const struct oct_view_model *model, struct oct_view_veil *veil)
{
    const uint64_t came_ns = model->shown.arrival_ns;

    *veil = (struct oct_view_veil){.tone = OCT_TONE_WARN, .words = "FROZEN"};
    if (came_ns < model->frozen_ns)
        snprintf(veil->more, sizeof(veil->more), "%.2f s back",
                 (double)(model->frozen_ns - came_ns) / (double)OCT_NS_PER_S);
    tell_stream(model, veil);
}

bool oct_view_show_veil(const struct oct_view_model *model, struct oct_view_veil *veil)
{
    const struct oct_view_daemon *d = &model->daemon;
    const bool is_idle = d->reachable && strcmp(d->state, "idle") == 0;
    const double silence_s = floor(oct_view_model_silence_s(model));

    switch (oct_view_show(model)) {
    case OCT_SHOW_FROZEN:
        tell_frozen(model, veil);
        return true;
    case OCT_SHOW_PLAYBACK:
        *veil = (struct oct_view_veil){.plays = true, .words = "PLAYBACK"};
        return true;
    case OCT_SHOW_GONE:
        *veil = (struct oct_view_veil){true, false, OCT_TONE_BAD, "OCTD IS GONE", ""};
        snprintf(veil->more, sizeof(veil->more), "the last picture is %.0f s old", silence_s);
        return true;
    case OCT_SHOW_NO_SIGNAL:
        *veil = (struct oct_view_veil){true, false, OCT_TONE_BAD, "NO SIGNAL", ""};
        if (is_idle)
            snprintf(veil->more, sizeof(veil->more), "octd is idle: press Start");
        else
            snprintf(veil->more, sizeof(veil->more), "the last picture is %.0f s old", silence_s);
        return true;
    case OCT_SHOW_WAITING:
    case OCT_SHOW_LIVE:
    case OCT_SHOW_AVERAGED:
    case OCT_N_SHOWS:
        break;
    }
    return false;
}
