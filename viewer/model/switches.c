#include "viewer/model/overlay.h"

#include "viewer/model/clock.h"
#include "viewer/model/model.h"

#include <stdio.h>
#include <string.h>

#define OFFERED_NS (4 * OCT_NS_PER_S)

struct a_switch {
    enum oct_view_action action;
    char key;
    const char *analysis, *what, *drawn, *not_drawn;
};

static const struct a_switch switches[] = {
    {OCT_ACTION_CELLS, 'C', OCT_VIEW_TOPIC_CELLS, "follows no cells", "cells that octd follows",
     "cells are not drawn"},
    {OCT_ACTION_LAYERS, 'I', OCT_VIEW_TOPIC_LAYERS, "finds no layers",
     "ILM and RPE, as octd finds them", "layers are not drawn"},
    {OCT_ACTION_ROLLOFF, 'Z', OCT_VIEW_TOPIC_ROLLOFF, "measures no mirror",
     "the mirror that octd measures, with its roll-off", "no mirror is drawn"},
};

static bool *setting_of(struct oct_view_model *model, enum oct_view_action action)
{
    struct oct_view_settings *s = &model->settings;

    return action == OCT_ACTION_CELLS    ? &s->cells
           : action == OCT_ACTION_LAYERS ? &s->layers
                                         : &s->rolloff;
}

/* What keeps a switch that is on from showing something now; "": nothing is known to. */
static const char *but(const struct oct_view_model *model, enum oct_view_action action)
{
    if (action == OCT_ACTION_ROLLOFF && model->settings.arrangement != OCT_ARRANGEMENT_FOUR)
        return ": in the profile, which L shows";
    if (action == OCT_ACTION_CELLS && model->daemon.reachable && model->cells.n == 0)
        return ": none now";
    return "";
}

static void toggle(struct oct_view_model *model, const struct a_switch *s)
{
    bool *on = setting_of(model, s->action);
    const char *besides = but(model, s->action); /* of cells that came until now */

    *on = !*on;
    if (s->action == OCT_ACTION_CELLS && !model->frozen)
        model->cells = (struct oct_view_cells){.n = 0}; /* no tails over the time without */
    if (*on)
        oct_view_model_say(model, "%s%s", s->drawn, besides);
    else
        oct_view_model_say(model, "%s", s->not_drawn);
    model->lead = (struct oct_view_lead){.is_steady = false}; /* found anew */
}

/* octd is there and does not compute it. */
static void offer(struct oct_view_model *model, const struct a_switch *s, bool runs)
{
    struct oct_view_offer *o = &model->offer;
    const bool again = o->action == s->action && model->now_ns < o->until_ns;
    char key[OCT_VIEW_LABEL_BYTES];

    *o = (struct oct_view_offer){.action = s->action};
    snprintf(key, sizeof(key), "%s.enabled", s->analysis);
    if (!runs) {
        oct_view_model_say(model, "octd %s: analysis.run lacks %s", s->what, s->analysis);
    } else if (again) {
        *setting_of(model, s->action) = true;
        oct_view_model_say(model, "octd is asked for %s = yes", key);
        oct_view_model_wish(model, OCT_WISH_ENABLE, key);
    } else {
        o->until_ns = model->now_ns + OFFERED_NS;
        oct_view_model_say(model, "octd %s: %c again sets %s = yes", s->what, s->key, key);
    }
}

bool oct_view_switches_apply(struct oct_view_model *model, enum oct_view_action action)
{
    const struct oct_view_daemon *d = &model->daemon;
    const struct a_switch *s = NULL;

    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
        if (switches[i].action == action)
            s = &switches[i];
    if (!s)
        return false;
    const struct oct_view_analysis *row = oct_view_daemon_analysis(d, s->analysis);
    if (d->reachable && d->analyses_told && (!row || row->at_rest))
        offer(model, s, row != NULL);
    else
        toggle(model, s);
    if (d->reachable && row && row->failing && *setting_of(model, s->action))
        oct_view_model_say(model, "octd cannot compute %s: %s", s->analysis, row->error);
    return true;
}
