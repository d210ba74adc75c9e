#include "viewer/model/show.h"

#include "viewer/model/model.h"

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
