#include "viewer/model/daemon.h"

#include <math.h>
#include <stdio.h>

#define LEAST_HALF 0.005

void oct_view_enface_wishes_hear(struct oct_view_enface_wishes *w,
                                 const struct oct_view_enface_settings *octds)
{
    w->known = octds != NULL;
    if (!octds) {
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

void oct_view_enface_wishes_move(struct oct_view_enface_wishes *w, double shift, double grow)
{
    const struct oct_view_slab *slab = &w->wanted.slab;
    double middle = (slab->first + slab->last) / 2 + shift;
    double half = (slab->last - slab->first) / 2 + grow;

    half = half < LEAST_HALF ? LEAST_HALF : half > 0.5 ? 0.5 : half;
    middle = middle < half ? half : middle > 1 - half ? 1 - half : middle;
    w->wanted.slab = (struct oct_view_slab){rounded(middle - half), rounded(middle + half)};
    w->wants_first = w->wants_last = true;
    want_projection(w, OCT_PROJECTION_SLAB);
}

enum oct_view_wish oct_view_enface_wishes_take(struct oct_view_enface_wishes *w, char *text,
                                               size_t n_bytes)
{
    /* A first share beyond octd's last one would be refused: then the last share goes first. */
    bool last_goes_first = w->wanted.slab.first >= w->octds.slab.last;

    w->sent = w->wanted;
    if (w->wants_projection) {
        snprintf(text, n_bytes, "%s", oct_view_projection_keys[w->sent.projection]);
        return OCT_WISH_PROJECTION;
    }
    if (w->wants_first && !(w->wants_last && last_goes_first)) {
        snprintf(text, n_bytes, "%.4f", w->sent.slab.first);
        return OCT_WISH_SLAB_FIRST;
    }
    if (w->wants_last) {
        snprintf(text, n_bytes, "%.4f", w->sent.slab.last);
        return OCT_WISH_SLAB_LAST;
    }
    return OCT_WISH_NONE;
}

void oct_view_enface_wishes_answer(struct oct_view_enface_wishes *w, enum oct_view_wish wish,
                                   bool ok)
{
    if (!ok) {
        w->wants_projection = w->wants_first = w->wants_last = false;
        w->wanted = w->octds;
        return;
    }
    switch (wish) {
    case OCT_WISH_PROJECTION:
        w->octds.projection = w->sent.projection;
        w->wants_projection = w->wanted.projection != w->sent.projection;
        break;
    case OCT_WISH_SLAB_FIRST:
        w->octds.slab.first = w->sent.slab.first;
        w->wants_first = w->wanted.slab.first != w->sent.slab.first;
        break;
    case OCT_WISH_SLAB_LAST:
        w->octds.slab.last = w->sent.slab.last;
        w->wants_last = w->wanted.slab.last != w->sent.slab.last;
        break;
    default:
        break;
    }
}
