#include "viewer/model/playback.h"

#include "viewer/model/model.h"

#include <math.h>

void oct_view_playback_go(struct oct_view_model *model, double bscan)
{
    struct oct_view_playback *p = &model->playback;
    const double last = p->file.n_bscans > 0 ? p->file.n_bscans - 1.0 : 0;

    if (p->active && !isnan(bscan))
        p->wanted = (uint32_t)(bscan < 0 ? 0 : bscan > last ? last : bscan);
}

void oct_view_playback_step(struct oct_view_model *model, int by)
{
    oct_view_playback_go(model, (double)model->playback.wanted + by);
}
